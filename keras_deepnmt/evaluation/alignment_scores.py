"""Word alignments as text, and their error rate."""

import re
from collections.abc import Iterable, Sequence

from keras_deepnmt.errors import UserError

Alignment = Iterable[tuple[int, int]]
_LINK = re.compile(r"(\d+)([-?])(\d+)")


def alignment_error_rate(
    found: Sequence[Alignment],
    sure: Sequence[Alignment],
    possible: Sequence[Alignment] | None = None,
) -> float:
    """Computes the alignment error rate (Och and Ney, 2003).

        AER = 1 - (|A and S| + |A and P|) / (|A| + |S|)

    A are the links found, S the sure ones and P the possible ones, to which the
    sure ones belong, each counted over all sentences.

    Args:
        found: For each pair of sentences the links `(source word, target
            word)`.
        sure: The sure links of a gold alignment.
        possible: Its possible links. Defaults to the sure ones.

    Returns:
        The rate, 0 to 1; lower is better.

    Raises:
        ValueError: if the lists differ in length, or there is no link.

    Example:
    >>> alignment_error_rate([[(0, 0), (1, 2)]], [[(0, 0), (1, 1)]])
    0.5
    """
    possible = [()] * len(sure) if possible is None else possible
    if not len(found) == len(sure) == len(possible):
        raise ValueError(
            "The alignments must be of the same sentences. Received: "
            f"{len(found)} found, {len(sure)} sure, {len(possible)} possible"
        )
    matches = total = 0
    for links, gold, may_be in zip(found, sure, possible, strict=True):
        links, gold = set(links), set(gold)
        matches += len(links & gold) + len(links & (gold | set(may_be)))
        total += len(links) + len(gold)
    if not total:
        raise ValueError("The alignments must have at least one link.")
    return 1 - matches / total


def format_alignment(links: Alignment) -> str:
    """Writes links in Pharaoh's format: `0-0 1-2`, source word first.

    Args:
        links: Pairs `(source word, target word)`.

    Returns:
        The text of a line.

    Example:
    >>> format_alignment([(0, 0), (1, 2)])
    '0-0 1-2'
    """
    return " ".join(f"{source}-{target}" for source, target in links)


def parse_alignment(
    line: str,
) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Reads links in Pharaoh's format: `0-0 1?2`.

    Args:
        line: Sure links with a hyphen, possible ones with a question mark.

    Returns:
        The sure links, and the possible ones without them.

    Raises:
        UserError: if a part of the line is not a link.

    Example:
    >>> parse_alignment("0-0 1?2")
    ({(0, 0)}, {(1, 2)})
    """
    sides: dict[str, set[tuple[int, int]]] = {"-": set(), "?": set()}
    for part in line.split():
        link = _LINK.fullmatch(part)
        if link is None:
            raise UserError(
                "A link must be two numbers with a hyphen (sure) or a question "
                f"mark (possible) between them, such as 3-4. Received: {part!r}"
            )
        sides[link[2]].add((int(link[1]), int(link[3])))
    return sides["-"], sides["?"]
