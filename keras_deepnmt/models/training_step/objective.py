"""What an update lowers: the compiled loss and the options around it."""

from dataclasses import dataclass

from keras import ops

from keras_deepnmt.losses import kl_divergence, symmetric_kl_divergence
from keras_deepnmt.masks import padding_mask
from keras_deepnmt.models.training_step.distillation import Distillation
from keras_deepnmt.models.training_step.scheduled_sampling import (
    ScheduledSampling,
)


@dataclass(frozen=True)
class Objective:
    """The loss of a batch in training, from the scores of its first forward.

    With none of the options it is the compiled loss `CE`, and nothing else is
    computed. They compose, in this order:

    * `scheduled_sampling`: the first forward only predicts; a second one, on
      the mixed target inputs, takes its place.
    * `distillation`: at each position
      `(1 - w) CE + w KL(teacher || student)`.
    * `r_drop`: the batch goes through the model once more, with other dropout
      (Liang et al., 2021). With the two distributions P1, P2 of a position,
      and the losses L1, L2 that the options above give it,

          loss = (L1 + L2) / 2 + alpha / 4 (KL(P1 || P2) + KL(P2 || P1))

      which is half of the paper's objective
      `(L1 + L2) + alpha / 2 (KL(P1 || P2) + KL(P2 || P1))`, so that the loss
      and a good learning rate stay those of plain training.

    All is summed over the real positions and divided by their number in the
    global batch, like the plain loss. What layers add to the loss is the mean
    of the two forwards of R-Drop; a forward that only predicts adds nothing.

    Args:
        r_drop: float. The paper's alpha; 0 for no second forward.
        scheduled_sampling: `ScheduledSampling`, or `None`.
        distillation: `Distillation`, or `None`.

    Raises:
        ValueError: if `r_drop` is negative, or an option is of another type.

    Example:
    >>> Objective(r_drop=5.0).is_plain
    False

    Reference:
        - [Liang et al., 2021](https://arxiv.org/abs/2106.14448), R-Drop.
    """

    r_drop: float = 0.0
    scheduled_sampling: ScheduledSampling | None = None
    distillation: Distillation | None = None

    def __post_init__(self):
        if not self.r_drop >= 0.0:
            raise ValueError(
                "`r_drop` must not be negative. "
                f"Received: r_drop={self.r_drop}."
            )
        for name, kind in (
            ("scheduled_sampling", ScheduledSampling),
            ("distillation", Distillation),
        ):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise ValueError(
                    f"`{name}` must be a `models.{kind.__name__}` or None. "
                    f"Received: {name}={value!r}."
                )

    @property
    def is_plain(self):
        """Whether no option is on."""
        return self == Objective()

    def sum_losses(self, model, inputs, labels, scores, weigh_auxiliary):
        """Sums the loss over the real tokens of a part of a batch.

        Args:
            model: a compiled `models.Seq2Seq` that was just called.
            inputs: dict `{"source_ids": (B, S), "target_ids": (B, T)}`.
            labels: int tensor `(B, T)`; 0 is padding.
            scores: float tensor `(B, T, V)`, what the call gave.
            weigh_auxiliary: function of the number of real tokens; gives what
                the layers added in the model's last forward.

        Returns:
            Tuple `(sum in nats, number of real tokens, auxiliary losses)`,
            float32 scalars.
        """
        if self.is_plain:
            loss, tokens = model.sum_token_losses(labels, scores, True)
            return loss, tokens, weigh_auxiliary(tokens)
        real = padding_mask(labels)
        tokens = ops.sum(ops.cast(real, "float32"))
        if self.scheduled_sampling is not None:
            inputs = self._mixed(model, inputs, scores)
            scores = model.forward_again(inputs)
        auxiliary = weigh_auxiliary(tokens)
        teacher = None
        if self.distillation is not None:
            teacher = self.distillation.log_probs(inputs)
        log_probs = model.log_probs(scores)
        losses = self._token_losses(model, labels, log_probs, teacher)
        if self.r_drop > 0.0:
            again = model.log_probs(model.forward_again(inputs))
            auxiliary = (auxiliary + weigh_auxiliary(tokens)) / 2.0
            more = self._token_losses(model, labels, again, teacher)
            # The symmetric divergence is the mean of both directions.
            divergence = symmetric_kl_divergence(log_probs, again)
            losses = (losses + more + self.r_drop * divergence) / 2.0
        losses = ops.where(real, losses, ops.zeros_like(losses))
        return ops.sum(losses), tokens, auxiliary

    def _mixed(self, model, inputs, scores):
        target_ids = self.scheduled_sampling.mix(
            inputs["target_ids"],
            scores,
            model.updates_made(),
            model.sampling_generator,
        )
        return {**inputs, "target_ids": target_ids}

    def _token_losses(self, model, labels, log_probs, teacher):
        losses = model.token_loss.call(labels, log_probs)
        if teacher is None:
            return losses
        weight = self.distillation.weight
        divergence = kl_divergence(teacher, log_probs)
        return (1.0 - weight) * losses + weight * divergence
