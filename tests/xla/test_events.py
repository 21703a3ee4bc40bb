"""What must be true of the event that XLA is about to compile a program.

* every listener of the model is called once for each program, before it is
  made, with its purpose and shape; those of other models are not
* a listener replaces the one of the same name
* where XLA does not compile, there is no event
"""

import numpy as np
import pytest

import keras_deepnmt
from keras_deepnmt.decoding import SearchOptions, compile_for
from keras_deepnmt.decoding.staged_search import StagedSearch
from keras_deepnmt.xla.events import Compilation, listen

SOURCES = np.array([[4, 5, 3], [6, 3, 0]], "int32")


@pytest.fixture
def model():
    return keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1)


def double(model, x):
    return 2 * x


def test_all_listeners_of_the_model_hear_of_each_program_once(model):
    first, second, others = [], [], []
    listen(model, first.append)
    listen(model, second.append)
    other = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1)
    listen(other, others.append)
    function = compile_for(model, double)
    for array in (SOURCES, SOURCES, SOURCES[:1]):
        function(array)
    expected = [Compilation("double", (2, 3)), Compilation("double", (1, 3))]
    assert first == second == expected
    assert others == []


def test_a_program_is_announced_before_it_is_traced(model):
    order = []

    def traced(model, x):
        order.append("traced")
        return x

    listen(model, lambda compilation: order.append(compilation.purpose))
    compile_for(model, traced, purpose="a test")(SOURCES)
    assert order == ["a test", "traced"]


@pytest.mark.thorough
def test_a_search_is_announced_as_one(model):
    heard = []
    listen(model, heard.append)
    StagedSearch(model)(SOURCES, options=SearchOptions(), max_length=5)
    assert heard == [Compilation("search", (2, 3))]


def test_a_listener_replaces_the_one_of_its_name(model):
    first, second, unnamed = [], [], []
    listen(model, unnamed.append)
    listen(model, first.append, name="progress")
    listen(model, second.append, name="progress")
    compile_for(model, double)(SOURCES)
    assert not first
    assert len(second) == len(unnamed) == 1


def test_without_xla_there_is_no_event(model):
    heard = []
    listen(model, heard.append)
    compile_for(model, double, jit_compile=False)(SOURCES)
    model.compile("adam", jit_compile=False)
    model.training_shapes.add((2, 3, 5))
    assert heard == []
    model.compile("adam")
    model.training_shapes.add((2, 3, 5))
    model.training_shapes.add((2, 3, 5))
    model.evaluation_shapes.add((2, 3, 7))
    assert heard == [
        Compilation("training", (2, 3, 5), number=1),
        Compilation("validation", (2, 3, 7), number=1),
    ]
