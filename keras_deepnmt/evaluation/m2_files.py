"""Reads source sentences with gold edits from files in M² format."""

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from keras_deepnmt.errors import UserError

_NOTHING = "-NONE-"


@dataclass(frozen=True)
class Edit:
    """A correction of a part of a source sentence.

    Attributes:
        start: Place of the first word that is replaced.
        end: Place after the last one; `start` for an insertion.
        corrections: The words, joined by blanks, that may stand there instead;
            `""` for a deletion.
        error_type: Type of the error, such as `R:VERB:SVA`. Edits that differ
            in nothing else are equal.
    """

    start: int
    end: int
    corrections: tuple[str, ...]
    error_type: str = field(default="", compare=False)


@dataclass(frozen=True)
class AnnotatedSentence:
    """A source sentence with the edits of each annotator.

    Attributes:
        words: The words of the source.
        edits: The edits of each annotator; one annotator without edits if the
            sentence is correct.
    """

    words: tuple[str, ...]
    edits: tuple[tuple[Edit, ...], ...]


def read_m2(file: str | Path) -> list[AnnotatedSentence]:
    """Reads source sentences with gold edits from a file in M² format.

    A line `S words` begins a sentence; a line
    `A start end|||type|||correction|||...|||annotator` is an edit. Several
    corrections of one edit are separated by `||`; blanks around them do not
    count. The type `noop` says that the annotator changed nothing. Lines that
    begin with `I` or `T`, which some tools write, are passed over, and so are
    edits of words after the end of their sentence.

    Differs from the authors' scorer: an edit belongs to the last line `S`
    before it, also where no empty line separates the sentences. A line ends
    only at a line feed. The annotator is the last field of a line.

    Args:
        file: The file, UTF-8, perhaps with a byte order mark.

    Returns:
        The sentences, in the order of the file. Annotators are ordered by
        their number, and edits as in the file.

    Raises:
        UserError: if the file is missing or a line is not of this format.

    Example:
    >>> gold = read_m2("test.m2")
    >>> gold[0].words[:2], gold[0].edits[0][0].corrections
    (('It', 'are'), ('is',))
    """
    try:
        lines = Path(file).read_bytes().decode("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: cannot be read ({error}).") from error
    sentences: list[tuple[list[str], dict[int, list[Edit]]]] = []
    for number, line in enumerate(lines, start=1):
        if line.startswith("S"):
            sentences.append((line.split()[1:], defaultdict(list)))
        elif line.strip() and line[0] not in "IT":
            try:
                annotator, edit = _read_edit(line)
                words, edits = sentences[-1]
            except (ValueError, IndexError) as error:
                raise UserError(
                    f"{file}, line {number}: not a line of an M2 file. "
                    f"Received: {line[:80]!r}"
                ) from error
            inside = edit and 0 <= min(edit.start, edit.end)
            if inside and max(edit.start, edit.end) <= len(words):
                edits[annotator].append(edit)
            else:
                edits[annotator] += []  # the annotator counts all the same
    if not sentences:
        raise UserError(f"{file}: has no sentences.")
    return [
        AnnotatedSentence(
            tuple(words),
            tuple(tuple(edits[key]) for key in sorted(edits)) or ((),),
        )
        for words, edits in sentences
    ]


def _read_edit(line):
    """The annotator of a line and its edit; `None` for `noop`."""
    place, kind, corrections, *_, annotator = line.split("|||")
    letter, start, end = place.split()
    if letter != "A":
        raise ValueError
    if kind == "noop":
        return int(annotator), None
    texts = corrections.split("||")
    edit = Edit(
        int(start),
        int(end),
        tuple("" if text == _NOTHING else text.strip() for text in texts),
        kind,
    )
    return int(annotator), edit
