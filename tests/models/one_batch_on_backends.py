"""Trains, tests and predicts one batch, and a list; prints the results.

Run as a program, with a strategy as its argument (`one_device` or `mirrored`)
and `KERAS_BACKEND` set, since devices and backend are fixed at the start. The
devices do not divide the rows evenly.
"""

import json
import sys
from pathlib import Path

import keras
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
import catalog  # noqa: E402

from keras_deepnmt.models import GuidedAlignment  # noqa: E402
from keras_deepnmt.models.training_step.training_state import (  # noqa: E402
    update_count,
)
from keras_deepnmt.training import make_strategy  # noqa: E402

ENTRY = catalog.MODELS[1]
BATCH = ENTRY.example(rows=5)
WEIGHTS = np.ones(5)


def compiled(strategy, weights=None, **options):
    with strategy.scope():
        model = ENTRY.make(
            dropout=0.0, num_encoder_layers=1, num_decoder_layers=1
        )
        model.compile(
            keras.optimizers.SGD(0.5),
            loss="sparse_categorical_crossentropy",
            jit_compile=keras.config.backend() == "jax",
            **options,
        )
    if weights is not None:
        model.set_weights(weights)
    return model


def trained_in_parts(strategy, weights, parts):
    """The weights after an update with given alignments."""
    model = compiled(
        strategy,
        weights,
        gradient_accumulation_steps=parts,
        objective_terms=[GuidedAlignment(weight=0.5)],
    )
    inputs, labels = BATCH
    links = (labels[:, :, None] + inputs["source_ids"][:, None]) % 3 == 0
    inputs = {**inputs, "alignments": links.astype("uint8")}
    model.train_on_batch(inputs, labels)
    return model.get_weights()


def difference(weights, others):
    return max(
        float(np.abs(mine - theirs).max())
        for mine, theirs in zip(weights, others, strict=True)
    )


def count_refused(model):
    calls = [
        lambda: model.fit(*BATCH, class_weight={1: 2.0}),
        lambda: model.fit(*BATCH, sample_weight=WEIGHTS),
        lambda: model.fit(*BATCH, validation_data=(*BATCH, WEIGHTS)),
        lambda: model.train_on_batch(*BATCH, class_weight={1: 2.0}),
        lambda: model.test_on_batch(*BATCH, sample_weight=WEIGHTS),
    ]
    refused = 0
    for call in calls:
        try:
            call()
        except ValueError as error:
            refused += "is not supported: every real target" in str(error)
    return refused


def main(kind):
    strategy = make_strategy(kind, 2 if kind == "mirrored" else None)
    one = compiled(strategy)
    other = compiled(strategy, one.get_weights())
    found = {"refused": count_refused(one)}
    found["predicted"] = list(one.predict_on_batch(BATCH[0]).shape)
    history = one.fit(*BATCH, batch_size=5, verbose=0).history
    evaluated = one.evaluate(*BATCH, batch_size=5, verbose=0)
    trained, tested = other.train_on_batch(*BATCH), other.test_on_batch(*BATCH)
    found["losses"] = history["loss"][0], trained[0]
    found["plain losses"] = evaluated[0], tested[0]
    found["tokens"] = [
        float(tokens)
        for tokens in (
            history["tokens"][0],
            evaluated[1],
            trained[1],
            tested[1],
        )
    ]
    one.fit([BATCH] * 2, epochs=2, verbose=0)
    for _ in range(4):
        other.train_on_batch(*BATCH)
    found["updates"] = [update_count(model) for model in (one, other)]
    weights = one.get_weights()
    found["weights"] = difference(weights, other.get_weights())
    found["weights in parts"] = difference(
        trained_in_parts(strategy, weights, 1),
        trained_in_parts(strategy, weights, 2),
    )
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
