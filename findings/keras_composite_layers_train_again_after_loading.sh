#!/usr/bin/env bash
# A frozen layer of Keras that is made of others trains again after loading.
#
# `layer.trainable = False` on a `MultiHeadAttention`, or on another layer that
# creates layers in its `build`, freezes its weights. After `save` and
# `load_model`, or in a copy by `clone_model`, the layer still says that it is
# not trainable, but its model lists all its weights as trainable, and `fit`
# changes them. The constructor's `trainable=False` has no effect for the same
# reason: the inner layers are made later, and nothing hands the value on to
# them. A layer with weights of its own, such as `Dense`, stays frozen.
#
# Setting `layer.trainable = False` again has no effect on TensorFlow, where an
# attribute that has this value already is not set.
#
# What a program can do: set `layer.trainable = True` and then `False` after
# loading.
#
# Seen with Python 3.11, keras 3.15.1, tensorflow 2.21.0 on Linux.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q keras==3.15.1 tensorflow==2.21.0
cat > "$work/frozen.py" <<'PYTHON'
import sys

import keras
import numpy as np


def count(model):
    return [len(layer.trainable_weights) for layer in (model.layers[1], model)]


def attention(x, **arguments):
    return keras.layers.MultiHeadAttention(2, 4, **arguments)(x, x)


inputs = keras.Input((3, 8))
frozen = keras.Model(inputs, keras.layers.Dense(8)(inputs))
attentive = keras.Model(inputs, attention(inputs))
frozen.layers[1].trainable = attentive.layers[1].trainable = False
assert count(frozen) == count(attentive) == [0, 0]

loaded = []
for model in (frozen, attentive):
    model.save(f"{sys.argv[1]}/model.keras")
    loaded.append(keras.models.load_model(f"{sys.argv[1]}/model.keras"))
copy = keras.models.clone_model(attentive)
given = keras.Model(inputs, attention(inputs, trainable=False))

attentive = loaded[1]
before = attentive.get_weights()
attentive.compile("sgd", "mse")
x = np.random.default_rng(0).normal(size=(16, 3, 8)).astype("float32")
attentive.fit(x, x, verbose=0)
moved = any(
    np.any(old != new)
    for old, new in zip(before, attentive.get_weights(), strict=True)
)

print("keras", keras.__version__)
print("trainable weights of the layer and of its model")
print("Dense, frozen, loaded:              ", *count(loaded[0]))
print("MultiHeadAttention, frozen, loaded: ", *count(attentive))
print("MultiHeadAttention, frozen, cloned: ", *count(copy))
print("MultiHeadAttention(trainable=False):", *count(given))
print("trainable after loading:", attentive.layers[1].trainable)
print("fit has changed its weights:", moved)
assert count(loaded[0]) == [0, 0]
assert count(attentive) == count(copy) == count(given) == [0, 8]
layer = attentive.layers[1]
layer.trainable = False
again = count(attentive)
layer.trainable = True
layer.trainable = False
print("set to False again:                ", *again)
print("set to True, then to False:        ", *count(attentive))
assert again == [0, 8] and count(attentive) == [0, 0]
assert moved and not attentive.layers[1].trainable
PYTHON
TF_CPP_MIN_LOG_LEVEL=3 "$work/venv/bin/python" "$work/frozen.py" "$work" \
  2> "$work/errors" || {
  cat "$work/errors"
  exit 1
}
