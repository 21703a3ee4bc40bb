"""Translates and scores text in batches of few shapes."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_deepnmt.decoding.batches import length_batches
from keras_deepnmt.decoding.options import (
    SearchOptionAttributes,
    SearchOptions,
)
from keras_deepnmt.errors import UserError
from keras_deepnmt.masks import END_ID
from keras_deepnmt.translator.batch_decoder import BatchDecoder
from keras_deepnmt.translator.results import Hypothesis, TargetScore
from keras_deepnmt.translator.rows import label_rows, source_rows
from keras_deepnmt.translator.trained_run import read_run

if TYPE_CHECKING:
    from keras_deepnmt.data.tokenizers import Tokenizer
    from keras_deepnmt.models.seq2seq import Seq2Seq

# Longest source, end id included, where the model itself sets no limit.
MAX_SOURCE_LENGTH = 1024


class Translator(SearchOptionAttributes):
    """Translates and scores text with a model.

    Sentences are sorted by length and computed in batches of a fixed size and
    few lengths, since each shape is compiled once. Results are in the order of
    the input. Weights are read at each call: a translator made before training
    translates with the weights that training has reached.

    Args:
        model: a model of this package.
        source_tokenizer: tokenizer of the source side.
        target_tokenizer: tokenizer of the target side.
        options: options of the search. Defaults to `SearchOptions()`.
        batch_size: number of sentences computed together.
        max_source_length: maximum source length in tokens, end id included.
            Longer sources are truncated, see `on_truncated`.
            Defaults to the model's position range, or 1,024 tokens if it has
            none.
        compiled: if `False`, plain graphs are run, as in an exported model.
        on_truncated: called with the places, from 0, of the truncated sources
            among the texts of a call. Defaults to a warning on standard error.
        **search_options: fields of `decoding.SearchOptions`, such as
            `num_beams=4`, that replace those of `options`. Each field is an
            attribute of the translator as well.

    Attributes:
        options: the `SearchOptions`.
        num_truncated: number of sources truncated so far.
        num_compilations: number of shapes compiled so far.

    Raises:
        ValueError: if a tokenizer's vocabulary is not the model's, or an
            option is too small.

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
        options: SearchOptions | None = None,
        batch_size: int = 32,
        max_source_length: int | None = None,
        compiled: bool = True,
        on_truncated: Callable[[list[int]], None] | None = None,
        **search_options: Any,
    ):
        _check_vocabularies(model, source_tokenizer, target_tokenizer)
        if batch_size < 1:
            raise ValueError(
                "`batch_size` must be at least 1. "
                f"Received: batch_size={batch_size}"
            )
        self.model = model
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.options = (options or SearchOptions()).updated(**search_options)
        self.batch_size = batch_size
        limits = (max_source_length, model.max_length)
        self.max_source_length = min(
            (limit for limit in limits if limit is not None),
            default=MAX_SOURCE_LENGTH,
        )
        self.compiled = compiled
        self.on_truncated = on_truncated
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
            **options: arguments of the constructor. Defaults to the decoding
                options of the run.

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

    def uncompiled(self) -> "Translator":
        """Returns a translator with the same model and options, not compiled.

        Its first translation comes sooner, the later ones are slower.

        Example:
        >>> translator.uncompiled().translate(["a little dog"])
        ['ein kleiner Hund']
        """
        return Translator(
            self.model,
            self.source_tokenizer,
            self.target_tokenizer,
            options=self.options,
            batch_size=self.batch_size,
            max_source_length=self.max_source_length,
            compiled=False,
            on_truncated=self.on_truncated,
        )

    @property
    def num_compilations(self) -> int:
        return self._decoder.num_compilations

    def search(
        self, source_ids: np.ndarray, num_beams: int | None = None
    ) -> dict[str, np.ndarray]:
        """Searches the translations of one batch of ids.

        Args:
            source_ids: int32 `(B, S)`, rows end with id 3, then 0s.
            num_beams: number of hypotheses. Defaults to the translator's.

        Returns:
            What `decoding.beam_search` returns (K is 1 for greedy search).
        """
        return self._decoder.search(
            source_ids, self.options.updated(num_beams=num_beams)
        )

    def translate(
        self,
        texts: Sequence[str],
        on_progress: Callable[[int], None] | None = None,
    ) -> list[str]:
        """Translates sentences.

        Args:
            texts: Sentences; an empty one has an empty translation.
            on_progress: called with the number of sentences just translated.

        Returns:
            One translation per sentence, in the same order.
        """
        nbest = self._nbest(texts, 1, self.options, on_progress)
        return [hypotheses[0].text for hypotheses in nbest]

    def translate_stream(
        self, lines: Iterable[str], chunk_size: int = 512
    ) -> Iterator[str]:
        """Translates lines as they are read, a chunk at a time.

        Args:
            lines: Sentences; line ends are removed.
            chunk_size: Number of lines read, sorted by length and translated
                at a time.

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
        """Returns several translations of each sentence, best first.

        Args:
            texts: Sentences; an empty one has one, empty translation.
            num_hypotheses: Number of translations. If it is greater than
                `num_beams`, the search uses that many beams.
            on_progress: called with the number of sentences just translated.

        Returns:
            For each sentence at most `num_hypotheses` translations.

        Raises:
            ValueError: if `num_hypotheses` is below 1.
        """
        if num_hypotheses < 1:
            raise ValueError(
                "`num_hypotheses` must be at least 1. "
                f"Received: num_hypotheses={num_hypotheses}"
            )
        options = self.options.updated(
            num_beams=max(self.options.num_beams, num_hypotheses)
        )
        return self._nbest(texts, num_hypotheses, options, on_progress)

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        on_progress: Callable[[int], None] | None = None,
    ) -> list[TargetScore]:
        """Returns the log-probability of each token of given translations.

        Args:
            sources: Sentences.
            targets: Their translations.
            on_progress: called with the number of pairs just scored.

        Returns:
            One `TargetScore` per pair, in the same order.

        Raises:
            UserError: if there are not as many targets as sources, or a target
                is longer than the model's position range.
        """
        if len(sources) != len(targets):
            raise UserError(
                "`sources` and `targets` must have the same length. "
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

    def _nbest(self, texts, num_hypotheses, options, on_progress):
        rows = self._source_rows(texts)
        nbest = [[Hypothesis("", 0.0, 0.0, (END_ID,))] for _ in texts]
        # A row with only the end id is an empty sentence.
        numbers = [n for n, row in enumerate(rows) if len(row) > 1]
        if on_progress is not None and len(numbers) < len(texts):
            on_progress(len(texts) - len(numbers))
        lengths = [len(rows[number]) for number in numbers]
        for places in length_batches(lengths, self.batch_size):
            batch = [numbers[place] for place in places]
            translations = self._decoder.hypotheses(
                [rows[number] for number in batch],
                options,
                num_hypotheses,
            )
            for number, hypotheses in zip(batch, translations, strict=True):
                nbest[number] = hypotheses
            if on_progress is not None:
                on_progress(len(batch))
        return nbest

    def _source_rows(self, texts):
        rows, truncated = source_rows(
            self.source_tokenizer, texts, self.max_source_length
        )
        self.num_truncated += len(truncated)
        if truncated and self.on_truncated is not None:
            self.on_truncated(truncated)
        elif truncated:
            print(
                f"Warning: {len(truncated)} of {len(texts)} sources have more "
                f"than {self.max_source_length - 1} tokens; the rest of them "
                "is ignored.",
                file=sys.stderr,
            )
        return rows


def _check_vocabularies(model, source_tokenizer, target_tokenizer):
    """Refuses tokenizers that do not have the vocabularies of the model."""
    for side, tokenizer, size in (
        ("source", source_tokenizer, model.source_vocabulary_size),
        ("target", target_tokenizer, model.target_vocabulary_size),
    ):
        if tokenizer.vocabulary_size != size:
            raise ValueError(
                f"`{side}_tokenizer` must have the vocabulary of `model`. "
                f"Received: {tokenizer.vocabulary_size} pieces for a model "
                f"of {size}"
            )
