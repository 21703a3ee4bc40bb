"""The search of an exported graph, in stages as long as its sentences need."""

import tensorflow as tf

from keras_deepnmt.decoding.hypotheses import loop_length
from keras_deepnmt.decoding.search_by_options import search_stages
from keras_deepnmt.decoding.stages import at_most, with_room
from keras_deepnmt.xla import tuned


def search_in_graph(model, source_ids, *, options, max_length, **given):
    """Translates like `decoding.search`, in a graph for shapes of any size.

    The caches of its first stage have room for few tokens, and grow while any
    sentence goes on. A stage also ends when half of its sentences are over,
    and the others go on without them. All of this is one loop in the graph.

    `source_ids` are `(B, S)`, of a batch whose size is not known when the graph
    is made; `max_length`, a scalar, is the maximum number of steps. `given` are
    `prefix_ids`, `constraint_ids` and `max_lengths`; they and the result are as
    for `decoding.search`.
    """
    stages = search_stages(model, options)
    max_length = loop_length(model, max_length)
    length = at_most(tf.constant(tuned.SHORT_LENGTH), max_length)
    carried = stages.begin(source_ids, max_length, length, **given)
    found = _with_length(stages.outputs(carried), max_length)

    def run_stage(carried, length, found, places):
        num_sentences = tf.shape(places)[0]
        carried = stages.advance(carried, length, num_sentences // 2)
        outputs = _with_length(stages.outputs(carried), max_length)
        found = {
            name: tf.tensor_scatter_nd_update(x, places[:, None], outputs[name])
            for name, x in found.items()
        }
        live = tf.cast(tf.where(stages.is_live(carried))[:, 0], tf.int32)
        is_full = carried["state"]["step"] >= length
        longer = tf.where(
            is_full, at_most(tuned.STAGE_GROWTH * length, max_length), length
        )
        return (
            _take_sentences(carried, live, num_sentences),
            longer,
            found,
            tf.gather(places, live),
        )

    def goes_on(carried, *_):
        # Sentences go on at the end only if the model computes NaN.
        is_live = tf.reduce_any(stages.is_live(carried))
        return is_live & (carried["state"]["step"] < max_length)

    return tf.while_loop(
        goes_on,
        run_stage,
        (carried, length, found, tf.range(tf.shape(source_ids)[0])),
    )[2]


def _with_length(outputs, length):
    """Gives the ids of outputs room for `length` tokens."""
    return with_room(outputs, length - tf.shape(outputs["ids"])[-1], tf.pad)


def _take_sentences(carried, places, num_sentences):
    """Takes some sentences of nests of tensors whose first axis is sentences.

    Each sentence has the same number of rows, one after another.
    """

    def take(x):
        if not x.shape.rank:
            return x
        num_rows = tf.shape(x)[0] // num_sentences
        rows = places[:, None] * num_rows + tf.range(num_rows)
        return tf.gather(x, tf.reshape(rows, (-1,)))

    return tf.nest.map_structure(take, carried)
