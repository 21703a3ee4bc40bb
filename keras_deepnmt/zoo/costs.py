"""Measured costs of the presets, relative to the plain model."""

import csv
import importlib.resources

TABLE = "measured_costs.csv"


def measured_costs():
    """Reads the costs of all presets, see `benchmarks/speed/preset_cost.py`.

    Returns a dict from preset name to a dict of strings with these columns:
    `parameters` with `vocabulary_size` entries on each side, and
    `extra_parameters` over the plain model; `step_ratio` and `decode_ratio`,
    the time of a training step and of beam search divided by the plain
    model's; `step_compile_seconds`. Times are empty for presets that were not
    timed. The plain model is a Transformer with empty slots or, for
    convolutional models, the residual one.
    """
    file = importlib.resources.files("keras_deepnmt.zoo") / TABLE
    with file.open(encoding="utf-8", newline="") as rows:
        return {row["preset"]: row for row in csv.DictReader(rows)}
