"""Reads the keys that terms of the objective had in earlier recipes."""

from typing import Any

from keras_deepnmt.recipes.checking import Position

_TERMS = ("scheduled_sampling", "distillation", "r_drop")


def present_key(key: str, value: Any) -> tuple[str, Any]:
    """Returns a dotted key and its value as they are written now.

    Example:
    >>> present_key("training.r_drop", 5.0)
    ('training.objective.r_drop', {'alpha': 5.0})
    """
    section, _, rest = key.partition(".")
    name, _, option = rest.partition(".")
    if section != "training" or name not in _TERMS:
        return key, value
    if name == "r_drop" and not isinstance(value, dict):
        # Zero meant no second forward.
        value = {"alpha": value} if value else None
    if name == "distillation":
        option = "teacher" if option == "run" else option
        if isinstance(value, dict):
            value = {
                "teacher" if k == "run" else k: v for k, v in value.items()
            }
    return f"training.objective.{name}" + (option and f".{option}"), value


def move_earlier_keys(content: Any, positions: dict[str, Position]) -> None:
    """Changes the content of a file to the keys of now.

    A term that the file gives with both keys is left as it is.
    """
    training = content.get("training") if isinstance(content, dict) else None
    if not isinstance(training, dict):
        return
    objective = training.get("objective", {})
    for name in _TERMS:
        if name not in training or name in objective:
            continue
        old = f"training.{name}"
        new, value = present_key(old, training.pop(name))
        training.setdefault("objective", {})[name] = value
        for key in [k for k in positions if f"{k}.".startswith(f"{old}.")]:
            moved, _ = present_key(key, {})
            positions[moved] = positions.pop(key)
