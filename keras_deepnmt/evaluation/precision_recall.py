"""Precision, recall and F-score of edits."""

from dataclasses import dataclass


def f_score(precision: float, recall: float, beta: float = 0.5) -> float:
    """Combines precision and recall into one score (van Rijsbergen, 1979).

        F = (1 + beta^2) P R / (beta^2 P + R)

    Args:
        precision: P, in [0, 1] or in points 0-100.
        recall: R, in the same unit.
        beta: Weight of recall relative to precision. Grammatical error
            correction uses 0.5.

    Returns:
        F in the unit of `precision` and `recall`; 0 if both are 0.

    Raises:
        ValueError: if a number is negative.

    Example:
    >>> round(f_score(64.7, 33.2), 1)
    54.4
    """
    if min(precision, recall, beta) < 0.0:
        raise ValueError(
            "`precision`, `recall` and `beta` must not be negative. Received: "
            f"precision={precision}, recall={recall}, beta={beta}."
        )
    weight = beta**2
    denominator = weight * precision + recall
    return (
        (1.0 + weight) * precision * recall / denominator
        if denominator
        else 0.0
    )


@dataclass(frozen=True)
class EditCounts:
    """Counts of the edits of a system, and what is computed from them.

    Attributes:
        correct: Number of edits of the system that are gold edits.
        proposed: Number of edits of the system.
        gold: Number of gold edits.
        beta: Weight of recall relative to precision in `f_score`.

    Example:
    >>> EditCounts(correct=1, proposed=1, gold=2).recall
    0.5
    """

    correct: int
    proposed: int
    gold: int
    beta: float = 0.5

    @property
    def precision(self) -> float:
        """`correct / proposed`, in [0, 1]; 1 without edits."""
        return self.correct / self.proposed if self.proposed else 1.0

    @property
    def recall(self) -> float:
        """`correct / gold`, in [0, 1]; 1 without gold edits."""
        return self.correct / self.gold if self.gold else 1.0

    @property
    def f_score(self) -> float:
        """The F-score, in [0, 1]."""
        return f_score(self.precision, self.recall, self.beta)

    def plus(self, correct: int, proposed: int, gold: int) -> "EditCounts":
        """Returns the counts with others added."""
        return EditCounts(
            self.correct + correct,
            self.proposed + proposed,
            self.gold + gold,
            self.beta,
        )
