"""A second forward pass that returns the intermediate tensors of layers."""

import fnmatch
from collections.abc import Sequence

import keras
import numpy as np

from keras_deepnmt.layers.recording import recorder
from keras_deepnmt.masks import BEGIN_ID, END_ID, UNKNOWN_ID


def record(model: keras.Model, names: str | Sequence[str] = "*") -> keras.Model:
    """Makes a model that returns tensors from inside another one.

    The new model shares the weights, and computes the tensors anew in each
    call, without dropout. The other model is not changed, and its own programs
    do not contain them.

    Args:
        model: Model of this package, such as `models.Transformer`.
        names: Names from `recorded_names(model)`, or patterns such as
            `"decoder_block_*/cross_attention/weights"`.

    Returns:
        A Keras model with the same inputs, whose outputs are a dict of the
        tensors by name.

    Raises:
        ValueError: if a name or pattern fits no tensor of the model.

    Example:
    >>> model = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1)
    >>> recorded = record(model, "*/cross_attention/weights")
    >>> ids = {"source_ids": np.array([[4, 5, 3]])}
    >>> outputs = recorded(ids | {"target_ids": np.array([[2, 6]])})
    >>> {name: tuple(x.shape) for name, x in outputs.items()}
    {'decoder_block_1/cross_attention/weights': (1, 2, 2, 3)}
    """
    patterns = [names] if isinstance(names, str) else list(names)
    known = recorded_names(model)
    unknown = [p for p in patterns if not fnmatch.filter(known, p)]
    if unknown:
        raise ValueError(
            "`names` must fit tensors of the model. Received: "
            f"{', '.join(unknown)}. The model has: {', '.join(known)}."
        )
    chosen = [n for n in known if any(fnmatch.fnmatch(n, p) for p in patterns)]
    return _RecordedModel(model, chosen)


def recorded_names(model: keras.Model) -> list[str]:
    """Lists the tensors that `record` can return.

    A name is that of the layer, a slash and the kind of tensor: `weights` of
    attention, of shape `(B, N, T, S)`, or of hybrid attention `(B, n, N, T, S)`
    for n branches, or of dense attention `(B, n, T, S)` for n pairs of keys and
    values; `gate_BRANCH`; `roles`; `share` of a surface fusion; and `output` of
    blocks and aggregation nodes. The tensors of a layer's second call in the
    same pass are called `NAME_2`.

    Args:
        model: Model of this package.

    Returns:
        The names in the order of the computation.

    Example:
    >>> model = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1)
    >>> recorded_names(model)[:2]
    ['encoder_block_1/attention/weights', 'encoder_block_1/output']
    """
    ids = {
        "source_ids": np.array([[UNKNOWN_ID, END_ID]], "int32"),
        "target_ids": np.array([[BEGIN_ID, UNKNOWN_ID]], "int32"),
    }
    if not model.built:
        # Keras may call a layer once more to build it.
        model(ids)
    return list(_run(model, ids))


def _run(model, inputs):
    """Runs a model without dropout; returns all recorded tensors by name."""
    found = {}

    def receive(name, tensor):
        number, unique = 1, name
        while unique in found:
            number += 1
            unique = f"{name}_{number}"
        found[unique] = tensor

    with recorder(receive):
        model(inputs, training=False)
    return found


class _RecordedModel(keras.Model):
    """Returns tensors that the layers of a model record."""

    def __init__(self, model, names):
        super().__init__(name=f"{model.name}_recorded")
        self.model = model
        self.names = names

    def call(self, inputs, training=None):
        found = _run(self.model, inputs)
        return {name: found[name] for name in self.names}
