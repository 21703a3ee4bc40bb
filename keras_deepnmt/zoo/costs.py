"""What presets cost beside the plain model of their backbone, as measured."""

import csv
import importlib.resources

TABLE = "measured_costs.csv"


def measured_costs():
    """Reads the table that `benchmarks/speed/preset_cost.py` measured.

    Returns:
        Dict of presets' names to dicts of strings, by column: `parameters` and
        `extra_parameters` over the plain model at `vocabulary_size` entries a
        side; `step_ratio` and `decode_ratio`, the time of a training step and
        of beam search divided by the plain model's; `step_compile_seconds`.
        Empty where a preset was counted but not timed. Plain is a Transformer
        with empty slots, or, for convolutional models, the residual one.

    Example:
    >>> measured_costs()["transformer_tiny"]["extra_parameters"]
    '0'
    """
    file = importlib.resources.files("keras_deepnmt.zoo") / TABLE
    with file.open(encoding="utf-8", newline="") as rows:
        return {row["preset"]: row for row in csv.DictReader(rows)}
