"""Turns text into rows of ids, each ending with the end id."""

import sys
from collections.abc import Iterable, Sequence

from keras_deepnmt.errors import UserError
from keras_deepnmt.masks import END_ID


def as_sentences(
    texts: str | Iterable[str], name: str = "texts"
) -> tuple[list[str], bool]:
    """Returns a list of sentences, and whether `texts` is a single sentence.

    Raises:
        TypeError: if `texts`, the argument `name`, holds anything but strings.

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
    sources: str | Iterable[str], targets: str | Iterable[str]
) -> tuple[list[str], list[str], bool]:
    """Returns sources, targets, and whether they are a single pair.

    Raises:
        TypeError: if only one of them is a string, or one holds anything but
            strings.
        UserError: if there are not as many targets as sources.
    """
    sources, is_one = as_sentences(sources, "sources")
    targets, is_one_target = as_sentences(targets, "targets")
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
    """Refuses a string where only several sentences have a meaning.

    Raises:
        TypeError: if `texts`, the argument `name`, is a string. Its letters
            would be taken for sentences.
    """
    if isinstance(texts, str | bytes):
        raise TypeError(
            f"`{name}` must hold sentences. Received: {name}={texts!r}. "
            f"Pass [{texts!r}] for a single one."
        )


def source_rows(
    tokenizer, texts: Sequence[str], max_length: int
) -> tuple[list[list[int]], list[int]]:
    """Turns sources into rows of at most `max_length` ids, the end included.

    Returns:
        The rows, and the places from 0 of those that were truncated.

    Example:
    >>> source_rows(source_tokenizer, [""], 9)
    ([[3]], [])
    """
    encoded = tokenizer.encode(list(texts))
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
    targets: Sequence[str],
    max_length: int | None,
    place: str = "`targets`",
    first: int = 1,
) -> list[list[int]]:
    """Turns targets into rows of at most `max_length` ids, the end included.

    `None` is no limit. An error names the `place` of the targets, an argument
    or a file, and the line, of which the first is `first`.

    Raises:
        UserError: if a target is too long.

    Example:
    >>> label_rows(target_tokenizer, [""], None)
    [[3]]
    """
    rows = [[*ids.tolist(), END_ID] for ids in tokenizer.encode(list(targets))]
    for line, row in enumerate(rows, start=first):
        if max_length is not None and len(row) > max_length:
            raise UserError(
                f"{place}, line {line}: must have at most {max_length - 1} "
                "tokens, the model's position range. Received: "
                f"{len(row) - 1} tokens. Shorten it."
            )
    return rows
