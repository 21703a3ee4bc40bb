"""Models and traced functions that many tests share; made once a process."""

import functools

import catalog
import keras
import numpy as np
import tensorflow as tf


def entry_named(name):
    return next(entry for entry in catalog.MODELS if entry.name == name)


@functools.cache
def shared_model(name):
    keras.utils.set_random_seed(1)  # no gate starts dead
    model = entry_named(name).make()
    scramble(model)
    return model


@functools.cache
def shared_graph(name):
    model = shared_model(name)
    ids = tf.TensorSpec((None, None), tf.int32)
    function = tf.function(
        lambda inputs: model.log_probs(model(inputs, training=False)),
        input_signature=[{"source_ids": ids, "target_ids": ids}],
    )
    return lambda inputs: function(
        {name: tf.constant(ids) for name, ids in inputs.items()}
    ).numpy()


def scramble(model, seed=0):
    """Moves every weight off its initial zeros and ones."""
    random = np.random.default_rng(seed)
    model.set_weights(
        [
            weight + 0.1 * random.normal(size=weight.shape)
            for weight in model.get_weights()
        ]
    )
