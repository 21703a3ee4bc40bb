"""Word-level knowledge distillation from another model."""

from keras import ops

from keras_deepnmt.losses import kl_divergence
from keras_deepnmt.models.training_step.objective_term import ObjectiveTerm


class Distillation(ObjectiveTerm):
    """Trains a student on the distributions of a frozen teacher model.

    Word-level knowledge distillation (Kim and Rush, 2016): with the teacher's
    distribution q and the student's p at a position,

        loss = (1 - w) CE + w sum_v q(v) (log q(v) - log p(v))

    Differs from the paper: the entropy of q is subtracted from the
    cross-entropy, which changes no gradient and makes the term 0 if p equals
    q. The teacher reads the student's inputs, including tokens that scheduled
    sampling replaced.

    The teacher is not a sublayer of the student: it is not trained, not among
    the student's weights, not in its optimizer, and not saved. After loading a
    student, compile it again with this term. Under a strategy, make the teacher
    in its scope. On JAX the teacher's weights are constants of the compiled
    step.

    Args:
        teacher: `models.Seq2Seq` or `models.Ensemble` with the student's
            vocabularies.
        weight: float in [0, 1]. Weight w of the teacher's term. Defaults to
            `0.5`.

    Raises:
        ValueError: if `weight` is outside [0, 1].

    Example:
    >>> Distillation(model, weight=0.5).weight
    0.5

    Reference:
        - [Kim and Rush, 2016](https://arxiv.org/abs/1606.07947), word-level.
    """

    is_saved = False

    def __init__(self, teacher, weight=0.5):
        if not 0.0 <= weight <= 1.0:
            raise ValueError(
                f"`weight` must lie in [0, 1]. Received: weight={weight}."
            )
        self.teacher = teacher
        self.weight = weight

    def check(self, model):
        for side in ("source", "target"):
            name = f"{side}_vocabulary_size"
            sizes = [getattr(m, name, None) for m in (self.teacher, model)]
            if sizes[0] != sizes[1]:
                raise ValueError(
                    "`Distillation` needs a teacher with the student's "
                    f"vocabularies. Received: {name}={sizes[0]} of the "
                    f"teacher, {sizes[1]} of the student."
                )

    def log_probs(self, inputs):
        """Computes the teacher's log-probabilities.

        Args:
            inputs: dict `{"source_ids": (B, S), "target_ids": (B, T)}`.

        Returns:
            Float32 tensor `(B, T, V)`, natural logarithms, without gradient.
        """
        # Not a call of the teacher, which an ensemble does not have.
        memory = self.teacher.encode(inputs["source_ids"])
        scores = self.teacher.decode(inputs["target_ids"], memory)
        return ops.stop_gradient(self.teacher.log_probs(scores))

    def prepare(self, model, inputs):
        return self.log_probs(inputs)

    def change_losses(self, model, labels, log_probs, losses, prepared):
        divergence = kl_divergence(prepared, log_probs)
        return (1.0 - self.weight) * losses + self.weight * divergence
