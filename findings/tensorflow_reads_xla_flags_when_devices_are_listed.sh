#!/usr/bin/env bash
# TensorFlow reads TF_XLA_FLAGS when devices are listed, before it is initialized.
#
# `tf.config.list_physical_devices()` initializes nothing: logical devices can be
# configured after it, as TensorFlow's guides do. But it reads the environment
# variable TF_XLA_FLAGS, once for the whole process. Flags that a program sets
# later, such as the folder for compiled programs or those of autoclustering, have
# no effect and no message says so, although nothing was computed yet. Set before
# the first list, but after the import of TensorFlow, they hold. A library that
# asks for such flags when it is imported therefore comes too late in a program
# that has looked for GPUs first.
#
# What a program can do: set the flags before anything lists devices, and check by
# a small function that they hold.
#
# Seen with Python 3.11, tensorflow 2.21.0 on Linux, x86-64.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q tensorflow==2.21.0
cat > "$work/flags.py" <<'PYTHON'
import os
import sys
import tempfile

import tensorflow as tf

is_listed_first = sys.argv[1] == "listed first"
cpu = None
if is_listed_first:
    (cpu,) = tf.config.list_physical_devices("CPU")
folder = tempfile.mkdtemp(dir=sys.argv[2])
os.environ["TF_XLA_FLAGS"] = f"--tf_xla_persistent_cache_directory={folder}"
if is_listed_first:
    # Only possible before TensorFlow is initialized.
    parts = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, parts)
double = tf.function(lambda x: 2.0 * x, jit_compile=True)
assert float(double(tf.constant(1.0))) == 2.0
devices = len(tf.config.list_logical_devices("CPU"))
kept = len(os.listdir(folder))
print(f"tensorflow {tf.__version__}, {sys.argv[1]}: {devices} logical devices,")
print(f"  {kept} compiled programs in the folder that the flag names")
assert devices == (2 if is_listed_first else 1)
assert kept == (0 if is_listed_first else 1)
PYTHON
for order in "flags first" "listed first"; do
  TF_CPP_MIN_LOG_LEVEL=3 "$work/venv/bin/python" "$work/flags.py" "$order" "$work" \
    2> "$work/errors" || {
    cat "$work/errors"
    exit 1
  }
done
