"""A mask or state that does not match the other inputs is refused, by every
public layer: it would be broadcast without a word, or end in an error of the
backend. Every layer is built from the shapes of TensorFlow, too."""

import catalog
import numpy as np
import pytest
import tensorflow as tf

MASKED = [
    entry
    for entry in catalog.LAYERS
    if any("mask" in name for name in entry.inputs)
]


def states_of(inputs):
    """The float tensors: `(name, place in a list or None, array)`."""
    for name, value in inputs.items():
        if isinstance(value, list):
            yield from ((name, n, state) for n, state in enumerate(value))
        elif "mask" not in name:
            yield name, None, value


JOINT = [
    entry
    for entry in catalog.LAYERS
    if len(list(states_of(entry.example()))) > 1
]


def built(entry):
    layer, inputs = entry.make(), entry.example()
    layer(**inputs, **entry.arguments)
    return layer, inputs


def message_of(layer, inputs, entry):
    with pytest.raises(ValueError) as info:
        layer(**inputs, **entry.arguments)
    text = str(info.value)
    return text[text.index("`") :]  # without what Keras puts around it


@pytest.mark.parametrize("entry", MASKED, ids=catalog.identify)
def test_a_mask_of_another_shape_is_refused(entry):
    layer, inputs = built(entry)
    (name,) = (name for name in inputs if "mask" in name)
    mask = inputs[name]
    wrong = [
        mask[0, 0],
        mask[..., None],
        np.concatenate([mask, mask], axis=-1),
        np.concatenate([mask, mask], axis=0),
        mask.astype("float32"),
    ]
    if name != "attention_mask":  # which is broadcast
        wrong += [mask[0], mask[:, :1], mask[:1]]
    for other in wrong:
        message = message_of(layer, {**inputs, name: other}, entry)
        assert message.startswith(f"`{name}` must be a boolean tensor")
        assert "Received" in message


@pytest.mark.parametrize("entry", JOINT, ids=catalog.identify)
def test_states_of_another_batch_or_length_are_refused(entry):
    layer, inputs = built(entry)
    states = list(states_of(inputs))
    lengths = [state.shape[-2] for *_, state in states]
    for (name, place, state), length in zip(states, lengths, strict=True):
        wrong = [state[:1]]
        if lengths.count(length) > 1:
            wrong.append(state[..., :1, :])
        for other in wrong:
            value = other
            if place is not None:
                value = [*inputs[name]]
                value[place] = other
            message = message_of(layer, {**inputs, name: value}, entry)
            assert " must " in message, (name, place)
            assert "Received" in message


@pytest.mark.parametrize("entry", catalog.LAYERS, ids=catalog.identify)
def test_a_layer_is_built_from_shapes_of_tensorflow(entry):
    def shape_of(name):
        value = entry.inputs[name]
        if isinstance(value, list):
            return [tf.TensorShape(shape) for shape in value]
        return tf.TensorShape(value)

    names = [name for name in entry.inputs if "mask" not in name]
    layer, plain = entry.make(), entry.make()
    layer.build(*map(shape_of, names))
    plain(**entry.example(), **entry.arguments)
    shapes = [[tuple(w.shape) for w in made.weights] for made in (layer, plain)]
    assert shapes[0] == shapes[1]
