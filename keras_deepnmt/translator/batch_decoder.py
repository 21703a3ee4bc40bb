"""Runs the compiled searches and the scoring of a model on one batch."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from keras_deepnmt.decoding.batches import padded_batch, padded_length
from keras_deepnmt.decoding.beam import beam_search
from keras_deepnmt.decoding.compiled import compile_for
from keras_deepnmt.decoding.greedy import greedy_search
from keras_deepnmt.decoding.hypotheses import EXTRA_TOKENS
from keras_deepnmt.decoding.options import SearchOptions
from keras_deepnmt.decoding.scoring import score_targets
from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID
from keras_deepnmt.translator.results import Hypothesis, TargetScore

NO_TRANSLATION = Hypothesis("", -float("inf"), -float("inf"), (END_ID,))


class BatchDecoder:
    """Searches and scores batches of one size and few lengths.

    Missing rows of a batch are filled with padding.

    Attributes:
        num_compilations: number of shapes compiled so far.
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

    def report_compilations(
        self, report: Callable[[tuple[int, int]], None]
    ) -> None:
        """Calls `report` with the source's shape before each compilation."""
        for function in (
            self._beam_search,
            self._greedy_search,
            self._score_targets,
        ):
            function.on_compilation = report

    @property
    def num_compilations(self) -> int:
        return (
            self._beam_search.num_compilations
            + self._greedy_search.num_compilations
            + self._score_targets.num_compilations
        )

    def search(
        self, source_ids: np.ndarray, options: SearchOptions
    ) -> dict[str, np.ndarray]:
        """Searches the translations of an array of ids `(B, S)`.

        Returns what `decoding.beam_search` returns, also for one beam.
        """
        is_greedy = options.num_beams == 1
        search = self._greedy_search if is_greedy else self._beam_search
        outputs = search(
            source_ids,
            options=options,
            max_length=source_ids.shape[1] + EXTRA_TOKENS,
        )
        if is_greedy:
            return {name: value[:, None] for name, value in outputs.items()}
        return outputs

    def hypotheses(
        self,
        rows: Sequence[Sequence[int]],
        options: SearchOptions,
        num_hypotheses: int,
    ) -> list[list[Hypothesis]]:
        """Returns up to `num_hypotheses` translations of each source row.

        They are sorted, best first. If all scores are NaN, there is one, empty
        translation.
        """
        outputs = self.search(
            self._padded(rows, self.max_source_length), options
        )
        return [
            self._hypotheses_of(outputs, row, num_hypotheses)
            for row in range(len(rows))
        ]

    def target_scores(
        self, rows: Sequence[Sequence[int]], labels: Sequence[Sequence[int]]
    ) -> Iterator[TargetScore]:
        """Scores a given target, which ends with the end id, for each row."""
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

    def _hypotheses_of(self, outputs, row, num_hypotheses):
        scores = outputs["scores"][row][:num_hypotheses]
        places = np.flatnonzero(np.isfinite(scores))
        if not len(places):
            return [NO_TRANSLATION]
        ids = [
            tuple(tokens[tokens != PADDING_ID].tolist())
            for tokens in outputs["ids"][row][places]
        ]
        return list(
            map(
                Hypothesis,
                self.target_tokenizer.decode(ids),
                scores[places].tolist(),
                outputs["log_probs"][row][places].tolist(),
                ids,
            )
        )

    def _padded(self, rows, largest):
        length = padded_length(max(map(len, rows)), largest)
        return padded_batch(rows, self.batch_size, length)
