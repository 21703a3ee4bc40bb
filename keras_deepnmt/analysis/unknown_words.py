"""Replaces the unknown tokens of translations by words."""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from keras_deepnmt.analysis.word_alignments import align_tokens, tag_starts
from keras_deepnmt.data.corpora import LineReader, decode_line
from keras_deepnmt.data.tags import without_beginning
from keras_deepnmt.data.tokenizers import WORD_MARK
from keras_deepnmt.data.word_units import lacks_spaces, word_spans
from keras_deepnmt.errors import UserError
from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID, UNKNOWN_ID
from keras_deepnmt.translator.given_text import as_characters
from keras_deepnmt.translator.results import Hypothesis

if TYPE_CHECKING:
    from keras_deepnmt.translator import Translator


def replace_unknown(
    translator: "Translator",
    sources: Sequence[str],
    hypotheses: Sequence[Hypothesis],
    table: Mapping[str, str] | None = None,
    layer: int | None = None,
) -> list[Hypothesis]:
    """Replaces unknown tokens by the source words that they are aligned with.

    An unknown token stands for characters that the vocabulary lacks, and is
    printed as `⁇`. It is aligned as in `align_words` (Luong et al., 2015). If
    the table has the source word, its entry replaces the whole word of the
    translation. Otherwise the source word itself replaces it; but if the word
    of the translation has known letters too, and the source word unknown
    characters, only these characters replace the unknown token. Punctuation
    around a word stays. In scripts without spaces between words the source word
    is the longest one of the table that has the token, or otherwise the token,
    and only the unknown token is replaced. The given text of a translation
    (`Hypothesis.given`) stays: no unknown token of it is replaced, and of a
    word that has a part of it only the other unknown tokens.

    Args:
        translator: Translator.
        sources: Sentences.
        hypotheses: A translation of each, such as one of
            `Translator.translate_nbest`.
        table: Target words by source word. Defaults to none.
        layer: Decoder block of the alignments, from 1. Defaults to that of
            `align_words`.

    Returns:
        The translations; only the `text` of those with unknown tokens changes.
        Unknown tokens stay where a translation is longer than the model's
        position range. Of a sentence that is too long the beginning counts, as
        when it was translated.

    Raises:
        ValueError: if the lists differ in length, or a model has no such
            block or no attention to the source.

    Example:
    >>> nbest = translator.translate_nbest(["Ein Hund in Łódź."], 1)
    >>> nbest[0][0].text
    'A dog in ⁇ .'
    >>> first = [hypotheses[0] for hypotheses in nbest]
    >>> replace_unknown(translator, ["Ein Hund in Łódź."], first)[0].text
    'A dog in Łódź.'

    Reference:
        - [Luong et al., 2015](https://aclanthology.org/P15-1002/).
    """
    if len(sources) != len(hypotheses):
        raise ValueError(
            "`sources` and `hypotheses` must have the same length. Received: "
            f"{len(sources)} and {len(hypotheses)}"
        )
    replaced = list(hypotheses)
    places = [n for n, h in enumerate(hypotheses) if _unknown(h.ids, h.given)]
    if not places:
        return replaced
    longest = translator.max_source_length - 1
    given = [sources[place] for place in places]
    texts, tags = translator.tagged(given), translator.target_tags(given)
    source_rows = translator.source_tokenizer.encode(texts)
    target_rows = [_without_special(hypotheses[place].ids) for place in places]
    rows = [
        (source[:longest], target)
        for source, target in zip(source_rows, target_rows, strict=True)
    ]
    aligned_rows = align_tokens(translator, given, rows, layer)
    for place, text, tag, pair, aligned in zip(
        places, texts, tags, rows, aligned_rows, strict=True
    ):
        if aligned:
            source = _Source(
                translator.source_tokenizer,
                text,
                table or {},
                tag_starts(translator, tag)[0],
            )
            text = _replaced_text(
                source,
                translator.target_tokenizer,
                pair[1],
                hypotheses[place].given,
                aligned,
                table or {},
            )
            replaced[place] = replace(
                hypotheses[place], text=without_beginning(text, tag)
            )
    return replaced


def read_word_table(file: str | Path) -> dict[str, str]:
    r"""Reads a table of words for `replace_unknown`.

    Args:
        file: Text file, plain or compressed, of lines with a source word, a tab
            and a target word. Of several lines with one source word, the first
            counts.

    Returns:
        The target words by source word.

    Raises:
        UserError: if the file is missing or not UTF-8, or a line has another
            form.

    Example:
    >>> size = Path("words.tsv").write_text("Köln\tCologne\n")
    >>> read_word_table("words.tsv")
    {'Köln': 'Cologne'}
    """
    table: dict[str, str] = {}
    for number, line in enumerate(LineReader(file), start=1):
        words = decode_line(line, Path(file), number).split("\t")
        if len(words) != 2 or not all(word.strip() for word in words):
            raise UserError(
                f"{file}, line {number}: must be a source word, a tab and a "
                f"target word. Received: {line.decode()!r}"
            )
        source, target = (word.strip() for word in words)
        table.setdefault(source, target)
    return table


class _Source:
    """The words of a source sentence and its unknown tokens.

    The words begin after `start` characters, those of a tag.
    """

    def __init__(self, tokenizer, text, table, start):
        (ids,) = tokenizer.encode([text])
        self._normalize = tokenizer.normalization.normalize
        self._text = text
        self._table = table
        self._longest = max(map(len, table), default=0)
        self.surfaces = tokenizer.surfaces(text)
        self.is_unknown = [number == UNKNOWN_ID for number in ids]
        separator = tokenizer.separator
        (pieces,) = tokenizer.encode_as_pieces([text])
        self.goes_on = [
            bool(separator) and piece.endswith(separator) for piece in pieces
        ]
        self._spans = tokenizer.token_spans(text)
        self._words = [
            (a + start, b + start) for a, b in word_spans(text[start:])
        ]
        self._numbers = tokenizer.token_words(text, start)

    def visible(self, token):
        """The token itself, or the next one if it is only a space."""
        after = range(token, len(self.surfaces))
        return next((t for t in after if self.surfaces[t]), token)

    def word(self, token):
        """The word with a token.

        In scripts without spaces it is the longest word of the table that has
        the token, or else the token alone.
        """
        begin, end = self._words[self._numbers[token][0]]
        # With the characters beside it, which may be such letters.
        if not lacks_spaces(self._text[max(begin - 1, 0) : end + 1]):
            return self._text[begin:end]
        return self._entry(token) or self.surfaces[token]

    def _entry(self, token):
        """The longest word of the table that has this token."""
        surface = self.surfaces[token]
        start = self._text.index(surface, self._spans[token][0])
        end = start + len(surface)
        # A token has the dropped characters after it, such as U+200B.
        while end > start + 1 and not self._normalize(self._text[end - 1]):
            end -= 1
        words = (
            self._text[first:last]
            for first in range(max(end - self._longest, 0), start + 1)
            for last in range(
                end, min(first + self._longest, len(self._text)) + 1
            )
        )
        return max((w for w in words if w in self._table), key=len, default="")


def _replaced_text(source, tokenizer, ids, given, aligned, table):
    known = tokenizer.pieces(ids)
    words = tokenizer.word_numbers(ids)
    tokens = {target: token for token, target in aligned}
    kept = {place: piece for place, piece in given if ids[place] == UNKNOWN_ID}
    pieces = [kept.get(place, piece) for place, piece in enumerate(known)]
    is_given = {place for place, _ in given}
    unknown = _unknown(ids, given)
    for number in sorted({words[t] for t in unknown}):
        places = [t for t, word in enumerate(words) if word == number]
        _replace_in_word(
            source,
            tokenizer,
            pieces,
            places,
            [t for t in places if t in unknown],
            any(t in is_given for t in places),
            tokens,
            table,
        )
    parts = []
    for place, piece in enumerate(pieces):
        if tokenizer.separator and piece not in ("", known[place]):
            # Whatever stands for a token is a word of its own to the model.
            word = WORD_MARK + piece.removeprefix(WORD_MARK)
            parts.append(as_characters(word, place == 0))
        elif place in kept:
            parts.append(as_characters(piece, place == 0))
        elif piece:
            parts.append([piece])
    return tokenizer.decode_pieces([part for each in parts for part in each])


def _replace_in_word(
    source, tokenizer, pieces, places, unknown, has_given, tokens, table
):
    """Changes the pieces at the places of one word of the translation."""
    letters = "".join(pieces[t] for t in places if t not in unknown)
    for place in unknown:
        token = source.visible(tokens[place])
        surface, word = source.surfaces[token], source.word(token)
        bare = _without_marks(word) or word
        entry = table.get(word, table.get(bare))
        is_part = source.is_unknown[token] and (
            _has_letter(letters) or not _has_letter(surface)
        )
        # A piece that crosses a space belongs to another word, too.
        if tokenizer.crosses_spaces or lacks_spaces(letters):
            pieces[place] = entry or bare
        elif entry is None and is_part:
            goes_on = source.goes_on[token]
            pieces[place] = surface + tokenizer.separator * goes_on
        elif has_given:
            pieces[place] = entry or bare
        else:
            _replace_word(pieces, places, unknown, entry or bare)
            return


def _replace_word(pieces, places, unknown, word):
    """Replaces a word but for the punctuation around it."""
    core = [t for t in places if t in unknown or _has_letter(pieces[t])]
    first, last = core[0], core[-1]
    begin = WORD_MARK if pieces[first].startswith(WORD_MARK) else ""
    end = WORD_MARK if pieces[last].endswith(WORD_MARK) else ""
    for place in range(first, last + 1):
        pieces[place] = ""
    pieces[first] = f"{begin}{word}{end}"


def _unknown(ids, given):
    """The places of the unknown tokens that do not stand for given text."""
    kept = {place for place, _ in given}
    return [
        place
        for place, number in enumerate(ids)
        if number == UNKNOWN_ID and place not in kept
    ]


def _without_special(ids):
    special = (PADDING_ID, BEGIN_ID, END_ID)
    return [number for number in ids if number not in special]


def _has_letter(text):
    return any(letter.isalnum() for letter in text)


def _without_marks(word):
    """A word without the punctuation around it."""
    kept = [
        place
        for place, letter in enumerate(word)
        if not unicodedata.category(letter).startswith("P")
    ]
    return word[kept[0] : kept[-1] + 1] if kept else ""
