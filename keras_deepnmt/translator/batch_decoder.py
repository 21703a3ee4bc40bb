"""One batch of rows through the compiled searches of a model."""

from collections.abc import Iterator, Sequence

import numpy as np

from keras_deepnmt.decoding.batches import padded_batch, padded_length
from keras_deepnmt.decoding.beam_search import beam_search
from keras_deepnmt.decoding.beams import EXTRA_TOKENS
from keras_deepnmt.decoding.compiled import compile_for
from keras_deepnmt.decoding.greedy_search import greedy_search
from keras_deepnmt.decoding.score_targets import score_targets
from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID
from keras_deepnmt.translator.results import Hypothesis, TargetScore

NOTHING_FOUND = Hypothesis("", -float("inf"), -float("inf"), (END_ID,))


class BatchDecoder:
    """Searches and scores batches of one size and few lengths.

    Args:
        model: a model of this package.
        target_tokenizer: tokenizer of the target side.
        batch_size: rows of every batch; missing ones are padding.
        max_source_length: no source row is longer.
        compiled: `False` runs plain graphs, as an exported model does.

    Attributes:
        num_compilations: shapes compiled so far.

    Example:
    >>> decoder = BatchDecoder(model, target_tokenizer, 8, 64)
    >>> decoder.hypotheses([[5, 3]], 4, 0.6, 5.0, num_hypotheses=1)[0][0].text
    'ein'
    """

    def __init__(
        self,
        model,
        target_tokenizer,
        batch_size: int,
        max_source_length: int,
        compiled: bool = True,
    ):
        self.model = model
        self.target_tokenizer = target_tokenizer
        self.batch_size = batch_size
        self.max_source_length = max_source_length
        self._beam_search = compile_for(model, beam_search, compiled)
        self._greedy_search = compile_for(model, greedy_search, compiled)
        self._score_targets = compile_for(model, score_targets, compiled)

    @property
    def num_compilations(self) -> int:
        return (
            self._beam_search.num_compilations
            + self._greedy_search.num_compilations
            + self._score_targets.num_compilations
        )

    def search(
        self,
        source_ids: np.ndarray,
        num_beams: int,
        length_penalty: float,
        length_offset: float,
    ) -> dict[str, np.ndarray]:
        """Searches translations of one array, as it is.

        Args:
            source_ids: int32 `(B, S)`, rows end with id 3, then 0s.
            num_beams: 1 is greedy search.
            length_penalty: exponent of the length penalty.
            length_offset: what the length penalty adds to lengths.

        Returns:
            What `decoding.beam_search` returns.
        """
        options = {
            "length_penalty": length_penalty,
            "length_offset": length_offset,
            "max_length": source_ids.shape[1] + EXTRA_TOKENS,
        }
        if num_beams > 1:
            return self._beam_search(source_ids, num_beams=num_beams, **options)
        found = self._greedy_search(source_ids, **options)
        return {name: value[:, None] for name, value in found.items()}

    def hypotheses(
        self,
        rows: Sequence[Sequence[int]],
        num_beams: int,
        length_penalty: float,
        length_offset: float,
        num_hypotheses: int,
    ) -> list[list[Hypothesis]]:
        """Gives the best translations of a few rows.

        Args:
            rows: at most `batch_size` source rows.
            num_beams: 1 is greedy search.
            length_penalty: exponent of the length penalty.
            length_offset: what the length penalty adds to lengths.
            num_hypotheses: most translations of a row.

        Returns:
            For each row its translations, best first, and at least one: an
            empty one where the model's numbers are no numbers.
        """
        found = self.search(
            self._padded(rows, self.max_source_length),
            num_beams,
            length_penalty,
            length_offset,
        )
        return [
            self._of_row(found, row, num_hypotheses) for row in range(len(rows))
        ]

    def target_scores(
        self, rows: Sequence[Sequence[int]], labels: Sequence[Sequence[int]]
    ) -> Iterator[TargetScore]:
        """Scores given translations of a few rows.

        Args:
            rows: at most `batch_size` source rows.
            labels: the target of each, with its end id.

        Yields:
            One `TargetScore` per row.
        """
        previous = [[BEGIN_ID, *row[:-1]] for row in labels]
        log_probs = self._score_targets(
            self._padded(rows, self.max_source_length),
            self._padded(previous, self.model.max_length),
            self._padded(labels, self.model.max_length),
        )
        for row, values in zip(labels, log_probs, strict=False):
            values = tuple(values[: len(row)].tolist())
            tokens = tuple(self.target_tokenizer.pieces(row))
            yield TargetScore(tokens, values, sum(values))

    def _of_row(self, found, row, num_hypotheses):
        scores = found["scores"][row][:num_hypotheses]
        places = np.flatnonzero(np.isfinite(scores))
        if not len(places):
            return [NOTHING_FOUND]
        ids = [
            tuple(one[one != PADDING_ID].tolist())
            for one in found["ids"][row][places]
        ]
        return list(
            map(
                Hypothesis,
                self.target_tokenizer.decode(ids),
                scores[places].tolist(),
                found["log_probs"][row][places].tolist(),
                ids,
            )
        )

    def _padded(self, rows, largest):
        length = padded_length(max(map(len, rows)), largest)
        return padded_batch(rows, self.batch_size, length)
