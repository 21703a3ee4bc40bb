"""ROUGE of summaries, computed by the package `rouge-score`."""

import unicodedata
from collections.abc import Sequence

from keras_deepnmt.data.scripts import detect_script_without_spaces
from keras_deepnmt.data.word_units import split_words
from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation.scores import check_lengths

ROUGE_TYPES = ("rouge1", "rouge2", "rougeL")


def rouge_scores(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    stemming: bool = True,
) -> dict[str, float]:
    """Computes ROUGE-1, ROUGE-2 and ROUGE-L (Lin, 2004).

    For each summary, the reference with the highest F-score counts; the result
    is the mean over summaries. Words are lower-cased, and everything but
    letters of the Latin alphabet and digits separates them; in scripts without
    spaces each letter is a word.

    Args:
        hypotheses: Summaries.
        references: One or more references for each summary.
        stemming: Whether endings of English words are removed first (Porter),
            as is usual for English.

    Returns:
        F1 of `"rouge1"`, `"rouge2"` and `"rougeL"`, in points 0-100.

    Raises:
        UserError: if the package `rouge-score` is not installed.
        ValueError: if the lists differ in length or are empty, or a summary
            has no reference.

    Example:
    >>> scores = rouge_scores(["the cat sat"], [["the cat sat", "a dog"]])
    >>> round(scores["rouge1"])
    100
    """
    check_lengths(hypotheses=hypotheses, references=references)
    for row, group in enumerate(references):
        if isinstance(group, str) or not group:
            raise ValueError(
                "Each element of `references` must be a list of one or more "
                f"texts. Received: {group!r} at place {row}"
            )
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise UserError(
            "ROUGE needs the package `rouge-score`. Install it with "
            "`pip install keras_deepnmt[rouge]`."
        ) from error
    script = detect_script_without_spaces(
        text for group in references for text in group
    )
    scorer = RougeScorer(
        list(ROUGE_TYPES),
        use_stemmer=stemming,
        tokenizer=None if script is None else _Letters(),
    )
    totals = dict.fromkeys(ROUGE_TYPES, 0.0)
    for hypothesis, group in zip(hypotheses, references, strict=True):
        best = scorer.score_multi(list(group), hypothesis)
        for name in ROUGE_TYPES:
            totals[name] += best[name].fmeasure
    return {
        name: 100 * total / len(hypotheses) for name, total in totals.items()
    }


class _Letters:
    """Splits a text as `RougeScorer` asks its tokenizer to."""

    def tokenize(self, text):
        words = (
            "".join(c for c in word if unicodedata.category(c)[0] in "LMN")
            for word in split_words(text.lower())
        )
        return [word for word in words if word]
