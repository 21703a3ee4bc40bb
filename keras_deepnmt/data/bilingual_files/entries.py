"""What files with texts and translations have in common."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from keras_deepnmt.data.bilingual_files.contents import Part
from keras_deepnmt.errors import UserError


class Edit(NamedTuple):
    """A change of a file: what takes the place of some bytes."""

    begin: int
    end: int
    content: str


class Pair(NamedTuple):
    """A text and its translation, and the number of their line."""

    line: int
    source: str
    target: str


@dataclass
class Entry:
    """A part of a file that a translation changes.

    Attributes:
        line: The number of its line, from 1.
        parts: The texts, and what is between them.
        edits: Returns the changes of the file, given the parts with their
            translations.
    """

    line: int
    parts: list[Part]
    edits: Callable[[str], list[Edit]] = field(repr=False)

    @property
    def texts(self) -> list[str]:
        """The texts that are translated."""
        return [part.text for part in self.parts if part.text is not None]

    def finish(self, translations: Sequence[str]) -> list[Edit]:
        """Returns the changes of the file, given a translation of each text."""
        left = iter(translations)
        return self.edits(
            "".join(
                part.raw if part.text is None else part.finished(next(left))
                for part in self.parts
            )
        )


class BilingualFile(Protocol):
    """A reader of one format, which can read its file several times.

    Attributes:
        left: Why entries were left as they are, and how many, of what was read
            last.
    """

    left: Counter

    def entries(self) -> Iterator[Entry]:
        """Iterates over what translations change, in the order of the file."""

    def pairs(self) -> Iterator[Pair]:
        """Iterates over the texts that have translations.

        Raises the errors of `entries`.
        """


def base_language(code: str) -> str:
    """Returns a language code without its region and the like.

    Example:
    >>> base_language("de_AT"), base_language("EN")
    ('de', 'en')
    """
    return code.replace("_", "-").split("-")[0].lower()


def check_language(
    place: str, side: str, found: str | None, asked: str | None
) -> str:
    """Returns the language of a side: what the file says, or what is asked.

    Two different languages are refused, and so is a side without any. `place`
    is the file and line, for the message.
    """
    if not found and not asked:
        raise UserError(
            f"{place}: does not say the {side} language. Give "
            f"`--{side}-language CODE`."
        )
    if found and asked and base_language(found) != base_language(asked):
        raise UserError(
            f"{place}: its {side} language is {found}, but {asked} is asked "
            f"for. Give another file, or `--{side}-language {found}` if the "
            "model can do that."
        )
    return found or asked
