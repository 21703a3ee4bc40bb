"""Refuses LiteRT files that LiteRT cannot run."""

import re
from pathlib import Path

# The name of an operation in a LiteRT file that calls TensorFlow's. Strings
# there end with a zero byte.
TENSORFLOW_OPERATION = re.compile(rb"Flex([A-Z]\w*)\0")


def check_operations(path):
    """Raises a `ValueError` if a LiteRT file calls operations of TensorFlow.

    LiteRT lacks them. It then writes the file, and refuses to run it.
    """
    found = TENSORFLOW_OPERATION.findall(Path(path).read_bytes())
    if not found:
        return
    names = ", ".join(sorted({name.decode() for name in found}))
    own_layer = ""
    if b"StridedSlice" in found:
        own_layer = (
            " A layer of your own needs `keras.ops.expand_dims(mask, 1)` in "
            "place of `mask[:, None]` there."
        )
    raise ValueError(
        '`format="litert"` must have operations that LiteRT can run. '
        f"Received: a model that needs {names} of TensorFlow. An LSTM needs "
        "such operations where sizes are open: pass `input_signature` with "
        'fixed sizes, use role_encoder="cnn", or export to format="onnx". '
        "Where TensorFlow's operations are linked to LiteRT, pass "
        f"`target_spec`.{own_layer}"
    )
