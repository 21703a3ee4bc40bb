"""Histories: caches with a slot for each position of each hypothesis.

The K hypotheses of a sentence share a history, whose axis 2 has M K slots. Slot
`m K + k` holds position m of the hypothesis that was number k at that step.
A search that replaces or reorders its hypotheses moves nothing in a history: it
only has to remember which slots belong to each hypothesis.
"""

from keras import ops

from keras_deepnmt.xla.tracing import is_compiled_by_xla


def write_history(history, new, position):
    """Returns a history with the K slots of a position written.

    The history is `(B, N, M*K, H)` or `(B, D, M*K)`, and `new` is
    `(B, N, K, H)` or `(B, D, K)`.
    """
    num_beams = ops.shape(new)[2]
    if is_compiled_by_xla():
        # In place in a compiled loop.
        first = ops.cast(position, "int32") * num_beams
        places = (0, 0, first, *(0 for _ in history.shape[3:]))
        return ops.slice_update(history, places, new)
    # A plain TensorFlow graph, such as an exported model, has no such
    # operation.
    batch_size, width, num_slots, *others = ops.shape(history)
    first_rows = ops.arange(batch_size * width, dtype="int32") * num_slots
    slots = ops.cast(position, "int32") * num_beams
    slots = slots + ops.arange(num_beams, dtype="int32")
    rows = ops.reshape(ops.expand_dims(first_rows, 1) + slots, (-1, 1))
    written = ops.scatter_update(
        ops.reshape(history, (-1, *others)),
        rows,
        ops.reshape(new, (-1, *others)),
    )
    return ops.reshape(written, ops.shape(history))


def used_slots(tensors, position, num_beams):
    """Takes the slots up to a position, so that empty ones cost no time.

    The tensors have an axis 2 of M*K slots, where K is `num_beams`, and get one
    of `(position + 1) K` slots. Where XLA needs static shapes, the tensors are
    returned unchanged; a search then lengthens them only when it needs more
    slots.
    """
    if is_compiled_by_xla():
        return tensors
    num_slots = (position + 1) * num_beams
    return tuple(x[:, :, :num_slots] for x in tensors)


def own_slots(num_beams, num_slots):
    """Lets each hypothesis attend to the slots of its own number.

    Returns a bool tensor `(1, K, M*K)`.
    """
    beams = ops.arange(num_slots, dtype="int32") % num_beams
    own = ops.expand_dims(ops.arange(num_beams, dtype="int32"), 1)
    return ops.expand_dims(ops.equal(beams, own), 0)


def history_distances(num_beams, num_slots, position):
    """Computes how many positions each slot comes after a position.

    Returns an int tensor `(1, M*K)`, equal for all hypotheses.
    """
    positions = ops.arange(num_slots, dtype="int32") // num_beams
    return ops.expand_dims(positions - ops.cast(position, "int32"), 0)
