"""Checks of the values of recipe keys."""

import math

# Counts and ids are int32 in TensorFlow.
LARGEST = 2**31 - 1


def check_above_zero(recipe, *names: str) -> None:
    """Raises a `ValueError` if one of the keys is given and not above zero."""
    check(recipe, names, lambda value: value > 0, "be above zero")


def check_above_one(recipe, *names: str) -> None:
    """Raises a `ValueError` if one of the keys is given and not above one."""
    check(recipe, names, lambda value: value > 1, "be above 1")


def check_not_negative(recipe, *names: str) -> None:
    """Raises a `ValueError` if one of the keys is given and below zero."""
    check(recipe, names, lambda value: value >= 0, "not be negative")


def check_fractions(recipe, *names: str) -> None:
    """Raises a `ValueError` if one of the keys is given and not in [0, 1)."""
    check(recipe, names, lambda value: 0 <= value < 1, "lie in [0, 1)")


def check_shares(recipe, *names: str) -> None:
    """Raises a `ValueError` if one of the keys is given and not in [0, 1]."""
    check(recipe, names, lambda value: 0 <= value <= 1, "lie in [0, 1]")


def check(recipe, names, is_allowed, rule: str) -> None:
    """Raises a `ValueError` if a key is given and breaks the rule.

    Infinite numbers, and those that an int32 does not hold, are refused too.
    """
    for name in names:
        value = getattr(recipe, name)
        if value is None:
            continue
        if isinstance(value, float) and not math.isfinite(value):
            rule = "be finite"
        elif value > LARGEST:
            rule = f"be at most {LARGEST:,}"
        elif is_allowed(value):
            continue
        raise ValueError(f"`{name}` must {rule}. Received: {value}")


def keys_of_all(choices):
    """Returns the keys that belong to any of the choices, see `take_keys`."""
    return tuple(
        dict.fromkeys(key for keys in choices.values() for key in keys)
    )


def take_keys(recipe, choice, keys):
    """Fills in the defaults of a choice and refuses the keys of other choices.

    `choice` is the key that chooses. `keys` maps each of its values to the
    keys that belong to it and their defaults. Raises a `ValueError` if a key
    of another choice is given.
    """
    chosen = getattr(recipe, choice)
    for name in {name for names in keys.values() for name in names}:
        value = getattr(recipe, name)
        if name in keys[chosen]:
            if value is None:
                # The run folder's copy of the recipe holds every value.
                object.__setattr__(recipe, name, keys[chosen][name])
        elif value is not None:
            owners = " or ".join(
                k for k, names in keys.items() if name in names
            )
            raise ValueError(
                f"`{name}` belongs to `{choice}: {owners}`. Received: "
                f"{value} with `{choice}: {chosen}`. Leave it out."
            )


def choose_final_model(recipe):
    """Fills in the default of `final_model`, and refuses one without sense.

    Raises a `ValueError` for the mean of the last checkpoints of a run that
    stops early.
    """
    stops_early = recipe.early_stopping_patience is not None
    if recipe.final_model is None:
        default = "best" if stops_early else "average_last"
        # The run folder's copy of the recipe holds every value.
        object.__setattr__(recipe, "final_model", default)
    elif stops_early and recipe.final_model == "average_last":
        raise ValueError(
            "`final_model` must be best or average_best with "
            "`early_stopping_patience`, since the last checkpoints come after "
            "the best validation. Received: average_last"
        )
