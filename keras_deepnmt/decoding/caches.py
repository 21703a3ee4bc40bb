"""The caches of a model during a search."""

import keras
from keras import ops

from keras_deepnmt.decoding.hypotheses import (
    flat_rows,
    gather_beams,
    write_step,
)


def first_cache(model, memory, max_length, length, num_beams):
    """Makes the cache of a search, as `Seq2Seq.init_cache`.

    Its histories have room for `length` positions, or for `max_length` where
    that is `None`.
    """
    cache = model.init_cache(memory, max_length, num_beams)
    if length is None:
        return cache
    # Only the history is used, so a graph does not compute the rest.
    short = model.init_cache(memory, length, num_beams)
    return {**cache, **growing_parts(short), "dynamic": cache["dynamic"]}


def own_caches(model, memory, max_length, length, num_hypotheses):
    """Makes a cache in which each hypothesis has a history of its own.

    They never change places, so none of them reads what another one wrote.
    Arguments and result are those of `first_cache`.
    """
    shared = first_cache(model, memory, max_length, length, num_hypotheses)
    if num_hypotheses == 1:
        return shared
    repeated = keras.tree.map_structure(
        lambda x: ops.repeat(x, num_hypotheses, axis=0), memory
    )
    # Its static part is not used, so a graph does not compute it.
    own = first_cache(model, repeated, max_length, length, 1)
    return {**own, "static": shared["static"]}


def reorder_cache(cache, parents, step):
    """Gives each hypothesis the cache of the hypothesis that it extends.

    `cache` has the parts `dynamic` and `history` of a model's cache, see
    `Seq2Seq.init_cache`. At `step` each hypothesis extended the beam that
    `parents` `(B, K)` names. Of a history only the table of ancestors changes.
    """
    rows = flat_rows(parents, ops.shape(parents)[1])

    def reorder_ancestors(history):
        return {
            name: reorder_ancestors(part)
            if isinstance(part, dict)
            else write_step(gather_beams(part, parents), step, parents)
            if name == "ancestors"
            else part
            for name, part in history.items()
        }

    return {
        "dynamic": keras.tree.map_structure(
            lambda leaf: ops.take(leaf, rows, axis=0), cache["dynamic"]
        ),
        "history": reorder_ancestors(cache["history"]),
    }


def growing_parts(cache):
    """Returns the parts of a model's cache that change from step to step.

    A model that keeps no histories may leave out that part.
    """
    return {part: cache.get(part, {}) for part in ("dynamic", "history")}


def make_longer(state, length, longer):
    """Makes room for more steps in the state of a search, filled with zeros.

    The state has room for `length` positions, and then for `longer`. It has the
    hypotheses under the names that end in `ids`, other than `last_ids`, with
    the positions on their last axis, and the `cache`.
    """

    def pad(x, axis):
        added = ops.shape(x)[axis] // length * (longer - length)
        widths = [[0, 0]] * len(x.shape)
        widths[axis] = [0, added]
        return ops.pad(x, widths)

    by_position = {
        name: pad(x, -1)
        for name, x in state.items()
        if name.endswith("ids") and name != "last_ids"
    }
    history = keras.tree.map_structure(
        lambda x: pad(x, 2), state["cache"]["history"]
    )
    cache = {**state["cache"], "history": history}
    return {**state, **by_position, "cache": cache}
