"""Scheduled sampling: training on the model's own predictions."""

import keras
from keras import ops

from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID, padding_mask
from keras_deepnmt.models.training_step.objective_term import ObjectiveTerm


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class ScheduledSampling(ObjectiveTerm):
    """Replaces some of the target inputs by the model's predictions.

    In training a decoder reads the reference, in decoding its own output.
    Scheduled sampling lets it read some of its own predictions in training
    (Bengio et al., 2015); a Transformer needs two passes for this (Mihaylova
    and Martins, 2019). With the scores z of a first pass on the reference y,
    the second pass reads at position t > 1, with the probability p,

        y'_t = argmax_v z_(t-1, v)

    instead of y_t, and gives the loss. Begin-of-sentence, padding and the ids
    `kept` are not replaced. No gradient goes through the first pass or the
    choice. p grows linearly with the number of updates made, u:

        p(u) = probability * min(1, max(0, (u - start) / (end - start)))

    so that the probability of the reference, 1 - p, has the linear decay of
    Bengio et al.
    Differs from the papers: the arg-max excludes padding, begin and end of
    sentence, which a decoder never reads back; mixing embeddings is not
    implemented.
    Cost: one more forward pass per update.

    Args:
        probability: float in [0, 1]. Highest probability of replacing an
            input.
        start_step: int. Update at which the probability starts to grow.
            Defaults to `0`.
        end_step: int. Update at which it is highest; if equal to `start_step`,
            the probability jumps to `probability` at that update. Defaults to
            `0`.
        kept: ids that are never replaced: of tags that a search is given, so
            that a decoder never reads its own in their place. A recipe with
            `data.tag_side: target` gives them. Defaults to none.

    Raises:
        ValueError: if `probability` is outside [0, 1], `start_step` is
            negative, or `end_step` is before it.

    Example:
    >>> sampling = ScheduledSampling(0.5, start_step=100, end_step=300)
    >>> [float(sampling.share(update)) for update in (100, 200, 900)]
    [0.0, 0.25, 0.5]

    Reference:
        - [Bengio et al., 2015](https://arxiv.org/abs/1506.03099).
        - [Mihaylova and Martins, 2019](https://arxiv.org/abs/1906.07651).
    """

    needs_random_numbers = True

    def __init__(self, probability, start_step=0, end_step=0, kept=()):
        if not 0.0 <= probability <= 1.0:
            raise ValueError(
                "`probability` must lie in [0, 1]. "
                f"Received: probability={probability}."
            )
        if not 0 <= start_step <= end_step:
            raise ValueError(
                "`start_step` must not be negative, nor `end_step` before it. "
                f"Received: start_step={start_step}, end_step={end_step}."
            )
        self.probability = probability
        self.start_step = start_step
        self.end_step = end_step
        # As the file of a saved model gives it back.
        self.kept = list(kept)

    def get_config(self):
        config = super().get_config()
        if not self.kept:
            # Earlier versions then load the model.
            del config["kept"]
        return config

    def share(self, update):
        """Computes the probability of replacing an input.

        Args:
            update: int or int scalar tensor. Number of updates made.

        Returns:
            Float32 scalar in [0, 1].
        """
        # Without a ramp, the probability is reached at `start_step` itself.
        length = self.end_step - self.start_step
        done = ops.cast(update, "float32") - float(self.start_step)
        done = done / length if length else done + 1.0
        return self.probability * ops.clip(done, 0.0, 1.0)

    def change_inputs(self, model, inputs, scores):
        target_ids = self.mix(
            inputs["target_ids"],
            scores,
            model.updates_made(),
            model.sampling_generator,
        )
        return {**inputs, "target_ids": target_ids}

    def mix(self, target_ids, scores, update, seed):
        """Replaces target inputs by predictions.

        Args:
            target_ids: int tensor `(B, T)`, beginning with 2.
            scores: float tensor `(B, T, V)` of the first pass.
            update: int or int scalar tensor. Number of updates made.
            seed: `keras.random.SeedGenerator`.

        Returns:
            Int tensor `(B, T)`.
        """
        index = ops.arange(scores.shape[-1])
        never = (index == PADDING_ID) | (index == BEGIN_ID) | (index == END_ID)
        scores = ops.stop_gradient(ops.cast(scores, "float32"))
        predicted = ops.argmax(
            ops.where(never, ops.full_like(scores, -float("inf")), scores),
            axis=-1,
        )
        # The prediction at a position is the input of the next one.
        predicted = ops.roll(ops.cast(predicted, target_ids.dtype), 1, axis=1)
        drawn = keras.random.uniform(
            ops.shape(target_ids), dtype="float32", seed=seed
        )
        replaced = (
            (drawn < self.share(update))
            & padding_mask(target_ids)
            & ops.not_equal(target_ids, BEGIN_ID)
        )
        if self.kept:
            # `ops.isin` fails in graphs of TensorFlow.
            is_kept = ops.equal(ops.expand_dims(target_ids, -1), self.kept)
            replaced &= ~ops.any(is_kept, axis=-1)
        return ops.where(replaced, predicted, target_ids)
