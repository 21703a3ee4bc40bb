"""What must be true of compiling shapes ahead.

* training is the same to the last bit, random states included
* on JAX the first update compiles all shapes, and no other update any
* shapes are compiled in the order given, and none after `stop`
* a failure ahead leaves training alone
* there are as many compilations at a time as cores and memory allow
"""

import threading

import backend_program
import keras
import numpy as np
import pytest

import keras_deepnmt
from keras_deepnmt.models.compilation import compilations_at_once
from keras_deepnmt.models.compilation.compilations_at_once import (
    num_compilations_at_once,
)
from keras_deepnmt.models.compilation.tensorflow_ahead import AheadCompilation
from keras_deepnmt.models.training_step import tensorflow_step
from keras_deepnmt.xla.tensorflow_programs import (
    CompiledProgram,
)

SHAPES = ((4, 3, 5), (2, 7, 6), (6, 2, 3))
STEPS = (0, 1, 0, 2, 1)


@pytest.fixture
def two_at_once(monkeypatch):
    monkeypatch.setattr(
        tensorflow_step, "num_compilations_at_once", lambda *_: 2
    )


def small_model():
    return keras_deepnmt.create_model(
        "transformer_tiny",
        *(11, 13),
        hidden_dim=8,
        intermediate_dim=8,
        num_heads=2,
        num_encoder_layers=1,
        num_decoder_layers=1,
        dropout=0.3,
    )


def trained(shapes_ahead):
    """A model that was trained on batches in two parts each."""
    keras.utils.set_random_seed(3)
    model = small_model()
    model.compile("adam", gradient_accumulation_steps=2)
    model.compile_ahead(shapes_ahead)
    draw = np.random.default_rng(5)
    batches = []
    for step in STEPS:
        rows, source_length, target_length = SHAPES[step]
        source = draw.integers(4, 11, (rows, source_length))
        target = draw.integers(4, 13, (rows, target_length))
        inputs = {"source_ids": source, "target_ids": target}
        inputs = {key: ids.astype("int32") for key, ids in inputs.items()}
        batches.append((inputs, inputs["target_ids"]))
    model.fit(batches, shuffle=False, verbose=0)
    return model


def test_training_is_the_same_to_the_last_bit(two_at_once):
    ahead = trained(SHAPES)
    ahead._ahead.wait()
    assert ahead.training_shapes.compiled_ahead == set(SHAPES)
    alone = trained(())
    assert alone.training_shapes.compiled_ahead == set()
    assert len(ahead.variables) == len(alone.variables)
    for one, other in zip(ahead.variables, alone.variables, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=one.path)


def test_a_failure_ahead_leaves_training_alone(two_at_once, monkeypatch):
    def fail(program, make_zeros):
        raise RuntimeError("no memory")

    monkeypatch.setattr(CompiledProgram, "stand_in", fail)
    model = trained(SHAPES)
    model._ahead.wait()
    assert model.num_compilations == len(SHAPES)
    assert model.training_shapes.compiled_ahead == set()


def test_on_jax_the_first_update_compiles_all_shapes():
    script = str(backend_program.FOLDER / "models" / "ahead_on_jax.py")
    ahead, again, alone = (
        backend_program.found_by(script, way, "jax")
        for way in ("ahead", "again", "alone")
    )
    assert (ahead["at once"], alone["at once"]) == (2, 0)
    # Each shape once, when it comes first in STEPS or before.
    assert alone["compiled"] == [1, 2, 2, 3, 3]
    assert ahead["compiled"] == [3, 3, 3, 3, 3]
    assert again["compiled"] == ahead["compiled"]
    assert ahead["shapes"] == alone["shapes"] == sorted(map(list, SHAPES))
    assert ahead["weights"] == alone["weights"]


class SlowProgram:
    """Compiles when it is told to, and notes what."""

    def __init__(self):
        self.begun, self.go_on = [], threading.Event()

    def stand_in(self, make_zeros):
        def run(arguments):
            self.begun.append(arguments)
            self.go_on.wait(60)

        return run


def test_after_a_stop_nothing_more_is_compiled():
    program, compiled = SlowProgram(), []
    arguments = dict(zip("abc", "123", strict=True))
    ahead = AheadCompilation(program, arguments, 1, compiled.append)
    ahead.stop()
    program.go_on.set()
    ahead.wait()
    assert compiled == ["a"][: len(program.begun)]
    ahead = AheadCompilation(program, arguments, 1, compiled.append)
    ahead.wait()
    assert program.begun[-3:] == ["1", "2", "3"]
    assert compiled[-3:] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "cores, free_gibibytes, shapes, expected",
    [(2, 20, 12, 2), (16, 20, 12, 6), (16, 99, 5, 5), (2, 5, 9, 0)]
    + [(1, 99, 9, 0), (2, 99, 1, 0), (2, 0, 9, 0)],
)
def test_cores_and_memory_limit_the_compilations_at_a_time(
    monkeypatch, cores, free_gibibytes, shapes, expected
):
    free_bytes = free_gibibytes * 2**30
    monkeypatch.setattr(compilations_at_once, "_free_bytes", lambda: free_bytes)
    found = num_compilations_at_once(shapes, 2**30, num_threads=cores)
    assert found == expected


def test_without_xla_or_with_one_shape_nothing_is_compiled_ahead(two_at_once):
    model = small_model()
    model.compile("adam")
    assert model.compile_ahead(SHAPES) == 2
    assert model.compile_ahead(SHAPES[:1]) == 0
    model.compile("adam", jit_compile=False)
    assert model.compile_ahead(SHAPES) == 0
