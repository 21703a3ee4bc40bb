"""Reads the keys that earlier recipes had."""

import re
from typing import Any

from keras_deepnmt.recipes.checking import Position

_TERMS = ("scheduled_sampling", "distillation", "r_drop")
_RENAMED = {"training.dtype_policy": "training.precision"}
_EARLIER = re.compile(rf"training\.({'|'.join(_TERMS)})(\.|$)")


def present_key(key: str) -> str:
    """Returns a dotted key as it is written now."""
    key = _RENAMED.get(key, key)
    key = _EARLIER.sub(r"training.objective.\1\2", key)
    return re.sub(r"(\.distillation)\.run$", r"\1.teacher", key)


def present_value(key: str, value: Any) -> Any:
    """Returns the value of an earlier key as it is written now."""
    if key == "training.r_drop":
        # Zero meant no second forward.
        return {"alpha": value} if value else None
    if key == "training.distillation" and isinstance(value, dict):
        return {"teacher" if k == "run" else k: v for k, v in value.items()}
    return value


def move_earlier_keys(content: Any, positions: dict[str, Position]) -> None:
    """Replaces earlier keys in the content of a file by the present ones.

    What the file gives with both keys is left as it is.
    """
    training = content.get("training") if isinstance(content, dict) else None
    if not isinstance(training, dict):
        return
    for old, new in _RENAMED.items():
        before, after = (key.removeprefix("training.") for key in (old, new))
        if before in training and after not in training:
            training[after] = training.pop(before)
            positions[new] = positions.pop(old)
    objective = training.get("objective", {})
    for name in _TERMS if isinstance(objective, dict) else ():
        key = f"training.{name}"
        if name in training and name not in objective:
            objective[name] = present_value(key, training.pop(name))
            training["objective"] = objective
            for old in [k for k in positions if f"{k}.".startswith(f"{key}.")]:
                positions[present_key(old)] = positions.pop(old)
