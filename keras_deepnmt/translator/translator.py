"""Translates and scores text in batches of few shapes."""

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, overload

import numpy as np

from keras_deepnmt.data.directions import Directions
from keras_deepnmt.data.tags import (
    TagSide,
    check_has_tag,
    check_tag,
    split_tags,
    tagged_text,
    tagged_texts,
)
from keras_deepnmt.decoding.options import (
    SearchOptionAttributes,
    SearchOptions,
)
from keras_deepnmt.errors import UserError, refused_values
from keras_deepnmt.masks import END_ID, PADDING_ID
from keras_deepnmt.models.ensemble import Ensemble
from keras_deepnmt.translator.batch_decoder import BatchDecoder
from keras_deepnmt.translator.batches import (
    BatchLimitAttributes,
    BatchLimits,
    as_integer,
    padded_batch,
    padded_length,
)
from keras_deepnmt.translator.loading import (
    Run,
    read_run,
    with_run_options,
)
from keras_deepnmt.translator.requests import (
    Target,
    as_pairs,
    as_sentences,
    given_rows,
    label_rows,
    print_truncated,
    refuse_one_sentence,
    source_rows,
)
from keras_deepnmt.translator.results import Asked, Hypothesis, TargetScore
from keras_deepnmt.translator.tag_notice import TagNotice

if TYPE_CHECKING:
    from keras_deepnmt.data.shortlists import Shortlists
    from keras_deepnmt.data.tokenizers import Tokenizer
    from keras_deepnmt.models.seq2seq import Seq2Seq

# Longest source, end id included, where the model itself sets no limit.
MAX_SOURCE_LENGTH = 1024
# A token and the end.
_LEAST_SOURCE_LENGTH = 2


class Translator(SearchOptionAttributes, BatchLimitAttributes):
    """Translates and scores text with a model.

    Sentences are sorted by length and computed in batches of few sizes and
    lengths, since each shape is compiled once: 1, 4, 16, ... rows, a half or a
    full batch. Another length penalty or offset needs no compilation. Results
    are in the order of the input. Weights are read at each call: a translator
    made before training translates with the weights that training has reached.

    Args:
        model: a model of this package.
        source_tokenizer: tokenizer of the source side.
        target_tokenizer: tokenizer of the target side.
        options: options of the search. Defaults to `SearchOptions()`.
        batch_size: largest number of sentences computed together.
        batch_tokens: largest number of tokens computed together, counted as
            sentences times the padded length of their longer side; with several
            beams, each beam needs memory for that many tokens. A sentence that
            is longer is computed alone. Defaults to 256 times `batch_size`. On
            a processor of several cores two batches are computed at once.
        max_source_length: maximum source length in tokens, end id included,
            at least 2. Longer sources are truncated, see `on_truncated`.
            Defaults to the model's position range, or to 1,024 tokens if it
            has none.
        compiled: if `False`, plain graphs are run, as in an exported model.
        shortlists: `data.Shortlists` of the vocabularies. With them a batch is
            searched with the tokens that its source words are likely to be
            translated by, which is faster; probabilities are those given that
            a token is one of these. Defaults to the whole vocabulary.
        on_truncated: called with the indices of the truncated sources among the
            texts of a call. Defaults to a warning on standard error.
        tag: text that stands before each source that is not empty, as in
            training, such as `<2de>`: a user-defined symbol of the tokenizer
            of the `tag_side`. Truncation never cuts it. Defaults to none.
        tag_side: where the model has tags: `"source"`, before the sentence
            that it reads, or `"target"`, as the beginning of what it writes. A
            search then begins with the tag, which is among the `ids` of a
            hypothesis and has a part in its scores, but is not in its text.
        training_tags: tags of the training corpora, with `None` for one
            without. With them a source without a tag is warned of, and one of
            them before nothing is an empty source; with `tag_side="target"` a
            source may begin with one of them, which is taken off. Defaults to
            none.
        **search_options: fields of `decoding.SearchOptions`, such as
            `num_beams=4`, that replace those of `options`. Each field is an
            attribute of the translator as well.

    Attributes:
        options: the `SearchOptions`.
        batch_size, batch_tokens: as above; they may be changed later.
        tag, tag_side: as above; `replaced` gives a translator with another
            one.
        training_tags: the tags that there are among those above.
        directions: the `data.directions.Directions` of the training corpora,
            likewise.
        context: number of sentences before each one in the training text,
            `data.context`; `None` if it is not known.
        compilation_padding: most padding that a call adds to its sources, in
            positions, so that one shape fewer is compiled. Defaults to 2,048.
        num_truncated: number of sources truncated so far.
        num_compilations: number of shapes compiled so far.
        search_state: what has been searched so far, as far as later searches
            depend on it, in terms of JSON: after many sentences in batches of
            a shape other programs search it, with other rounding. A translator
            that is given the state of another one goes on as that one would.

    Raises:
        UserError: if the tokenizer does not have the tag as a symbol.
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
        batch_tokens: int | None = None,
        max_source_length: int | None = None,
        compiled: bool = True,
        shortlists: "Shortlists | None" = None,
        on_truncated: Callable[[list[int]], None] | None = None,
        tag: str | None = None,
        tag_side: TagSide = "source",
        training_tags: Sequence[str | None] = (),
        **search_options: Any,
    ):
        _check_vocabularies(
            model, source_tokenizer, target_tokenizer, shortlists
        )
        self.model = model
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.options = (options or SearchOptions()).updated(**search_options)
        self.batch_limits = BatchLimits(batch_size, batch_tokens)
        if max_source_length is not None:
            max_source_length = as_integer(
                "max_source_length", max_source_length, _LEAST_SOURCE_LENGTH
            )
        limits = filter(None, (max_source_length, model.max_length))
        self.max_source_length = min(limits, default=MAX_SOURCE_LENGTH)
        if tag_side not in get_args(TagSide):
            raise ValueError(
                '`tag_side` must be "source" or "target". Received: '
                f"tag_side={tag_side!r}"
            )
        self._tag, self._tag_side = tag, tag_side
        if tag is not None:
            self._check_tag(tag)
        self._tag_notice = TagNotice(training_tags)
        self.directions = Directions()
        self.context: int | None = None
        self.compiled = compiled
        self.shortlists = shortlists
        self.on_truncated = on_truncated
        self.num_truncated = 0
        self._decoder = BatchDecoder(
            model,
            target_tokenizer,
            self.batch_limits,
            self.max_source_length,
            compiled,
            shortlists,
        )

    @classmethod
    def load(
        cls,
        run_dir: str | Path | Run,
        target_language: str | None = None,
        **options,
    ) -> "Translator":
        """Loads the folder of a finished run, or a preset folder.

        `deepnmt train` and `deepnmt export --format preset` write them, and
        trained models come with the package.

        Args:
            run_dir: the run folder, the preset folder, the name of a trained
                model (`trained.list_trained_models`), or what `read_run`
                returned.
            target_language: code of the language to translate into, which
                chooses the `tag`, as in `translate`. Defaults to none.
            **options: arguments of the constructor. One that is `None` or left
                out is the run's; `options` replaces all its search options.

        Returns:
            A translator with the run's weights and tokenizers.

        Raises:
            UserError: if the folder lacks a file, or its files do not belong
                together, or the model has not learned the target language.

        Example:
        >>> Translator.load("runs/demo", num_beams=5).num_beams
        5
        """
        tag = options.get("tag")
        if tag is not None and target_language is not None:
            raise UserError(
                "`tag` and `target_language` both choose the tag of the "
                f"sources: give one of them. Received: {tag} and "
                f"{target_language}"
            )
        run = run_dir if isinstance(run_dir, Run) else read_run(run_dir)
        with refused_values(f"{run.file}: `decoding`"):
            SearchOptions.from_mapping(run.decoding)
            _check_limits(run.decoding)
        translator = cls(
            run.load_model(),
            run.source_tokenizer,
            run.target_tokenizer,
            tag_side=run.tag_side,
            training_tags=run.tags,
            **with_run_options(options, run.decoding),
        )
        translator.directions = run.directions
        translator.context = run.context
        if target_language is None:
            return translator
        return translator.replaced(tag=translator._tag_of(target_language))

    @classmethod
    def from_preset(cls, preset: str | Path, **options) -> "Translator":
        """Loads a trained model of the package, or a preset folder.

        It is `load` under the name that Keras has for it.

        Example:
        >>> translator = Translator.from_preset(
        ...     "transformer_tiny.demo_de_en"
        ... )
        >>> translator.num_beams
        4
        """
        return cls.load(preset, **options)

    def replaced(self, **changes: Any) -> "Translator":
        """Returns a translator with other arguments of the constructor.

        All other arguments have the values that they have in this translator
        now. If its `batch_tokens` follow from its batch size, so do those of
        the new one.

        Args:
            **changes: arguments of the constructor, search options included,
                and their new values.

        Returns:
            The new translator; this one does not change.

        Raises:
            TypeError: if there is no such argument.
            ValueError: if a value is not allowed, as for the constructor.

        Example:
        >>> plain = translator.replaced(compiled=False, num_beams=2)
        >>> plain.translate(["a little dog"])
        ['ein kleiner Hund']
        """
        arguments = {
            "model": self.model,
            "source_tokenizer": self.source_tokenizer,
            "target_tokenizer": self.target_tokenizer,
            "options": self.options,
            "batch_size": self.batch_size,
            "batch_tokens": self.batch_limits.given_batch_tokens,
            "max_source_length": self.max_source_length,
            "compiled": self.compiled,
            "shortlists": self.shortlists,
            "on_truncated": self.on_truncated,
            "tag": self.tag,
            "tag_side": self.tag_side,
        }
        translator = Translator(**{**arguments, **changes})
        translator.compilation_padding = self.compilation_padding
        if "training_tags" not in changes:
            translator._tag_notice = self._tag_notice
        translator.directions = self.directions
        translator.context = self.context
        return translator

    def for_threads(self) -> list["Translator"]:
        """Returns translators that threads may call at once, one each.

        They share this one's model, tokenizers and compiled programs, and have
        options and a `search_state` of their own. There are as many as this
        one computes batches at once; each of them computes one at a time.

        Example:
        >>> first, *_ = translator.for_threads()
        >>> first.translate(["a little dog"])
        ['ein kleiner Hund']
        """
        translators = []
        for _ in range(self._decoder.batches_at_once):
            translator = copy.copy(self)
            translator._decoder = self._decoder.for_thread()
            translators.append(translator)
        return translators

    @property
    def tag(self) -> str | None:
        return self._tag

    @property
    def tag_side(self) -> TagSide:
        return self._tag_side

    @property
    def training_tags(self) -> tuple[str, ...]:
        return self._tag_notice.tags

    def tagged(self, texts: Sequence[str]) -> list[str]:
        """Returns sources as the source tokenizer reads them.

        Args:
            texts: Sentences.

        Returns:
            The sentences, with the tag and a space before each that is not
            empty; without a tag, the sentences as they are. Where the model
            has tags on the target side, the sentences without tags.

        Example:
        >>> translator.replaced(tag="<2de>").tagged(["a dog", ""])
        ['<2de> a dog', '']
        """
        if self.tag_side == "target":
            return self._taken_off(texts, self.tag)[0]
        return tagged_texts(self.source_tokenizer, texts, self.tag)

    def target_tags(self, texts: Sequence[str]) -> list[str | None]:
        """Returns the tags that the translations of sources begin with.

        Args:
            texts: Sentences.

        Returns:
            The tag of each, or `None`: if it has no token, or the model has
            its tags on the source side.

        Example:
        >>> translator.target_tags(["a dog"])
        [None]
        """
        return self._target_tags(texts, self.tag)

    def tagged_targets(
        self, sources: Sequence[str], targets: Sequence[str]
    ) -> list[str]:
        """Returns translations as the model writes them, with their tags.

        Args:
            sources: Sentences.
            targets: Their translations.

        Example:
        >>> translator.tagged_targets(["a dog"], ["ein Hund"])
        ['ein Hund']
        """
        return list(map(tagged_text, targets, self.target_tags(sources)))

    @property
    def num_compilations(self) -> int:
        return self._decoder.num_compilations

    @property
    def search_state(self) -> dict[str, list[list[int]]]:
        return self._decoder.state

    @search_state.setter
    def search_state(self, state: dict[str, list[list[int]]]) -> None:
        self._decoder.state = state

    def steady_search_state(self, num_hypotheses: int = 1) -> dict[str, Any]:
        """Returns a `search_state` that does not depend on earlier searches.

        A translator that is given it before each call computes equal calls
        equally in every process, by the programs that are best for many
        sentences.

        Args:
            num_hypotheses: as in `translate_nbest`.
        """
        options = self.options.for_hypotheses(num_hypotheses)
        given = self._beginnings(np.full((1, 1), PADDING_ID))
        return self._decoder.steady_state(options, given)

    def search(
        self, source_ids: np.ndarray, num_beams: int | None = None
    ) -> dict[str, np.ndarray]:
        """Searches the translations of one batch of ids.

        Args:
            source_ids: int32 `(B, S)`, rows end with id 3, then 0s. Where the
                model has tags on the target side, translations begin with the
                translator's tag.
            num_beams: number of hypotheses. Defaults to the translator's.

        Returns:
            What `decoding.search` returns.
        """
        return self._decoder.search(
            source_ids,
            self.options.updated(num_beams=num_beams),
            **self._beginnings(source_ids),
        )

    def _beginnings(self, source_ids):
        """The tag as the beginning of translations, as an array of a search.

        It has the shape that a search with any of the tags has.
        """
        tags = [self.tag] if self.tag else self.training_tags
        if self.tag_side == "source" or not tags:
            return {}
        rows = [row.tolist() for row in self.target_tokenizer.encode(tags)]
        given = [
            rows[0] if self.tag and ids[0] != PADDING_ID else []
            for ids in source_ids
        ]
        length = padded_length(max(map(len, rows)), self.model.max_length)
        return {"prefix_ids": padded_batch(given, len(given), length)}

    @overload
    def translate(
        self,
        texts: str,
        on_progress: Callable[[int], None] | None = None,
        target_language: str | None = None,
        *,
        prefixes: str | None = None,
        constraints: Iterable[str] | None = None,
        max_lengths: int | None = None,
    ) -> str: ...

    @overload
    def translate(
        self,
        texts: Iterable[str],
        on_progress: Callable[[int], None] | None = None,
        target_language: str | None = None,
        *,
        prefixes: Iterable[str] | None = None,
        constraints: Iterable[Iterable[str]] | None = None,
        max_lengths: Iterable[int] | None = None,
    ) -> list[str]: ...

    def translate(
        self,
        texts,
        on_progress=None,
        target_language=None,
        *,
        prefixes=None,
        constraints=None,
        max_lengths=None,
    ):
        """Translates sentences.

        Args:
            texts: Sentences, or one sentence as a string; an empty one has an
                empty translation, whatever is required.
            on_progress: called with the number of sentences just translated.
            target_language: code of the language to translate into, of a model
                that has learned several: its tag takes the place of the
                translator's own. Defaults to that of the `tag`.
            prefixes: texts that translations must begin with, also beyond their
                maximum length, empty for any. Here and below, a list with one
                value for each sentence, or the value for a string. Given text
                keeps its characters that the vocabulary lacks.
            constraints: lists of phrases that translations must contain.
            max_lengths: maximum numbers of tokens, the end token included, in
                place of the options' maximum, 0 for that maximum.

        Returns:
            One translation per sentence, in the same order; of a string, the
            translation alone.

        Raises:
            TypeError: if a sentence is not a string.
            UserError: if the model computes NaN, the number of prefixes,
                constraints or lengths is not that of the sentences, the
                options allow no constraints, or the model has not learned the
                target language.

        Example:
        >>> both.translate("ein Hund", target_language="en")  # doctest: +SKIP
        'a dog'
        """
        nbest = self.translate_nbest(
            texts,
            1,
            on_progress,
            target_language=target_language,
            prefixes=prefixes,
            constraints=constraints,
            max_lengths=max_lengths,
        )
        if isinstance(texts, str):
            return nbest[0].text
        return [hypotheses[0].text for hypotheses in nbest]

    def translate_stream(
        self,
        lines: Iterable[str],
        chunk_size: int = 512,
        target_language: str | None = None,
    ) -> Iterator[str]:
        """Translates lines as they are read, a chunk at a time.

        Args:
            lines: Sentences; line ends are removed.
            chunk_size: Number of lines read, sorted by length and translated
                at a time.
            target_language: as in `translate`.

        Yields:
            One translation per line, in the same order.

        Raises:
            TypeError: if `lines` is a string.
            ValueError: if `chunk_size` is not an integer, or below 1.
        """
        refuse_one_sentence(lines, "lines")
        chunk_size = as_integer("chunk_size", chunk_size, 1)
        lines = iter(lines)
        while chunk := [
            line.rstrip("\r\n") for line in islice(lines, chunk_size)
        ]:
            yield from self.translate(chunk, target_language=target_language)

    @overload
    def translate_nbest(
        self,
        texts: str,
        num_hypotheses: int,
        on_progress: Callable[[int], None] | None = None,
        distinct: bool | None = None,
        finished: list[list[list[Hypothesis]]] | None = None,
        target_language: str | None = None,
        *,
        prefixes: str | None = None,
        constraints: Iterable[str] | None = None,
        max_lengths: int | None = None,
    ) -> list[Hypothesis]: ...

    @overload
    def translate_nbest(
        self,
        texts: Iterable[str],
        num_hypotheses: int,
        on_progress: Callable[[int], None] | None = None,
        distinct: bool | None = None,
        finished: list[list[list[Hypothesis]]] | None = None,
        target_language: str | None = None,
        *,
        prefixes: Iterable[str] | None = None,
        constraints: Iterable[Iterable[str]] | None = None,
        max_lengths: Iterable[int] | None = None,
    ) -> list[list[Hypothesis]]: ...

    def translate_nbest(
        self,
        texts,
        num_hypotheses,
        on_progress=None,
        distinct=None,
        finished=None,
        target_language=None,
        *,
        prefixes=None,
        constraints=None,
        max_lengths=None,
    ):
        """Returns several translations of each sentence, best first.

        The hypotheses of a search differ in their tokens. Where two of them
        have the same text, divided into other tokens, the one with the worse
        score is left out, and the next best hypothesis of the beams takes its
        place. There are fewer than `num_hypotheses` if the beams have not found
        that many texts.

        Args:
            texts: Sentences, or one sentence as a string; an empty one has one,
                empty translation.
            num_hypotheses: Number of translations. If it is greater than
                `num_beams`, the search uses that many beams, or the next number
                that `num_groups` divides.
            on_progress: called with the number of sentences just translated.
            distinct: whether a text occurs only once among the translations of
                a sentence. By default it does, except with `sampling`, where
                repetitions show how probable a text is.
            finished: list to which the results of each batch are added as soon
                as it is searched. The same call, with the list that a call
                which was broken off has left, and the `search_state` from
                before it, searches the other batches and has the same results.
                Defaults to none.
            target_language: as in `translate`.
            prefixes: as in `translate`.
            constraints: as in `translate`.
            max_lengths: as in `translate`.

        Returns:
            For each sentence a list of at most `num_hypotheses` translations;
            of a string, its list alone.

        Raises:
            ValueError: if `num_hypotheses` is not an integer, or below 1, or
                `finished` is of other sentences.
            TypeError: if a sentence is not a string.
            UserError: if the model computes NaN.
        """
        num_hypotheses = as_integer("num_hypotheses", num_hypotheses, 1)
        options = self.options.for_hypotheses(num_hypotheses)
        sentences, is_one = as_sentences(texts)
        tag = self._tag_for(target_language)
        given = {
            "prefixes": prefixes,
            "constraints": constraints,
            "max_lengths": max_lengths,
        }
        if is_one:
            given = {
                name: value if value is None else [value]
                for name, value in given.items()
            }
        rows = given_rows(
            self.target_tokenizer,
            len(sentences),
            self.model.max_length,
            tags=self._target_tags(sentences, tag),
            sources=None if self.shortlists is None else sentences,
            **given,
        )
        if distinct is None:
            distinct = not options.sampling
        asked = Asked(num_hypotheses, distinct)
        nbest = self._nbest(
            sentences,
            asked,
            options,
            on_progress,
            rows,
            finished,
            tag,
        )
        return nbest[0] if is_one else nbest

    @overload
    def score(
        self,
        sources: str,
        targets: Target,
        on_progress: Callable[[int], None] | None = None,
        target_language: str | None = None,
    ) -> TargetScore: ...

    @overload
    def score(
        self,
        sources: Iterable[str],
        targets: Iterable[Target],
        on_progress: Callable[[int], None] | None = None,
        target_language: str | None = None,
    ) -> list[TargetScore]: ...

    def score(self, sources, targets, on_progress=None, target_language=None):
        """Returns the log-probability of each token of given translations.

        A translation that is a text is divided into tokens by the target
        tokenizer. A search or a draw may have made the text of other tokens,
        with another probability: give its `ids` for the `log_prob` of a
        `Hypothesis`. A tag on the target side is the beginning of each target
        that is a text, and ids have it.

        Args:
            sources: Sentences, or one sentence as a string.
            targets: Their translations, or one translation: strings, or the ids
                of their tokens, which end with 3, such as `Hypothesis.ids`.
            on_progress: called with the number of pairs just scored.
            target_language: as in `translate`.

        Returns:
            One `TargetScore` per pair, in the same order; of two strings, the
            `TargetScore` alone.

        Raises:
            TypeError: if a sentence is not a string, or only one of `sources`
                and `targets` is a single one.
            UserError: if the numbers of texts differ, a target is longer than
                the model's position range, ids are not in the vocabulary, or
                the model computes NaN.

        Example:
        >>> (drawn,) = translator.translate_nbest("a little dog", 1)
        >>> score = translator.score("a little dog", drawn.ids)
        >>> abs(score.total - drawn.log_prob) < 1e-4
        True
        """
        sources, targets, is_one = as_pairs(sources, targets)
        tag = self._tag_for(target_language)
        rows, truncated = self._source_rows(sources, tag)
        targets = [
            tagged_text(target, tag) if isinstance(target, str) else target
            for target, tag in zip(
                targets, self._target_tags(sources, tag), strict=True
            )
        ]
        labels = label_rows(
            self.target_tokenizer, targets, self.model.max_length
        )
        scores = self._decoder.scores_of(rows, labels, on_progress)
        for number in truncated:
            scores[number] = replace(scores[number], source_truncated=True)
        return scores[0] if is_one else scores

    def _nbest(self, texts, asked, options, on_progress, given, finished, tag):
        rows, truncated = self._source_rows(texts, tag)
        empty = Hypothesis("", 0.0, 0.0, (END_ID,))
        nbest = [
            [replace(empty, constraints_met=not given.has_text(number))]
            for number in range(len(texts))
        ]
        # A row with only the end id is an empty sentence.
        numbers = [n for n, row in enumerate(rows) if len(row) > 1]
        if on_progress is not None and len(numbers) < len(texts):
            on_progress(len(texts) - len(numbers))
        found = self._decoder.translations_of(
            [rows[number] for number in numbers],
            options,
            asked,
            given.of(numbers),
            on_progress,
            finished,
        )
        for number, hypotheses in zip(numbers, found, strict=True):
            nbest[number] = hypotheses
        for number in truncated:
            nbest[number] = [
                replace(hypothesis, source_truncated=True)
                for hypothesis in nbest[number]
            ]
        return nbest

    def _tag_for(self, target_language):
        """Returns the tag for a call."""
        if target_language is None:
            return self.tag
        return self._tag_of(target_language)

    def _tag_of(self, target_language):
        tag = self.directions.tag_of(target_language)
        if tag is not None:
            self._check_tag(tag)
        return tag

    def _target_tags(self, texts, tag):
        if self.tag_side == "source":
            return [None] * len(texts)
        return self._taken_off(texts, tag)[1]

    def _taken_off(self, texts, tag):
        """Returns sources without tags, and the tags of their targets."""
        texts, tags = list(texts), [tag] * len(texts)
        if tag is None:
            texts, tags = split_tags(texts, self.training_tags)
        if any(tags):
            encoded = self.source_tokenizer.encode(texts)
            tags = [
                tag if len(ids) else None
                for tag, ids in zip(tags, encoded, strict=True)
            ]
        return texts, tags

    def _check_tag(self, tag):
        check_tag(tag)
        tokenizer = getattr(self, f"{self.tag_side}_tokenizer")
        check_has_tag(
            tokenizer,
            tag,
            "Give one that stands before the training text, or none.",
            self.tag_side,
        )
        # The tag, a token of the sentence, and the end.
        least = len(tokenizer.encode([tag])[0]) + 2
        if self.tag_side == "source" and self.max_source_length < least:
            raise ValueError(
                f"`max_source_length` must be at least {least} with a tag, so "
                "that it is never cut. Received: "
                f"max_source_length={self.max_source_length}"
            )

    def _source_rows(self, texts, tag):
        self._tag_notice.look_at(texts, tag)
        if self.tag_side == "target":
            texts, tag = self._taken_off(texts, tag)[0], None
        rows, truncated = source_rows(
            self.source_tokenizer,
            texts,
            self.max_source_length,
            tag,
            () if self.tag_side == "target" else self.training_tags,
        )
        self.num_truncated += len(truncated)
        if truncated and self.on_truncated is not None:
            self.on_truncated(truncated)
        elif truncated:
            print_truncated(truncated, texts, self.max_source_length)
        return rows, truncated


def join_translators(
    translators: Sequence[Translator],
    weights: Sequence[float] | None = None,
    mean: str = "arithmetic",
) -> Translator:
    """Makes a translator with the mean of several models' probabilities.

    See `models.Ensemble`. Everything else, such as the search options, is that
    of the first translator.

    Args:
        translators: Translators with the same tokenizers.
        weights: Positive numbers, one for each model, of which only the ratios
            count. Defaults to equal ones.
        mean: `"arithmetic"` or `"geometric"`.

    Returns:
        The translator.

    Raises:
        UserError: if a tokenizer differs from that of the first translator, or
            the number of weights is wrong or one is not positive.
        ValueError: if there is no translator, or `mean` is unknown.

    Example:
    >>> runs = ["runs/demo", "runs/demo"]
    >>> joined = join_translators([Translator.load(run) for run in runs])
    >>> len(joined.model.models)
    2
    """
    if not translators:
        raise ValueError("`translators` must have at least one translator.")
    first = translators[0]
    for number, other in enumerate(translators, start=1):
        for side in ("source", "target"):
            tokenizers = [
                getattr(t, f"{side}_tokenizer").sha256 for t in (first, other)
            ]
            if len(set(tokenizers)) > 1:
                raise UserError(
                    "Models that translate together must have the same "
                    f"tokenizers. The {side} tokenizer of model {number} is "
                    "not that of model 1. Train both on the same prepared data."
                )
    for number, other in enumerate(translators, start=1):
        if other.tag_side != first.tag_side:
            raise UserError(
                "Models that translate together must have their tags on the "
                f"same side. Received: model 1 with tag_side={first.tag_side}, "
                f"model {number} with {other.tag_side}."
            )
    if weights is not None and (
        len(weights) != len(translators) or min(weights) <= 0
    ):
        raise UserError(
            f"The weights of an ensemble must be {len(translators)} positive "
            f"numbers, one for each model. Received: {list(weights)}"
        )
    joined = first.replaced(
        model=Ensemble([t.model for t in translators], weights, mean),
        max_source_length=min(t.max_source_length for t in translators),
    )
    known = [t.context for t in translators if t.context is not None]
    joined.context = min(known, default=None)
    return joined


def _check_limits(decoding):
    """Raises a `ValueError` if limits that a file names are too small."""
    least = {
        "batch_size": 1,
        "batch_tokens": 1,
        "max_source_length": _LEAST_SOURCE_LENGTH,
    }
    for name, minimum in least.items():
        if decoding.get(name) is not None:
            as_integer(name, decoding[name], minimum)


def _check_vocabularies(model, source_tokenizer, target_tokenizer, shortlists):
    """Refuses tokenizers and shortlists with other vocabularies."""
    if shortlists is not None:
        found = (len(shortlists.by_source), shortlists.target_vocabulary_size)
        sizes = (model.source_vocabulary_size, model.target_vocabulary_size)
        if found != sizes:
            raise UserError(
                "Shortlists must have the vocabularies of the model. Received: "
                f"shortlists of {found[0]} source and {found[1]} target tokens "
                f"for a model of {sizes[0]} and {sizes[1]}. Prepare them with "
                "the model's tokenizers."
            )
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
