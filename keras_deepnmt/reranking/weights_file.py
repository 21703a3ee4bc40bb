"""The file of tuned weights that `deepnmt tune` writes."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_deepnmt.decoding.options import SearchOptions
from keras_deepnmt.errors import UserError
from keras_deepnmt.json_files import read_json

DIRECTIONS = ("search", "forward", "reverse")
# The options that the scores depend on, see `Reranker`.
_SCORE_OPTIONS = ("length_penalty", "length_offset", "coverage_penalty")


def weights_text(
    weights: Sequence[float],
    models: Sequence[tuple[str, str]],
    options: SearchOptions,
    tuning: Mapping[str, Any],
) -> str:
    """Returns the content of a file of weights, JSON with a line end.

    `models` are the run folder and one of `DIRECTIONS` for each model,
    `options` those of the model that translates, and `tuning` tells how the
    weights were found.
    """
    content = {
        "models": [
            {"run": run, "direction": direction, "weight": weight}
            for weight, (run, direction) in zip(weights, models, strict=True)
        ],
        **{name: getattr(options, name) for name in _SCORE_OPTIONS},
        "tuning": dict(tuning),
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def read_weights(
    file: str | Path, directions: Sequence[str], options: SearchOptions
) -> list[float]:
    """Reads the weights of models from a file with the text of `weights_text`.

    There is one for each of the `directions`. `options` are those of the model
    that translates. Weights that were tuned for other directions or score
    options raise a `UserError`.
    """
    if not Path(file).is_file():
        raise UserError(f"{file}: no such file of weights.")
    content = read_json(file)
    try:
        models = [
            (model["direction"], float(model["weight"]))
            for model in content["models"]
        ]
        tuned = {name: float(content[name]) for name in _SCORE_OPTIONS}
    except (TypeError, KeyError, ValueError) as error:
        raise UserError(
            f"{file}: not a file of weights, which `deepnmt tune` writes."
        ) from error
    if [direction for direction, _ in models] != list(directions):
        raise UserError(
            f"{file}: has weights for the models "
            f"{_names(d for d, _ in models)}. Received: {_names(directions)}. "
            "Give the same models in the same order, or tune again."
        )
    for name, value in tuned.items():
        if getattr(options, name) != value:
            option = f"--{name.replace('_', '-')}"
            raise UserError(
                f"{file}: tuned with {option} {value:g}, which the scores "
                f"depend on. Received: {getattr(options, name):g}. Give "
                f"{option} {value:g}, or tune again."
            )
    return [weight for _, weight in models]


def _names(directions):
    return ", ".join(map(str, directions))
