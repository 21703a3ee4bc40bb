"""Keras' optimizers with a factor on the rate, and averaged weights."""

import math
from numbers import Real

import keras

from keras_deepnmt.training.weight_average import WeightAverage


class RateFactor:
    """Gives a Keras optimizer a factor on its learning rate.

    The factor is a variable of the optimizer: saved with it, mirrored by a
    strategy, and read by the compiled step of every backend. It multiplies
    the optimizer's learning rate, a number or a schedule `s`:
        rate(n) = rate_factor * s(n)

    Args:
        *args: arguments of the Keras optimizer.
        **kwargs: arguments of the Keras optimizer.

    Attributes:
        rate_factor: float scalar `keras.Variable`, initially 1; assign to it.

    Raises:
        ValueError: if a number is not finite or negative.

    Example:
    >>> class Lion(RateFactor, keras.optimizers.Lion):
    ...     pass
    >>> optimizer = Lion(keras_deepnmt.training.Constant(0.5))
    >>> factor = optimizer.rate_factor.assign(0.5)
    >>> float(optimizer.learning_rate)
    0.25
    """

    def __init__(self, *args, **kwargs):
        first = {"learning_rate": args[0]} if args else {}
        for name, value in {**first, **kwargs}.items():
            if isinstance(value, Real) and not 0 <= value < math.inf:
                raise ValueError(
                    f"`{name}` must be finite and not negative. Received: "
                    f"{name}={value}"
                )
        super().__init__(*args, **kwargs)
        self.rate_factor = self.add_variable(
            (), "ones", aggregation="only_first_replica", name="rate_factor"
        )

    @property
    def learning_rate(self):
        return self.rate_factor * super().learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate):
        keras.optimizers.Optimizer.learning_rate.fset(self, learning_rate)


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class Adam(WeightAverage, RateFactor, keras.optimizers.Adam):
    """Keras' Adam with a `rate_factor` and an average of the weights.

    Args:
        *args: arguments of `keras.optimizers.Adam`.
        average_momentum: float in (0, 1), or `None`; see `WeightAverage`.
        **kwargs: arguments of `keras.optimizers.Adam`.

    Example:
    >>> schedule = keras_deepnmt.training.InverseSquareRoot(0.005, 2000)
    >>> optimizer = keras_deepnmt.training.Adam(schedule, beta_2=0.98)
    >>> optimizer.beta_2
    0.98
    """


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class AdamW(WeightAverage, RateFactor, keras.optimizers.AdamW):
    """Keras' AdamW with a `rate_factor`, an average, and no decay of vectors.

    With rate `r`, decay `d` and Adam's update `a(n)`, a matrix is updated to
        w(n) = (1 - r * d) * w(n - 1) - r * a(n)
    and a vector, that is, a bias or a scale of a normalization, to
    `w(n - 1) - r * a(n)`.

    Args:
        *args: arguments of `keras.optimizers.AdamW`.
        average_momentum: float in (0, 1), or `None`; see `WeightAverage`.
        **kwargs: arguments of `keras.optimizers.AdamW`.

    Example:
    >>> optimizer = keras_deepnmt.training.AdamW(0.001, weight_decay=0.01)
    >>> optimizer.weight_decay
    0.01
    """

    def build(self, variables):
        if not self.built:
            vectors = [v for v in variables if len(v.shape) < 2]
            self.exclude_from_weight_decay(var_list=vectors)
        super().build(variables)


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class Nesterov(WeightAverage, RateFactor, keras.optimizers.SGD):
    """Keras' Nesterov momentum with a `rate_factor` and an average.

    With rate `r`, momentum `m` and the gradient `g(w)`, Keras computes:
        v(n) = m * v(n - 1) - r * g(w(n - 1))
        w(n) = w(n - 1) + m * v(n) - r * g(w(n - 1))
    The classic form (Nesterov, 1983; Sutskever et al., 2013, Equations 3, 4)
    takes the gradient at the point that the momentum alone leads to:
        v(n) = m * v(n - 1) - r * g(u(n - 1) + m * v(n - 1))
        u(n) = u(n - 1) + v(n)
    Both make the same updates, with `w(n) = u(n) + m * v(n)`: the weights in
    Keras are the points at which the classic form takes its gradients. When
    the rate is lowered, the velocity keeps its size and decays over about the
    next `1 / (1 - m)` updates; some implementations lower it with the rate.

    Args:
        learning_rate: float or schedule. Defaults to `0.25`.
        momentum: float in [0, 1]. Fraction of the velocity that each update
            keeps. Defaults to `0.99`.
        **kwargs: other arguments of `keras.optimizers.SGD`, and
            `average_momentum` of `WeightAverage`.

    Reference:
        - [Sutskever et al., 2013](https://proceedings.mlr.press/v28/sutskever13.html).

    Example:
    >>> keras_deepnmt.training.Nesterov(0.25, momentum=0.99).momentum
    0.99
    """

    def __init__(self, learning_rate=0.25, momentum=0.99, **kwargs):
        kwargs["nesterov"] = True
        super().__init__(learning_rate, momentum=momentum, **kwargs)
