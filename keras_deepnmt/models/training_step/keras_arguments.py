"""Interprets arguments of Keras' methods; refuses unsupported ones."""

import contextlib
import warnings
from collections.abc import Mapping

import keras
from keras import ops

from keras_deepnmt.errors import UserError
from keras_deepnmt.losses import (
    LabelSmoothedCrossEntropy,
    get_loss,
    list_losses,
)

_INPUTS = ["source_ids", "target_ids"]


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class FunctionLoss(keras.losses.Loss):
    """The loss of each token, computed by a function.

    The function takes labels `(B, T)` and natural log-probabilities
    `(B, T, V)`, and returns the losses of the tokens, `(B, T)`. To load a saved
    model, it must be registered with Keras.
    """

    def __init__(self, function, reduction="sum", name=None, **kwargs):
        name = name or getattr(function, "__name__", "function")
        super().__init__(reduction=reduction, name=name, **kwargs)
        self.function = function

    def call(self, labels, log_probs):
        return self.function(labels, log_probs)

    def get_config(self):
        function = keras.saving.serialize_keras_object(self.function)
        return {**super().get_config(), "function": function}

    @classmethod
    def from_config(cls, config):
        function = keras.saving.deserialize_keras_object(config["function"])
        return cls(**{**config, "function": function})


def make_token_loss(loss, vocabulary_size):
    """Makes the loss of each token from the `loss` argument of `compile`.

    Keras' sparse categorical cross-entropy becomes the one of this package,
    since models give log-probabilities. Raises a `ValueError` if the loss does
    not give one value per token.
    """
    if loss is None:
        return LabelSmoothedCrossEntropy()
    if isinstance(loss, str):
        token_loss = _loss_by_name(loss)
    else:
        token_loss = keras.losses.get(loss)
    if token_loss is keras.losses.sparse_categorical_crossentropy:
        token_loss = get_loss("cross_entropy")
    elif type(token_loss) is keras.losses.SparseCategoricalCrossentropy:
        token_loss = _cross_entropy(token_loss)
    elif not isinstance(token_loss, keras.losses.Loss):
        token_loss = _function_loss(token_loss)
    # Keras' other losses do not expect log-probabilities.
    if type(token_loss).__module__.startswith("keras."):
        raise _not_per_token(loss)
    ids = ops.ones((2, 3), "int32")
    scores = ops.zeros((2, 3, vocabulary_size), "float32")
    losses = token_loss.call(ids, ops.log_softmax(scores))
    if tuple(ops.shape(losses)) != (2, 3):
        raise _not_per_token(loss)
    return token_loss


def _loss_by_name(name):
    if name in list_losses():
        return get_loss(name)
    try:
        return keras.losses.get(name)
    except ValueError:
        # Names the nearest one.
        return get_loss(name)


def _cross_entropy(loss):
    """Makes this package's equivalent of Keras' cross-entropy."""
    if loss.ignore_class not in (None, 0):
        raise ValueError(
            "`ignore_class` of the loss must be None or 0, the id of padding, "
            "which never counts. Received: "
            f"ignore_class={loss.ignore_class}. Leave it out."
        )
    return LabelSmoothedCrossEntropy(
        # Keras has this option from version 3.16 on.
        getattr(loss, "label_smoothing", 0.0),
        name=loss.name,
    )


def _function_loss(function):
    module = getattr(function, "__module__", None) or ""
    if not callable(function) or module.startswith("keras."):
        raise _not_per_token(function)
    return FunctionLoss(function)


def _not_per_token(loss):
    return ValueError(
        "`loss` must compute one value per token, (B, T), from labels (B, T) "
        f"and natural log-probabilities (B, T, V). Received: loss={loss!r}. "
        'Use "sparse_categorical_crossentropy", `keras_deepnmt.losses.'
        "LabelSmoothedCrossEntropy(0.1)` or a function of both."
    )


def refuse_metrics(arguments):
    """Refuses arguments of `keras.Model.compile` that would be ignored."""
    for name in ("metrics", "weighted_metrics", "loss_weights"):
        value = arguments.get(name)
        if value is not None:
            raise ValueError(
                f"`{name}` is not supported: `fit` reports `loss`, `tokens` "
                "and, of the validation data, `val_loss`. Received: "
                f"{name}={value!r}. Leave it out; measure BLEU with "
                "`keras_deepnmt.evaluation.BleuCallback`."
            )


def refuse_several_steps(arguments):
    """Refuses several steps per execution: callbacks would see one of them."""
    number = arguments.get("steps_per_execution", 1)
    if number != 1:
        raise ValueError(
            "`steps_per_execution` must be 1: callbacks that save checkpoints "
            "or lower a temperature count each update. Received: "
            f"steps_per_execution={number!r}. Leave it out."
        )


def refuse_accumulating_optimizer(optimizer):
    """Refuses an optimizer that itself sums gradients of several updates."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)  # of a loss scale
    steps = getattr(inner, "gradient_accumulation_steps", None)
    if steps is not None:
        raise ValueError(
            "`gradient_accumulation_steps` of the optimizer must be None, "
            "since callbacks count each batch as an update. Received: "
            f"gradient_accumulation_steps={steps!r}. Leave it out; `compile("
            f"gradient_accumulation_steps={steps!r})` computes a batch in "
            "parts, so make the batches larger."
        )


def refuse_weights(**weights):
    """Refuses `sample_weight` and `class_weight`, if they are not `None`."""
    for name, value in weights.items():
        if value is not None:
            raise ValueError(
                f"`{name}` is not supported: every real target token counts "
                "once, padding (label 0) never. Received: "
                f"{name} of type {type(value).__name__}. Leave it out; to "
                "weight tokens, compile with a `loss` that does."
            )


def check_training_backend():
    """Raises a `UserError` on a backend for which there is no training step."""
    backend = keras.config.backend()
    if backend not in ("tensorflow", "jax"):
        raise UserError(
            "Training and the validation loss need the backend tensorflow or "
            f"jax. Received: KERAS_BACKEND={backend}, on which models only run "
            "forward. Set KERAS_BACKEND=jax; the same weights can be used."
        )


def check_compiled(model, method):
    """Raises a `ValueError` if a model is not compiled or cannot be trained."""
    check_training_backend()
    if not model.compiled:
        raise ValueError(
            f"`compile` must be called before `{method}`. Received: a model "
            'that is not compiled. Call `model.compile("adam")`.'
        )


def check_arrays(x, y):
    """Raises a `ValueError` if arrays are not inputs and labels of a model.

    Without labels, `x` must be batches, which are not checked here.
    """
    if y is not None or isinstance(x, Mapping):
        found = sorted(x) if isinstance(x, Mapping) else type(x).__name__
        # Which a term of the objective may need.
        others = [name for name in found if name != "alignments"]
        if y is None or others != _INPUTS:
            raise ValueError(
                '`x` must be a dict {"source_ids": (B, S), "target_ids": '
                "(B, T)} of arrays, and `y` the labels (B, T). Received: x="
                f"{found}, y={'None' if y is None else 'labels'}."
            )


def check_batch(batch):
    """Raises a `ValueError` if a batch is not a pair of inputs and labels."""
    size = len(batch) if isinstance(batch, tuple | list) else None
    if size == 3:
        refuse_weights(sample_weight=batch[2])
    if size != 2:
        received = f"{size} elements" if size else type(batch).__name__
        raise ValueError(
            'A batch must be `({"source_ids", "target_ids"}, labels)`. '
            f"Received: {received}."
        )


def split_validation(x, y, validation_split):
    """Splits off the last rows of arrays for validation, as Keras does."""
    if y is None:
        raise ValueError(
            "`validation_split` needs arrays. Received: batches and "
            f"validation_split={validation_split}. Pass `validation_data`."
        )
    kept = int(len(y) * (1.0 - validation_split))
    first, last = (
        {name: ids[rows] for name, ids in x.items()}
        for rows in (slice(kept), slice(kept, None))
    )
    return first, y[:kept], (last, y[kept:])


def unpack_validation(data):
    """Returns the inputs and labels of `validation_data`; refuses weights.

    Example:
    >>> unpack_validation([1, 2])
    ([1, 2], None)
    """
    if not isinstance(data, tuple):
        return data, None
    x, y, weights = keras.utils.unpack_x_y_sample_weight(data)
    refuse_weights(sample_weight=weights)
    return x, y


@contextlib.contextmanager
def quiet_at_the_end_of_data(steps):
    """Silences Keras at the end of data that is evaluated without `steps`.

    Keras does not know the length of a `tf.data.Dataset` of unknown cardinality
    or, on JAX, of a Grain dataset or of a generator, and warns at their end
    that training was interrupted. On TensorFlow the latter two need `steps`.
    """
    with warnings.catch_warnings():
        if steps is None:
            warnings.filterwarnings("ignore", "Your input ran out of data")
        yield
