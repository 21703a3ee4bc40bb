"""Learning rate schedules."""

import math

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class InverseSquareRoot(keras.optimizers.schedules.LearningRateSchedule):
    """Rises linearly to a peak, then decays as `1 / sqrt(update)`.

    At the start Adam estimates its moments from few gradients, and large
    updates can make a deep model diverge; the linear rise keeps them small.

    With `n` the number of the update, counted from one:
        rate(n) = peak_learning_rate * min(n / warmup_steps,
                                           sqrt(warmup_steps / n))

    Keras passes the number of updates already made, so `step` 0 is update
    `n` = 1, and the first update has a rate above zero.

    Args:
        peak_learning_rate: float. The rate at update `warmup_steps`.
        warmup_steps: int. Number of updates of the linear rise; 1 for none.

    Raises:
        ValueError: if an argument is not finite and above zero.

    Example:
    >>> schedule = keras_deepnmt.training.InverseSquareRoot(0.005, 2000)
    >>> round(float(schedule(1999)), 6), round(float(schedule(7999)), 6)
    (0.005, 0.0025)
    """

    def __init__(self, peak_learning_rate, warmup_steps, name=None):
        _check_above_zero("peak_learning_rate", peak_learning_rate)
        _check_warmup(warmup_steps)
        super().__init__()
        self.peak_learning_rate = peak_learning_rate
        self.warmup_steps = warmup_steps
        self.name = name or "inverse_square_root"

    @classmethod
    def noam(cls, hidden_dim, warmup_steps, scale=1.0):
        """Computes the peak from a width (Vaswani et al., 2017, Equation 3).

            rate(n) = scale * hidden_dim^-0.5
                      * min(n^-0.5, n * warmup_steps^-1.5)

        It is the schedule of the class with the peak
        `scale * (hidden_dim * warmup_steps)^-0.5`.

        Args:
            hidden_dim: int. Width of the model.
            warmup_steps: int. Number of updates of the linear rise.
            scale: float. Factor on the rate. Defaults to `1.0`.

        Returns:
            An `InverseSquareRoot`.

        Raises:
            ValueError: if an argument is not finite and above zero.

        Example:
        >>> schedule = keras_deepnmt.training.InverseSquareRoot.noam(512, 4000)
        >>> schedule.warmup_steps
        4000
        """
        _check_above_zero("hidden_dim", hidden_dim)
        _check_above_zero("scale", scale)
        _check_warmup(warmup_steps)
        return cls(scale * (hidden_dim * warmup_steps) ** -0.5, warmup_steps)

    def __call__(self, step):
        update = ops.cast(step, "float32") + 1.0
        warmup = float(self.warmup_steps)
        return self.peak_learning_rate * ops.minimum(
            update / warmup, ops.sqrt(warmup / update)
        )

    def get_config(self):
        return {
            "peak_learning_rate": self.peak_learning_rate,
            "warmup_steps": self.warmup_steps,
            "name": self.name,
        }


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class DecayToZero(keras.optimizers.schedules.LearningRateSchedule):
    """Rises linearly to a peak, then decays to zero at the end of training.

    The last updates are then so small that the weights hardly move any more,
    as in an average of many checkpoints; a run of a fixed length usually ends
    with a better model than at a rate that stays high.

    With `n` the number of the update, counted from one, and `f` the fraction
    `(n - warmup_steps) / (total_steps + 1 - warmup_steps)` of the decay:
        rate(n) = peak_learning_rate * n / warmup_steps    up to the peak
        rate(n) = peak_learning_rate * (1 - f)             linear
        rate(n) = peak_learning_rate * (1 + cos(pi f)) / 2 cosine

    The cosine is that of Loshchilov and Hutter (2017), Equation 5, without
    restarts. After update `total_steps` the rate is zero.

    Args:
        peak_learning_rate: float. The rate at update `warmup_steps`.
        warmup_steps: int. Number of updates of the linear rise; 1 for none.
        total_steps: int. Number of updates of the training.
        shape: `"linear"` or `"cosine"`. Defaults to `"linear"`.

    Raises:
        ValueError: if a number is not finite and above zero, or `shape` is
            unknown.

    Example:
    >>> schedule = keras_deepnmt.training.DecayToZero(0.004, 2, 5)
    >>> [round(float(schedule(step)), 3) for step in range(6)]
    [0.002, 0.004, 0.003, 0.002, 0.001, 0.0]

    Reference:
        - [Loshchilov and Hutter, 2017](https://arxiv.org/abs/1608.03983).
    """

    def __init__(
        self,
        peak_learning_rate,
        warmup_steps,
        total_steps,
        shape="linear",
        name=None,
    ):
        _check_above_zero("peak_learning_rate", peak_learning_rate)
        _check_above_zero("total_steps", total_steps)
        _check_warmup(warmup_steps)
        if shape not in ("linear", "cosine"):
            raise ValueError(
                "`shape` must be 'linear' or 'cosine'. "
                f"Received: shape={shape!r}"
            )
        super().__init__()
        self.peak_learning_rate = peak_learning_rate
        self.warmup_steps = warmup_steps
        self.total_steps = total_steps
        self.shape = shape
        self.name = name or "decay_to_zero"

    def __call__(self, step):
        update = ops.cast(step, "float32") + 1.0
        rise = ops.minimum(update / float(self.warmup_steps), 1.0)
        # A rise longer than the training has no decay.
        length = max(self.total_steps + 1 - self.warmup_steps, 1)
        fraction = (update - float(self.warmup_steps)) / float(length)
        fraction = ops.clip(fraction, 0.0, 1.0)
        if self.shape == "linear":
            decay = 1.0 - fraction
        else:
            decay = (1.0 + ops.cos(math.pi * fraction)) / 2.0
        return self.peak_learning_rate * rise * decay

    def get_config(self):
        return {
            "peak_learning_rate": self.peak_learning_rate,
            "warmup_steps": self.warmup_steps,
            "total_steps": self.total_steps,
            "shape": self.shape,
            "name": self.name,
        }


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class Constant(keras.optimizers.schedules.LearningRateSchedule):
    """A constant rate, for example for fine-tuning.

    In Keras a number does the same, but `WarmUp` needs a schedule.

    Args:
        learning_rate: float. The rate of every update.

    Raises:
        ValueError: if `learning_rate` is not finite and above zero.

    Example:
    >>> schedule = keras_deepnmt.training.Constant(0.25)
    >>> float(schedule(0)), float(schedule(1000))
    (0.25, 0.25)
    """

    def __init__(self, learning_rate, name=None):
        _check_above_zero("learning_rate", learning_rate)
        super().__init__()
        self.learning_rate = learning_rate
        self.name = name or "constant"

    def __call__(self, step):
        return ops.convert_to_tensor(self.learning_rate, "float32")

    def get_config(self):
        return {"learning_rate": self.learning_rate, "name": self.name}


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class WarmUp(keras.optimizers.schedules.LearningRateSchedule):
    """Adds a linear rise at the start of any schedule.

    With `n` the number of the update, counted from one:
        rate(n) = schedule(n) * min(n / warmup_steps, 1)

    Args:
        schedule: `keras.optimizers.schedules.LearningRateSchedule`. Its steps
            count from the first update, the rise included.
        warmup_steps: int. Number of updates of the linear rise; 1 for none.

    Raises:
        TypeError: if `schedule` is not a schedule.
        ValueError: if `warmup_steps` is not finite or below one.

    Example:
    >>> constant = keras_deepnmt.training.Constant(0.5)
    >>> schedule = keras_deepnmt.training.WarmUp(constant, warmup_steps=4)
    >>> [float(schedule(step)) for step in range(5)]
    [0.125, 0.25, 0.375, 0.5, 0.5]
    """

    def __init__(self, schedule, warmup_steps, name=None):
        if not isinstance(
            schedule, keras.optimizers.schedules.LearningRateSchedule
        ):
            raise TypeError(
                "`schedule` must be a LearningRateSchedule. Received: "
                f"schedule={schedule!r}. Use Constant(...) for a number."
            )
        _check_warmup(warmup_steps)
        super().__init__()
        self.schedule = schedule
        self.warmup_steps = warmup_steps
        self.name = name or "warm_up"

    def __call__(self, step):
        update = ops.cast(step, "float32") + 1.0
        rise = ops.minimum(update / float(self.warmup_steps), 1.0)
        return ops.cast(self.schedule(step), "float32") * rise

    def get_config(self):
        return {
            "schedule": keras.optimizers.schedules.serialize(self.schedule),
            "warmup_steps": self.warmup_steps,
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config):
        schedule = keras.optimizers.schedules.deserialize(config["schedule"])
        return cls(**{**config, "schedule": schedule})


def _check_above_zero(name, value):
    if not 0 < value < math.inf:
        raise ValueError(
            f"`{name}` must be finite and above zero. Received: {name}={value}"
        )


def _check_warmup(warmup_steps):
    if not 1 <= warmup_steps < math.inf:
        raise ValueError(
            "`warmup_steps` must be finite and at least 1. "
            f"Received: warmup_steps={warmup_steps}"
        )
