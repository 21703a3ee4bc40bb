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
from toy_model import SOURCES, ToyModel

from keras_deepnmt.decoding import (
    SearchOptions,
    beam_search,
    compile_for,
    greedy_search,
    score_targets,
    search,
)
from keras_deepnmt.models import Transformer
from keras_deepnmt.xla import tuned
from keras_deepnmt.xla.replicas import num_replicas


def make_transformer():
    keras.utils.set_random_seed(3)
    return Transformer(17, 13, 8, 16, 2, 1, 1)


def replicated_models():
    """A toy model and a Transformer, each of two replicas."""
    if keras.backend.backend() == "jax":
        devices = keras.distribution.list_devices()
        distribution = keras.distribution.DataParallel(devices=devices)
        keras.distribution.set_distribution(distribution)
        models = ToyModel(vocabulary_size=13), make_transformer()
        for model in models:
            model.distribution = distribution
        return models
    import tensorflow as tf

    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 2,
    )
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        models = ToyModel(vocabulary_size=13), make_transformer()
    models[0].distribute_strategy = strategy
    return models


def num_differ_with_candidates(on_two):
    """The number of ids that differ, with few tokens to search among."""
    assert num_replicas(on_two) == 2
    on_two, on_one = (
        compile_for(model, search) for model in (on_two, make_transformer())
    )
    differ = 0
    # Numbers that two devices can divide, and such that they cannot.
    for rows, candidates in (
        (3, [0, 1, 2, 3, 5, 9]),
        (2, [0, 1, 2, 3, 5, 9, 12]),
    ):
        found, expected = (
            run(
                SOURCES[:rows],
                None,
                None,
                None,
                np.array(candidates, "int32"),
                max_length=6,
                options=SearchOptions(num_beams=2),
            )
            for run in (on_two, on_one)
        )
        assert set(np.unique(expected["ids"])) <= set(candidates)
        differ += int((found["ids"] != expected["ids"]).sum())
    return differ


def main():
    model, transformer = replicated_models()
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
    tuned.SCORED_POSITIONS = 8
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
                "differ_with_candidates": num_differ_with_candidates(
                    transformer
                ),
                "scores_differ": float(np.abs(found - expected).max()),
            }
        )
    )


if __name__ == "__main__":
    main()
