"""The sections of a recipe on the optimizer and its learning rate."""

from dataclasses import dataclass, field
from typing import Any, Literal

from keras_deepnmt.recipes.key_checks import (
    check_above_one,
    check_above_zero,
    check_fractions,
    keys_of_all,
    take_keys,
)

# The keys that belong to one kind of optimizer or schedule, with their
# defaults.
_ADAM_KEYS = {"beta_1": 0.9, "beta_2": 0.98, "epsilon": 1e-9}
_OPTIMIZER_KEYS: dict[str, dict[str, Any]] = {
    "adam": _ADAM_KEYS,
    "adamw": {**_ADAM_KEYS, "weight_decay": 0.01},
    "muon": {**_ADAM_KEYS, "momentum": 0.95},
    "nesterov": {"momentum": 0.99},
}
_SCHEDULE_KEYS: dict[str, dict[str, Any]] = {
    "inverse_square_root": {"peak": 0.001, "warmup_steps": 4000},
    "noam": {"scale": 1.0, "warmup_steps": 4000},
    "linear": {"peak": 0.001, "warmup_steps": 4000},
    "cosine": {"peak": 0.001, "warmup_steps": 4000},
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
    """The optimizer.

    Args:
        name: `adam`; `adamw`, Adam with weight decay, except for biases and
            normalization weights; `muon`, which makes the updates of the
            matrices of linear maps orthogonal (Jordan et al., 2024) and updates
            all other weights as Adam does, among them all in the slots
            `source_embedding_layer` and `target_embedding_layer`, and the
            weight-normalized linear maps of convolutional models; or
            `nesterov`, accelerated gradient descent.
        beta_1: decay rate of the running mean of the gradients, in [0, 1); not
            for `nesterov`. Defaults to 0.9.
        beta_2: decay rate of the running mean of the squared gradients, in
            [0, 1); not for `nesterov`. Defaults to 0.98.
        epsilon: added to the denominator of Adam's update, above 0; not for
            `nesterov`. Defaults to 1e-9.
        weight_decay: each update subtracts this fraction of the weights, times
            the learning rate; above 0, `adamw` only. Defaults to 0.01.
        momentum: fraction of the velocity that each update keeps, in [0, 1);
            `nesterov`, and the matrices of `muon`. Defaults to 0.95 for `muon`
            and to 0.99 for `nesterov`.
        global_clipnorm: maximum norm of the gradient of all weights together,
            above 0; null does not clip.
        average_momentum: decay rate of an exponential moving average of the
            weights, in (0, 1); the average is validated and becomes the final
            model. 0.999 averages about the last 1000 updates; null keeps no
            average.
    """

    # The metadata say which keys belong to a choice, see `recipes.extending`.
    name: Literal["adam", "adamw", "muon", "nesterov"] = field(
        default="adam", metadata={"keys": keys_of_all(_OPTIMIZER_KEYS)}
    )
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
    """The learning rate schedule.

    Args:
        schedule: `inverse_square_root`: after the warm-up the rate is
            proportional to `1 / sqrt(update)`; `noam`: the same, with the peak
            `scale / sqrt(hidden_dim * warmup_steps)` (Vaswani et al., 2017,
            Equation 3); `linear` and `cosine`: after the warm-up the rate
            decays to zero at update `training.steps`, along a line or half a
            cosine; `constant`: the rate stays at `peak`; or `plateau`: the
            rate is divided each time the validation loss increases.
        peak: learning rate at the end of the warm-up, above 0; not for `noam`.
            Defaults to 0.001.
        scale: factor on the learning rate of `noam`, above 0. Defaults to 1.
        warmup_steps: number of updates over which the rate rises linearly,
            above 0. Defaults to 1, that is no warm-up, for `constant` and
            `plateau`, and to 4000 for the others.
        divide_by: divisor of `plateau`, above 1. Defaults to 10.
        minimum: `plateau` ends the run when the rate falls below this value.
            Defaults to 1e-4.
        keep_dividing: whether `plateau`, after the first increase, divides at
            every validation. Defaults to false.
    """

    schedule: Literal[
        "inverse_square_root", "noam", "linear", "cosine", "constant", "plateau"
    ] = field(
        default="inverse_square_root",
        metadata={"keys": keys_of_all(_SCHEDULE_KEYS)},
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
        check_above_one(self, "divide_by")
