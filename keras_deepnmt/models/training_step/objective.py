"""The training objective: the compiled loss and the terms that change it."""

from dataclasses import dataclass

from keras import ops

from keras_deepnmt.masks import padding_mask
from keras_deepnmt.models.training_step.distillation import Distillation
from keras_deepnmt.models.training_step.guided_alignment import (
    GuidedAlignment,
)
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
register_objective_term("guided_alignment", GuidedAlignment)


@dataclass(frozen=True)
class Objective:
    """The loss of a batch in training, from the scores of its first forward.

    Without terms it is the compiled loss, and nothing else is computed. Each
    term changes it in the steps that `models.ObjectiveTerm` describes, in the
    order of `terms`.

    The loss is summed over the real positions and divided by their number in
    the global batch, like the plain loss. The losses that layers add are
    averaged over the two forwards of a term that needs a second one; a forward
    that only provides new inputs adds none.

    Args:
        terms: tuple of `models.ObjectiveTerm` objects.

    Raises:
        ValueError: if one of them is not a `models.ObjectiveTerm`.

    Example:
    >>> Objective((RDrop(5.0),)).is_plain
    False
    """

    terms: tuple[ObjectiveTerm, ...] = ()

    def __post_init__(self):
        for term in self.terms:
            if not isinstance(term, ObjectiveTerm):
                raise ValueError(
                    "`objective_terms` must hold `models.ObjectiveTerm` "
                    f"objects. Received: {term!r}."
                )

    @property
    def is_plain(self):
        """Whether the objective is the compiled loss alone."""
        return not self.terms

    @property
    def needs_random_numbers(self):
        """Whether a term draws from `model.sampling_generator`."""
        return any(term.needs_random_numbers for term in self.terms)

    @property
    def needs_attention(self):
        """Whether a term reads `model.attention_to_source`."""
        return any(term.needs_attention for term in self.terms)

    def check(self, model):
        """Raises a `ValueError` if a term cannot be used with the model."""
        for term in self.terms:
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
        for term in self.terms:
            inputs = term.change_inputs(model, inputs, scores)
        if inputs is not read:
            scores = model.forward_again(inputs)
        auxiliary = weigh_auxiliary(tokens)
        prepared = [term.prepare(model, inputs) for term in self.terms]
        log_probs = model.log_probs(scores)
        losses = self._token_losses(model, labels, log_probs, prepared)
        comparing = [term for term in self.terms if term.needs_second_forward]
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
        for term, value in zip(self.terms, prepared, strict=True):
            losses = term.change_losses(model, labels, log_probs, losses, value)
        return losses


def take_earlier_arguments(arguments):
    """Removes `r_drop`, `scheduled_sampling` and `distillation`.

    These were arguments of `Seq2Seq.compile`, and still are in saved models.
    Returns the terms that they stand for.
    """
    names = ("scheduled_sampling", "distillation")
    terms = [arguments.pop(name, None) for name in names]
    # Zero meant no second forward.
    alpha = arguments.pop("r_drop", 0.0)
    terms.append(RDrop(alpha) if alpha else None)
    return [term for term in terms if term is not None]
