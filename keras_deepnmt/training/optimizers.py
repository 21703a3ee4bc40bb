"""Keras' optimizers with a factor on the rate, and averaged weights."""

import math
from numbers import Real

import keras

from keras_deepnmt.training.schedules import WarmUp
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

    # Names of arguments that may be negative, and are not checked.
    _signed: tuple[str, ...] = ()

    def __init__(self, *args, **kwargs):
        first = {"learning_rate": args[0]} if args else {}
        for name, value in {**first, **kwargs}.items():
            if not isinstance(value, Real) or name in self._signed:
                continue
            if not 0 <= value < math.inf:
                raise ValueError(
                    f"`{name}` must be finite and not negative. Received: "
                    f"{name}={value}"
                )
        super().__init__(*args, **kwargs)
        self.rate_factor = self.add_variable(
            (), "ones", aggregation="only_first_replica", name="rate_factor"
        )
        # Keras has no public name for a schedule.
        self._given_rate = {**first, **kwargs}.get("learning_rate")

    @property
    def learning_rate(self):
        return self.rate_factor * super().learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate):
        keras.optimizers.Optimizer.learning_rate.fset(self, learning_rate)
        self._given_rate = learning_rate

    @property
    def rate_after_warm_up(self):
        """The learning rate, as if the rise of a `WarmUp` were over."""
        if not isinstance(self._given_rate, WarmUp):
            return self.learning_rate
        rate = self._given_rate.schedule(self.iterations)
        return self.rate_factor * keras.ops.cast(rate, "float32")


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

    # What the user has excluded: a function, since an optimizer takes variables
    # in its attributes for its own state.
    _excluded = staticmethod(lambda: ((), ()))

    def exclude_from_weight_decay(self, var_list=None, var_names=None):
        """Excludes weights from the decay, in addition to vectors."""
        self._excluded = lambda: (var_list or (), var_names)
        super().exclude_from_weight_decay(var_list, var_names)

    def build(self, variables):
        if not self.built:
            excluded, names = self._excluded()
            vectors = [v for v in variables if len(v.shape) < 2]
            super().exclude_from_weight_decay([*excluded, *vectors], names)
        super().build(variables)


# The paths of weights that are not kernels: not matrices of a linear map.
_NO_KERNEL = "^(?!.*kernel$)"


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class Muon(WeightAverage, RateFactor, keras.optimizers.Muon):
    """Keras' Muon with a `rate_factor` and an average of the weights.

    The updates of the matrices of linear maps are made nearly orthogonal, so
    that they change all directions by about as much. With rate `r`, momentum
    `m`, the gradient `G(n)` of a matrix of `a` rows and `b` columns and the
    singular value decomposition `U S V^T`:
        B(n) = m * B(n - 1) + G(n)
        U S V^T = m * B(n) + G(n)
        w(n) = w(n - 1) - r * 0.2 * sqrt(max(a, b)) * U V^T
    `U V^T` is approximated by five Newton-Schulz iterations. The factor
    `0.2 * sqrt(max(a, b))` gives updates the size of Adam's (Liu et al., 2025),
    so that both can have the same rate. All other weights, such as embeddings,
    biases, normalization weights and kernels of convolutions, are updated as by
    Adam, at the same rate. Unless other arguments are given, so are:

    - all weights with "embedding" in their path, and thus the matrices of
      linear maps in the slots `source_embedding_layer` and
      `target_embedding_layer`, such as those of `RoleInteraction`;
    - the linear maps of `ConvSeq2Seq`, which are weight-normalized: their
      matrices are directions and not kernels.

    Args:
        *args: arguments of `keras.optimizers.Muon`.
        **kwargs: arguments of `keras.optimizers.Muon`, and `average_momentum`
            of `WeightAverage`. `weight_decay` and `adam_weight_decay` default
            to `None`, and `exclude_layers` to the weights that are not kernels.

    Reference:
        - [Jordan et al., 2024](https://kellerjordan.github.io/posts/muon/).
        - [Liu et al., 2025](https://arxiv.org/abs/2502.16982).

    Example:
    >>> optimizer = keras_deepnmt.training.Muon(0.003, momentum=0.9)
    >>> optimizer.momentum
    0.9
    """

    # The coefficients of the iterations.
    _signed = ("muon_a", "muon_b", "muon_c")

    def __init__(self, *args, **kwargs):
        kwargs.setdefault("weight_decay", None)
        kwargs.setdefault("adam_weight_decay", None)
        kwargs.setdefault("exclude_layers", [_NO_KERNEL])
        super().__init__(*args, **kwargs)


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
