"""The training step on backends whose step Keras compiles whole (JAX)."""

import keras
from keras import ops

from keras_deepnmt.masks import padding_mask
from keras_deepnmt.models.auxiliary_losses import sum_auxiliary_losses


class StatelessStep:
    """Mixin for `Seq2Seq`: the same loss through Keras' own step.

    Keras hands arrays of the global batch to `compute_loss`, so the mean over
    its real tokens is already the mean over the global batch.
    """

    # Here random numbers are drawn for the global batch.
    _seeds_are_spread = True

    def compile(self, *args, **kwargs):
        self._token_sum = keras.metrics.Sum(name="tokens")
        self._loss_mean = keras.metrics.Mean(name="token_loss")
        self.training_shapes, self.evaluation_shapes = set(), set()
        super().compile(*args, **kwargs)

    def _keras_jit_compile(self):
        return self.step_jit_compile

    def _check_accumulation(self, steps):
        if steps != 1:
            raise ValueError(
                "`gradient_accumulation_steps` must be 1 on this backend. "
                f"Received: gradient_accumulation_steps={steps}. Use smaller "
                "batches, or KERAS_BACKEND=tensorflow."
            )

    def _batches(self, x, y, batch_size, steps, shuffle=False):
        return x, y

    @property
    def num_compilations(self):
        """Number of batch shapes that the training step has met so far.

        XLA compiles the step once for each of them.
        """
        return len(self.training_shapes)

    @property
    def metrics(self):
        if not self.compiled:
            return super().metrics
        return [*super().metrics, self._loss_mean, self._token_sum]

    def compute_loss(
        self,
        x=None,
        y=None,
        y_pred=None,
        sample_weight=None,
        training=True,
    ):
        """Means the token losses of a batch; called by Keras' step.

        Args:
            x: the inputs.
            y: labels `(B, T)`.
            y_pred: scores `(B, T, V)`.
            sample_weight: not supported: padding rows take its place.
            training: bool.

        Returns:
            Float32 scalar, nats a real token, with the layers' own losses.

        Raises:
            ValueError: if `sample_weight` is given.
        """
        if sample_weight is not None:
            raise ValueError(
                "`sample_weight` is not supported: label 0 marks what does "
                "not count. Received: sample_weight of shape "
                f"{sample_weight.shape}."
            )
        self._note_shape(x, y, training)
        loss, tokens = self.sum_token_losses(y, y_pred, training)
        loss = loss / ops.maximum(tokens, 1.0)
        self._loss_mean.update_state(loss, sample_weight=tokens)
        self._token_sum.update_state(tokens)
        source_tokens = ops.sum(
            ops.cast(padding_mask(x["source_ids"]), "float32")
        )
        counts = {"source": source_tokens, "target": tokens}
        counts = {side: ops.maximum(n, 1.0) for side, n in counts.items()}
        return loss + sum_auxiliary_losses(self, 1.0, counts)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        # Keras' own "loss" weighs batches by rows; ours by real tokens.
        results = {metric.name: metric.result() for metric in self.metrics}
        results["loss"] = results.pop("token_loss")
        return results

    def _note_shape(self, inputs, labels, training):
        # Python runs once a compilation, and before that on symbolic tensors.
        if isinstance(labels, keras.KerasTensor):
            return
        shapes = self.training_shapes if training else self.evaluation_shapes
        shapes.add((*inputs["source_ids"].shape, labels.shape[1]))
