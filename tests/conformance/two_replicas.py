"""Makes one update on one device and the same on two; prints how far apart.

Run as a program, since TensorFlow fixes its devices when it starts. Prints a
JSON object: entry name to the largest difference of any weight.
"""

import json
import sys
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

sys.path.insert(0, str(Path(__file__).parents[1]))
import catalog  # noqa: E402


def updated_weights(entry, weights, jit_compile, strategy):
    with strategy.scope():
        model = entry.make(dropout=0.0)
        model.compile(keras.optimizers.SGD(0.5), jit_compile=jit_compile)
    model.set_weights(weights)
    # Halves with different numbers of real tokens.
    batch = entry.example(rows=4)
    dataset = tf.data.Dataset.from_tensors(batch)
    model.fit(dataset, epochs=2, verbose=0)
    return model.get_weights(), model.evaluate(dataset, verbose=0)


def largest_difference(entry, jit_compile, two):
    weights = entry.make().get_weights()
    results = [
        updated_weights(entry, weights, jit_compile, strategy)
        for strategy in (tf.distribute.get_strategy(), two)
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


if __name__ == "__main__":
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 2,
    )
    # Once: a second strategy would take the first one's collective keys.
    two = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    found = {}
    for number, entry in enumerate(catalog.distinct_models()):
        # One entry with XLA inside the replicas; the others test the sums.
        found[entry.name] = largest_difference(entry, number == 0, two)
    print(json.dumps(found))
