"""Turns text into rows of ids, each ending with the end id."""

from collections.abc import Sequence

from keras_deepnmt.errors import UserError
from keras_deepnmt.masks import END_ID


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


def label_rows(
    tokenizer, targets: Sequence[str], max_length: int | None
) -> list[list[int]]:
    """Turns targets into rows of at most `max_length` ids, the end included.

    `None` is no limit.

    Raises:
        UserError: if a target is too long.

    Example:
    >>> label_rows(target_tokenizer, [""], None)
    [[3]]
    """
    rows = [[*ids.tolist(), END_ID] for ids in tokenizer.encode(list(targets))]
    for line, row in enumerate(rows, start=1):
        if max_length is not None and len(row) > max_length:
            raise UserError(
                f"Targets, line {line}: a target must have at most "
                f"{max_length - 1} tokens, the model's position range. "
                f"Received: {len(row) - 1} tokens"
            )
    return rows
