"""The `training` part of a recipe: every key, its type and its default."""

from dataclasses import dataclass, field
from typing import Any, Literal

# The keys that mean something to one kind of optimizer or schedule alone, with
# the values they then have by default.
_OPTIMIZER_KEYS: dict[str, dict[str, Any]] = {
    "adam": {"beta_1": 0.9, "beta_2": 0.98, "epsilon": 1e-9},
    "adamw": {
        "beta_1": 0.9,
        "beta_2": 0.98,
        "epsilon": 1e-9,
        "weight_decay": 0.01,
    },
    "nesterov": {"momentum": 0.99},
}
_SCHEDULE_KEYS: dict[str, dict[str, Any]] = {
    "inverse_square_root": {"warmup_steps": 4000},
    "constant": {"warmup_steps": 1},
    "plateau": {
        "warmup_steps": 1,
        "divide_by": 10.0,
        "minimum": 1e-4,
        "keep_dividing": False,
    },
}


@dataclass(frozen=True)
class OptimizerRecipe:
    """The rule that turns gradients into updates.

    Args:
        name: `adam`; `adamw`, whose weights decay, biases and norms excepted;
            or `nesterov`, accelerated gradient descent.
        beta_1: decay of the mean of gradients of `adam` and `adamw`, 0.9 by
            default.
        beta_2: decay of their mean of squared gradients, 0.98 by default.
        epsilon: their epsilon, 1e-9 by default.
        weight_decay: share of the weights, times the rate, that an update of
            `adamw` takes away; 0.01 by default.
        momentum: share of the velocity that `nesterov` keeps; 0.99 by default.
        global_clipnorm: largest norm of the whole gradient; unlimited if null.
    """

    name: Literal["adam", "adamw", "nesterov"] = "adam"
    beta_1: float | None = None
    beta_2: float | None = None
    epsilon: float | None = None
    weight_decay: float | None = None
    momentum: float | None = None
    global_clipnorm: float | None = None

    def __post_init__(self):
        _take_keys(self, "name", _OPTIMIZER_KEYS)
        check_above_zero(self, "epsilon", "weight_decay", "global_clipnorm")
        check_fractions(self, "beta_1", "beta_2", "momentum")


@dataclass(frozen=True)
class LearningRateRecipe:
    """The learning rate over the updates.

    Args:
        schedule: `inverse_square_root`: from the end of the warm-up the rate
            falls with the square root of the update; `constant`: it stays; or
            `plateau`: it is divided each time the validation loss increases.
        peak: the rate at the end of the warm-up.
        warmup_steps: updates of the linear rise; by default 4000 of
            `inverse_square_root`, and 1, that is none, of the others.
        divide_by: what `plateau` divides by; 10 by default.
        minimum: rate under which `plateau` ends the run; 1e-4 by default.
        keep_dividing: whether `plateau` divides at every validation after the
            first increase; false by default.
    """

    schedule: Literal["inverse_square_root", "constant", "plateau"] = (
        "inverse_square_root"
    )
    peak: float = 0.001
    warmup_steps: int | None = None
    divide_by: float | None = None
    minimum: float | None = None
    keep_dividing: bool | None = None

    def __post_init__(self):
        _take_keys(self, "schedule", _SCHEDULE_KEYS)
        check_above_zero(self, "peak", "warmup_steps", "minimum")
        if self.divide_by is not None and not self.divide_by > 1:
            raise ValueError(
                f"`divide_by` must be above 1. Received: {self.divide_by}"
            )


@dataclass(frozen=True)
class DivergenceRecipe:
    """What is done about a loss that is no number, or far too high.

    Args:
        threshold: times its running mean that a loss is too high; null looks
            only for a loss that is not finite.
        patience: updates one after another whose loss is too high.
        decay: decay of the running mean.
        rate_factor: what a rollback multiplies the learning rate by.
        most_rollbacks: rollbacks after which the run ends.
    """

    threshold: float | None = None
    patience: int = 10
    decay: float = 0.99
    rate_factor: float = 0.5
    most_rollbacks: int = 3

    def __post_init__(self):
        check_above_zero(self, "patience", "decay", "rate_factor")
        check_fractions(self, "decay", "rate_factor")
        if self.threshold is not None and not self.threshold > 1:
            raise ValueError(
                f"`threshold` must be above 1. Received: {self.threshold}"
            )
        if self.most_rollbacks < 0:
            raise ValueError(
                "`most_rollbacks` must not be negative. "
                f"Received: {self.most_rollbacks}"
            )


@dataclass(frozen=True)
class TrainingRecipe:
    """How the network is trained.

    Args:
        steps: updates of the whole run.
        batch_tokens: most tokens, padding included, on either side of a batch;
            or `auto`: those of `effective_batch_tokens`, computed in as few
            parts as fit in memory, which is found by trying.
        effective_batch_tokens: with `auto`, tokens of the batch of an update.
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
        divergence: what is done about a loss that is no number.
    """

    steps: int
    batch_tokens: int | Literal["auto"] = 4096
    effective_batch_tokens: int | None = None
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
    divergence: DivergenceRecipe = field(default_factory=DivergenceRecipe)

    def __post_init__(self):
        check_above_zero(
            self,
            *"steps effective_batch_tokens max_shapes validate_every "
            "validation_beams "
            "checkpoint_every average_checkpoints early_stopping_patience "
            "replicas gradient_accumulation_steps".split(),
        )
        check_fractions(self, "label_smoothing")
        self._check_batch()
        if self.validation_budget is not None:
            check_above_zero(self, "validation_budget")
            check_fractions(self, "validation_budget")

    def _check_batch(self):
        effective = self.effective_batch_tokens
        if self.batch_tokens != "auto":
            check_above_zero(self, "batch_tokens")
            if effective is not None:
                raise ValueError(
                    "`effective_batch_tokens` belongs to `batch_tokens: auto`. "
                    f"Received: {effective} with `batch_tokens: "
                    f"{self.batch_tokens}`. Leave it out."
                )
        elif effective is None:
            raise ValueError(
                "`effective_batch_tokens` must be given with `batch_tokens: "
                "auto`. Received: null. Give the tokens of an update's batch."
            )
        elif self.gradient_accumulation_steps != 1:
            raise ValueError(
                "`gradient_accumulation_steps` is found by `batch_tokens: "
                f"auto`. Received: {self.gradient_accumulation_steps}. Leave "
                "it out."
            )


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


def _take_keys(recipe, choice, keys):
    """Fills in what the choice means by default, refuses other kinds' keys."""
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
