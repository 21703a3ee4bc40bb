"""Runs the catalogue on another backend; prints what each entry gave.

Run as a program with `KERAS_BACKEND` set and a folder written by
`test_second_backend.py`: `<number>.keras` and `<number>.npy`, the outputs of
the first backend. Prints a JSON object: entry name to its results.
"""

import json
import sys
import traceback
from pathlib import Path

import keras
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
import catalog  # noqa: E402

T = 5


def difference(one, other):
    one, other = np.asarray(one, "float32"), np.asarray(other, "float32")
    return float(np.abs(one - other).max())


def check_layer(entry, folder, number):
    model = keras.models.load_model(folder / f"layer_{number}.keras")
    inputs = entry.example()
    expected = np.load(folder / f"layer_{number}.npy")
    compiled = model.predict_on_batch(inputs)
    return {
        "other backend": difference(model(inputs), expected),
        "compiled": difference(compiled, model(inputs)),
    }


def check_model(entry, folder, number):
    model = keras.models.load_model(folder / f"model_{number}.keras")
    inputs, labels = entry.example()
    scores = np.asarray(model.log_probs(model(inputs)))
    expected = np.load(folder / f"model_{number}.npy")
    compiled = model.log_probs(model.predict_on_batch(inputs))
    found = {
        "other backend": difference(scores, expected),
        "compiled": difference(compiled, scores),
        "step by step": step_by_step(model, inputs, labels, scores),
    }
    before = model.get_weights()
    model.compile("adam")
    history = model.fit(inputs, labels, batch_size=4, epochs=3, verbose=0)
    losses = history.history["loss"]
    found["compilations"] = model.num_compilations
    found["loss is finite"] = bool(np.all(np.isfinite(losses)))
    found["weights that stood still"] = [
        weight.path
        for weight, old in zip(model.weights, before, strict=True)
        if not np.any(np.asarray(weight) != old)
    ]
    return found


def step_by_step(model, inputs, labels, expected):
    memory = model.encode(inputs["source_ids"])
    cache = model.init_cache(memory, max_length=T)
    steps = []
    for t in range(T):
        ids = inputs["target_ids"][:, t : t + 1]
        scores, cache = model.decode(ids, memory, cache, np.int32(t))
        steps.append(np.asarray(model.log_probs(scores)))
    real = labels != 0
    found = np.concatenate(steps, axis=1)
    largest = max(1.0, np.abs(expected).max())
    return difference(found[real], expected[real]) / float(largest)


def run_all(folder):
    found = {"backend": keras.config.backend()}
    work = [
        *((check_layer, entries) for entries in enumerate(catalog.LAYERS)),
        *(
            (check_model, entries)
            for entries in enumerate(catalog.distinct_models())
        ),
    ]
    for check, (number, entry) in work:
        try:
            found[entry.name] = check(entry, folder, number)
        except Exception:
            found[entry.name] = {"failed": traceback.format_exc()[-2000:]}
    return found


if __name__ == "__main__":
    print(json.dumps(run_all(Path(sys.argv[1]))))
