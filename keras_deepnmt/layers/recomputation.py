"""Activation checkpointing: activations that are computed twice, not kept."""

import keras
from keras import ops

from keras_deepnmt.layers.keras_masks import first_mask


class Block(keras.layers.Layer):
    """Base class of a model's blocks, whose activations may be recomputed.

    The backward pass of an update needs what the layers of a block computed in
    the forward pass. With `recomputes_activations` only the block's inputs are
    kept, and the block is computed once more in the backward pass (Chen et
    al., 2016, Section 4.1). The second computation draws the same random
    numbers as the first: results and gradients are those of a block that keeps
    everything.

    Differs from the paper: the segments of the network that are recomputed are
    the blocks; embeddings, output layer and loss keep their activations.
    Cost: one more forward pass of the block per update; of L blocks, L inputs
    and the activations of a single block are in memory at a time.

    Reference:
        - [Chen et al., 2016](https://arxiv.org/abs/1604.06174).
    """

    # Set by `Seq2Seq.compile`.
    recomputes_activations = False

    def __call__(self, *args, **kwargs):
        # Only a model's own call passes `training` to its blocks.
        if self.recomputes_activations and kwargs.get("training"):
            return _recomputed(super().__call__, self, args, kwargs)
        return super().__call__(*args, **kwargs)


def _recomputed(function, layer, args, kwargs):
    """Calls `function(*args, **kwargs)`, and once more in the backward pass.

    `function` is the call of `layer`, which returns float tensors. Both times
    it gets its weights and random states as values, since the first call
    changes the states.
    """
    trained, others = layer.trainable_variables, layer.non_trainable_variables
    trained_values, other_values = map(_values_of, (trained, others))
    leaves = keras.tree.flatten((args, kwargs))
    places = [place for place, leaf in enumerate(leaves) if _is_float(leaf)]
    masks = {place: _mask(leaves[place]) for place in places}
    structure = None

    def run(*floats):
        nonlocal structure
        weights, inputs = floats[: len(trained)], floats[len(trained) :]
        given = list(leaves)
        for place, tensor in zip(places, inputs, strict=True):
            given[place] = _with_mask(tensor, masks[place])
        again_args, again_kwargs = keras.tree.pack_sequence_as(
            (args, kwargs), given
        )
        values = zip(
            [*trained, *others], [*weights, *other_values], strict=True
        )
        with keras.StatelessScope(
            list(values), collect_losses=True, initialize_variables=False
        ) as scope:
            structure = function(*again_args, **again_kwargs)
        outputs = keras.tree.flatten(structure)
        updates = [scope.get_current_value(variable) for variable in others]
        return [*outputs, *scope.losses], updates

    floats, updates = _rematerialized(
        run, *trained_values, *(leaves[place] for place in places)
    )
    for variable, value in zip(others, updates, strict=True):
        variable.assign(value)
    size = len(keras.tree.flatten(structure))
    if losses := floats[size:]:
        layer.add_loss(losses)
    # A block gives its outputs the mask of its first argument.
    mask = first_mask(*map(_mask, keras.tree.flatten(args[0])))
    outputs = [_with_mask(tensor, mask) for tensor in floats[:size]]
    return keras.tree.pack_sequence_as(structure, outputs)


def _rematerialized(function, *floats):
    """Returns `function(*floats)`, of which nothing is kept for the gradient.

    It returns a list of float tensors, which have a gradient, and a list of
    tensors that have none.
    """
    if keras.config.backend() == "jax":
        return keras.remat(function)(*floats)
    # TensorFlow's function cannot return tensors without a gradient. Those of
    # the first call belong to the same graph.
    kept = []

    def differentiable(*tensors):
        outputs, others = function(*tensors)
        kept.append(others)
        return outputs

    return keras.remat(differentiable)(*floats), kept[0]


class _Values(keras.layers.Layer):
    """Reads the values of variables as they are stored.

    A layer that computes in half precision would read the values cast to it.
    """

    def __init__(self, variables):
        super().__init__(autocast=False)
        # Hidden from Keras, which would track the variables.
        self._read = lambda: [
            ops.copy(variable.value) for variable in variables
        ]

    def call(self, unused):
        return self._read()


def _values_of(variables):
    return _Values(variables)(None)


def _is_float(leaf):
    if not ops.is_tensor(leaf):
        return False
    return "float" in keras.backend.standardize_dtype(leaf.dtype)


def _mask(tensor):
    return getattr(tensor, "_keras_mask", None)


def _with_mask(tensor, mask):
    if mask is not None:
        tensor._keras_mask = mask
    return tensor
