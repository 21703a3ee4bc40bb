"""Initial kernels that a block decides, and not each layer in it."""

import contextvars

import keras

from keras_deepnmt.layers.cloning import build_with

# `choose(path)` of the block that is being built: the initializer of a kernel.
_choose = contextvars.ContextVar("choose", default=None)


def make_dense(owner, units, name, kernel_initializer=None, **options):
    """Creates a dense layer of the layer `owner`, which is being built.

    `kernel_initializer` is the owner's choice, by default that of Keras; the
    block around it may have another.
    """
    choose = _choose.get()
    if choose is not None:
        kernel_initializer = choose(f"{owner.path}/{name}/kernel")
    return keras.layers.Dense(
        units,
        kernel_initializer=kernel_initializer or "glorot_uniform",
        name=name,
        dtype=owner.dtype_policy,
        **options,
    )


def build_with_kernels(layer, choose, *shapes):
    """Builds a layer, whose kernels the initializers `choose(path)` draw.

    `choose` may be `None`, for the layer's own. They must be known when a
    kernel is created: in a subclassed model Keras draws it after `build`, and
    what was assigned to it is lost. Only layers that are not of this package,
    which do not ask for them, are assigned their kernels.
    """
    if choose is None:
        build_with(layer, *shapes)
        return
    known = set()

    def choose_once(path):
        known.add(path)
        return choose(path)

    token = _choose.set(choose_once)
    try:
        build_with(layer, *shapes)
    finally:
        _choose.reset(token)
    for weight in layer.weights:
        if weight.name == "kernel" and weight.path not in known:
            weight.assign(choose(weight.path)(weight.shape, weight.dtype))
