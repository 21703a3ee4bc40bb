"""Does on another backend what the first one did; prints how far apart.

Run as a program with `KERAS_BACKEND` set, a folder written by
`test_second_backend.py`, and a part: `layer NAME` or `model NAME` of the
catalogue, `options`, training with all terms of the objective, or `devices`,
training on two devices and on one. Prints a JSON object.
"""

import json
import sys
from pathlib import Path

import keras
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
import catalog  # noqa: E402
from toy_alignments import LikeNumbers  # noqa: E402

from keras_deepnmt.decoding import beam_search  # noqa: E402
from keras_deepnmt.models import (  # noqa: E402
    Distillation,
    GuidedAlignment,
    ObjectiveTerm,
    RDrop,
    ScheduledSampling,
)
from keras_deepnmt.training import (  # noqa: E402
    CheckpointStore,
    make_strategy,
)
from keras_deepnmt.xla.compiled import compile_for  # noqa: E402

T = 5
WITH_OPTIONS = "toys in every slot"  # what is trained with every option


def entry_named(entries, name):
    return next(entry for entry in entries if entry.name == name)


def difference(one, other):
    one, other = np.asarray(one, "float32"), np.asarray(other, "float32")
    return float(np.abs(one - other).max())


def check_layer(folder, entry):
    model = keras.models.load_model(folder / "layer.keras")
    inputs = entry.example()
    expected = np.load(folder / "layer.npy")
    compiled = model.predict_on_batch(inputs)
    return {
        "other backend": difference(model(inputs), expected),
        "compiled": difference(compiled, model(inputs)),
    }


def check_model(folder, entry):
    model = keras.models.load_model(folder / "model.keras")
    inputs, labels = entry.example()
    scores = np.asarray(model.log_probs(model(inputs)))
    expected = np.load(folder / "model.npy")
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
        if weight.trainable and not np.any(np.asarray(weight) != old)
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


class Scaled(ObjectiveTerm):
    """A term of the objective that this test defines."""

    def change_losses(self, model, labels, log_probs, losses, prepared):
        return 0.9 * losses


def train_with_options(entry, weights, **options):
    """Two updates with all terms and the layers' losses, nothing random."""
    model, teacher = entry.make(dropout=0.0), entry.make()
    model.set_weights(weights)
    teacher.set_weights([0.9 * weight for weight in weights])
    model.compile(
        keras.optimizers.SGD(0.1),
        objective_terms=[
            # From the second update on.
            ScheduledSampling(1.0, 1, 1),
            Distillation(teacher, 0.5),
            RDrop(3.0),
            GuidedAlignment(LikeNumbers(), 0.5),
            GuidedAlignment(weight=0.3),
            Scaled(),
        ],
        **options,
    )
    inputs, labels = entry.example()
    links = labels[:, :, None] + inputs["source_ids"][:, None]
    inputs = {**inputs, "alignments": (links % 3 == 0).astype("uint8")}
    history = model.fit(inputs, labels, batch_size=4, epochs=2, verbose=0)
    return history.history["loss"], model.get_weights()


def check_options(folder):
    entry = entry_named(catalog.MODELS, WITH_OPTIONS)
    with np.load(folder / "options.npz") as arrays:
        losses, *weights = arrays.values()
    middle = len(weights) // 2
    found, trained = train_with_options(entry, weights[:middle])
    try:
        entry.make().compile("adam", metrics=["accuracy"])
        refused = ""
    except ValueError as error:
        refused = str(error)
    return {
        "refused": refused,
        "losses": difference(found, losses),
        "weights": max(map(difference, trained, weights[middle:])),
    }


def train_on(num_replicas, folder, dropout=0.3, parts=1, recomputes=False):
    """Trains, resumes, translates; devices do not divide the rows evenly."""
    entry = catalog.MODELS[1]
    keras.utils.set_random_seed(7)
    kind = "mirrored" if num_replicas > 1 else "one_device"
    with make_strategy(kind, num_replicas).scope():
        model = entry.make(
            dropout=dropout, num_encoder_layers=1, num_decoder_layers=1
        )
        model.compile(
            keras.optimizers.Adam(1e-3, global_clipnorm=0.5),
            gradient_accumulation_steps=parts,
            activation_checkpointing=recomputes,
        )
    inputs, labels = entry.example(rows=7)
    store = CheckpointStore(folder / f"{num_replicas} devices, {parts} parts")

    def more():
        history = model.fit(
            (batch for batch in [(inputs, labels)] * 3),
            steps_per_epoch=3,
            verbose=0,
        )
        return history.history["loss"], model.get_weights()

    more()
    store.save(model, 3)
    losses, weights = more()
    store.restore(model)
    again, resumed = more()
    return {
        "devices": len(model.trainable_variables[0].value.sharding.device_set),
        "resumed": again == losses
        and all(map(np.array_equal, weights, resumed)),
        "losses": losses + [model.evaluate(inputs, labels, verbose=0)[0]],
        "weights": weights,
        "model": model,
    }


def translate(model):
    inputs, _ = catalog.MODELS[1].example(rows=7)
    search = compile_for(model, beam_search)
    return search(inputs["source_ids"], num_beams=3, max_length=5)["ids"]


def check_devices(folder):
    """Compares two devices with one, with dropout; parts with whole batches."""
    two = train_on(2, folder)
    one = train_on(1, folder)
    recomputed = train_on(1, folder, recomputes=True)
    parts = train_on(2, folder, dropout=0.0, parts=3)
    whole = train_on(1, folder, dropout=0.0)
    return {
        "recomputed weights": max(
            map(difference, recomputed["weights"], one["weights"])
        ),
        "weights in parts": max(
            map(difference, parts["weights"], whole["weights"])
        ),
        "losses in parts": difference(parts["losses"], whole["losses"]),
        "devices": [one["devices"], two["devices"]],
        "resumed": one["resumed"] and two["resumed"],
        "losses": difference(one["losses"], two["losses"]),
        "weights": max(map(difference, one["weights"], two["weights"])),
        "same translations": np.array_equal(
            translate(one["model"]), translate(two["model"])
        ),
    }


def run_part(folder, part, name=None):
    if part == "layer":
        found = check_layer(folder, entry_named(catalog.LAYERS, name))
    elif part == "model":
        found = check_model(folder, entry_named(catalog.MODELS, name))
    elif part == "options":
        found = check_options(folder)
    else:
        assert part == "devices"
        found = check_devices(folder)
    return {"backend": keras.config.backend(), **found}


if __name__ == "__main__":
    print(json.dumps(run_part(Path(sys.argv[1]), *sys.argv[2:])))
