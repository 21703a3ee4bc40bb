"""Learning from another model's distributions."""

from keras import ops


class Distillation:
    """A frozen model whose distributions a student learns to give.

    Word-level knowledge distillation (Kim and Rush, 2016): with the teacher's
    distribution q and the student's p at a position,

        loss = (1 - w) CE + w sum_v q(v) (log q(v) - log p(v))

    Differs from the paper: q's own entropy is taken off its cross-entropy,
    which changes no gradient and makes the term 0 where the two agree. The
    teacher reads what the student reads, replaced words included.

    The teacher is nobody's part: it is not trained, not among the student's
    weights, not in its optimizer, and not saved. After loading a student,
    compile it again with `distillation=Distillation(teacher, weight)`. Under a
    strategy, make the teacher in its scope. On JAX the teacher's weights are
    constants of the compiled step.

    Args:
        teacher: `models.Seq2Seq` with the student's vocabularies.
        weight: float in [0, 1]. Share w of the teacher's term.

    Raises:
        ValueError: if `weight` is outside [0, 1].

    Example:
    >>> Distillation(model, weight=0.5).weight
    0.5

    Reference:
        - [Kim and Rush, 2016](https://arxiv.org/abs/1606.07947), word-level.
    """

    def __init__(self, teacher, weight=0.5):
        if not 0.0 <= weight <= 1.0:
            raise ValueError(
                f"`weight` must lie in [0, 1]. Received: weight={weight}."
            )
        self.teacher = teacher
        self.weight = weight

    def check(self, student):
        """Refuses a teacher of other vocabularies.

        Args:
            student: `models.Seq2Seq`.

        Raises:
            ValueError: if a vocabulary's size differs.
        """
        for side in ("source", "target"):
            name = f"{side}_vocabulary_size"
            sizes = [getattr(m, name, None) for m in (self.teacher, student)]
            if sizes[0] != sizes[1]:
                raise ValueError(
                    "`distillation` needs a teacher with the student's "
                    f"vocabularies. Received: {name}={sizes[0]} of the "
                    f"teacher, {sizes[1]} of the student."
                )

    def log_probs(self, inputs):
        """Asks the teacher.

        Args:
            inputs: dict `{"source_ids": (B, S), "target_ids": (B, T)}`.

        Returns:
            Float32 tensor `(B, T, V)`, natural logarithms, without gradient.
        """
        scores = self.teacher(inputs, training=False)
        return ops.stop_gradient(self.teacher.log_probs(scores))
