"""The sections of a recipe on the optimizer and its learning rate."""

from dataclasses import field
from typing import Any, ClassVar, Literal

from pydantic import field_validator

from keras_deepnmt.own_code.lookup import is_class_name
from keras_deepnmt.recipes.changing_keys import Fixed, Free
from keras_deepnmt.recipes.choices import Choice
from keras_deepnmt.suggestions import did_you_mean
from keras_deepnmt.validation import (
    AboveOne,
    Count,
    Flag,
    Fraction,
    OpenFraction,
    Positive,
    checked_dataclass,
)

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


@checked_dataclass
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

    choice: ClassVar = Choice("name", _OPTIMIZER_KEYS)

    # Its state in the checkpoints, and an average kept from the first update.
    name: Fixed[Literal["adam", "adamw", "muon", "nesterov"]] = "adam"
    beta_1: Fraction | None = None
    beta_2: Fraction | None = None
    epsilon: Positive | None = None
    weight_decay: Positive | None = None
    momentum: Fraction | None = None
    global_clipnorm: Positive | None = None
    average_momentum: Fixed[OpenFraction | None] = None

    _check_choice = choice.validator()


@checked_dataclass
class LearningRateRecipe:
    """The learning rate schedule.

    Args:
        schedule: `inverse_square_root`: after the warm-up the rate is
            proportional to `1 / sqrt(update)`; `noam`: the same, with the peak
            `scale / sqrt(hidden_dim * warmup_steps)` (Vaswani et al., 2017,
            Equation 3); `linear` and `cosine`: after the warm-up the rate
            decays to zero at update `training.steps`, along a line or half a
            cosine; `constant`: the rate stays at `peak`; `plateau`: the rate is
            divided each time the validation loss increases; or a
            `LearningRateSchedule` of Keras, a class in a file of `import` or
            such as `keras.optimizers.schedules.CosineDecay`.
        schedule_options: arguments of such a class.
        peak: learning rate at the end of the warm-up, above 0; not for `noam`.
            Defaults to 0.001.
        scale: factor on the learning rate of `noam`, above 0. Defaults to 1.
        warmup_steps: number of updates over which the rate rises linearly,
            above 0. Defaults to 1, which is no warm-up, for `constant` and
            `plateau`, and to 4000 for the others.
        divide_by: divisor of `plateau`, above 1. Defaults to 10.
        minimum: `plateau` ends the run when the rate, as after the warm-up,
            falls below this value.
            Defaults to 1e-4.
        keep_dividing: whether `plateau`, after the first increase, divides at
            every validation. Defaults to false.
    """

    choice: ClassVar = Choice(
        "schedule", _SCHEDULE_KEYS, others=("schedule_options",)
    )

    schedule: (
        Literal[
            "inverse_square_root",
            "noam",
            "linear",
            "cosine",
            "constant",
            "plateau",
        ]
        | str
    ) = "inverse_square_root"
    schedule_options: dict[str, Any] = field(default_factory=dict)
    peak: Positive | None = None
    scale: Positive | None = None
    warmup_steps: Count | None = None
    divide_by: AboveOne | None = None
    minimum: Free[Positive | None] = None
    keep_dividing: Flag | None = None

    _check_choice = choice.validator()

    @field_validator("schedule")
    def _check_schedule(cls, name):
        if name not in _SCHEDULE_KEYS and not is_class_name(name):
            names = ", ".join(_SCHEDULE_KEYS)
            raise ValueError(
                f"`schedule` must be one of {names}, or the name of a class, "
                "which begins with a capital letter. Received: "
                f"{name!r}.{did_you_mean(name, _SCHEDULE_KEYS)}"
            )
        return name

    def __post_init__(self):
        if self.schedule in _SCHEDULE_KEYS:
            wrong = ["schedule_options"] if self.schedule_options else []
            remedy = "It belongs to a class of your own"
        else:
            keys = self.choice.keys()
            wrong = [key for key in keys if getattr(self, key) is not None]
            remedy = "Give the arguments of the class as `schedule_options`"
        if wrong:
            raise ValueError(
                f"`{wrong[0]}` must not be given with `schedule: "
                f"{self.schedule}`. Received: {getattr(self, wrong[0])!r}. "
                f"{remedy}."
            )
