"""Turns requests to a translator into rows of ids.

A request has texts, and it may give the beginning, phrases and the maximum
length of each translation. Rows of sources and targets end with the end id.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from keras_deepnmt.data.context import mark_id, shorten_context, tag_length
from keras_deepnmt.data.tags import own_tag, tagged_text, tagged_texts
from keras_deepnmt.data.terms import marked_translations
from keras_deepnmt.errors import UserError
from keras_deepnmt.masks import END_ID, UNKNOWN_ID
from keras_deepnmt.translator.batches import (
    padded_batch,
    padded_length,
    padded_phrases,
)
from keras_deepnmt.translator.given_text import (
    GivenTokens,
    given_tokens,
    rows_to_find,
)
from keras_deepnmt.validation import LARGEST

# A translation, or the ids of its tokens with the end id.
Target = str | Sequence[int]


def as_sentences(
    texts: str | Iterable[str], name: str = "texts"
) -> tuple[list[str], bool]:
    """Returns a list of sentences, and whether `texts` is a single sentence.

    Anything but strings raises a `TypeError`, which calls the argument `name`.

    Example:
    >>> as_sentences("a dog"), as_sentences(["a dog"])
    ((['a dog'], True), (['a dog'], False))
    """
    if isinstance(texts, str):
        return [texts], True
    is_iterable = isinstance(texts, Iterable) and not isinstance(texts, bytes)
    sentences = list(texts) if is_iterable else [texts]
    for sentence in sentences:
        if not isinstance(sentence, str):
            raise TypeError(
                f"`{name}` must be a string or a list of strings. Received: "
                f"{sentence!r} of type {type(sentence).__name__}"
            )
    return sentences, False


def as_pairs(
    sources: str | Iterable[str], targets: Target | Iterable[Target]
) -> tuple[list[str], list[Target], bool]:
    """Returns sources, targets, and whether they are a single pair.

    A target is a string, or its ids.
    """
    sources, is_one = as_sentences(sources, "sources")
    is_one_target = isinstance(targets, str) or _are_ids(targets)
    if is_one_target:
        targets = [targets]
    else:
        targets = list(targets) if isinstance(targets, Iterable) else [targets]
        as_sentences([t for t in targets if not _are_ids(t)], "targets")
    if is_one != is_one_target:
        raise TypeError(
            "`sources` and `targets` must be two strings or two lists of "
            "strings. Received: a string and a list"
        )
    if len(sources) != len(targets):
        raise UserError(
            "`sources` and `targets` must have the same length. "
            f"Received: {len(sources)} sources, {len(targets)} targets"
        )
    return sources, targets, is_one


def refuse_one_sentence(texts, name: str) -> None:
    """Refuses a string where a list of sentences is needed.

    Its letters would be taken for sentences. `name` is that of the argument.
    """
    if isinstance(texts, str | bytes):
        raise TypeError(
            f"`{name}` must hold sentences. Received: {name}={texts!r}. "
            f"Pass [{texts!r}] for a single one."
        )


def source_rows(
    tokenizer,
    texts: Sequence[str],
    max_length: int,
    tag: str | None = None,
    known_tags: Sequence[str] = (),
) -> tuple[list[list[int]], list[int]]:
    """Turns sources into rows of at most `max_length` ids, the end included.

    A `tag` stands before each source that is not empty, and one of the
    `known_tags` before nothing is an empty source. A context before a sentence
    is shortened first, see `data.context`; the tag stays, and so does one of
    the `known_tags` that a text begins with. The indices of the rows that were
    truncated are also returned.
    """
    encoded = tokenizer.encode(tagged_texts(tokenizer, texts, tag))
    # What follows a tag may be characters that a tokenizer leaves out.
    alone = {tuple(ids) for ids in tokenizer.encode(list(known_tags))}
    encoded = [ids[:0] if tuple(ids) in alone else ids for ids in encoded]
    mark = mark_id(tokenizer)
    if mark is not None:
        tags = [tag or own_tag(text, known_tags) for text in texts]
        lengths = {one: tag_length(tokenizer, one) for one in set(tags)}
        encoded = [
            shorten_context(ids, max_length - 1, mark, lengths[one])
            for ids, one in zip(encoded, tags, strict=True)
        ]
    truncated = [n for n, ids in enumerate(encoded) if len(ids) >= max_length]
    rows = [[*ids[: max_length - 1].tolist(), END_ID] for ids in encoded]
    return rows, truncated


def print_truncated(
    truncated: Sequence[int], texts: Sequence[str], max_length: int
) -> None:
    """Warns on standard error of the sources that `source_rows` truncated."""
    print(
        f"Warning: {len(truncated)} of {len(texts)} sources have more than "
        f"{max_length - 1} tokens; the rest of them is ignored.",
        file=sys.stderr,
    )


def label_rows(
    tokenizer,
    targets: Sequence[Target],
    max_length: int | None,
    place: str = "`targets`",
    first: int = 1,
) -> list[list[int]]:
    """Turns targets into rows of at most `max_length` ids, the end included.

    `None` is no limit; a longer target is refused. An error names the `place`
    of the targets, an argument or a file, and the line, counted from `first`.
    Targets may be such rows.
    """
    texts = [target for target in targets if isinstance(target, str)]
    encoded = iter(tokenizer.encode(texts))
    rows = [
        [*next(encoded).tolist(), END_ID]
        if isinstance(target, str)
        else [int(number) for number in target]
        for target in targets
    ]
    size = tokenizer.vocabulary_size
    for line, row in enumerate(rows, start=first):
        words, end = row[:-1], row[-1]
        is_word = (n == UNKNOWN_ID or END_ID < n < size for n in words)
        if end != END_ID or not all(is_word):
            raise UserError(
                f"{place}, line {line}: ids must be tokens of the vocabulary, "
                f"{UNKNOWN_ID} or {END_ID + 1} to {size - 1}, and end with "
                f"{END_ID}. Received: {row}"
            )
    _check_room(rows, max_length, place, first)
    return rows


def prefix_rows(
    tokenizer,
    prefixes: Sequence[str],
    max_length: int | None,
    place: str = "`prefixes`",
    first: int = 1,
) -> list[GivenTokens]:
    """Segments the beginnings of translations, which leave room for the end id.

    Arguments and errors are those of `label_rows`.
    """
    found = given_tokens(tokenizer, prefixes)
    rows = [[*given.ids, END_ID] for given in found]
    _check_room(rows, max_length, place, first)
    return found


def _are_ids(target):
    """Whether a target is the ids of a translation."""
    is_row = isinstance(target, Sequence | np.ndarray) and len(target) > 0
    return is_row and all(
        isinstance(n, Integral) and not isinstance(n, bool) for n in target
    )


def _check_room(rows, max_length, place, first):
    for line, row in enumerate(rows, start=first):
        if max_length is not None and len(row) > max_length:
            raise UserError(
                f"{place}, line {line}: must have at most {max_length - 1} "
                "tokens, the model's position range. Received: "
                f"{len(row) - 1} tokens. Shorten it."
            )


@dataclass(frozen=True)
class GivenRows:
    """The given beginnings, phrases and maximum lengths of translations.

    Attributes:
        prefixes: tokens that each translation begins with.
        constraints: phrases that each translation contains.
        max_lengths: maximum length of each translation in tokens, the end token
            included; 0 where the options decide.
        tags: tag that each prefix begins with, which is not a part of the
            translation's text, or `None`.
        terms: phrases that each translation may contain, whatever a shortlist
            has: the translations of the terms in its source.
    """

    prefixes: Sequence[GivenTokens]
    constraints: Sequence[Sequence[GivenTokens]]
    max_lengths: Sequence[int]
    tags: Sequence[str | None]
    terms: Sequence[Sequence[GivenTokens]]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is required of any translation."""
        has_text = any(map(self.has_text, range(len(self.prefixes))))
        return not has_text and not any(self.max_lengths)

    def has_text(self, number: int) -> bool:
        """Whether a text is given for the translation of this number."""
        return bool(self.prefixes[number].ids or self.constraints[number])

    def of(self, numbers: Iterable[int]) -> "GivenRows":
        """Takes the rows of some sentences."""
        return GivenRows(
            *(
                [values[number] for number in numbers]
                for values in (
                    self.prefixes,
                    self.constraints,
                    self.max_lengths,
                    self.tags,
                    self.terms,
                )
            )
        )

    def least_room(self) -> list[int]:
        """Returns how many tokens each translation must have room for.

        It is its own maximum length, or that of a prefix and the end token; 0
        where there is neither.
        """
        lengths = [len(prefix.ids) for prefix in self.prefixes]
        beginnings = [length + 1 if length else 0 for length in lengths]
        return list(map(max, self.max_lengths, beginnings))

    def token_ids(self) -> list[Sequence[int]]:
        """Lists the rows of ids that translations must be able to contain."""
        rows = [*self.constraints, *self.terms]
        phrases = [phrase for row in rows for phrase in row]
        return [given.ids for given in (*self.prefixes, *phrases)]

    def arrays(
        self, batch_size: int, largest: int | None
    ) -> dict[str, np.ndarray]:
        """Returns the arguments of `decoding.search` for a batch, by name.

        Those that give nothing are left out. `batch_size` is the number of rows
        of the batch, and `largest` the model's position range, if it has one.
        """
        arrays = {}
        prefixes = [prefix.ids for prefix in self.prefixes]
        if any(map(len, prefixes)):
            length = padded_length(max(map(len, prefixes)), largest)
            arrays["prefix_ids"] = padded_batch(prefixes, batch_size, length)
        if any(map(len, self.constraints)):
            rows = map(rows_to_find, self.prefixes, self.constraints)
            arrays["constraint_ids"] = padded_phrases(list(rows), batch_size)
        if any(self.max_lengths):
            missing = batch_size - len(self.max_lengths)
            arrays["max_lengths"] = np.array(
                [*self.max_lengths, *[0] * missing], "int32"
            )
        return arrays


def given_rows(
    tokenizer,
    number: int,
    max_length: int | None,
    prefixes: Iterable[str] | None = None,
    constraints: Iterable[Iterable[str]] | None = None,
    max_lengths: Iterable[int] | None = None,
    tags: Sequence[str | None] | None = None,
    sources: Sequence[str] | None = None,
) -> GivenRows:
    """Turns the requirements on `number` translations into rows of ids.

    The rows are empty where nothing is required. `prefixes` are texts that the
    translations begin with, and `constraints` lists of phrases that they
    contain. `max_lengths` are in tokens, the end token included; 0 where the
    options decide. A translation with one of the `tags` begins with it, before
    its prefix. Only searches with shortlists need `sources`, the sentences,
    whose terms translations may contain.

    `max_length` is the model's position range, if it has one: no maximum length
    is greater.
    """
    tags = [None] * number if tags is None else tags
    if any(tags) and prefixes is None:
        prefixes = [""] * number
    rows = GivenRows(
        _prefix_rows(tokenizer, prefixes, max_length, tags)
        if prefixes is not None
        else [GivenTokens()] * number,
        _phrase_rows(tokenizer, constraints)
        if constraints is not None
        else [[] for _ in range(number)],
        _lengths(max_lengths, max_length)
        if max_lengths is not None
        else [0] * number,
        tags,
        _phrase_rows(tokenizer, map(marked_translations, sources))
        if sources is not None
        else [[] for _ in range(number)],
    )
    for name, values, one, several in (
        ("prefixes", rows.prefixes, "text", "prefixes"),
        ("constraints", rows.constraints, "list of phrases", "lists"),
        ("max_lengths", rows.max_lengths, "number", "numbers"),
    ):
        if len(values) != number:
            raise UserError(
                f"`{name}` must have one {one} for each sentence. Received: "
                f"{len(values)} {several} for {number} sentences"
            )
    return rows


def _prefix_rows(tokenizer, prefixes, max_length, tags):
    refuse_one_sentence(prefixes, "prefixes")
    texts, _ = as_sentences(prefixes, "prefixes")
    if any(tags) and len(texts) == len(tags):
        texts = [
            tagged_text(text, tag) if text else tag or ""
            for text, tag in zip(texts, tags, strict=True)
        ]
    return prefix_rows(tokenizer, texts, max_length)


def _phrase_rows(tokenizer, constraints):
    """Turns lists of phrases into tokens; empty phrases are left out."""
    refuse_one_sentence(constraints, "constraints")
    rows = []
    for phrases in constraints:
        refuse_one_sentence(phrases, "constraints")
        texts, _ = as_sentences(phrases, "constraints")
        phrases = given_tokens(tokenizer, texts)
        rows.append([phrase for phrase in phrases if phrase.ids])
    return rows


def _lengths(max_lengths, max_length):
    lengths = []
    for length in max_lengths:
        if isinstance(length, bool) or not isinstance(length, int | np.integer):
            raise TypeError(
                "`max_lengths` must hold integers. Received: "
                f"{length!r} of type {type(length).__name__}"
            )
        if not 0 <= length <= LARGEST:
            raise UserError(
                "`max_lengths` must be at least 1, or 0 for the options' own, "
                f"and at most {LARGEST:,}. Received: {length}"
            )
        # The translation cannot be longer than the model's position range.
        lengths.append(min(int(length), max_length or LARGEST))
    return lengths
