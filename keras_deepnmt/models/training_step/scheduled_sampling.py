"""Training on the model's own predictions, more and more of them."""

import keras
from keras import ops

from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID, padding_mask


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class ScheduledSampling:
    """Replaces a share of the target inputs by what the model predicts.

    In training a decoder reads the reference, in a search what it wrote
    itself. Scheduled sampling lets it read its own words now and then (Bengio
    et al., 2015); a Transformer does it in two passes (Mihaylova and Martins,
    2019). With the scores z of a first pass on the reference y, the second
    pass reads at position t > 1, with the probability p,

        y'_t = argmax_v z_(t-1, v)

    instead of y_t, and gives the loss. Begin-of-sentence and padding stay. No
    gradient goes through the first pass or the choice. p grows linearly with
    the updates made, u:

        p(u) = probability * min(1, max(0, (u - start) / (end - start)))

    so that the reference's share 1 - p has the linear decay of Bengio et al.
    Differs from the papers: the arg-max is over what a search can feed back,
    hence neither padding, begin nor end of sentence; no mixture of embeddings
    is offered.
    Cost: one more forward an update.

    Args:
        probability: float in [0, 1]. The largest share that is replaced.
        start_step: int. Update from which on the share grows.
        end_step: int. Update from which on it stays; with `start_step` equal
            to it, the share is `probability` from then on.

    Raises:
        ValueError: if `probability` is outside [0, 1], `start_step` negative,
            or `end_step` before it.

    Example:
    >>> sampling = ScheduledSampling(0.5, start_step=100, end_step=300)
    >>> [float(sampling.share(update)) for update in (100, 200, 900)]
    [0.0, 0.25, 0.5]

    Reference:
        - [Bengio et al., 2015](https://arxiv.org/abs/1506.03099).
        - [Mihaylova and Martins, 2019](https://arxiv.org/abs/1906.07651).
    """

    def __init__(self, probability, start_step=0, end_step=0):
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

    def share(self, update):
        """Gives the probability of replacing an input.

        Args:
            update: int or int scalar tensor. Updates made.

        Returns:
            Float32 scalar in [0, 1].
        """
        # A ramp of no length is a step: one update later it would be 1.
        length = self.end_step - self.start_step
        done = ops.cast(update, "float32") - float(self.start_step)
        done = done / length if length else done + 1.0
        return self.probability * ops.clip(done, 0.0, 1.0)

    def mix(self, target_ids, scores, update, seed):
        """Replaces target inputs by predictions.

        Args:
            target_ids: int tensor `(B, T)`, beginning with 2.
            scores: float tensor `(B, T, V)` of the first pass.
            update: int or int scalar tensor. Updates made.
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
        # What is predicted at a position is read at the next one.
        predicted = ops.roll(ops.cast(predicted, target_ids.dtype), 1, axis=1)
        drawn = keras.random.uniform(
            ops.shape(target_ids), dtype="float32", seed=seed
        )
        replaced = (
            (drawn < self.share(update))
            & padding_mask(target_ids)
            & ops.not_equal(target_ids, BEGIN_ID)
        )
        return ops.where(replaced, predicted, target_ids)

    def get_config(self):
        """Gives the arguments, for saving.

        Returns:
            Dict of the constructor's arguments.
        """
        return {
            "probability": self.probability,
            "start_step": self.start_step,
            "end_step": self.end_step,
        }

    @classmethod
    def from_config(cls, config):
        """Makes it again.

        Args:
            config: dict from `get_config`.

        Returns:
            A `ScheduledSampling`.
        """
        return cls(**config)
