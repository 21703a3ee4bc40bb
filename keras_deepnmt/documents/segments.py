"""Translates texts that have markup, or several sentences each."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keras_deepnmt.analysis.word_alignments import align_words
from keras_deepnmt.data.kept_items import TAG_KINDS, find_kept_items
from keras_deepnmt.data.marked_text import MarkedText
from keras_deepnmt.data.mask_symbols import mask_symbols
from keras_deepnmt.data.tag_tree import TagNode, tag_tree
from keras_deepnmt.data.tags import own_tag, tagged_text, untagged_text
from keras_deepnmt.documents.placement import (
    AlignedSentence,
    insert_items,
    link_atoms,
    place_tags,
)
from keras_deepnmt.documents.reading import (
    Reading,
    read_part,
    with_stand_ins,
)
from keras_deepnmt.documents.sentences import SentenceSplitter
from keras_deepnmt.errors import UserError
from keras_deepnmt.translator.requests import as_sentences
from keras_deepnmt.translator.results import Hypothesis

if TYPE_CHECKING:
    from keras_deepnmt.translator import Translator

# A name to the rules that split sentences.
_STAND_IN = "Xxxxx"


@dataclass(frozen=True)
class TranslatedSegment:
    """A translated text.

    Attributes:
        text: The translation.
        hypotheses: The translation of each sentence as the model wrote it.
    """

    text: str
    hypotheses: tuple[Hypothesis, ...]


class Segments:
    """Texts in the form that a translator reads, and the way back.

    What is in between is a call of the translator for all their sentences:

    ```py
    segments = Segments(translator, texts)
    nbest = translator.translate_nbest(segments.reads, 1, **segments.given)
    translated = segments.finish([hypotheses[0] for hypotheses in nbest])
    ```

    `translate_segments` does this.

    Args:
        translator: Translator.
        texts: Lines, as many sentences each as `splitter` finds. A tag of the
            translator's `training_tags` at the beginning of a line belongs to
            all of its sentences, and is no markup.
        keep_markup: Whether tags, placeholders, addresses, names of files and
            long numbers are kept, see `data.kept_items`.
        splitter: Splits a text into sentences. Defaults to one sentence a text.
        layer: Decoder block of the alignments, as in `analysis.align_words`.
        first: The number of the first text in error messages.
        target_language: as in `Translator.translate`, for all texts.
        **given: as in `Translator.translate`, for each text.

    Attributes:
        reads: What the translator reads: a sentence each.
        segment_numbers: For each of them the number of its text, from 0.
        given: The requirements on their translations.
        num_without_symbols: How many of them `finish` translated again without
            symbols.

    Raises:
        UserError: if what is given has items to keep, or anything is given for
            texts that are split.

    Example:
    >>> Segments(translator, ["Hallo <b>Welt</b>!"]).reads
    ['Hallo Welt!']
    """

    def __init__(
        self,
        translator: "Translator",
        texts: Sequence[str],
        keep_markup: bool = True,
        splitter: SentenceSplitter | None = None,
        layer: int | None = None,
        first: int = 1,
        target_language: str | None = None,
        **given: Any,
    ):
        self.given = {
            name: list(values)
            for name, values in given.items()
            if values is not None
        }
        if splitter is not None and self.given:
            raise UserError(
                f"{', '.join(f'`{name}`' for name in self.given)} cannot be "
                "given for texts that are split into sentences. Split them "
                "before, and give one value for each sentence."
            )
        if keep_markup:
            _refuse_items(self.given, first)
        self.num_without_symbols = 0
        self._translator = translator
        self._target_language = target_language
        self._layer = layer
        self._symbols = mask_symbols(
            translator.source_tokenizer, translator.target_tokenizer
        )
        known = translator.training_tags
        self._tags = [own_tag(text, known) for text in texts]
        texts = [untagged_text(text, known) for text in texts]
        self._marked = [
            MarkedText.of(text) if keep_markup else MarkedText(text, (), ())
            for text in texts
        ]
        self._keep_markup = keep_markup
        self._sentences = [
            sentence
            for number, marked in enumerate(self._marked)
            for sentence in _sentences(number, marked, splitter, self._symbols)
        ]

    @property
    def reads(self) -> list[str]:
        return [*map(self._read, self._sentences)]

    @property
    def segment_numbers(self) -> list[int]:
        return [sentence.segment for sentence in self._sentences]

    def finish(
        self,
        hypotheses: Sequence[Hypothesis],
        revise: Callable[
            [list[str], list[Hypothesis]], list[Hypothesis]
        ] = lambda reads, hypotheses: hypotheses,
    ) -> list[TranslatedSegment]:
        """Puts the translations of the texts together.

        A sentence whose translation lacks a symbol, or has it twice, is
        translated again without symbols.

        Args:
            hypotheses: A translation of each of `reads`.
            revise: Returns other translations for what was read again, and its
                translations. Defaults to these.

        Returns:
            The translation of each text. It has each item as often as the text,
            and no other, and its pairs of tags are nested as in the text.
        """
        hypotheses = self._with_all_symbols(list(hypotheses), revise)
        groups: list[list[int]] = [[] for _ in self._marked]
        for place, sentence in enumerate(self._sentences):
            groups[sentence.segment].append(place)
        clean = [
            self._clean(sentence, hypothesis.text)
            for sentence, hypothesis in zip(
                self._sentences, hypotheses, strict=True
            )
        ]
        links = self._links(clean)
        translated = []
        for marked, places in zip(self._marked, groups, strict=True):
            found = tuple(hypotheses[place] for place in places)
            if marked.items:
                text = self._with_items(marked, places, clean, links)
            else:
                text = "".join(
                    self._sentences[place].separator + clean[place]
                    for place in places
                )
            translated.append(TranslatedSegment(text, found))
        return translated

    def _read(self, sentence):
        """Returns what the model reads, with the tag that its line had."""
        text = sentence.reading.text
        return tagged_text(
            text, self._tags[sentence.segment] if text.strip() else None
        )

    def _with_all_symbols(self, hypotheses, revise):
        """Translates sentences that lack a symbol again, without symbols.

        Required phrases would bring the symbols, but take the place of words.
        """
        places = self._incomplete(hypotheses)
        self.num_without_symbols = len(places)
        if not places:
            return hypotheses
        for place in places:
            sentence = self._sentences[place]
            sentence.reading = read_part(
                self._marked[sentence.segment], sentence.begin, sentence.end
            )
        reads = [self._read(self._sentences[place]) for place in places]
        given = {
            name: [values[place] for place in places]
            for name, values in self.given.items()
        }
        with _silent(self._translator):
            nbest = self._translator.translate_nbest(
                reads, 1, target_language=self._target_language, **given
            )
        found = revise(reads, [one[0] for one in nbest])
        for place, hypothesis in zip(places, found, strict=True):
            hypotheses[place] = hypothesis
        return hypotheses

    def _incomplete(self, hypotheses):
        """Finds the sentences without each of their symbols exactly once."""
        return [
            place
            for place, sentence in enumerate(self._sentences)
            if any(
                hypotheses[place].text.count(symbol) != 1
                for symbol in sentence.reading.symbols
            )
        ]

    def _clean(self, sentence, text):
        """Leaves out what the model invented."""
        if not self._keep_markup:
            return text
        if self._marked[sentence.segment].items:
            return _without_items(text, sentence.reading.symbols)
        # Other items may be right: numbers that the source has in words.
        while symbols := [one for one in self._symbols if one in text]:
            text = _without(text, symbols)
        return text

    def _links(self, clean):
        """Aligns the words of the sentences that need it."""
        by_tag: dict[str | None, list[int]] = {}
        for place, sentence in enumerate(self._sentences):
            tree = self._marked[sentence.segment].tree
            if tree or sentence.reading.removed:
                tag = self._tags[sentence.segment]
                by_tag.setdefault(tag, []).append(place)
        translator = self._translator
        if self._target_language is not None:
            tag = translator.directions.tag_of(self._target_language)
            translator = translator.replaced(tag=tag)
        links = {}
        for tag, places in by_tag.items():
            found = align_words(
                translator if tag is None else translator.replaced(tag=tag),
                [self._sentences[place].reading.text for place in places],
                [clean[place] for place in places],
                self._layer,
            )
            links.update(zip(places, found, strict=True))
        return links

    def _with_items(self, marked, places, clean, links):
        aligned, space = [], ""
        for place in places:
            sentence = self._sentences[place]
            source = sentence.reading.atoms()
            target = sentence.reading.target_atoms(clean[place])
            one = AlignedSentence(
                source,
                target,
                link_atoms(source, target, links.get(place, ())),
            )
            insert_items(marked.text, one)
            space += sentence.separator
            if one.target:
                one.target[0].space = space
                space = ""
            aligned.append(one)
        text = place_tags(marked.text, marked.tree, aligned)
        if _is_kept(marked, text):
            return text
        text = " ".join(clean[place] for place in places)
        return _at_the_end(marked, _without_items(text))


def translate_segments(
    translator: "Translator",
    texts: str | Iterable[str],
    *,
    keep_markup: bool = True,
    splitter: SentenceSplitter | None = None,
    on_progress: Callable[[int], None] | None = None,
    layer: int | None = None,
    target_language: str | None = None,
    **given: Any,
):
    """Translates texts that have markup, or several sentences each.

    Inline tags, placeholders, addresses, names of files and long numbers are in
    the translation exactly as often as in the text, and pairs of tags are
    nested as there. Texts without them are translated as by
    `Translator.translate`. A model whose tokenizers have symbols
    (`PrepareOptions.mask_symbols`) reads a symbol where a word-like item is.
    Tags, and items of other models, are put back by the alignment of words.

    Args:
        translator: Translator.
        texts: Texts, or one text as a string.
        keep_markup: Whether the items are kept. `False` is for text that has
            several sentences, but no markup.
        splitter: Splits a text into sentences, which are translated together
            and joined by the white space that is between them. Defaults to one
            sentence a text.
        on_progress: called with the number of sentences just translated.
        layer: Decoder block of the alignments, as in `analysis.align_words`.
        target_language: as in `Translator.translate`.
        **given: as in `Translator.translate`.

    Returns:
        One translation per text, in the same order; of a string, the
        translation alone.

    Raises:
        UserError: if what is given has items to keep, or anything is given for
            texts that are split.

    Example:
    >>> translate_segments(translator, "ein <b>kleiner</b> Hund")
    'a <b>little</b> dog'
    """
    texts, is_one = as_sentences(texts)
    if is_one:
        given = {
            name: value if value is None else [value]
            for name, value in given.items()
        }
    segments = Segments(
        *(translator, texts, keep_markup, splitter, layer),
        target_language=target_language,
        **given,
    )
    nbest = translator.translate_nbest(
        *(segments.reads, 1, on_progress),
        target_language=target_language,
        **segments.given,
    )
    translated = segments.finish([hypotheses[0] for hypotheses in nbest])
    found = [segment.text for segment in translated]
    return found[0] if is_one else found


@dataclass
class _Sentence:
    segment: int
    begin: int
    end: int
    separator: str
    reading: Reading


def _sentences(number, marked, splitter, symbols):
    """Yields the sentences of a text; one without any letters is one."""
    text = marked.text
    spans, separators = [(0, len(text))], [""]
    if splitter is not None:
        whole = with_stand_ins(marked, _STAND_IN)
        found = splitter.spans(whole.text)
        if len(found) > 1:
            ends = [0, *(end for _, end in found)]
            separators = [
                whole.text[end:begin]
                for end, (begin, _) in zip(ends, found, strict=False)
            ]
            separators[0] = ""
            spans = [
                (whole.places[begin], whole.places[end - 1] + 1)
                for begin, end in found
            ]
    for (begin, end), separator in zip(spans, separators, strict=True):
        reading = read_part(marked, begin, end, symbols)
        yield _Sentence(number, begin, end, separator, reading)


def _refuse_items(given, first):
    for name in ("prefixes", "constraints"):
        for number, value in enumerate(given.get(name, ()), first):
            phrases = [value] if isinstance(value, str) else value
            for phrase in phrases:
                if items := find_kept_items(phrase):
                    raise UserError(
                        f"`{name}` must have no markup where markup is kept. "
                        f"Received: {items[0].text!r} for text {number}. It "
                        "is put into the translation if the text has it."
                    )


@contextmanager
def _silent(translator):
    """Truncated sources were reported when they were read first."""
    before, count = translator.on_truncated, translator.num_truncated
    translator.on_truncated = lambda places: None
    try:
        yield
    finally:
        translator.on_truncated = before
        translator.num_truncated = count


def _without(text, parts):
    for part in parts:
        before, _, after = text.partition(part)
        if before.endswith(" ") or not before:
            after = after.removeprefix(" ")
        text = (before + after).rstrip(" ") if not after else before + after
    return text


def _without_items(text, others=()):
    """Leaves out all items of a text but for others."""
    while invented := [
        item.text for item in find_kept_items(text) if item.text not in others
    ]:
        text = _without(text, invented)
    return text


def _is_kept(marked: MarkedText, translation: str) -> bool:
    """Whether a translation has the items of a text, nested as there."""
    found = find_kept_items(translation)
    if _counts(found) != _counts(marked.items):
        return False
    tags = [item for item in found if item.kind in TAG_KINDS]
    return _shape(tag_tree(tags)) == _shape(marked.tree)


def _counts(items):
    return Counter(item.text for item in items)


def _shape(tree: Iterable[TagNode]):
    """The pairs in a tree and what they enclose, whatever their order."""
    return sorted(
        (
            node.opening.text,
            node.closing.text if node.closing else "",
            _shape(node.children),
        )
        for node in tree
    )


def _at_the_end(marked, text):
    """Puts all items after a translation in which they cannot stand."""
    words = [item.text for item in marked.words()]
    tags = [item.text for item in marked.items if item.kind in TAG_KINDS]
    return ", ".join([text, *words]).removeprefix(", ") + "".join(tags)
