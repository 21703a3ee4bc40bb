"""Tunes the weights of several scores on a text with references."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation.metric_counts import MetricCounts
from keras_deepnmt.evaluation.word_tokenizers import default_tokenizer
from keras_deepnmt.reranking.line_search import EQUAL, best_place

# Those that are better if they are higher.
METRICS = ("bleu", "chrf")
# Line searches over all weights end where they find nothing better; this is
# only a bound.
_MOST_ROUNDS = 100


@dataclass(frozen=True)
class TunedWeights:
    """Weights of several scores, and the metric of the tuning text with them.

    Attributes:
        weights: One for each score; their absolute values sum to 1.
        score: The metric of the best translations by these weights.
        first_score: The metric of the best translations by the first score
            alone, which is that of the search.
    """

    weights: tuple[float, ...]
    score: float
    first_score: float


def tune_weights(
    features: Sequence[np.ndarray],
    texts: Sequence[Sequence[str]],
    references: Sequence[str],
    metric: str = "bleu",
    tokenize: str | None = None,
    lowercase: bool = False,
    num_starts: int = 8,
    seed: int = 0,
) -> TunedWeights:
    """Finds the weights with the best BLEU or chrF on a text.

    Minimum error rate training (Och, 2003): each sentence has several
    translations with several scores f_m; the chosen translation maximizes

        sum_m w_m f_m .

    One weight at a time is set to its best value, which is found exactly, until
    no weight alone makes the metric better. This is done from several starts:
    equal weights, each score alone, and random ones. The best result counts;
    of equal ones, the first. The same arguments give the same weights.

    Args:
        features: For each sentence the scores of its translations `(number of
            translations, number of scores)`, such as those of
            `Reranker.features`.
        texts: For each sentence its translations.
        references: One reference for each sentence.
        metric: `"bleu"` or `"chrf"`, of the whole text.
        tokenize: sacreBLEU tokenizer of BLEU. Defaults to that of the
            references' script, as in `evaluation.corpus_scores`.
        lowercase: Whether case is ignored.
        num_starts: Number of random starts.
        seed: Seed of the random starts.

    Returns:
        The weights and the scores.

    Raises:
        UserError: if the metric or the tokenizer is unknown or cannot be used.
        ValueError: if the lists differ in length or are empty, or a sentence
            has no translation or another number of scores.

    Example:
    >>> features = [np.array([[0.0, -2.0], [-1.0, 0.0]])]
    >>> tuned = tune_weights(features, [["a b", "a c"]], ["a c"], "chrf")
    >>> round(tuned.first_score), round(tuned.score)
    (25, 100)

    Reference:
        - [Och, 2003](https://aclanthology.org/P03-1021/).
    """
    if metric not in METRICS:
        raise UserError(
            f"`metric` must be one of {', '.join(METRICS)}. "
            f"Received: metric={metric}"
        )
    tokenize = tokenize or default_tokenizer(references)
    counter = MetricCounts(metric, tokenize, lowercase)
    features = [np.asarray(rows, "float64") for rows in features]
    _check(features, texts, references)
    counts = [
        counter.of_texts(found, reference)
        for found, reference in zip(texts, references, strict=True)
    ]
    number = features[0].shape[1]
    draw = np.random.default_rng(seed)
    starts = [
        np.full(number, 1 / number),
        *np.eye(number),
        *draw.dirichlet(np.ones(number), num_starts),
    ]
    best, best_score = starts[0], -np.inf
    for start in starts:
        weights, score = _climb(start, features, counts, counter)
        if score > best_score + EQUAL:
            best, best_score = weights, score
    return TunedWeights(
        tuple(float(weight) for weight in best / np.abs(best).sum()),
        best_score,
        _score(np.eye(number)[0], features, counts, counter),
    )


def _climb(weights, features, counts, counter):
    """Changes one weight at a time while that makes the metric better."""
    score = _score(weights, features, counts, counter)
    for _ in range(_MOST_ROUNDS):
        before = score
        for place in range(len(weights)):
            step, _ = best_place(
                [rows @ weights for rows in features],
                [rows[:, place] for rows in features],
                counts,
                counter,
            )
            moved = weights + step * np.eye(len(weights))[place]
            if not np.abs(moved).max() > EQUAL:
                continue  # weights of 0 choose nothing
            found = _score(moved, features, counts, counter)
            if found > score + EQUAL:
                weights, score = moved / np.abs(moved).sum(), found
        if score <= before + EQUAL:
            break
    return weights, score


def _score(weights, features, counts, counter):
    total = sum(
        rows[int(np.argmax(values @ weights))]
        for values, rows in zip(features, counts, strict=True)
    )
    return float(counter.scores(total[None])[0])


def _check(features, texts, references):
    lengths = {len(features), len(texts), len(references)}
    if len(lengths) > 1 or not references:
        raise ValueError(
            "`features`, `texts` and `references` must have the same length "
            f"and not be empty. Received: {len(features)}, {len(texts)} and "
            f"{len(references)}"
        )
    number = features[0].shape[-1]
    for rows, found in zip(features, texts, strict=True):
        if not len(found) or rows.shape != (len(found), number):
            raise ValueError(
                "`features` must have a row of the same number of scores for "
                "each translation, and each sentence at least one. Received: "
                f"shape {rows.shape} for {len(found)} translations"
            )
