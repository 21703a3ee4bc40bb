"""Translates and scores text, a few shapes for all of it."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from keras_deepnmt.decoding.batches import length_batches
from keras_deepnmt.errors import UserError
from keras_deepnmt.masks import END_ID
from keras_deepnmt.translator.batch_decoder import BatchDecoder
from keras_deepnmt.translator.checks import check_numbers, check_vocabularies
from keras_deepnmt.translator.results import Hypothesis, TargetScore
from keras_deepnmt.translator.rows import label_rows, source_rows
from keras_deepnmt.translator.trained_run import read_run

if TYPE_CHECKING:
    from keras_deepnmt.data.tokenizers import Tokenizer
    from keras_deepnmt.models.seq2seq import Seq2Seq

# Longest source, end id included, where the model itself sets no limit.
MAX_SOURCE_LENGTH = 1024


class Translator:
    """Translates and scores text with a model.

    Sentences are sorted by length and computed in batches of a fixed size and
    few lengths, so that few compilations serve all text; results come in the
    order of the input. Weights are read at each call: a translator made before
    training translates with what training has reached.

    Args:
        model: a model of this package.
        source_tokenizer: tokenizer of the source side.
        target_tokenizer: tokenizer of the target side.
        num_beams: hypotheses kept by the search; 1 is greedy search.
        length_penalty: exponent of the length penalty, at least 0.
        length_offset: what the length penalty adds to lengths, at least 0: 5
            is GNMT's, 0 divides by a plain power of the length.
        batch_size: sentences computed together.
        max_source_length: longest source in tokens, end id included; what is
            longer is cut, with a line on standard error. Defaults to the
            model's position range, or 1,024 tokens where it has none.
        compiled: `False` runs plain graphs, as an exported model does.

    Attributes:
        num_truncated: sources cut so far.
        num_compilations: shapes compiled so far.

    Raises:
        ValueError: if a tokenizer's vocabulary is not the model's, or a
            number is too small.

    Example:
    >>> translator = Translator(model, source_tokenizer, target_tokenizer)
    >>> translator.translate(["a little dog", ""])
    ['ein kleiner Hund', '']
    """

    def __init__(
        self,
        model: "Seq2Seq",
        source_tokenizer: "Tokenizer",
        target_tokenizer: "Tokenizer",
        *,
        num_beams: int = 4,
        length_penalty: float = 0.6,
        length_offset: float = 5.0,
        batch_size: int = 32,
        max_source_length: int | None = None,
        compiled: bool = True,
    ):
        check_vocabularies(model, source_tokenizer, target_tokenizer)
        check_numbers(num_beams, length_penalty, length_offset, batch_size)
        self.model = model
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.num_beams = num_beams
        self.length_penalty = length_penalty
        self.length_offset = length_offset
        self.batch_size = batch_size
        limits = (max_source_length, model.max_length)
        self.max_source_length = min(
            (limit for limit in limits if limit is not None),
            default=MAX_SOURCE_LENGTH,
        )
        self.compiled = compiled
        self.num_truncated = 0
        self._decoder = BatchDecoder(
            model,
            target_tokenizer,
            batch_size,
            self.max_source_length,
            compiled,
        )

    @classmethod
    def load(cls, run_dir: str | Path, **options) -> "Translator":
        """Loads what `deepnmt train` wrote.

        Args:
            run_dir: the run folder.
            **options: arguments of the constructor; those not given come from
                the run's own decoding options.

        Returns:
            A translator with the run's weights and tokenizers.

        Raises:
            UserError: if the folder lacks a file, or its files do not belong
                together.

        Example:
        >>> Translator.load("runs/demo", num_beams=5).num_beams
        5
        """
        run = read_run(run_dir)
        return cls(
            run.load_model(),
            run.source_tokenizer,
            run.target_tokenizer,
            **{**run.decoding, **options},
        )

    @property
    def num_compilations(self) -> int:
        return self._decoder.num_compilations

    def search(
        self, source_ids: np.ndarray, num_beams: int | None = None
    ) -> dict[str, np.ndarray]:
        """Searches translations of one batch of ids, as it is.

        Args:
            source_ids: int32 `(B, S)`, rows end with id 3, then 0s.
            num_beams: defaults to the translator's.

        Returns:
            What `decoding.beam_search` returns (K is 1 for greedy search).
        """
        return self._decoder.search(
            source_ids,
            num_beams or self.num_beams,
            self.length_penalty,
            self.length_offset,
        )

    def translate(
        self,
        texts: Sequence[str],
        on_progress: Callable[[int], None] | None = None,
    ) -> list[str]:
        """Translates sentences.

        Args:
            texts: One sentence each; an empty one gives an empty translation.
            on_progress: called with the number of sentences just done.

        Returns:
            One translation per sentence, in the same order.
        """
        nbest = self._nbest(texts, 1, self.num_beams, on_progress)
        return [hypotheses[0].text for hypotheses in nbest]

    def translate_stream(
        self, lines: Iterable[str], chunk_size: int = 512
    ) -> Iterator[str]:
        """Translates lines without holding them all.

        Args:
            lines: Sentences; a line's end is dropped.
            chunk_size: Lines read, sorted by length and translated at a time.

        Yields:
            One translation per line, in the same order.
        """
        lines = iter(lines)
        while chunk := [
            line.rstrip("\r\n") for line in islice(lines, chunk_size)
        ]:
            yield from self.translate(chunk)

    def translate_nbest(
        self,
        texts: Sequence[str],
        num_hypotheses: int,
        on_progress: Callable[[int], None] | None = None,
    ) -> list[list[Hypothesis]]:
        """Gives several translations of each sentence, best first.

        Args:
            texts: One sentence each; an empty one has one, empty translation.
            num_hypotheses: Translations wanted; the search keeps at least as
                many hypotheses.
            on_progress: called with the number of sentences just done.

        Returns:
            For each sentence at most `num_hypotheses` different ones.

        Raises:
            ValueError: if `num_hypotheses` is below 1.
        """
        if num_hypotheses < 1:
            raise ValueError(
                "`num_hypotheses` must be at least 1. "
                f"Received: num_hypotheses={num_hypotheses}"
            )
        num_beams = max(self.num_beams, num_hypotheses)
        return self._nbest(texts, num_hypotheses, num_beams, on_progress)

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        on_progress: Callable[[int], None] | None = None,
    ) -> list[TargetScore]:
        """Gives the log-probability of each token of given translations.

        Args:
            sources: One sentence each.
            targets: Its translation, one each.
            on_progress: called with the number of pairs just done.

        Returns:
            One `TargetScore` per pair, in the same order.

        Raises:
            UserError: if the sides differ in number, or a target is longer
                than the model's position range.
        """
        if len(sources) != len(targets):
            raise UserError(
                "Sources and targets must be as many. "
                f"Received: {len(sources)} sources, {len(targets)} targets"
            )
        rows = self._source_rows(sources)
        labels = label_rows(
            self.target_tokenizer, targets, self.model.max_length
        )
        longest = map(max, map(len, rows), map(len, labels))
        scores = [None] * len(sources)
        for numbers in length_batches(list(longest), self.batch_size):
            batch = self._decoder.target_scores(
                [rows[number] for number in numbers],
                [labels[number] for number in numbers],
            )
            for number, score in zip(numbers, batch, strict=True):
                scores[number] = score
            if on_progress is not None:
                on_progress(len(numbers))
        return scores

    def _nbest(self, texts, num_hypotheses, num_beams, on_progress):
        rows = self._source_rows(texts)
        nbest = [[Hypothesis("", 0.0, 0.0, (END_ID,))] for _ in texts]
        # A row of nothing but the end id is an empty sentence.
        numbers = [n for n, row in enumerate(rows) if len(row) > 1]
        if on_progress is not None and len(numbers) < len(texts):
            on_progress(len(texts) - len(numbers))
        lengths = [len(rows[number]) for number in numbers]
        for places in length_batches(lengths, self.batch_size):
            batch = [numbers[place] for place in places]
            found = self._decoder.hypotheses(
                [rows[number] for number in batch],
                num_beams,
                self.length_penalty,
                self.length_offset,
                num_hypotheses,
            )
            for number, hypotheses in zip(batch, found, strict=True):
                nbest[number] = hypotheses
            if on_progress is not None:
                on_progress(len(batch))
        return nbest

    def _source_rows(self, texts):
        rows, num_truncated = source_rows(
            self.source_tokenizer, texts, self.max_source_length
        )
        if num_truncated:
            self.num_truncated += num_truncated
            print(
                f"Warning: {num_truncated} of {len(texts)} sources have more "
                f"than {self.max_source_length - 1} tokens; what comes after "
                "is left out.",
                file=sys.stderr,
            )
        return rows
