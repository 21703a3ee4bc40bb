"""What `predict_on_batch` computes, on the backend of this process.

Run as a program with `KERAS_BACKEND=openvino` and the name of a file, it writes
the results there.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
import catalog  # noqa: E402
from torch_backend import with_known_weights  # noqa: E402


def predictions():
    """The outputs of attention over all layers, and of two models."""
    results = {}
    for entry in catalog.LAYERS:
        if entry.name.startswith(("DenseAttention,", "MultiStepAttention")):
            model = with_known_weights(entry.functional())
            results[entry.name] = model.predict_on_batch(entry.example())
    for entry in catalog.MODELS:
        if entry.name in ("transformer_tiny", "conv_seq2seq_tiny"):
            model = with_known_weights(entry.make())
            inputs, _ = entry.example(2, 4, 9)
            results[entry.name] = model.predict_on_batch(inputs)
    return results


if __name__ == "__main__":
    np.savez(sys.argv[1], **predictions())
