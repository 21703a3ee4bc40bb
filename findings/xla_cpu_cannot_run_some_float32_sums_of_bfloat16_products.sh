#!/usr/bin/env bash
# XLA on processors compiles some products of bfloat16 with float32 sums, and
# then cannot run them.
#
# A matrix product may take bfloat16 and return float32 (`Tout` of TensorFlow's
# BatchMatMulV3, `preferred_element_type` of XLA). On a processor XLA leaves such a
# product in bfloat16 if its library YNNPACK takes it, and computes it in float32
# otherwise. It decides so before it has chosen layouts: where the left matrix is
# a transposed one, with an element-wise operation between, the layout that comes
# out later is one that YNNPACK does not take, and the kernel that is left has no
# such product. The program compiles, and running it raises "Unsupported element
# type for DotThunk". That is how the gradient of a weight matrix looks in
# training with mixed precision. Without the operation between, the same product
# runs, and so does the program in float32 or with a result in bfloat16.
#
# What a program can do: let TensorFlow's own kernels compute products in
# bfloat16 on processors, with autoclustering for what is between them.
#
# Seen with Python 3.11, tensorflow 2.21.0 on Linux, x86-64.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q tensorflow==2.21.0
cat > "$work/products.py" <<'PYTHON'
import tensorflow as tf

rows, inputs, outputs = 256, 64, 96
x = tf.cast(tf.random.normal((rows, inputs)), tf.bfloat16)
gradient = tf.cast(tf.random.normal((rows, outputs)), tf.bfloat16)


def transposed(x):
    return tf.transpose(x)


def transposed_and_bounded(x):
    bounded = tf.maximum(tf.cast(tf.transpose(x), tf.float32), -1e30)
    return tf.cast(bounded, tf.bfloat16)


def run(left, dtype):
    @tf.function(jit_compile=True)
    def product(x, gradient):
        return tf.raw_ops.BatchMatMulV3(x=left(x), y=gradient, Tout=dtype)

    try:
        return product(x, gradient)
    except tf.errors.UnimplementedError as error:
        return str(error).splitlines()[0]


expected = tf.matmul(tf.cast(x, tf.float32), tf.cast(gradient, tf.float32), True)
print("tensorflow", tf.__version__)
for left, dtype in (
    (transposed, tf.float32),
    (transposed_and_bounded, tf.bfloat16),
    (transposed_and_bounded, tf.float32),
):
    found = run(left, dtype)
    fails = isinstance(found, str)
    print(left.__name__, dtype.name, found if fails else "runs")
    assert fails == (left is transposed_and_bounded and dtype == tf.float32)
    if fails:
        assert "Unsupported element type for DotThunk" in found
    else:
        error = tf.reduce_max(tf.abs(tf.cast(found, tf.float32) - expected))
        assert error < 0.5
PYTHON
TF_CPP_MIN_LOG_LEVEL=3 "$work/venv/bin/python" "$work/products.py" \
  2> "$work/errors" || {
  cat "$work/errors"
  exit 1
}
