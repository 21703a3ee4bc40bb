"""Makes one update on one device and the same on two; prints how far apart.

Run as a program, since TensorFlow fixes its devices when it starts, with what
to measure: a name of `MODELS`, of whose weights it prints the largest
difference, one with R-Drop and scheduled sampling, one with distillation, one
clipped; `masks`, what dropout kept on each replica before and after a
checkpoint; `float16`, what an overflow on one replica did; `searches`, whether
replicas found the same translations; `recomputed`, how far apart updates with
and without activation checkpointing are. Prints it as JSON.
"""

import json
import sys
import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

sys.path.insert(0, str(Path(__file__).parents[1]))
import catalog  # noqa: E402
from shared_models import entry_named  # noqa: E402
from toy_alignments import LikeNumbers  # noqa: E402

from keras_deepnmt.decoding import beam_search  # noqa: E402
from keras_deepnmt.models import (  # noqa: E402
    Distillation,
    GuidedAlignment,
    RDrop,
    ScheduledSampling,
)
from keras_deepnmt.models.training_step.training_state import (  # noqa: E402
    update_count,
)
from keras_deepnmt.training import CheckpointStore  # noqa: E402
from keras_deepnmt.xla.compiled import compile_for  # noqa: E402

# What is special on two replicas, for one entry each; sums are for all.
OPTIONS = [
    {"jit_compile": True},
    {"gradient_accumulation_steps": 2},
    {"jit_compile": True, "gradient_accumulation_steps": 3},
    {},
    {},
]
# Names of models and the numbers of their options. The toys use each slot as
# the papers' layers do, which have no replicas of their own to deal with.
MODELS = {
    "transformer_tiny": 0,
    "pre-norm, untied, two blocks a side": 1,
    "toys in every slot": 2,
    "conv_seq2seq_tiny": 3,
    "every slot": 2,
    "dense, summaries, other widths, every slot": 4,
}


def terms(number, entry, teacher_weights):
    """Objective terms, for one entry each; the teacher is the strategy's."""
    if number == 0:
        # From the second of two updates on, whatever is drawn.
        return [RDrop(3.0), ScheduledSampling(1, 1, 1)]
    if number == 2:
        teacher = entry.make()
        teacher.set_weights(teacher_weights)
        return [Distillation(teacher, 0.5), GuidedAlignment(LikeNumbers())]
    return []


ONE_LAYER = {"num_encoder_layers": 1, "num_decoder_layers": 1}


def updated_weights(entry, weights, strategy, number, **options):
    with strategy.scope():
        model = entry.make(dropout=0.0)
        model.compile(
            keras.optimizers.SGD(
                0.5, global_clipnorm=0.05 if number == 3 else None
            ),
            objective_terms=terms(
                number, entry, [0.9 * weight for weight in weights]
            ),
            **{"jit_compile": False, **options},
        )
    model.set_weights(weights)
    # Five rows are three and two, with different numbers of real tokens.
    batch = entry.example(rows=5)
    dataset = tf.data.Dataset.from_tensors(batch)
    model.fit(dataset, epochs=2, verbose=0)
    return model.get_weights(), model.evaluate(dataset, verbose=0)


def largest_difference(number, entry, two, options):
    weights = entry.make().get_weights()
    one = tf.distribute.get_strategy()
    results = [
        # Operation by operation, so that nothing needs to be traced.
        updated_weights(entry, weights, one, number, run_eagerly=True),
        updated_weights(entry, weights, two, number, **options),
    ]
    moved = max(
        np.abs(old - new).max()
        for old, new in zip(weights, results[0][0], strict=True)
    )
    return {
        "moved": float(moved),
        "weights": max(
            float(np.abs(one - other).max())
            for one, other in zip(results[0][0], results[1][0], strict=True)
        ),
        "loss": float(np.abs(np.subtract(results[0][1], results[1][1])).max()),
    }


def kept_activations(model, two):
    """Runs one layer of dropout on both replicas; advances its seed."""
    layer = model.source_dropout
    kept = two.run(
        tf.function(lambda: layer(tf.ones((7, 11)), training=True) > 0)
    )
    return [
        mask.numpy().tolist() for mask in two.experimental_local_results(kept)
    ]


def masks(two):
    entry = catalog.MODELS[1]
    with two.scope():
        model = entry.make(dropout=0.5, **ONE_LAYER)
        model.compile("sgd", run_eagerly=True)
    model.fit(tf.data.Dataset.from_tensors(entry.example()), verbose=0)
    store = CheckpointStore(tempfile.mkdtemp())
    store.save(model, 1)
    before = kept_activations(model, two)
    store.restore(model)
    return [before, kept_activations(model, two)]


def float16(two):
    """One update that overflows on the second replica alone, then others."""
    entry = catalog.MODELS[1]
    with two.scope():
        model = entry.make(dropout=0.0, dtype="mixed_float16", **ONE_LAYER)
        optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
        scaled = keras.optimizers.LossScaleOptimizer(
            optimizer, initial_scale=2.0**22
        )
        model.compile(scaled, jit_compile=False)
    start = [array.copy() for array in model.get_weights()]
    inputs, labels = entry.example(rows=4)
    # The second half of the rows is the second replica's; only its gradients
    # exist, and with this scale they are too large.
    labels[:2] = 0
    dataset = tf.data.Dataset.from_tensors((inputs, labels))
    model.fit(dataset, verbose=0)
    skipped = all(map(np.array_equal, start, model.get_weights()))
    model.fit(dataset, epochs=11, verbose=0)
    parts = [
        two.experimental_local_results(weight.value)
        for weight in model.trainable_weights
    ]
    return {
        "skipped": skipped,
        "updates": [update_count(model), int(optimizer.iterations.numpy())],
        "equal": all(
            np.array_equal(*(part.numpy() for part in pair)) for pair in parts
        ),
        "learned": not any(map(np.array_equal, start, model.get_weights())),
    }


def recomputed(two):
    """Two updates with dropout, whose blocks are computed once and twice."""
    entry, weights = catalog.MODELS[1], []
    for is_on in (False, True):
        keras.utils.set_random_seed(3)
        with two.scope():
            model = entry.make(dropout=0.3, **ONE_LAYER)
            model.compile(
                keras.optimizers.SGD(0.5), activation_checkpointing=is_on
            )
        dataset = tf.data.Dataset.from_tensors(entry.example(rows=5))
        model.fit(dataset, epochs=2, verbose=0)
        weights.append(model.get_weights())
    return max(
        float(np.abs(one - other).max())
        for one, other in zip(*weights, strict=True)
    )


def searches(two):
    """Translates on two devices, compiled and not, and eagerly on one."""
    entry = catalog.MODELS[1]
    one = entry.make(**ONE_LAYER)
    with two.scope():
        model = entry.make(**ONE_LAYER)
    model.set_weights(one.get_weights())
    # Seven rows are four and three, and one of padding.
    source_ids = entry.example(rows=7)[0]["source_ids"]
    options = {"num_beams": 3, "max_length": 5}
    wanted = beam_search(one, source_ids, **options)
    same = []
    for jit_compile in (True, False):
        search = compile_for(model, beam_search, jit_compile)
        found = search(source_ids, **options)
        same.append(np.array_equal(found["ids"], wanted["ids"]))
        same.append(np.allclose(found["scores"], wanted["scores"], atol=1e-5))
    return same


if __name__ == "__main__":
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 2,
    )
    # Once: a second strategy would take the first one's collective keys.
    two = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    part = sys.argv[1]
    if part in MODELS:
        number = MODELS[part]
        # Without a seed a start may lie where a ReLU has its kink.
        keras.utils.set_random_seed(number)
        found = largest_difference(
            number, entry_named(part), two, OPTIONS[number]
        )
    else:
        measures = (masks, float16, searches, recomputed)
        (measure,) = (each for each in measures if each.__name__ == part)
        found = measure(two)
    print(json.dumps(found))
