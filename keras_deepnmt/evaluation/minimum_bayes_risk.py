"""Chooses the translation that agrees most with the other candidates."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from keras_deepnmt.data.scripts import detect_script_without_spaces

UTILITIES = ("chrf", "bleu")


def minimum_bayes_risk(
    candidates: Sequence[str],
    log_probs: Sequence[float] | None = None,
    utility: str = "chrf",
) -> int:
    """Finds the candidate with the smallest expected loss (Kumar and Byrne).

        argmax_c sum_h p(h) utility(c, h)

    The candidates h stand for the reference, which is not known. Those that
    were drawn at random (`sampling`) all have the probability 1 / N, so that
    repeated ones count as often as they were drawn. For an n-best list, give
    the log-probabilities: p(h) is then the model's, normalized over the list.

    Args:
        candidates: Translations of one sentence.
        log_probs: Their log-probabilities, for an n-best list. Defaults to
            equal ones, for samples.
        utility: `"chrf"` or `"bleu"`, sacreBLEU's score of a sentence. BLEU
            counts characters in scripts without spaces.

    Returns:
        The place of the chosen candidate, the first one of equal candidates.

    Raises:
        ValueError: if there is no candidate, `log_probs` has another length, or
            `utility` is unknown.

    Example:
    >>> minimum_bayes_risk(["the dogs", "a cat sat", "a cat sat", "a cat sits"])
    1

    Reference:
        - [Kumar and Byrne, 2004](https://aclanthology.org/N04-1022/).
        - [Eikema and Aziz, 2022](https://aclanthology.org/2022.emnlp-main.754/)
          for samples.
    """
    if not candidates:
        raise ValueError("`candidates` must have at least one translation.")
    if log_probs is not None and len(log_probs) != len(candidates):
        raise ValueError(
            "`log_probs` must have a number for each candidate. Received: "
            f"{len(log_probs)} numbers for {len(candidates)} candidates"
        )
    score = _utility(utility, candidates)
    texts = list(dict.fromkeys(candidates))
    probs = _probabilities(candidates, texts, log_probs)
    gains = np.array([[score(c, h) for h in texts] for c in texts])
    best = texts[int(np.argmax(gains @ probs))]
    return list(candidates).index(best)


def _probabilities(candidates, texts, log_probs):
    """The probability of each different text."""
    if log_probs is None:
        counts = Counter(candidates)
        weights = np.array([counts[text] for text in texts], "float64")
    else:
        relative = np.exp(np.asarray(log_probs, "float64") - max(log_probs))
        sums = dict.fromkeys(texts, 0.0)
        for text, weight in zip(candidates, relative, strict=True):
            sums[text] += weight
        weights = np.array(list(sums.values()))
    return weights / weights.sum()


def _utility(name, candidates):
    from sacrebleu.metrics import BLEU, CHRF

    script = detect_script_without_spaces(candidates)
    tokenize = "13a" if script is None else "char"
    metrics = {
        "chrf": CHRF(),
        "bleu": BLEU(tokenize=tokenize, effective_order=True, force=True),
    }
    if name not in metrics:
        raise ValueError(
            f"`utility` must be one of {', '.join(map(repr, UTILITIES))}. "
            f"Received: utility={name!r}"
        )
    metric = metrics[name]
    return lambda candidate, reference: (
        metric.sentence_score(candidate, [reference]).score
    )
