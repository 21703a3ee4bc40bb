"""Scores the translations of a run by other models, and sorts them anew."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from keras import ops

from keras_deepnmt.data.tags import split_tags, tagged_text
from keras_deepnmt.decoding.ranking import score_divisor
from keras_deepnmt.errors import UserError
from keras_deepnmt.translator.results import Hypothesis
from keras_deepnmt.translator.translator import Translator


class Reranker:
    """Sorts the translations of a search by a weighted sum of scores.

    The models are numbered: 0 is the one that translated, then come those of
    `forward`, then those of `reverse`. A translation y of a source x has the
    score

        sum_m w_m f_m,   f_m = log p_m / lp(length_m),

    where p_m is the probability p(y | x), for a reverse model p(x | y), and lp
    the length penalty of the translator's search options. length_m is the
    number of tokens of the text that the model predicts, by its own tokenizer,
    the end token included. f_0 is the score of the search, to which a coverage
    penalty adds its part; the other scores have none. The score of a reverse
    model is divided by the same number for all translations of a sentence. With
    `length_penalty=0` and no coverage penalty the scores are plain
    log-probabilities.

    Models of other architectures and vocabularies can be used: they read texts,
    each with the tag of its own translator. The tag that a sentence begins
    with is for the model that translated, and for the models of `forward` that
    have no tag and learned this one (`training_tags`).
    A model does not score a sentence if it cannot read all of its translations
    to their ends; its score f_m is then 0 for all of them.

    Args:
        translator: The `Translator` that translated.
        forward: Translators of the same direction.
        reverse: Translators of the other direction, target to source.
        weights: A number for each model. Defaults to 1 for all.
        on_unscored: called with the number of a model and the indices of the
            sentences that it did not score. Defaults to nothing.

    Attributes:
        weights: as above; they may be changed later.

    Raises:
        UserError: if the number of weights is wrong, or one is not finite.

    Example:
    >>> reranker = Reranker(translator, forward=[larger], reverse=[backward])
    >>> nbest = translator.translate_nbest(["a little dog"], 4)
    >>> reranker.rerank(["a little dog"], nbest)[0][0].text
    'ein kleiner Hund'
    """

    def __init__(
        self,
        translator: Translator,
        forward: Sequence[Translator] = (),
        reverse: Sequence[Translator] = (),
        weights: Sequence[float] | None = None,
        on_unscored: Callable[[int, list[int]], None] | None = None,
    ):
        self.translator = translator
        self.forward = list(forward)
        self.reverse = list(reverse)
        number = 1 + len(self.forward) + len(self.reverse)
        self.weights = as_weights(weights, number)
        self.on_unscored = on_unscored

    def features(
        self,
        sources: Sequence[str],
        nbest: Sequence[Sequence[Hypothesis]],
        on_progress: Callable[[int], None] | None = None,
    ) -> list[np.ndarray]:
        """Computes the scores f_m of all translations.

        Args:
            sources: Sentences.
            nbest: For each of them its translations, such as those of
                `Translator.translate_nbest`.
            on_progress: called with the number of sentences that one of the
                models has just scored.

        Returns:
            For each sentence a float array `(translations, models)`.

        Raises:
            UserError: if a model computes NaN.
        """
        own = [[[found.score] for found in hypotheses] for hypotheses in nbest]
        features = [np.array(column) for column in own]
        models = [
            *((other, False) for other in self.forward),
            *((other, True) for other in self.reverse),
        ]
        for number, (other, is_reverse) in enumerate(models, start=1):
            columns = self._scores(number, other, is_reverse, sources, nbest)
            features = [
                np.concatenate([rows, column[:, None]], axis=1)
                for rows, column in zip(features, columns, strict=True)
            ]
            if on_progress is not None:
                on_progress(len(sources))
        return features

    def rerank(
        self,
        sources: Sequence[str],
        nbest: Sequence[Sequence[Hypothesis]],
        on_progress: Callable[[int], None] | None = None,
    ) -> list[list[Hypothesis]]:
        """Sorts the translations of each sentence by the weighted sums.

        Those that lack a required phrase come after the others, as in a search.

        Args:
            sources: Sentences.
            nbest: as in `features`.
            on_progress: as in `features`.

        Returns:
            The same translations, best first; their `score` is the sum, their
            `features` the scores f_m.

        Raises:
            UserError: if a model computes NaN.
        """
        features = self.features(sources, nbest, on_progress)
        reranked = []
        for hypotheses, rows in zip(nbest, features, strict=True):
            sums = rows @ self.weights
            lack_phrases = [not h.constraints_met for h in hypotheses]
            reranked.append(
                [
                    replace(
                        hypotheses[place],
                        score=float(sums[place]),
                        features=tuple(rows[place].tolist()),
                    )
                    for place in np.lexsort((-sums, lack_phrases))
                ]
            )
        return reranked

    def _scores(self, number, other, is_reverse, sources, nbest):
        """One score for each translation, by one of the other models."""
        columns = [np.zeros(len(hypotheses)) for hypotheses in nbest]
        pairs, places, unscored = [], [], []
        known = () if is_reverse or other.tag else other.training_tags
        texts, tags = split_tags(sources, self.translator.training_tags)
        rows = self.translator.source_tokenizer.encode(texts)
        for place, (source, tag, row, found) in enumerate(
            zip(texts, tags, rows, nbest, strict=True)
        ):
            if not len(row):
                continue  # its translation is empty, too
            if tag in known:
                source = tagged_text(source, tag)
            of_sentence = [
                (h.text, source) if is_reverse else (source, h.text)
                for h in found
            ]
            if _fits(other, of_sentence):
                pairs += of_sentence
                places.append(place)
            else:
                unscored.append(place)
        if unscored and self.on_unscored is not None:
            self.on_unscored(number, unscored)
        if not pairs:
            return columns
        scores = other.score(*map(list, zip(*pairs, strict=True)))
        options = self.translator.options
        lengths = np.array([len(score.tokens) for score in scores])
        divisors = ops.convert_to_numpy(
            score_divisor(
                lengths, options.length_penalty, options.length_offset
            )
        )
        values = np.array([score.total for score in scores]) / divisors
        first = 0
        for place in places:
            columns[place] = values[first : first + len(nbest[place])]
            first += len(nbest[place])
        return columns


def as_weights(weights: Sequence[float] | None, number: int) -> np.ndarray:
    """Returns an array of `number` weights; `None` stands for ones.

    Example:
    >>> as_weights(None, 2)
    array([1., 1.])
    """
    if weights is None:
        return np.ones(number)
    array = np.array(weights, "float64")
    if array.shape != (number,) or not np.isfinite(array).all():
        raise UserError(
            f"Reranking needs {number} finite weights, one for the model that "
            "translates and one for each other model. Received: "
            f"{array.tolist()}"
        )
    return array


def _fits(translator, pairs):
    """Whether a model can read both sides of all pairs to their ends."""
    sources, targets = (list(side) for side in zip(*pairs, strict=True))
    targets = translator.tagged_targets(sources, targets)
    sources = translator.tagged(sources)
    longest = [
        (translator.source_tokenizer, sources, translator.max_source_length),
        (translator.target_tokenizer, targets, translator.model.max_length),
    ]
    return all(
        limit is None or all(len(ids) < limit for ids in tokenizer.encode(side))
        for tokenizer, side, limit in longest
    )
