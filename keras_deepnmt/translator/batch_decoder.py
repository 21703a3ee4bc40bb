"""Runs the compiled searches and the scoring of a model on one batch."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from keras_deepnmt.decoding.batches import (
    length_batches,
    most_rows,
    padded_batch,
    padded_length,
    padded_rows,
)
from keras_deepnmt.decoding.compiled import compile_for
from keras_deepnmt.decoding.hypotheses import longest_output
from keras_deepnmt.decoding.options import SearchOptions
from keras_deepnmt.decoding.scoring import score_targets
from keras_deepnmt.decoding.search_by_options import search
from keras_deepnmt.masks import BEGIN_ID, PADDING_ID
from keras_deepnmt.translator.batch_limits import BatchLimits
from keras_deepnmt.translator.invalid_numbers import no_probabilities
from keras_deepnmt.translator.results import Hypothesis, TargetScore


class BatchDecoder:
    """Searches and scores batches of few sizes and few lengths.

    Missing rows of a batch are filled with padding.

    Attributes:
        limits: the limits of a batch.
        num_compilations: number of shapes compiled so far.
    """

    def __init__(
        self,
        model,
        target_tokenizer,
        limits: BatchLimits,
        max_source_length: int,
        compiled: bool = True,
    ):
        self.model = model
        self.target_tokenizer = target_tokenizer
        self.limits = limits
        self.max_source_length = max_source_length
        self._search = compile_for(model, search, compiled)
        self._score_targets = compile_for(model, score_targets, compiled)

    def report_compilations(
        self, report: Callable[[tuple[int, int]], None]
    ) -> None:
        """Calls `report` with the source's shape before each compilation."""
        for function in (self._search, self._score_targets):
            function.on_compilation = report

    @property
    def num_compilations(self) -> int:
        return (
            self._search.num_compilations + self._score_targets.num_compilations
        )

    def source_batches(
        self, rows: Sequence[Sequence[int]], options: SearchOptions
    ) -> list[np.ndarray]:
        """Groups source rows, given by number, for `hypotheses`."""
        return length_batches(
            list(map(len, rows)),
            self.limits.batch_size,
            self.limits.batch_tokens,
            lambda length: self._search_tokens(length, options),
        )

    def pair_batches(
        self, rows: Sequence[Sequence[int]], labels: Sequence[Sequence[int]]
    ) -> list[np.ndarray]:
        """Groups pairs of rows, given by number, for `target_scores`."""
        return length_batches(
            list(map(max, map(len, rows), map(len, labels))),
            self.limits.batch_size,
            self.limits.batch_tokens,
        )

    def search(
        self,
        source_ids: np.ndarray,
        options: SearchOptions,
        prefix_ids: np.ndarray | None = None,
    ) -> dict[str, np.ndarray]:
        """Searches the translations of an array of ids `(B, S)`.

        Translations begin with the tokens `prefix_ids` `(B, P)`. Returns what
        `decoding.search` returns.
        """
        arrays = [source_ids]
        max_length = longest_output(source_ids.shape[1], options)
        if prefix_ids is not None:
            arrays.append(prefix_ids)
            max_length = max(max_length, prefix_ids.shape[1] + 1)
        return self._search(*arrays, options=options, max_length=max_length)

    def hypotheses(
        self,
        rows: Sequence[Sequence[int]],
        options: SearchOptions,
        num_hypotheses: int,
        prefixes: Sequence[Sequence[int]] | None = None,
    ) -> list[list[Hypothesis]]:
        """Returns up to `num_hypotheses` translations of each source row.

        They are sorted, best first, and begin with the prefixes, rows of ids.

        Raises:
            UserError: if the model computes NaN.
        """
        tokens = self._search_tokens(max(map(len, rows)), options)
        size = self._num_rows(rows, tokens)
        prefix_ids = None
        if prefixes is not None and any(map(len, prefixes)):
            prefix_ids = self._padded(prefixes, size, self.model.max_length)
        outputs = self.search(
            self._padded(rows, size, self.max_source_length),
            options,
            prefix_ids,
        )
        return [
            self._hypotheses_of(outputs, row, num_hypotheses)
            for row in range(len(rows))
        ]

    def target_scores(
        self, rows: Sequence[Sequence[int]], labels: Sequence[Sequence[int]]
    ) -> Iterator[TargetScore]:
        """Scores a given target, which ends with the end id, for each row.

        Raises:
            UserError: if the model computes NaN.
        """
        previous = [[BEGIN_ID, *row[:-1]] for row in labels]
        tokens = padded_length(max(map(len, [*rows, *labels])))
        size = self._num_rows(rows, tokens)
        log_probs = self._score_targets(
            self._padded(rows, size, self.max_source_length),
            self._padded(previous, size, self.model.max_length),
            self._padded(labels, size, self.model.max_length),
        )
        for row, values in zip(labels, log_probs, strict=False):
            values = tuple(values[: len(row)].tolist())
            if np.isnan(values).any():
                raise no_probabilities(self.model)
            tokens = tuple(self.target_tokenizer.pieces(row))
            yield TargetScore(tokens, values, sum(values))

    def _hypotheses_of(self, outputs, row, num_hypotheses):
        scores = outputs["scores"][row][:num_hypotheses]
        places = np.flatnonzero(np.isfinite(scores))
        if not len(places):
            raise no_probabilities(self.model)
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
                outputs["truncated"][row][places].tolist(),
            )
        )

    def _search_tokens(self, length, options):
        """Tokens that a source of this length counts: padded, or its output."""
        padded = padded_length(length, self.max_source_length)
        longest = longest_output(padded, options)
        return max(padded, min(longest, self.model.max_length or longest))

    def _num_rows(self, rows, tokens):
        most = most_rows(
            tokens, self.limits.batch_size, self.limits.batch_tokens
        )
        return padded_rows(len(rows), most)

    def _padded(self, rows, size, largest):
        length = padded_length(max(map(len, rows)), largest)
        return padded_batch(rows, size, length)
