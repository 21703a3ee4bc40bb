"""The per-replica compiled training step on TensorFlow.

Keras compiles the function around `strategy.run`, which fails for two replicas
with XLA. Here only forward, loss and gradients of one replica are compiled, as
one function; the all-reduce and the update stay outside.

In bfloat16 on a processor they are not one program: products are computed by
TensorFlow's kernels, and XLA compiles what is between them
(`xla/autoclustering.py`). Without a strategy the update is a program of its
own.
"""

import contextlib
import logging

import keras
import tensorflow as tf

from keras_deepnmt.models.training_step.auxiliary_losses import (
    losses_by_side,
    sum_auxiliary_losses,
)
from keras_deepnmt.models.training_step.tensorflow_batches import (
    array_dataset,
    countable_dataset,
    pad_rows,
)
from keras_deepnmt.models.training_step.tensorflow_replicas import (
    apply_sum_of_gradients,
    function_of_batches,
    function_of_shapes,
    spread_seeds,
)
from keras_deepnmt.models.training_step.training_state import (
    NotedShapes,
    count_batches,
)
from keras_deepnmt.xla.autoclustering import (
    REASON,
    ask_for_autoclustering,
    autoclustering,
    clusters_are_compiled,
)
from keras_deepnmt.xla.processor import multiplies_bfloat16
from keras_deepnmt.xla.tensorflow_programs import (
    CompiledProgram,
)

_log = logging.getLogger(__name__)
# TensorFlow reads the flags before its first operation.
ask_for_autoclustering()


class TensorFlowStep:
    """Mixin for `Seq2Seq`: training and test steps compiled per replica.

    The sum of token losses is divided by the number of real tokens of the
    *global* batch, so an update depends neither on the split over replicas nor
    on padding.
    """

    _seeds_are_spread = False

    def compile(self, *args, **kwargs):
        self._loss_mean = keras.metrics.Mean(name="loss")
        self._token_sum = keras.metrics.Sum(name="tokens")
        self.training_shapes = NotedShapes(self, "training")
        self.evaluation_shapes = NotedShapes(self, "validation")
        super().compile(*args, **kwargs)
        # An unbuilt optimizer would trace its first loss scale as a constant;
        # built again, as when a model is compiled again, it would lose it.
        if not self.optimizer.built:
            self.optimizer.build(self.trainable_variables)
        count_batches(self.optimizer)
        self.is_autoclustered = self._should_be_autoclustered()
        self._gradient_function = self._function(self._sum_and_gradients)
        self._evaluation_function = self._function(self._sum_only)
        self._update_function = self._apply_gradients
        if self.is_autoclustered and not self._has_strategy():
            self._update_function = CompiledProgram(self._apply_gradients)

    def make_train_function(self, force=False):
        """Makes the function that `fit` calls per batch; called by Keras."""
        if self.train_function is not None and not force:
            return self.train_function
        if self._has_one_shape_at_a_time():
            self.train_function = function_of_shapes(self, self.train_step)
        elif self.distribute_strategy.num_replicas_in_sync == 1:
            super().make_train_function(force)
        else:
            self.train_function = function_of_batches(self, self.train_step)
        if self.is_autoclustered:
            self.train_function = autoclustering()(self.train_function)
        return self.train_function

    def make_test_function(self, force=False):
        """Makes the function that `evaluate` calls per batch."""
        if self.test_function is not None and not force:
            return self.test_function
        if self._has_one_shape_at_a_time():
            self.test_function = function_of_shapes(self, self.test_step)
        elif self.distribute_strategy.num_replicas_in_sync == 1:
            super().make_test_function(force)
        else:
            self.test_function = function_of_batches(self, self.test_step)
        if self.is_autoclustered:
            self.test_function = autoclustering()(self.test_function)
        return self.test_function

    def _has_strategy(self):
        """Whether the model was made under a strategy, also of one replica.

        An optimizer then leaves the function of the replica for its update,
        which no program can do.
        """
        with self.distribute_strategy.scope():
            return tf.distribute.has_strategy()

    def _has_one_shape_at_a_time(self):
        """Whether each batch shape gets a graph of its own."""
        return (
            self.is_autoclustered
            and self.distribute_strategy.num_replicas_in_sync == 1
        )

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        # Under a strategy Keras would build here from a first batch, which
        # fails with several machines; model, optimizer and metrics are built
        # already. There is no public way to switch this off.
        pass

    def _devices(self):
        # The model's strategy is active wherever the model is called.
        return contextlib.nullcontext()

    def _keras_jit_compile(self):
        # Keras' own compilation would wrap `strategy.run`.
        return False

    def _row_multiple(self):
        """Returns the number that must divide the rows of a batch."""
        return (
            self.distribute_strategy.num_replicas_in_sync
            * self.gradient_accumulation_steps
        )

    def predict_on_batch(self, x):
        if self.distribute_strategy.num_replicas_in_sync == 1:
            return super().predict_on_batch(x)
        # Keras would pass the whole batch to each replica.
        return self.predict(x, len(x["source_ids"]), verbose=0)

    def _batches(
        self, x, y, batch_size, steps, shuffle=False, is_training=False
    ):
        """Makes a dataset of batches that replicas and parts divide evenly."""
        if x is None:
            return x, y
        multiple = self._row_multiple()
        if y is None:
            dataset = countable_dataset(x, steps, is_training)
        else:
            rows = batch_size or 32
            dataset = array_dataset(x, y, rows, shuffle)
            # The last batch gets the shape of the others, too.
            multiple = rows + -rows % multiple
        return pad_rows(dataset, multiple), None

    def spread_seeds(self):
        """Makes the random numbers differ between replicas.

        `fit` calls it once. Call it again after assigning to the seeds, as
        restoring a checkpoint does.
        """
        spread_seeds(self)
        self._seeds_are_spread = True

    def _should_be_autoclustered(self):
        """Whether products by TensorFlow's kernels make the step faster."""
        if not (
            self.step_jit_compile
            and not self.run_eagerly
            and self.compute_dtype == "bfloat16"
            and multiplies_bfloat16()
            and not tf.config.list_logical_devices("GPU")
        ):
            return False
        if clusters_are_compiled():
            return True
        _log.warning(
            "Training in bfloat16 is as slow as in float32 in this process: "
            "%s. Import keras_deepnmt.models first, without such flags.",
            REASON,
        )
        return False

    def _function(self, python_function):
        if self.run_eagerly:
            # Requested in order to see the values of tensors, these included.
            return python_function
        if self.step_jit_compile and not self.is_autoclustered:
            return CompiledProgram(python_function)
        # No code here branches on tensors, so tracing needs no rewriting.
        return tf.function(python_function, autograph=False)

    @property
    def metrics(self):
        if not self.compiled:
            return super().metrics
        return [self._loss_mean, self._token_sum]

    @property
    def num_compilations(self):
        """Number of batch shapes so far; XLA compiles the step for each."""
        return len(self.training_shapes)

    def train_step(self, data):
        """Makes one update from one replica's batch; called by `fit`.

        `data` is `({"source_ids", "target_ids"}, labels)`. Returns the `loss`
        so far (nats per real token) and `tokens`.
        """
        inputs, labels, _ = keras.utils.unpack_x_y_sample_weight(data)
        self._note_shape(inputs, self.training_shapes)
        counts = self._global_counts(inputs["source_ids"], labels)
        loss, tokens, gradients = self._accumulate(inputs, labels, counts)
        self._update_function(gradients)
        return self._update_metrics(loss, tokens)

    def test_step(self, data):
        """Sums the unsmoothed loss of one replica's batch.

        Takes and returns the same as `train_step`.
        """
        inputs, labels, _ = keras.utils.unpack_x_y_sample_weight(data)
        self._note_shape(inputs, self.evaluation_shapes)
        return self._update_metrics(*self._evaluation_function(inputs, labels))

    def forward_again(self, inputs):
        """Runs the model again in a step, with new dropout; returns the scores.

        The layers' losses are then those of this call.
        """
        return self(inputs, training=True)

    def updates_made(self):
        """Returns the number of updates before this one, inside a step."""
        count = getattr(
            self.optimizer, "batch_count", self.optimizer.iterations
        )
        return count.value

    def _accumulate(self, inputs, labels, counts):
        """Sums losses and gradients of equal parts, one after another."""
        parts = self.gradient_accumulation_steps
        total = self._gradient_function(
            *tf.nest.map_structure(lambda ids: ids[::parts], (inputs, labels)),
            counts,
        )
        for part in range(1, parts):
            # Computed in parallel, all parts would need memory at once.
            with tf.control_dependencies(tf.nest.flatten(total)):
                batch = tf.nest.map_structure(
                    lambda ids, part=part: tf.identity(ids[part::parts]),
                    (inputs, labels),
                )
                more = self._gradient_function(*batch, counts)
            total = tf.nest.map_structure(tf.add, total, more)
        return total

    def _sum_and_gradients(self, inputs, labels, counts):
        variables = self.trainable_variables
        with tf.GradientTape() as tape:
            scores = self(inputs, training=True)
            loss, tokens, auxiliary = self.objective.sum_losses(
                self,
                inputs,
                labels,
                scores,
                lambda tokens: sum_auxiliary_losses(
                    losses_by_side(self), tokens / counts["target"], counts
                ),
            )
            objective = loss / counts["target"] + auxiliary
            objective = self.optimizer.scale_loss(objective)
        gradients = tape.gradient(
            objective,
            variables,
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
        # An embedding's IndexedSlices cannot leave a compiled function.
        gradients = [tf.convert_to_tensor(g) for g in gradients]
        return loss, tokens, gradients

    def _apply_gradients(self, gradients):
        apply_sum_of_gradients(
            self.optimizer, gradients, self.trainable_variables
        )
        # A program must return something.
        return tf.identity(self.updates_made())

    def _sum_only(self, inputs, labels):
        scores = self(inputs, training=False)
        return self.sum_token_losses(labels, scores, False)

    def _update_metrics(self, loss, tokens):
        mean = tf.math.divide_no_nan(loss, tokens)
        self._loss_mean.update_state(mean, sample_weight=tokens)
        self._token_sum.update_state(tokens)
        return {metric.name: metric.result() for metric in self.metrics}

    def _global_counts(self, source_ids, labels):
        """Counts the real tokens of all replicas' batches."""
        counts = tf.stack(
            [
                tf.math.count_nonzero(ids, dtype=tf.float32)
                for ids in (source_ids, labels)
            ]
        )
        context = tf.distribute.get_replica_context()
        if context.num_replicas_in_sync > 1:
            # TensorFlow never frees a graph with such a sum.
            counts = context.all_reduce(tf.distribute.ReduceOp.SUM, counts)
        source, target = tf.unstack(counts)
        return {
            "source": tf.maximum(source, 1.0),
            "target": tf.maximum(target, 1.0),
        }

    def _note_shape(self, inputs, shapes):
        def add(rows, source_length, target_length):
            shapes.add((int(rows), int(source_length), int(target_length)))

        source, target = (
            tf.shape(inputs[name]) for name in ("source_ids", "target_ids")
        )
        tf.numpy_function(add, [source[0], source[1], target[1]], [])
