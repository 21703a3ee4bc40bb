"""A layer knows the shape of its output, before it is built and after."""

import inspect

import keras


def test_the_computed_shape_is_that_of_the_output(layer_entry):
    layer, inputs = layer_entry.make(), layer_entry.example()
    shapes = {
        f"{name}_shape": keras.tree.map_structure(shape_of, value)
        for name, value in inputs.items()
    }
    # By position, since Keras' own layers name it `input_shape`.
    first = next(iter(shapes.values()))
    _, *others = inspect.signature(layer.compute_output_shape).parameters
    options = {name: shapes[name] for name in others if name in shapes}
    before = layer.compute_output_shape(first, **options)
    outputs = layer(**inputs, **layer_entry.arguments)
    assert before == keras.tree.map_structure(shape_of, outputs)
    assert layer.compute_output_shape(first, **options) == before


def shape_of(tensor):
    return tuple(tensor.shape)
