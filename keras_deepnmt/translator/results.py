"""The results of a translator: translations and scores."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Hypothesis:
    """One translation of a sentence.

    Attributes:
        text: The translation.
        score: `log_prob` divided by the length penalty, and what a coverage
            penalty adds; the search ranks by it. From `reranking.Reranker`, the
            weighted sum of several scores.
        log_prob: Sum of the tokens' natural log-probabilities.
        ids: The tokens, the end id 3 included.
        truncated: Whether it ends only because the maximum length was reached:
            the model gave another token a higher probability than the end.
        source_truncated: Whether the source had more tokens than the translator
            accepts, and the rest of them was ignored.
        constraints_met: Whether it contains all phrases that were required.
    """

    text: str
    score: float
    log_prob: float
    ids: tuple[int, ...]
    truncated: bool = False
    source_truncated: bool = False
    constraints_met: bool = True


@dataclass(frozen=True)
class TargetScore:
    """The log-probability of one given translation.

    Attributes:
        tokens: Subwords of the target; the last one is the end token.
        log_probs: Natural log-probability of each.
        total: Their sum.
        source_truncated: Whether the source had more tokens than the translator
            accepts, and the rest of them was ignored.
    """

    tokens: tuple[str, ...]
    log_probs: tuple[float, ...]
    total: float
    source_truncated: bool = False
