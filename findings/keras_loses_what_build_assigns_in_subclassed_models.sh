#!/usr/bin/env bash
# What a layer of Keras assigns to its weights in `build` is lost in a subclassed
# model.
#
# Called alone or in a functional model, a layer that creates a weight in `build`
# and then assigns other values to it has these values. In a subclassed
# `keras.Model`, or in a layer that creates it, it has those of the initializer:
# Keras builds such a model by a symbolic call, in a scope in which a variable
# that is created is not initialized and what is assigned is dropped. Nothing
# says so. It is the same on TensorFlow and JAX.
#
# What a program can do: give the weight an initializer that makes the values.
#
# Seen with Python 3.11, keras 3.15.1, tensorflow 2.21.0, jax 0.10.2 on Linux.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q keras==3.15.1 tensorflow==2.21.0 jax==0.10.2
cat > "$work/assigned.py" <<'PYTHON'
import keras
import numpy as np


class Scale(keras.layers.Layer):
    def build(self, shape):
        self.scale = self.add_weight(shape=(shape[-1],), initializer="ones")
        self.scale.assign(np.full(shape[-1], 5.0))

    def call(self, x):
        return x * self.scale


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.layer = Scale()

    def call(self, x):
        return self.layer(x)


x = np.ones((2, 3), "float32")
inputs = keras.Input((3,))
models = Scale(), keras.Model(inputs, Scale()(inputs)), Subclassed()
found = [float(keras.ops.max(model(x))) for model in models]
print("keras", keras.__version__, "on", keras.backend.backend())
print("alone, functional, subclassed:", *found)
assert found == [5.0, 5.0, 1.0]
PYTHON
for backend in tensorflow jax; do
  KERAS_BACKEND=$backend TF_CPP_MIN_LOG_LEVEL=3 \
    "$work/venv/bin/python" "$work/assigned.py" 2> "$work/errors" || {
    cat "$work/errors"
    exit 1
  }
done
