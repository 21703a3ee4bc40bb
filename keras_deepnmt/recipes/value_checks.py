"""Checks of the values in a recipe."""


def check_above_zero(recipe, *names: str) -> None:
    """Checks values that must be above zero where they are given.

    Args:
        recipe: a part of a recipe.
        *names: its keys.

    Raises:
        ValueError: if one is zero or below.

    Example:
    >>> check_above_zero(LearningRateRecipe(), "peak", "warmup_steps")
    """
    for name in names:
        value = getattr(recipe, name)
        if value is not None and not value > 0:
            raise ValueError(f"`{name}` must be above zero. Received: {value}")


def check_fractions(recipe, *names: str) -> None:
    """Checks values that must lie in [0, 1) where they are given.

    Args:
        recipe: a part of a recipe.
        *names: its keys.

    Raises:
        ValueError: if one does not.

    Example:
    >>> check_fractions(OptimizerRecipe(), "beta_1", "beta_2")
    """
    for name in names:
        value = getattr(recipe, name)
        if value is not None and not 0 <= value < 1:
            raise ValueError(f"`{name}` must lie in [0, 1). Received: {value}")


def take_keys(recipe, choice, keys):
    """Fills in what a choice means by default, refuses other choices' keys.

    Args:
        recipe: a part of a recipe.
        choice: the key that chooses.
        keys: dict from each choice to the keys that belong to it, and their
            defaults.

    Raises:
        ValueError: if a key of another choice is given.

    Example:
    >>> take_keys(LearningRateRecipe("plateau"), "schedule", {"plateau": {}})
    """
    chosen = getattr(recipe, choice)
    for name in {name for names in keys.values() for name in names}:
        value = getattr(recipe, name)
        if name in keys[chosen]:
            if value is None:
                # A run's copy of its recipe says everything outright.
                object.__setattr__(recipe, name, keys[chosen][name])
        elif value is not None:
            owners = " or ".join(
                k for k, names in keys.items() if name in names
            )
            raise ValueError(
                f"`{name}` belongs to `{choice}: {owners}`. Received: "
                f"{value} with `{choice}: {chosen}`. Leave it out."
            )


def check_shares(recipe, *names: str) -> None:
    """Checks values that must lie in [0, 1] where they are given.

    Args:
        recipe: a part of a recipe.
        *names: its keys.

    Raises:
        ValueError: if one does not.

    Example:
    >>> check_shares(DistillationRecipe("runs/teacher"), "weight")
    """
    for name in names:
        value = getattr(recipe, name)
        if value is not None and not 0 <= value <= 1:
            raise ValueError(f"`{name}` must lie in [0, 1]. Received: {value}")
