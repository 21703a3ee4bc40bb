#!/usr/bin/env bash
# `keras.remat` of a layer with dropout gives the gradient of another mask.
#
# `keras.remat` computes a function once more in the backward pass. A layer of
# Keras draws its random numbers from a `SeedGenerator`, whose state the first
# computation has moved on, so that the second one drops other activations: the
# gradient does not belong to the output. Nothing says so. On the backend JAX the
# state of the layer is a leaked tracer afterwards.
#
# What a program can do: read the states of the layer before, compute the
# function in a `keras.StatelessScope` that maps the variables to these values,
# both times, and assign the new states after it.
#
# Seen with Python 3.11, keras 3.15.1, tensorflow 2.21.0 on Linux, eagerly and in
# a graph: of 1,000 activations about half are kept in the output alone or in the
# gradient alone.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q keras==3.15.1 tensorflow==2.21.0
cat > "$work/masks.py" <<'PYTHON'
import keras
import tensorflow as tf

keras.utils.set_random_seed(1)
layer = keras.layers.Dropout(0.5)
again = keras.remat(lambda x: layer(x, training=True))


def differing(x, function):
    """The number of activations that output and gradient treat differently."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        output = function(x)
    gradient = tape.gradient(output, x)
    return tf.math.count_nonzero(tf.not_equal(output > 0, gradient > 0))


x = tf.ones((1_000,))
plain = differing(x, lambda x: layer(x, training=True))
in_graph = tf.function(lambda x: differing(x, again))
found = differing(x, again), in_graph(x)
print("keras", keras.__version__, "tensorflow", tf.__version__)
print("without remat", int(plain), "with it", *map(int, found))
assert plain == 0 and min(found) > 300
PYTHON
KERAS_BACKEND=tensorflow TF_CPP_MIN_LOG_LEVEL=3 \
  "$work/venv/bin/python" "$work/masks.py" 2> "$work/errors" || {
  cat "$work/errors"
  exit 1
}
