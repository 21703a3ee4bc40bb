"""The modal verbs of the demo grammar."""

from typing import NamedTuple


class Modal(NamedTuple):
    """A modal verb: three German forms, and its English in three parts.

    English is `auxiliary` (inverted in questions, negated by *not*) and what
    stands before the infinitive; an auxiliary of `"do"` means that the words
    are an ordinary verb's, which is inflected unless negated or asked.
    """

    present: tuple[str, str, str]
    auxiliary: str
    english_base: tuple[str, ...]
    english_third: tuple[str, ...]


MODALS = (
    Modal(("kann", "kann", "können"), "can", (), ()),
    Modal(("muss", "muss", "müssen"), "do", ("have", "to"), ("has", "to")),
    Modal(("will", "will", "wollen"), "do", ("want", "to"), ("wants", "to")),
    Modal(("soll", "soll", "sollen"), "should", (), ()),
    Modal(("darf", "darf", "dürfen"), "may", (), ()),
    Modal(("werde", "wird", "werden"), "will", (), ()),
)
