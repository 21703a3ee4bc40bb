"""Losses computed from log-probabilities."""

import keras
from keras import ops

from keras_deepnmt.masks import padding_mask
from keras_deepnmt.own_code.loading import new_registry
from keras_deepnmt.own_code.lookup import find_own, make_own, own_names
from keras_deepnmt.suggestions import did_you_mean

_LOSSES = new_registry()


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class LabelSmoothedCrossEntropy(keras.losses.Loss):
    """Cross-entropy with label smoothing.

    A model trained to give each training token probability one becomes
    overconfident. Label smoothing spreads a part of the probability mass over
    the whole vocabulary (Szegedy et al., 2016, Section 7, Equation for q'):

        loss = -(1 - e) * log p(y) - e / V * sum_v log p(v)

    Here `label_smoothing` is e. No one-hot matrix is stored: the label's entry
    is selected by a comparison inside the fused reduction. Training computes
    the loss from the model's scores (`from_scores`), so that no
    log-probabilities are stored either.

    Args:
        label_smoothing: float in [0, 1). Probability mass of the uniform
            distribution. Defaults to `0.1`.
        reduction: `"sum"` (the default, unlike in Keras), `"none"`, or another
            one of `keras.losses.Loss`. A mean divides by all positions, padding
            included; the training step of this package uses `call` and itself
            divides by the number of real tokens. With `compile` of a model of
            your own, give `"none"` or `"sum"` and divide likewise, or choose
            the learning rate for a sum.
        name, **kwargs: as in `keras.losses.Loss`.

    Call arguments:
        labels: int tensor `(B, T)`; 0 is padding.
        log_probs: float tensor `(B, T, V)`, natural logarithms.

    Returns:
        From `call`: float tensor `(B, T)` in nats, zero at padding.

    Raises:
        ValueError: if `label_smoothing` is outside [0, 1).

    Example:
    >>> loss = LabelSmoothedCrossEntropy(label_smoothing=0.0)
    >>> log_probs = np.log(np.full((1, 2, 4), 0.25, "float32"))
    >>> values = np.asarray(loss.call(np.array([[3, 0]]), log_probs))
    >>> bool(np.allclose(values, [[np.log(4), 0.0]]))
    True

    Reference:
        - [Szegedy et al., 2016](https://arxiv.org/abs/1512.00567), Section 7.
    """

    def __init__(
        self,
        label_smoothing=0.1,
        reduction="sum",
        name="label_smoothed_cross_entropy",
        **kwargs,
    ):
        if not 0.0 <= label_smoothing < 1.0:
            raise ValueError(
                "`label_smoothing` must lie in [0, 1). "
                f"Received: label_smoothing={label_smoothing}."
            )
        super().__init__(reduction=reduction, name=name, **kwargs)
        self.label_smoothing = label_smoothing

    def call(self, labels, log_probs):
        loss = negative_log_likelihood(labels, log_probs)  # (B, T)
        if self.label_smoothing > 0.0:
            uniform = -ops.mean(log_probs, axis=-1)  # (B, T)
            loss = (
                1.0 - self.label_smoothing
            ) * loss + self.label_smoothing * uniform
        return ops.where(padding_mask(labels), loss, ops.zeros_like(loss))

    def from_scores(self, labels, scores):
        """Computes the loss of `call` from scores before the softmax.

        With scores `z` and `q` the smoothed distribution of the label:
            loss = log sum_v exp(z_v) - sum_v q_v z_v

        Only one value per position is kept for the backward pass, and the
        gradient `softmax(z) - q` is computed in one loop over the scores. From
        log-probabilities it takes several loops and stores their results.

        Args:
            labels: int tensor `(B, T)`; 0 is padding.
            scores: float tensor `(B, T, V)`.

        Returns:
            Float32 tensor `(B, T)` in nats, zero at padding.

        Example:
        >>> loss = LabelSmoothedCrossEntropy(label_smoothing=0.0)
        >>> scores = np.full((1, 2, 4), 7.0, "float32")
        >>> values = np.asarray(loss.from_scores(np.array([[3, 0]]), scores))
        >>> bool(np.allclose(values, [[np.log(4), 0.0]]))
        True
        """
        loss = cross_entropy_of_scores(labels, scores, self.label_smoothing)
        return ops.where(padding_mask(labels), loss, ops.zeros_like(loss))

    def get_config(self):
        return {
            **super().get_config(),
            "label_smoothing": self.label_smoothing,
        }


def cross_entropy_of_scores(labels, scores, label_smoothing=0.0):
    """Computes the cross-entropy at each position from scores.

    See `LabelSmoothedCrossEntropy.from_scores`; padding is not masked here.

    Args:
        labels: int tensor `(B, T)`.
        scores: float tensor `(B, T, V)`, before the softmax.
        label_smoothing: float in [0, 1). Probability mass of the uniform
            distribution. Defaults to `0.0`.

    Returns:
        Float32 tensor `(B, T)` in nats.

    Example:
    >>> scores = np.full((1, 1, 4), 7.0, "float32")
    >>> value = cross_entropy_of_scores(np.array([[2]]), scores)
    >>> bool(np.allclose(value, np.log(4)))
    True
    """
    scores = ops.cast(scores, "float32")
    uniform = label_smoothing / scores.shape[-1]
    # One sum for both terms: each loop over the scores takes about as long as
    # reading them from memory.
    expected = ops.sum(
        ops.where(
            _is_label(labels, scores),
            (1.0 - label_smoothing + uniform) * scores,
            uniform * scores if uniform else ops.zeros_like(scores),
        ),
        axis=-1,
    )
    return ops.logsumexp(scores, axis=-1) - expected


def negative_log_likelihood(labels, log_probs):
    """Computes `-log p(label)` at each position.

    Args:
        labels: int tensor `(B, T)`.
        log_probs: float tensor `(B, T, V)`, natural logarithms.

    Returns:
        Float tensor `(B, T)` in nats. Padding is not masked here.

    Example:
    >>> log_probs = np.log(np.full((1, 1, 4), 0.25, "float32"))
    >>> value = negative_log_likelihood(np.array([[2]]), log_probs)
    >>> bool(np.allclose(value, np.log(4)))
    True
    """
    is_label = _is_label(labels, log_probs)
    return -ops.sum(
        ops.where(is_label, log_probs, ops.zeros_like(log_probs)), axis=-1
    )


def _is_label(labels, values):
    """Compares labels `(B, T)` with the indices of the last axis `(B, T, V)`.

    The selected entry is the sum over this mask instead of a gather: the
    gradient of a gather is a scatter into a zeroed (B, T, V) tensor, that of
    the sum is element-wise.
    """
    index = ops.arange(values.shape[-1], dtype=labels.dtype)
    return ops.equal(labels[..., None], index)


def kl_divergence(log_probs, other):
    """Computes the Kullback-Leibler divergence of two distributions.

        KL(p || q) = sum_v p(v) (log p(v) - log q(v))

    Args:
        log_probs: float tensor `(..., V)`, natural logarithms of p.
        other: float tensor `(..., V)`, natural logarithms of q.

    Returns:
        Float tensor `(...)` in nats. Padding is not masked here.

    Example:
    >>> p, q = np.log([0.5, 0.5]), np.log([0.25, 0.75])
    >>> bool(np.isclose(kl_divergence(p, q), np.log(4 / 3) / 2))
    True
    """
    return ops.sum(ops.exp(log_probs) * (log_probs - other), axis=-1)


def symmetric_kl_divergence(log_probs, other):
    """Averages the KL divergences of two distributions in both directions.

        (KL(p || q) + KL(q || p)) / 2

    Args:
        log_probs: float tensor `(..., V)`, natural logarithms of p.
        other: float tensor `(..., V)`, natural logarithms of q.

    Returns:
        Float tensor `(...)` in nats. Padding is not masked here.

    Example:
    >>> p, q = np.log([0.5, 0.5]), np.log([0.25, 0.75])
    >>> bool(np.isclose(symmetric_kl_divergence(p, q), np.log(3) / 8))
    True
    """
    difference = ops.exp(log_probs) - ops.exp(other)
    return ops.sum(difference * (log_probs - other), axis=-1) / 2.0


def computes_from_scores(loss):
    """Tells whether a token loss can be computed from a model's scores.

    It must have a method `from_scores(labels, scores)` that belongs to its
    `call`: a subclass that defines another `call` is computed by that one.

    Args:
        loss: `keras.losses.Loss` of each token.

    Returns:
        bool.

    Example:
    >>> class Doubled(LabelSmoothedCrossEntropy):
    ...     def call(self, labels, log_probs):
    ...         return 2.0 * super().call(labels, log_probs)
    >>> computes_from_scores(LabelSmoothedCrossEntropy())
    True
    >>> computes_from_scores(Doubled())
    False
    """
    for parent in type(loss).__mro__:
        if "from_scores" in vars(parent):
            return True
        if "call" in vars(parent):
            return False
    return False


def register_loss(name, make_loss):
    """Makes a token loss available to recipes under a name.

    A recipe then chooses it with `training: {loss: my_loss}`.

    Args:
        name: string. The name in recipes.
        make_loss: function or class that takes the values of
            `training.loss_options` as keyword arguments and returns a
            `keras.losses.Loss`. The loss's `call(labels, log_probs)` gets
            labels `(B, T)` and natural log-probabilities `(B, T, V)` and
            returns the loss of each token, `(B, T)`, in nats. To be saved with
            a model its class must be registered with Keras.

    Raises:
        ValueError: if `make_loss` is not callable, or another function or
            class has the name.

    Example:
    >>> class Confident(LabelSmoothedCrossEntropy):
    ...     pass
    >>> register_loss("confident", Confident)
    >>> get_loss("confident", label_smoothing=0.0).label_smoothing
    0.0
    """
    if not callable(make_loss):
        raise ValueError(
            "`make_loss` must be a class or a function. Received: "
            f"make_loss={make_loss!r}."
        )
    known = _LOSSES.get(name, make_loss)
    # The same class defined again, as in a notebook, replaces the old one.
    paths = [_path(known), _path(make_loss)]
    if paths[0] != paths[1]:
        raise ValueError(
            f"`name` must not be taken. Received: name={name!r}, which is "
            f"{paths[0]}. Use another name."
        )
    _LOSSES[name] = make_loss


def list_losses():
    """Lists the names of the registered token losses.

    Returns:
        Sorted list of strings.

    Example:
    >>> "cross_entropy" in list_losses()
    True
    """
    return sorted(_LOSSES)


def get_loss(name, /, **options):
    """Makes a registered token loss, or one in a file of the user.

    Args:
        name: string from `list_losses()`, or a subclass of `keras.losses.Loss`
            in a file of `keras_deepnmt.import_code`: `Focal` or
            `my_losses.Focal`.
        **options: keyword arguments of the loss.

    Returns:
        A `keras.losses.Loss`.

    Raises:
        ValueError: if the name is unknown; the message suggests the nearest
            one.

    Example:
    >>> get_loss("label_smoothed_cross_entropy").label_smoothing
    0.1
    """
    own = find_own(name, keras.losses.Loss, _LOSSES)
    if own is not None:
        return make_own(own, options)
    if name not in _LOSSES:
        hint = did_you_mean(name, [*_LOSSES, *own_names(keras.losses.Loss)])
        hint = hint or f" Registered: {', '.join(list_losses())}."
        raise ValueError(f'Unknown loss "{name}".{hint}')
    return _LOSSES[name](**options)


def _path(value):
    name = getattr(value, "__qualname__", repr(value))
    return f"{value.__module__}.{name}"


def _cross_entropy():
    return LabelSmoothedCrossEntropy(label_smoothing=0.0, name="cross_entropy")


register_loss("label_smoothed_cross_entropy", LabelSmoothedCrossEntropy)
register_loss("cross_entropy", _cross_entropy)
