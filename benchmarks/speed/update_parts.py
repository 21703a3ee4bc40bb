"""What an update takes: forward and backward pass, the optimizer, and Python.

    python benchmarks/speed/update_parts.py

Times, in turns, the parts of an update of a Transformer on one batch: the
compiled function of forward and backward pass; the optimizer's change of the
weights, with the metrics; both together, as `fit` calls them for a batch; and
`fit` itself with a function of batches that computes nothing, which is the time
of Python, of the callback that shows progress and of taking the next batch from
memory. The medians of the rounds are appended to `results/update_parts.csv`.
"""

import argparse
import itertools
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_row, provenance
from benchmarks.speed.measuring.training_steps import (
    CONFIGURATIONS,
    make_transformer,
    random_batch,
)

# Names of configurations, and target tokens of a batch. The recipe
# `transformer_tiny.multi30k_en_de` has batches of 2,000.
MEASURED = (("4+4x128", 2_000), ("4+4x128", 4_352), ("3+3x256", 4_096))
OPTIMIZERS = ("adam", "muon")
WARM_UP = 2
# Updates by which the time of Python is divided.
EMPTY_UPDATES = 100


def make_optimizer(name):
    """Returns an optimizer as a recipe names it, at a rate of 1e-4."""
    from keras_deepnmt import training

    return {"adam": training.Adam, "muon": training.Muon}[name](1e-4)


def functions_of_parts(sizes, optimizer):
    """Returns functions that run the parts of an update once, by name.

    `sizes` is an entry of `CONFIGURATIONS`, `optimizer` a recipe's name.
    """
    import tensorflow as tf

    from keras_deepnmt.models.training_step.tensorflow_replicas import (
        apply_sum_of_gradients,
    )

    model = make_transformer(sizes)
    model.compile(make_optimizer(optimizer))
    source, target, labels = map(tf.constant, random_batch(sizes))
    inputs = {"source_ids": source, "target_ids": target}
    tokens = tf.constant(float(labels.shape.num_elements()))
    counts = {"source": tokens, "target": tokens}
    train_step = tf.function(model.train_step, autograph=False)
    gradients_of_batch = tf.function(
        lambda: model._gradient_function(inputs, labels, counts),
        autograph=False,
    )
    gradients = gradients_of_batch()[2]

    @tf.function(autograph=False)
    def update():
        apply_sum_of_gradients(
            model.optimizer, list(gradients), model.trainable_variables
        )
        return model._update_metrics(tokens, tokens)

    return {
        "gradients": lambda: float(gradients_of_batch()[0]),
        "optimizer": lambda: float(update()["loss"]),
        "update": lambda: float(train_step((inputs, labels))["loss"]),
        "empty": _empty_fit(model, (inputs, labels)),
    }


def _empty_fit(model, batch):
    """Returns a function that calls `fit` for batches that compute nothing."""
    import tensorflow as tf

    from keras_deepnmt.runs.callbacks import UpdateCallbacks
    from keras_deepnmt.training import ThroughputProgress

    dataset = tf.data.Dataset.from_tensors(batch).repeat()
    logs = {"loss": tf.constant(1.0), "tokens": tf.constant(1.0)}

    def take_batch(iterator):
        next(iterator)
        return logs

    def fit():
        model.train_function = take_batch
        model.fit(
            dataset,
            steps_per_epoch=EMPTY_UPDATES,
            callbacks=UpdateCallbacks(
                [ThroughputProgress(EMPTY_UPDATES, quiet=True)],
                add_history=True,
                model=model,
                verbose=0,
                epochs=1,
                steps=EMPTY_UPDATES,
            ),
            verbose=0,
        )

    return fit


def milliseconds_of_parts(functions, rounds):
    """Times the functions in turns; returns their median milliseconds."""
    milliseconds = {name: [] for name in functions}
    for _ in range(WARM_UP + rounds):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            seconds = time.perf_counter() - start
            calls = EMPTY_UPDATES if name == "empty" else 1
            milliseconds[name].append(1e3 * seconds / calls)
    return {
        name: statistics.median(values[WARM_UP:])
        for name, values in milliseconds.items()
    }


def main():
    """Measures and appends the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=dict(MEASURED))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "update_parts.csv",
    )
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    for (name, tokens), optimizer in itertools.product(MEASURED, OPTIMIZERS):
        if options.only not in (None, name):
            continue
        sizes = dict(CONFIGURATIONS[name])
        sizes["batch_size"] = tokens // sizes["length"]
        parts = milliseconds_of_parts(
            functions_of_parts(sizes, optimizer), options.rounds
        )
        row = {
            **provenance("tensorflow", "keras"),
            "model": name,
            **sizes,
            "optimizer": optimizer,
            "rounds": options.rounds,
            **{f"{part}_ms": round(ms, 2) for part, ms in parts.items()},
        }
        append_row(options.output, row)
        print(row)


if __name__ == "__main__":
    main()
