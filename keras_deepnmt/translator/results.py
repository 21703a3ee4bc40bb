"""The results of a translator: translations, scores, or the error of NaN."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np
from keras import ops

from keras_deepnmt.errors import UserError


@dataclass(frozen=True)
class Hypothesis:
    """One translation of a sentence.

    Attributes:
        text: The translation.
        score: `log_prob` divided by the length penalty, plus the term of a
            coverage penalty; the search ranks by it. From `reranking.Reranker`,
            the weighted sum of several scores.
        log_prob: Sum of the tokens' natural log-probabilities.
        ids: The tokens, the end id 3 included.
        truncated: Whether it ends only because the maximum length was reached:
            the model gave another token a higher probability than the end.
        source_truncated: Whether the source had more tokens than the translator
            accepts, and the rest of them was ignored.
        constraints_met: Whether its text begins with the prefix and contains
            all phrases that were required.
        given: The tokens of the prefix and of these phrases: their places in
            `ids` and their pieces. That of an unknown token is its characters,
            which the text has.
        features: From `reranking.Reranker`, the scores that `score` is the
            weighted sum of.
    """

    text: str
    score: float
    log_prob: float
    ids: tuple[int, ...]
    truncated: bool = False
    source_truncated: bool = False
    constraints_met: bool = True
    given: tuple[tuple[int, str], ...] = ()
    features: tuple[float, ...] = ()


@dataclass(frozen=True)
class Asked:
    """How many hypotheses of a sentence are asked for.

    Attributes:
        number: How many at most.
        distinct: Whether only one of several with the same text counts.
    """

    number: int
    distinct: bool

    @property
    def num_needed(self) -> int | None:
        """How many hypotheses a search must find; `None` for all of its beams.

        Of several texts one may be found twice.

        Example:
        >>> Asked(1, True).num_needed, Asked(2, False).num_needed
        (1, 2)
        """
        return self.number if self.number == 1 or not self.distinct else None

    def of(self, hypotheses: Iterable[Hypothesis]) -> list[Hypothesis]:
        """Takes the first ones that are asked for.

        Example:
        >>> found = [Hypothesis(text, 0.0, 0.0, ()) for text in "aab"]
        >>> [hypothesis.text for hypothesis in Asked(2, True).of(found)]
        ['a', 'b']
        """
        if not self.distinct:
            return list(islice(hypotheses, self.number))
        by_text: dict[str, Hypothesis] = {}
        for hypothesis in hypotheses:
            if len(by_text) == self.number:
                break
            by_text.setdefault(hypothesis.text, hypothesis)
        return list(by_text.values())


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


def no_probabilities(model) -> UserError:
    """Makes the error for a model that computes NaN.

    It names the first weight that is not finite, if there is one.
    """
    faulty = next((v for v in model.variables if not _is_finite(v)), None)
    if faulty is not None:
        cause = (
            f"its weight {faulty.path} is not finite, as after training that "
            "diverged. Use an earlier checkpoint, or train again with a lower "
            "learning rate"
        )
    else:
        cause = (
            "all weights are finite, but the computation overflows. Use the "
            "model with the data type float32"
        )
    return UserError(
        f"The model gives NaN (not a number) instead of probabilities: {cause}."
    )


def _is_finite(variable):
    values = ops.convert_to_numpy(ops.cast(variable.value, "float32"))
    return bool(np.isfinite(values).all())
