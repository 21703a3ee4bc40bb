"""What must be true of the programs that XLA compiles on TensorFlow.

* equal functions of equal models have one name, whatever was made before, so
  that the program that another process compiled is found
* other functions have other names
* a program computes what its function does: captured variables are read and
  assigned, loops and nested functions run
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_deepnmt
from keras_deepnmt.xla.tensorflow_programs import (
    CompiledProgram,
    _Naming,
)

IDS = tf.TensorSpec((None, None), tf.int32)
BATCH = ({"source_ids": IDS, "target_ids": IDS}, IDS)
COUNTS = dict.fromkeys(("source", "target"), tf.TensorSpec(()))


def program_names(function, *specs):
    """The names of the programs that a function calls, without XLA."""
    graph = tf.function(function, autograph=False)
    library = graph.get_concrete_function(*specs).graph.as_graph_def().library
    return sorted(function.signature.name for function in library.function)


def step_programs():
    """The programs of a new model's training and validation step."""
    model = keras_deepnmt.create_model(
        # Its role encoder has loops.
        "role_interaction_softmax_tiny",
        *(11, 13),
        hidden_dim=8,
        intermediate_dim=8,
        num_heads=2,
        num_encoder_layers=1,
        num_decoder_layers=1,
    )
    model.compile("adam", gradient_accumulation_steps=2)
    return [
        *program_names(model._gradient_function, *BATCH, COUNTS),
        *program_names(model._evaluation_function, *BATCH),
    ]


def loop(x):
    return tf.while_loop(lambda i: i < x, lambda i: [i + 1], [x])


@pytest.mark.thorough
def test_programs_do_not_depend_on_what_the_process_did_before():
    keras.utils.set_random_seed(1)
    first = step_programs()
    keras_deepnmt.create_model("conv_seq2seq_tiny", 11, 13)
    program_names(loop, tf.TensorSpec(()))
    keras.utils.set_random_seed(2)
    assert step_programs() == first


def test_the_order_of_called_functions_does_not_depend_on_that_of_a_map():
    def function(name, called=()):
        function = tf.compat.v1.GraphDef().library.function.add()
        function.signature.name = name
        attributes = function.node_def.add(name="node", op="Case").attr
        attributes["name"].s = name.encode()
        for other in called:
            attributes[other].func.name = other
        return function

    names = [letter * n for letter in "abcdefghijkl" for n in (1, 2, 3)]
    renamed = []
    for order in (names, names[::-1]):
        naming = _Naming({name: function(name) for name in names})
        naming.add(function("outer", order), "outer")
        renamed.append(list(naming.renamed))
    assert renamed[0] == renamed[1] and len(renamed[0]) == len(names) + 1


def test_another_constant_is_another_program():
    names = set()
    for number in (2.0, 3.0, 2.0):
        program = CompiledProgram(lambda x, n=number: x * n, "times")
        names.update(program_names(program, tf.TensorSpec(())))
    assert len(names) == 2


def test_a_program_computes_what_its_function_does():
    count = tf.Variable(3)
    weight = tf.Variable([[1.0, 2.0], [3.0, 4.0]])

    @tf.function(autograph=False)
    def nested(x):
        return x @ weight

    def power(inputs):
        count.assign_add(1)
        state = tf.while_loop(
            lambda i, x: i < count,
            lambda i, x: (i + 1, nested(x)),
            (0, inputs["x"]),
        )
        return {"power": state[1], "count": state[0], "same": inputs["y"]}

    program = tf.function(CompiledProgram(power), autograph=False)
    inputs = {"y": tf.constant([5]), "x": tf.constant([[1.0, -1.0]])}
    for expected in (4, 5):
        outputs = program(inputs)
        weights = np.linalg.matrix_power(weight.numpy(), expected)
        np.testing.assert_allclose(outputs["power"], [[1, -1]] @ weights)
        assert int(outputs["count"]) == int(count) == expected
        assert outputs["same"].numpy().tolist() == [5]
    with pytest.raises(ValueError, match="no power"):
        tf.function(CompiledProgram(lambda x: fail("no power"), "f"))(1)


def test_a_program_waits_for_control_dependencies():
    count = tf.Variable(0)
    program = CompiledProgram(lambda x: x + count.assign_add(1), "count")

    @tf.function(autograph=False)
    def in_turns():
        first = program(tf.constant(0))
        with tf.control_dependencies([first]):
            return first, program(tf.constant(0))

    assert [int(number) for number in in_turns()] == [1, 2]


def fail(text):
    raise ValueError(text)
