"""BLEU of single sentences."""

from collections.abc import Sequence

from keras_deepnmt.evaluation.scores import check_lengths, make_metrics
from keras_deepnmt.evaluation.word_tokenizers import default_tokenizer


def sentence_bleu(
    hypotheses: Sequence[str],
    references: Sequence[str],
    tokenize: str | None = None,
    lowercase: bool = False,
) -> list[float]:
    """Computes the BLEU of each single sentence with sacreBLEU.

    Precisions without a match are smoothed, and n-grams that the sentence is
    too short for are left out. It serves to find sentences, not to compare
    systems.

    Args:
        hypotheses: Translations.
        references: One reference for each sentence.
        tokenize: sacreBLEU tokenizer. Defaults to that of the references'
            script, as in `corpus_scores`.
        lowercase: Whether case is ignored.

    Returns:
        BLEU of each sentence, in points 0-100.

    Raises:
        UserError: if the tokenizer is unknown or cannot be used.
        ValueError: if the lists differ in length or are empty.

    Example:
    >>> [round(value) for value in sentence_bleu(["a b", "c"], ["a b", "d"])]
    [100, 0]
    """
    from sacrebleu.metrics import BLEU

    check_lengths(hypotheses=hypotheses, references=references)
    tokenize = tokenize or default_tokenizer(references)
    # Raises the error for a wrong tokenizer.
    make_metrics(["bleu"], tokenize, lowercase)
    metric = BLEU(
        lowercase, tokenize=tokenize, force=True, effective_order=True
    )
    return [
        float(metric.sentence_score(line, [reference]).score)
        for line, reference in zip(hypotheses, references, strict=True)
    ]
