"""The sections inside the `training` part of a recipe."""

from dataclasses import dataclass
from typing import Any, Literal

from keras_deepnmt.recipes.value_checks import (
    check_above_zero,
    check_fractions,
    check_shares,
    take_keys,
)

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
    "inverse_square_root": {"peak": 0.001, "warmup_steps": 4000},
    "noam": {"scale": 1.0, "warmup_steps": 4000},
    "constant": {"peak": 0.001, "warmup_steps": 1},
    "plateau": {
        "peak": 0.001,
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
        average_momentum: if given, an exponential moving average of the
            weights is validated and becomes the final model; 0.999 averages
            the last thousand updates or so.
    """

    name: Literal["adam", "adamw", "nesterov"] = "adam"
    beta_1: float | None = None
    beta_2: float | None = None
    epsilon: float | None = None
    weight_decay: float | None = None
    momentum: float | None = None
    global_clipnorm: float | None = None
    average_momentum: float | None = None

    def __post_init__(self):
        take_keys(self, "name", _OPTIMIZER_KEYS)
        check_above_zero(
            self,
            *"epsilon weight_decay global_clipnorm average_momentum".split(),
        )
        check_fractions(
            self, "beta_1", "beta_2", "momentum", "average_momentum"
        )


@dataclass(frozen=True)
class LearningRateRecipe:
    """The learning rate over the updates.

    Args:
        schedule: `inverse_square_root`: from the end of the warm-up the rate
            falls with the square root of the update; `noam`: the same, with
            the peak `scale / sqrt(hidden_dim * warmup_steps)` (Vaswani et al.,
            2017, Equation 3); `constant`: it stays; or `plateau`: it is
            divided each time the validation loss increases.
        peak: the rate at the end of the warm-up; 0.001 by default.
        scale: factor on the rate of `noam`; 1 by default.
        warmup_steps: updates of the linear rise; by default 4000 of
            `inverse_square_root` and `noam`, and 1, that is none, of the
            others.
        divide_by: what `plateau` divides by; 10 by default.
        minimum: rate under which `plateau` ends the run; 1e-4 by default.
        keep_dividing: whether `plateau` divides at every validation after the
            first increase; false by default.
    """

    schedule: Literal["inverse_square_root", "noam", "constant", "plateau"] = (
        "inverse_square_root"
    )
    peak: float | None = None
    scale: float | None = None
    warmup_steps: int | None = None
    divide_by: float | None = None
    minimum: float | None = None
    keep_dividing: bool | None = None

    def __post_init__(self):
        take_keys(self, "schedule", _SCHEDULE_KEYS)
        check_above_zero(self, "peak", "scale", "warmup_steps", "minimum")
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
class TemperatureRecipe:
    """A temperature of relaxed samples that falls with the updates.

    Args:
        start: temperature of the first update.
        factor: what each update multiplies it by.
        minimum: what it does not fall below.
    """

    start: float = 5.0
    factor: float = 0.9995
    minimum: float = 0.5

    def __post_init__(self):
        check_above_zero(self, "start", "factor", "minimum")
        check_fractions(self, "factor")
        if self.minimum > self.start:
            raise ValueError(
                "`minimum` must be at most `start`. Received: "
                f"{self.minimum} with `start: {self.start}`"
            )


@dataclass(frozen=True)
class ScheduledSamplingRecipe:
    """Target inputs replaced by the model's own predictions.

    Args:
        probability: the largest share that is replaced.
        start_step: update from which on the share grows linearly.
        end_step: update from which on it stays.
    """

    probability: float
    start_step: int = 0
    end_step: int = 0

    def __post_init__(self):
        check_shares(self, "probability")
        if not 0 <= self.start_step <= self.end_step:
            raise ValueError(
                "`end_step` must not be before `start_step`, nor that below "
                f"zero. Received: start_step {self.start_step}, end_step "
                f"{self.end_step}"
            )


@dataclass(frozen=True)
class DistillationRecipe:
    """Learning from the distributions of a finished run's model.

    Args:
        run: the teacher's run folder; its tokenizers must be those of the
            data.
        weight: share of the teacher's term in the loss.
    """

    run: str
    weight: float = 0.5

    def __post_init__(self):
        check_shares(self, "weight")
