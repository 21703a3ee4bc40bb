#!/usr/bin/env bash
# Ctrl-C is lost in a Python process that has imported JAX, if it comes while
# Python collects garbage.
#
# JAX 0.10.2 adds a Python function to `gc.callbacks`. Python runs the handler
# of a signal between any two instructions of the main thread, so it can run
# inside that function, and the KeyboardInterrupt that it raises there is printed
# as "Exception ignored in: <function _xla_gc_callback ...>" and dropped: the
# program goes on as if nobody had pressed Ctrl-C. The same holds for handlers of
# SIGTERM that raise. TensorFlow 2.21 imports JAX where it is installed (in
# tensorflow/lite/python/util.py), so its programs are affected as well. Without
# JAX no signal is lost.
#
# What a program can do: a handler that looks whether the interrupted frame
# belongs to a function of `gc.callbacks`, and then sends the signal again a
# moment later.
#
# Seen with Python 3.11, jax 0.10.2, jaxlib 0.10.2 on Linux: of 400 signals 0
# were lost without JAX and 236 with it, in a loop that makes much garbage.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q jax==0.10.2 jaxlib==0.10.2
cat > "$work/count.py" <<'PYTHON'
import os
import random
import signal
import sys
import threading
import time

if sys.argv[1] == "jax":
    import jax

    assert jax.__version__ == "0.10.2"

SIGNALS = 400
raised = 0
answered = threading.Event()


def send():
    draw = random.Random(1)
    for _ in range(SIGNALS):
        # Long enough for the answer to the last one.
        time.sleep(0.02 + draw.random() * 0.005)
        os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.1)
    answered.set()


def work():
    """Makes objects that refer to themselves, as graphs of models do."""
    while not answered.is_set():
        for _ in range(100):
            node = []
            node.append(node)


sender = threading.Thread(target=send)
sender.start()
while not answered.is_set():
    try:
        work()
    except KeyboardInterrupt:
        raised += 1
sender.join()
print(SIGNALS - raised)
PYTHON
without=$("$work/venv/bin/python" "$work/count.py" plain 2> /dev/null)
with=$("$work/venv/bin/python" "$work/count.py" jax 2> "$work/errors")
echo "lost of 400 signals without JAX: $without, with JAX: $with"
grep -m 1 "Exception ignored in: <function _xla_gc_callback" "$work/errors"
[ "$without" -eq 0 ] && [ "$with" -gt 0 ]
