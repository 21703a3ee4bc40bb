"""The training step on backends where Keras compiles all of it (JAX)."""

import contextlib

import keras
from keras import ops

from keras_deepnmt.masks import padding_mask
from keras_deepnmt.models.training_step.auxiliary_losses import (
    losses_by_side,
    sum_auxiliary_losses,
)
from keras_deepnmt.models.training_step.keras_arguments import (
    refuse_weights,
)
from keras_deepnmt.models.training_step.shared_batches import (
    ArrayBatches,
    filled_batches,
    listed_batches,
    num_devices,
)
from keras_deepnmt.models.training_step.training_state import NotedShapes


class StatelessStep:
    """Mixin for `Seq2Seq`: computes the loss in Keras' own training step.

    Keras passes arrays of the global batch to `compute_loss`, so a mean over
    their real tokens is the mean over the global batch. A model compiled under
    a `keras.distribution.DataParallel` trains on all its devices; batches are
    padded to a multiple of them.
    """

    # Random numbers are drawn for the global batch.
    _seeds_are_spread = True
    # The `keras.distribution` that was active in `compile`.
    distribution = None
    # Number of real tokens of the whole batch while its parts are computed.
    _batch_counts = None

    def compile(self, *args, **kwargs):
        self._loss_mean = keras.metrics.Mean(name="token_loss")
        self.distribution = keras.distribution.distribution()
        self.training_shapes = NotedShapes(self, "training")
        self.evaluation_shapes = NotedShapes(self, "validation")
        super().compile(*args, **kwargs)

    def _devices(self):
        """Returns a context that activates the distribution of `compile`."""
        if self.distribution is None:
            return contextlib.nullcontext()
        return self.distribution.scope()

    def _keras_jit_compile(self):
        return self.step_jit_compile

    def _row_multiple(self):
        """Returns the number that must divide the rows of a batch."""
        with self._devices():
            return num_devices() * self.gradient_accumulation_steps

    def _batches(
        self, x, y, batch_size, steps, shuffle=False, is_training=False
    ):
        multiple = self._row_multiple()
        if x is not None and y is None:
            x = listed_batches(x)
        if x is None or multiple == 1:
            return x, y
        if y is None:
            return filled_batches(x, multiple), None
        return ArrayBatches(x, y, batch_size or 32, multiple, shuffle), None

    @property
    def num_compilations(self):
        """Number of batch shapes so far; XLA compiles the step for each."""
        return len(self.training_shapes)

    def call(self, inputs, training=None, **kwargs):
        outputs = super().call(inputs, training=training, **kwargs)
        if training:
            # Keras keeps the losses, but not which layer added them.
            self._layer_losses = tuple(losses_by_side(self))
        return outputs

    def train_step(self, state, data):
        """Runs one update on the global batch; called by `fit`.

        Takes and returns the arrays of all variables, like Keras' own method.
        """
        # `compute_loss` does not get the optimizer's variables.
        paths = [id(variable) for variable in self.optimizer.variables]
        count = paths.index(id(self.optimizer.iterations))
        self._updates_made = state[2][count]
        parts = self.gradient_accumulation_steps
        try:
            if parts == 1:
                return super().train_step(state, data)
            inputs, labels, weights = keras.utils.unpack_x_y_sample_weight(data)
            refuse_weights(sample_weight=weights)
            self._batch_counts = _count_tokens(inputs["source_ids"], labels)
            return accumulated_step(self, state, data, parts)
        finally:
            self._updates_made = self._batch_counts = None

    def updates_made(self):
        """Returns the number of updates before this one, inside a step."""
        return self._updates_made

    def forward_again(self, inputs):
        """Runs the model again in a step, with new dropout; returns the scores.

        The layers' losses are then those of this call.
        """
        # In its scope of `compute_loss` Keras ignores the layers' losses.
        inputs = keras.tree.map_structure(ops.convert_to_tensor, inputs)
        values = [(variable, variable.value) for variable in self.variables]
        with keras.StatelessScope(values, collect_losses=True) as scope:
            scores = self(inputs, training=True)
        for variable in self.non_trainable_variables:
            variable.assign(scope.get_current_value(variable))
        return scores

    def compute_loss(
        self,
        x=None,
        y=None,
        y_pred=None,
        sample_weight=None,
        training=True,
    ):
        """Averages the token losses of a batch; called by Keras' step.

        Returns nats per real token, the layers' losses included. For a part of
        a batch, all sums are divided by the token counts of the whole batch.
        Raises a `ValueError` if `sample_weight` is given.
        """
        refuse_weights(sample_weight=sample_weight)
        self._note_shape(x, y, training)
        if not training:
            loss, tokens = self.sum_token_losses(y, y_pred, False)
            return self._note(loss, tokens)
        counts = self._batch_counts or _count_tokens(x["source_ids"], y)
        loss, tokens, auxiliary = self.objective.sum_losses(
            self,
            x,
            y,
            y_pred,
            lambda tokens: sum_auxiliary_losses(
                self._layer_losses, tokens / counts["target"], counts
            ),
        )
        self._layer_losses = ()
        self._note(loss, tokens)
        return loss / counts["target"] + auxiliary

    def _note(self, loss, tokens):
        loss = loss / ops.maximum(tokens, 1.0)
        self._loss_mean.update_state(loss, sample_weight=tokens)
        return loss

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        # Keras' own "loss" weights batches by rows; this one by real tokens.
        _, tokens = self._loss_mean.variables
        return {
            "loss": self._loss_mean.result(),
            "tokens": ops.convert_to_tensor(tokens),
        }

    def _note_shape(self, inputs, labels, training):
        # Runs once per compilation, and before that on symbolic tensors.
        if isinstance(labels, keras.KerasTensor):
            return
        shapes = self.training_shapes if training else self.evaluation_shapes
        rows, source_length = inputs["source_ids"].shape
        if self._batch_counts:
            rows *= self.gradient_accumulation_steps
        shapes.add((rows, source_length, labels.shape[1]))


def _count_tokens(source_ids, labels):
    """Counts the real tokens of both sides; at least 1 each."""
    sides = {"source": source_ids, "target": labels}
    return {
        side: ops.maximum(ops.sum(ops.cast(padding_mask(ids), "float32")), 1.0)
        for side, ids in sides.items()
    }


def accumulated_step(model, state, data, parts):
    """Sums the gradients of equal parts of a batch and makes one update.

    The parts are computed one after another, so that only one of them needs
    memory at a time. Row i is in part `i % parts`, as on TensorFlow; `parts`
    must divide the number of rows. Arguments and result are those of
    `train_step`.
    """
    import jax

    trainable, untrained, optimizer, metrics = state
    gradient = jax.value_and_grad(model.compute_loss_and_updates, has_aux=True)

    def split(ids):
        rows, *others = ops.shape(ids)  # alignments have three axes
        ids = ops.reshape(ids, (rows // parts, parts, *others))
        return ops.swapaxes(ids, 0, 1)

    def add_part(carry, part):
        total, untrained, metrics = carry
        (_, aux), more = gradient(
            trainable,
            untrained,
            metrics,
            *part,
            None,
            training=True,
            optimizer_variables=optimizer,
        )
        total = [one + other for one, other in zip(total, more, strict=True)]
        return (total, list(aux[2]), list(aux[3])), None

    nothing = [ops.zeros_like(value) for value in trainable]
    (gradients, untrained, metrics), _ = jax.lax.scan(
        add_part,
        (nothing, list(untrained), list(metrics)),
        keras.tree.map_structure(split, tuple(data[:2])),
    )
    trainable, optimizer = model.optimizer.stateless_apply(
        optimizer, gradients, trainable
    )
    values = zip(model.metrics_variables, metrics, strict=True)
    with keras.StatelessScope(list(values)):
        logs = model.compute_metrics(None, None, None)
    return logs, (trainable, untrained, optimizer, metrics)
