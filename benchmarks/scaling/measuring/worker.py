"""One worker of the cluster that `scaling.py` measures.

    python benchmarks/scaling/measuring/worker.py --core 0 --length 24 --seed 0

It computes with one thread on one core, joins the cluster that TF_CONFIG
describes, and answers requests from standard input. All workers of a cluster
must get the same requests in the same order.
"""

import argparse
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from benchmarks.shared.worker_process import answer_questions

VOCABULARY_SIZE = 5_000
NUM_LAYERS = 2
# All-reduces in one call, so that the call's own time matters little.
CHAIN = 8


class ReplicaTimer:
    """Times the update and the all-reduce of one worker's replica.

    `length` is the number of tokens per row of a batch; `seed` is that of
    weights, dropout and ids.
    """

    def __init__(self, length, seed):
        import keras
        import tensorflow as tf

        from keras_deepnmt.training.strategies import make_strategy
        from keras_deepnmt.zoo import create_model

        tf.config.threading.set_intra_op_parallelism_threads(1)
        # While an all-reduce waits for other workers, other threads must run.
        tf.config.threading.set_inter_op_parallelism_threads(4)
        self._length, self._seed = length, seed
        self._strategy = make_strategy("multi_worker")
        keras.utils.set_random_seed(seed)
        with self._strategy.scope():
            self._model = create_model(
                "transformer_tiny",
                VOCABULARY_SIZE,
                VOCABULARY_SIZE,
                num_encoder_layers=NUM_LAYERS,
                num_decoder_layers=NUM_LAYERS,
            )
            self._model.compile(keras.optimizers.Adam(1e-4))
        self._model.spread_seeds()
        self._updates, self._reduces = {}, {}

    def parameters(self):
        """Counts the trainable parameters."""
        return sum(
            int(variable.value.shape.num_elements())
            for variable in self._model.trainable_variables
        )

    def collectives(self, rows):
        """Counts the all-reduces in the graph of an update."""
        import tensorflow as tf

        @tf.function
        def update(batch):
            self._strategy.run(self._model.train_step, (batch,))
            return {item.name: item.result() for item in self._model.metrics}

        batch = next(iter(self._batches(rows)))
        graph = update.get_concrete_function(batch).graph.as_graph_def()
        nodes = [graph.node, *(f.node_def for f in graph.library.function)]
        return sum(
            node.op.startswith("CollectiveReduce") and "Gather" not in node.op
            for part in nodes
            for node in part
        )

    def step(self, rows, updates):
        """Times updates on batches with `rows` rows per worker, in seconds."""
        if rows not in self._updates:
            self._updates[rows] = self._make_update(rows)
            for _ in range(2):  # the first one compiles
                self._updates[rows]()
        return [_seconds(self._updates[rows]) for _ in range(updates)]

    def reduce(self, num_bytes, repeats):
        """Returns the mean seconds of an all-reduce of float32 values."""
        if num_bytes not in self._reduces:
            self._reduces[num_bytes] = self._make_reduce(num_bytes)
            self._reduces[num_bytes]()
        run = self._reduces[num_bytes]
        return sum(_seconds(run) for _ in range(repeats)) / repeats / CHAIN

    def _batches(self, rows):
        import numpy as np

        from keras_deepnmt.models.training_step.tensorflow_batches import (
            array_dataset,
            pad_rows,
        )

        replicas = self._strategy.num_replicas_in_sync
        random = np.random.default_rng(self._seed)
        shape = 3, rows * replicas, self._length
        source, target, labels = random.integers(
            4, VOCABULARY_SIZE, shape
        ).astype("int32")
        inputs = {"source_ids": source, "target_ids": target}
        dataset = array_dataset(inputs, labels, rows * replicas).repeat()
        return self._strategy.experimental_distribute_dataset(
            pad_rows(dataset, replicas)
        )

    def _make_update(self, rows):
        from keras_deepnmt.models.training_step.tensorflow_replicas import (
            function_of_batches,
        )

        batches = iter(self._batches(rows))
        run = function_of_batches(self._model, self._model.train_step)
        return lambda: float(run(batches)["loss"])

    def _make_reduce(self, num_bytes):
        import tensorflow as tf

        strategy = self._strategy
        replicas = strategy.num_replicas_in_sync

        def chain(values):
            context = tf.distribute.get_replica_context()
            values = tf.identity(values)  # on this replica's device
            for _ in range(CHAIN):
                total = context.all_reduce(tf.distribute.ReduceOp.SUM, values)
                values = total / replicas
            return values[0]

        run = tf.function(
            lambda values: strategy.run(chain, (values,)), autograph=False
        )
        values = tf.random.normal((num_bytes // 4,))
        return lambda: float(run(values))


def _seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def main():
    """Answers requests until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--core", type=int, required=True)
    parser.add_argument("--length", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    # Must come before TensorFlow counts the cores.
    os.sched_setaffinity(0, {options.core})
    timer = ReplicaTimer(options.length, options.seed)
    names = "parameters", "collectives", "step", "reduce"
    answer_questions({name: getattr(timer, name) for name in names})


if __name__ == "__main__":
    main()
