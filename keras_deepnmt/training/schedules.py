"""Learning rates over the course of training."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class InverseSquareRoot(keras.optimizers.schedules.LearningRateSchedule):
    """Rises linearly to a peak, then falls with the square root of the update.

    Adam's first moments are estimated from few gradients at the start, so full
    steps there throw a deep model off; the linear rise keeps them small.

    With `n` the number of the update, counted from one:
        rate(n) = peak_learning_rate * min(n / warmup_steps,
                                           sqrt(warmup_steps / n))

    Keras hands over the number of updates already made, so `step` 0 is update
    `n` = 1 and the first update already has a rate above zero.

    Args:
        peak_learning_rate: float. The rate at update `warmup_steps`.
        warmup_steps: int. Updates of the linear rise; 1 means none.

    Raises:
        ValueError: if an argument is not above zero.

    Example:
    >>> schedule = keras_deepnmt.training.InverseSquareRoot(0.005, 2000)
    >>> round(float(schedule(1999)), 6), round(float(schedule(7999)), 6)
    (0.005, 0.0025)
    """

    def __init__(self, peak_learning_rate, warmup_steps, name=None):
        if not peak_learning_rate > 0:
            raise ValueError(
                "`peak_learning_rate` must be above zero. "
                f"Received: peak_learning_rate={peak_learning_rate}"
            )
        if not warmup_steps >= 1:
            raise ValueError(
                "`warmup_steps` must be at least 1. "
                f"Received: warmup_steps={warmup_steps}"
            )
        super().__init__()
        self.peak_learning_rate = peak_learning_rate
        self.warmup_steps = warmup_steps
        self.name = name or "inverse_square_root"

    @classmethod
    def noam(cls, hidden_dim, warmup_steps, scale=1.0):
        """Derives the peak from a width (Vaswani et al., 2017, Equation 3).

            rate(n) = scale * hidden_dim^-0.5
                      * min(n^-0.5, n * warmup_steps^-1.5)

        It is the same curve with the peak
        `scale * (hidden_dim * warmup_steps)^-0.5`.

        Args:
            hidden_dim: int. Width of the model.
            warmup_steps: int. Updates of the linear rise.
            scale: float. Factor on the whole curve. Defaults to `1.0`.

        Returns:
            An `InverseSquareRoot`.

        Example:
        >>> schedule = keras_deepnmt.training.InverseSquareRoot.noam(512, 4000)
        >>> schedule.warmup_steps
        4000
        """
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
