"""Prints what differs between a search on one device and on two replicas."""

import json
import os
import sys
from pathlib import Path

os.environ["XLA_FLAGS"] = (
    f"{os.environ.get('XLA_FLAGS', '')} "
    "--xla_force_host_platform_device_count=2"
)
sys.path.insert(0, str(Path(__file__).parents[1]))

import keras
import numpy as np
from toy_model import ToyModel

from keras_deepnmt.decoding import (
    SearchOptions,
    beam_search,
    compile_for,
    greedy_search,
    score_targets,
    scoring,
)
from keras_deepnmt.decoding.replicas import num_replicas

SOURCES = np.array(
    [[4, 9, 3, 0, 0], [5, 3, 0, 0, 0], [8, 7, 6, 16, 3]], "int32"
)


def replicated_model():
    if keras.backend.backend() == "jax":
        devices = keras.distribution.list_devices()
        distribution = keras.distribution.DataParallel(devices=devices)
        keras.distribution.set_distribution(distribution)
        model = ToyModel(vocabulary_size=13)
        model.distribution = distribution
        return model
    import tensorflow as tf

    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 2,
    )
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        model = ToyModel(vocabulary_size=13)
    model.distribute_strategy = strategy
    return model


def main():
    model = replicated_model()
    assert num_replicas(model) == 2
    alone = ToyModel(vocabulary_size=13)
    compilations, distance, ids_differ = [], 0.0, 0
    for function in (beam_search, greedy_search):
        on_two, on_one = (compile_for(m, function) for m in (model, alone))
        for penalty in (0.6, 1.5):
            options = SearchOptions(
                num_beams=2, length_penalty=penalty, max_extra_tokens=4
            )
            found, expected = (
                run(SOURCES, max_length=12, options=options)
                for run in (on_two, on_one)
            )
            for name in ("ids", "truncated"):
                ids_differ += int((found[name] != expected[name]).sum())
            gap = np.abs(found["scores"] - expected["scores"])
            distance = max(distance, float(gap.max()))
        compilations.append(on_two.num_compilations)
    # Several parts, of which each replica has some rows.
    scoring._POSITIONS = 8
    arrays = (
        np.concatenate([SOURCES, SOURCES, SOURCES[:1]]),
        np.array([[2, 5, 6, 7, 8]] * 7, "int32"),
        np.array([[5, 6, 7, 8, 3]] * 7, "int32"),
    )
    found, expected = (
        compile_for(m, score_targets)(*arrays) for m in (model, alone)
    )
    print(
        json.dumps(
            {
                "ids_differ": ids_differ,
                "largest_difference": distance,
                "compilations": compilations,
                "scores_differ": float(np.abs(found - expected).max()),
            }
        )
    )


if __name__ == "__main__":
    main()
