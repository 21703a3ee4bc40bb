r"""How much the input pipeline slows down training.

    python benchmarks/speed/input_pipeline.py
    python benchmarks/speed/input_pipeline.py \
        --recipe transformer_tiny.multi30k_en_de

One model is trained under XLA, alternately on the recipe's input pipeline with
prepared data, and on cached batches: one batch of each shape, held in memory by
TensorFlow and repeated in the same order of shapes. The difference in time is
the cost of the input pipeline. Times are from the end of one update to the end
of the next, waiting for data included; compilation and the first updates of
each round are excluded. The median ratio of the rounds is appended to
`results/input_pipeline.csv`.

The recipe `transformer_tiny.demo_de_en` needs no files. Named corpora are read
from the folder that the environment variable DEEPNMT_DATA names, or from
`shared/data` beside the repository.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.recipe_data import DEMO, prepare_recipe
from benchmarks.shared.result_rows import append_row, provenance

WARM_UP = 5


def cached_batches(store, plan, start, steps):
    """Returns a dataset of one batch per shape, in the plan's shape order."""
    import tensorflow as tf

    from keras_deepnmt.data.batches.datasets import make_batch

    batch_shapes = [plan.batch(step)[0] for step in range(start, start + steps)]
    shapes = sorted(set(batch_shapes))
    batches = []
    for shape in shapes:
        step = start + batch_shapes.index(shape)
        batches.append(make_batch(shape, store.read(plan.batch(step)[1])))
    order = tf.data.Dataset.from_tensor_slices(
        [shapes.index(shape) for shape in batch_shapes]
    )
    dataset = tf.data.Dataset.choose_from_datasets(
        [tf.data.Dataset.from_tensors(batch).repeat() for batch in batches],
        order.map(lambda number: tf.cast(number, tf.int64)),
        stop_on_empty_dataset=False,
    )
    return dataset.apply(tf.data.experimental.assert_cardinality(steps))


def make_timer(recipe, data):
    """Returns the model, the batch plan, and a function that times updates."""
    import keras

    from keras_deepnmt.data.batches.datasets import training_dataset
    from keras_deepnmt.runs.build import (
        build_model,
        compile_model,
        plan_batches,
    )

    class Clock(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            self.times = []

        def on_train_batch_end(self, batch, logs=None):
            self.times.append(time.perf_counter())

    store, plan = data.store("train"), plan_batches(recipe, data)
    model = build_model(recipe, data.manifest)
    compile_model(recipe, model)
    clock = Clock()

    def seconds(kind, start, steps):
        """Returns the mean seconds per update of one round."""
        if kind == "cached":
            dataset = cached_batches(store, plan, start, steps)
        else:
            dataset = training_dataset(store, plan, start, steps)
        model.fit(dataset, steps_per_epoch=steps, callbacks=[clock], verbose=0)
        times = clock.times[WARM_UP - 1 :]
        return (times[-1] - times[0]) / (len(times) - 1)

    return model, plan, seconds


def measure(recipe, data, rounds, steps):
    """Times both alternately; returns the seconds per update of each round."""
    model, plan, seconds = make_timer(recipe, data)
    start = 0
    while len(model.training_shapes) < len(plan.batch_shapes):
        seconds("real", start, steps)
        start += steps
    seconds_of = {"real": [], "cached": []}
    for number in range(rounds):
        # The second one profits from warm caches, so the order alternates.
        kinds = ("real", "cached") if number % 2 else ("cached", "real")
        for kind in kinds:
            seconds_of[kind].append(seconds(kind, start, steps))
        start += steps
    assert len(model.training_shapes) == len(plan.batch_shapes)
    return seconds_of, plan


def _median_ms(seconds):
    return round(1e3 * statistics.median(seconds), 2)


def main():
    """Measures and appends the row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recipe", default=DEMO)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "input_pipeline.csv",
    )
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with tempfile.TemporaryDirectory() as folder:
        recipe, data = prepare_recipe(options.recipe, folder)
        seconds_of, plan = measure(recipe, data, options.rounds, options.steps)
    ratios = [
        real / cached
        for real, cached in zip(
            seconds_of["real"], seconds_of["cached"], strict=True
        )
    ]
    row = {
        **provenance("tensorflow", "grain"),
        "recipe": options.recipe,
        "shapes": len(plan.batch_shapes),
        "rounds": options.rounds,
        "steps": options.steps,
        "real_ms_median": _median_ms(seconds_of["real"]),
        "cached_ms_median": _median_ms(seconds_of["cached"]),
        "ratio_median": round(statistics.median(ratios), 4),
        "ratio_min": round(min(ratios), 4),
        "ratio_max": round(max(ratios), 4),
    }
    append_row(options.output, row)
    print(json.dumps(row, indent=2))


if __name__ == "__main__":
    main()
