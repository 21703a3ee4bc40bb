"""What layers and models compute forward, on the backend of this process.

Run as a program with `KERAS_BACKEND=torch` and the name of a file, it writes
the results there, and prints what training says.
"""

import sys
import zlib
from pathlib import Path

import keras
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
import catalog  # noqa: E402

from keras_deepnmt.decoding import beam_search, greedy_search  # noqa: E402

MODELS = [entry for entry in catalog.MODELS if entry.mark != "slow"]


def with_known_weights(layer):
    """Gives a built layer weights that are the same on every backend.

    They depend on the end of a weight's path, since a functional model may
    order its layers differently.
    """
    for weight in layer.weights:
        name = weight.path.partition("/")[2]
        random = np.random.default_rng(zlib.crc32(name.encode()))
        value = random.normal(scale=0.3, size=weight.shape)
        weight.assign(value.astype("float32"))
    return layer


def as_array(outputs):
    parts = keras.tree.flatten(outputs)
    return np.concatenate(
        [keras.ops.convert_to_numpy(part).ravel() for part in parts]
    ).astype("float32")


def forward_results():
    """The outputs of every layer and model, and what searches find."""
    results = {}
    for entry in catalog.LAYERS:
        layer, inputs = entry.make(), entry.example()
        layer(**inputs, **entry.arguments)
        with_known_weights(layer)
        results[entry.name] = as_array(layer(**inputs, **entry.arguments))
    for entry in MODELS:
        model = with_known_weights(entry.make())
        inputs, _ = entry.example()
        results[entry.name] = as_array(model(inputs))
        for search in (greedy_search, beam_search):
            found = search(model, inputs["source_ids"], max_length=6)
            name = f"{entry.name}, {search.__name__}"
            results[name] = as_array(found["ids"])
    return results


if __name__ == "__main__":
    np.savez(sys.argv[1], **forward_results())
    entry = MODELS[0]
    model = entry.make()
    model.compile("adam")
    for method in (model.fit, model.evaluate, model.train_on_batch):
        try:
            method(*entry.example())
        except ValueError as error:
            print(error)
