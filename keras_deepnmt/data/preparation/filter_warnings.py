"""Warns of a filter that leaves out much of a corpus, with examples."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from keras_deepnmt.data.preparation.text_filters import PairFilter
from keras_deepnmt.data.scripts import is_written_with_spaces
from keras_deepnmt.data.word_units import lacks_spaces

# A filter that takes more than this share of a corpus is warned of.
LARGE_SHARE = 1 / 3
NUM_EXAMPLES = 3
_LONGEST_TEXT = 60


class Example(NamedTuple):
    """A pair that was left out: where it stands, its sides, their lengths."""

    place: str
    source: str
    target: str
    lengths: str = ""

    def describe(self) -> str:
        """Describes the pair in a line."""
        sides = " | ".join(map(_shortened, (self.source, self.target)))
        return f"{self.place}: {sides}{self.lengths}"


class LeftOut:
    """What each filter leaves out of one corpus.

    Args:
        name: names the corpus in warnings.
        pair_filter: the filter, or `None` if only empty sides are refused.

    Example:
    >>> left_out = LeftOut("train.en", PairFilter(max_ratio=2.0))
    >>> left_out.add("ratio", 7, "one two three", "eins")
    >>> left_out.warnings(2)[0]
    'train.en: `ratio` leaves out 1 of 2 pairs, such as line 7: one two three...
    """

    def __init__(self, name: str, pair_filter: PairFilter | None):
        self.counts: Counter[str] = Counter()
        self._name = name
        self._filter = pair_filter
        self._examples: dict[str, list[Example]] = {}

    def add(self, reason: str, line: int, source: str, target: str) -> None:
        """Counts a pair, and keeps the first ones."""
        self.counts[reason] += 1
        examples = self._examples.setdefault(reason, [])
        if len(examples) < NUM_EXAMPLES:
            lengths = ""
            if self._filter is not None:
                numbers = self._filter.lengths(source, target)
                lengths = f" ({numbers[0]} and {numbers[1]} words)"
            examples.append(Example(f"line {line}", source, target, lengths))

    def warnings(self, num_read: int) -> list[str]:
        """Returns a warning for each filter that took over a third."""
        return [
            too_many_left_out(
                *(self._name, reason, count, num_read, self._examples[reason]),
                self._remedy(reason),
            )
            for reason, count in self.counts.items()
            if count > LARGE_SHARE * num_read
        ]

    def _remedy(self, reason):
        rules = self._filter
        if reason == "empty" or rules is None:
            return "Check that the files are complete and belong together."
        remedy = {
            "identical": "Keep them by `drop_identical: false` "
            "(--drop-identical false).",
            "duplicate": "Keep them by `drop_duplicates: false` "
            "(--drop-duplicates false).",
            "length": "Loosen it by `max_length` (--max-length), now "
            f"{rules.max_length}, or `min_length` (--min-length), now "
            f"{rules.min_length}.",
            "ratio": "Loosen it by `max_ratio` (--max-ratio), now "
            f"{rules.max_ratio:g}.",
        }.get(reason, "")
        if reason in ("length", "ratio"):
            remedy += self._language_hint(reason)
        return remedy

    def _language_hint(self, reason):
        """What to do where a language has spaces, but its text has none."""
        examples = self._examples[reason]
        for side in ("source", "target"):
            language = getattr(self._filter, f"{side}_language")
            texts = [getattr(example, side) for example in examples]
            if is_written_with_spaces(language) and all(
                map(lacks_spaces, texts)
            ):
                return (
                    f" The {side} is in a script without spaces, but "
                    f"`{side}_language` (--{side}-language) is {language}, a "
                    "language with spaces, which alone are counted: correct it."
                )
        return ""


def too_many_left_out(
    name: str,
    reason: str,
    count: int,
    num_read: int,
    examples: Sequence[Example],
    remedy: str,
) -> str:
    """Returns the text of a warning."""
    shown = "; ".join(example.describe() for example in examples)
    return (
        f"{name}: `{reason}` leaves out {count:,} of {num_read:,} pairs, such "
        f"as {shown}. {remedy}"
    )


def _shortened(text):
    text = " ".join(text.split())  # in one line
    if len(text) <= _LONGEST_TEXT:
        return text
    return text[: _LONGEST_TEXT - 3] + "..."
