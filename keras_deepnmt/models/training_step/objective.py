"""The training objective: the compiled loss and the terms that change it."""

from dataclasses import dataclass

from keras import ops

from keras_deepnmt.masks import padding_mask
from keras_deepnmt.models.training_step.distillation import Distillation
from keras_deepnmt.models.training_step.objective_term import (
    ObjectiveTerm,
    register_objective_term,
)
from keras_deepnmt.models.training_step.r_drop import RDrop
from keras_deepnmt.models.training_step.scheduled_sampling import (
    ScheduledSampling,
)

# A new term is a file of its own and one line here.
register_objective_term("scheduled_sampling", ScheduledSampling)
register_objective_term("distillation", Distillation)
register_objective_term("r_drop", RDrop)


@dataclass(frozen=True)
class Objective:
    """The loss of a batch in training, from the scores of its first forward.

    Without any option it is the compiled loss `CE`, and nothing else is
    computed. The options compose, in this order:

    * `scheduled_sampling`: the first forward only predicts; a second one, on
      the mixed target inputs, takes its place.
    * `distillation`: at each position
      `(1 - w) CE + w KL(teacher || student)`.
    * `r_drop`: the model reads the batch once more, with other dropout
      (Liang et al., 2021). With the two distributions P1, P2 of a position,
      and the losses L1, L2 that the options above give it,

          loss = (L1 + L2) / 2 + alpha / 4 (KL(P1 || P2) + KL(P2 || P1))

      which is half of the paper's objective
      `(L1 + L2) + alpha / 2 (KL(P1 || P2) + KL(P2 || P1))`, so that the loss
      and a good learning rate stay those of plain training.
    * `objective_terms`: other terms, as described in `models.ObjectiveTerm`.

    The loss is summed over the real positions and divided by their number in
    the global batch, like the plain loss. The losses that layers add are
    averaged over the two forwards of R-Drop; a forward that only predicts adds
    none.

    Args:
        r_drop: float. The paper's alpha; 0 for no second forward.
        scheduled_sampling: `ScheduledSampling`, or `None`.
        distillation: `Distillation`, or `None`.
        objective_terms: tuple of other `ObjectiveTerm` objects.

    Raises:
        ValueError: if `r_drop` is negative, or an option has a wrong type.

    Example:
    >>> Objective(r_drop=5.0).is_plain
    False

    Reference:
        - [Liang et al., 2021](https://arxiv.org/abs/2106.14448), R-Drop.
    """

    r_drop: float = 0.0
    scheduled_sampling: ScheduledSampling | None = None
    distillation: Distillation | None = None
    objective_terms: tuple[ObjectiveTerm, ...] = ()

    def __post_init__(self):
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
        for term in self.objective_terms:
            if not isinstance(term, ObjectiveTerm):
                raise ValueError(
                    "`objective_terms` must hold `models.ObjectiveTerm` "
                    f"objects. Received: {term!r}."
                )
        # Checked even if it is zero, that is, off.
        r_drop = RDrop(self.r_drop)
        options = (
            self.scheduled_sampling,
            self.distillation,
            r_drop if self.r_drop > 0.0 else None,
        )
        active = tuple(term for term in options if term is not None)
        object.__setattr__(
            self, "_active", active + tuple(self.objective_terms)
        )

    @property
    def is_plain(self):
        """Whether the objective is the compiled loss alone."""
        return not self._active

    @property
    def needs_random_numbers(self):
        """Whether a term draws from `model.sampling_generator`."""
        return any(term.needs_random_numbers for term in self._active)

    def check(self, model):
        """Raises a `ValueError` if a term cannot be used with the model."""
        for term in self._active:
            term.check(model)

    def sum_losses(self, model, inputs, labels, scores, weigh_auxiliary):
        """Sums the loss over the real tokens of a part of a batch.

        The steps are those of `ObjectiveTerm`.

        Args:
            model: a compiled `models.Seq2Seq` that was just called.
            inputs: dict `{"source_ids": (B, S), "target_ids": (B, T)}`.
            labels: int tensor `(B, T)`; 0 is padding.
            scores: float tensor `(B, T, V)`, the result of the call.
            weigh_auxiliary: function of the number of real tokens; returns the
                losses that the layers added in the model's last forward.

        Returns:
            Tuple `(sum in nats, number of real tokens, auxiliary losses)`,
            float32 scalars.
        """
        if self.is_plain:
            loss, tokens = model.sum_token_losses(labels, scores, True)
            return loss, tokens, weigh_auxiliary(tokens)
        real = padding_mask(labels)
        tokens = ops.sum(ops.cast(real, "float32"))
        read = inputs
        for term in self._active:
            inputs = term.change_inputs(model, inputs, scores)
        if inputs is not read:
            scores = model.forward_again(inputs)
        auxiliary = weigh_auxiliary(tokens)
        prepared = [term.prepare(model, inputs) for term in self._active]
        log_probs = model.log_probs(scores)
        losses = self._token_losses(model, labels, log_probs, prepared)
        comparing = [term for term in self._active if term.needs_second_forward]
        if comparing:
            again = model.log_probs(model.forward_again(inputs))
            auxiliary = (auxiliary + weigh_auxiliary(tokens)) / 2.0
            losses = losses + self._token_losses(model, labels, again, prepared)
            for term in comparing:
                losses = losses + term.compare_forwards(
                    model, labels, log_probs, again
                )
            losses = losses / 2.0
        losses = ops.where(real, losses, ops.zeros_like(losses))
        return ops.sum(losses), tokens, auxiliary

    def _token_losses(self, model, labels, log_probs, prepared):
        """Returns the losses `(B, T)` of one forward."""
        losses = model.token_loss.call(labels, log_probs)
        for term, value in zip(self._active, prepared, strict=True):
            losses = term.change_losses(model, labels, log_probs, losses, value)
        return losses
