"""The `training` part of a recipe: every key, its type and its default."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class OptimizerRecipe:
    """The rule that turns gradients into updates.

    Args:
        name: `adam`.
        beta_1: decay of Adam's mean of gradients.
        beta_2: decay of Adam's mean of squared gradients.
        epsilon: Adam's epsilon.
        global_clipnorm: largest norm of the whole gradient; unlimited if null.
    """

    name: Literal["adam"] = "adam"
    beta_1: float = 0.9
    beta_2: float = 0.98
    epsilon: float = 1e-9
    global_clipnorm: float | None = None

    def __post_init__(self):
        check_above_zero(self, "epsilon", "global_clipnorm")
        check_fractions(self, "beta_1", "beta_2")


@dataclass(frozen=True)
class LearningRateRecipe:
    """The learning rate over the updates.

    Args:
        schedule: `inverse_square_root`: from the end of the warm-up the rate
            falls with the square root of the update.
        peak: the rate at the end of the warm-up.
        warmup_steps: updates of the linear rise.
    """

    schedule: Literal["inverse_square_root"] = "inverse_square_root"
    peak: float = 0.001
    warmup_steps: int = 4000

    def __post_init__(self):
        check_above_zero(self, "peak", "warmup_steps")


@dataclass(frozen=True)
class TrainingRecipe:
    """How the network is trained.

    Args:
        steps: updates of the whole run.
        batch_tokens: most tokens, padding included, on either side of a batch.
        max_shapes: most batch shapes, that is, compilations of the step.
        optimizer: the rule of the update.
        learning_rate: the rate over the updates.
        label_smoothing: mass of the uniform distribution in the labels.
        strategy: `one_device`; or `mirrored`, several devices of one machine.
        replicas: devices of `mirrored`; null takes all accelerators.
        gradient_accumulation_steps: parts of a batch that are computed one
            after another, so that larger batches fit in memory.
        dtype_policy: the type computed in; weights stay float32.
        jit_compile: whether XLA compiles the step.
        validate_every: updates between two validations.
        validation_beams: beams of the BLEU while training; 1 is greedy.
        validation_budget: most of the wall time that this BLEU may take; where
            all sentences take more, seeded ones are drawn at the first
            validation and kept; null always takes all.
        checkpoint_every: updates between two checkpoints, counted back from
            the last update.
        average_checkpoints: how many of the last checkpoints are averaged into
            the final model; 1 takes the last as it is.
        early_stopping_patience: validations without a better value before the
            run stops; null never stops early.
        early_stopping_metric: what must get better.
    """

    steps: int
    batch_tokens: int = 4096
    max_shapes: int = 8
    optimizer: OptimizerRecipe = field(default_factory=OptimizerRecipe)
    learning_rate: LearningRateRecipe = field(
        default_factory=LearningRateRecipe
    )
    label_smoothing: float = 0.1
    strategy: Literal["one_device", "mirrored"] = "one_device"
    replicas: int | None = None
    gradient_accumulation_steps: int = 1
    dtype_policy: Literal["float32", "mixed_bfloat16"] = "float32"
    jit_compile: bool = True
    validate_every: int = 1000
    validation_beams: int = 1
    validation_budget: float | None = 0.05
    checkpoint_every: int = 1000
    average_checkpoints: int = 1
    early_stopping_patience: int | None = None
    early_stopping_metric: Literal["val_bleu", "val_loss"] = "val_bleu"

    def __post_init__(self):
        check_above_zero(
            self,
            *"steps batch_tokens max_shapes validate_every validation_beams "
            "checkpoint_every average_checkpoints early_stopping_patience "
            "replicas gradient_accumulation_steps".split(),
        )
        check_fractions(self, "label_smoothing")
        if self.validation_budget is not None:
            check_above_zero(self, "validation_budget")
            check_fractions(self, "validation_budget")


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
    """Checks values that must lie in [0, 1).

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
        if not 0 <= value < 1:
            raise ValueError(f"`{name}` must lie in [0, 1). Received: {value}")
