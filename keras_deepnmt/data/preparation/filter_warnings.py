"""Warns of a filter that leaves out much of a corpus, with examples."""

import functools
from collections import Counter
from typing import NamedTuple

from keras_deepnmt.data.preparation.options import PrepareOptions
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
    """The pairs that filters leave out of one corpus: counts and examples.

    `name` names the corpus in warnings. `options` are those of the filters, or
    `None` for valid and test sets, of which only pairs that cannot be read are
    left out. `direction` has the codes of the languages of the corpus, if they
    are known.
    """

    def __init__(
        self,
        name: str,
        options: PrepareOptions | None,
        direction: tuple[str | None, str | None] = (None, None),
    ):
        self._languages = direction
        self.counts: Counter[str] = Counter()
        self._name = name
        self._options = options
        self._examples: dict[str, list[Example]] = {}

    def add(
        self,
        reason: str,
        line: int,
        source: str,
        target: str,
        pieces: tuple[int, int] | None = None,
    ) -> None:
        """Counts a pair, and keeps the first ones.

        `pieces` are the lengths of a pair that was left out for them.
        """
        self.counts[reason] += 1
        examples = self._examples.setdefault(reason, [])
        if len(examples) == NUM_EXAMPLES:
            return
        lengths = ""
        if pieces is not None:
            lengths = f" ({pieces[0]} and {pieces[1]} pieces)"
        elif reason in ("length", "ratio"):
            words = self._pair_filter.lengths(source, target)
            lengths = f" ({words[0]} and {words[1]} words)"
        examples.append(Example(f"line {line}", source, target, lengths))

    @functools.cached_property
    def _pair_filter(self):
        return self._options.pair_filter(self._languages)

    def warnings(self, num_read: int) -> list[str]:
        """Returns a warning for each filter that took over a third.

        There is none for duplicates that are all of a corpus, which takes no
        part then, as another warning says.
        """
        return [
            self._warning(reason, num_read)
            for reason, count in self.counts.items()
            if count > LARGE_SHARE * num_read
            and not (reason == "duplicate" and count == num_read)
        ]

    def _warning(self, reason, num_read):
        examples = self._examples[reason]
        shown = "; ".join(example.describe() for example in examples)
        return (
            f"{self._name}: `{reason}` leaves out {self.counts[reason]:,} of "
            f"{num_read:,} pairs, such as {shown}. {self._remedy(reason)}"
        )

    def _remedy(self, reason):
        if reason == "empty":
            return "Check that the files are complete and belong together."
        if reason == "encoding":
            return "Convert the files to UTF-8."
        options = self._options
        if reason in options.own_reasons():
            return "It is a filter of your own (`filters`)."
        languages = self._languages
        remedy = {
            "identical": "Keep them by `drop_identical: false` "
            "(--drop-identical false).",
            "duplicate": "Keep them by `drop_duplicates: false` "
            "(--drop-duplicates false).",
            "length": "Loosen it by `max_length` (--max-length), now "
            f"{options.max_length} words, `max_tokens` (--max-tokens), now "
            f"{options.max_tokens} pieces, or `min_length` (--min-length), now "
            f"{options.min_length}.",
            "ratio": "Loosen it by `max_ratio` (--max-ratio), now "
            f"{options.max_ratio:g}.",
            "language": "Correct `source_language` (--source-language), now "
            f"{languages[0]}, or `target_language` (--target-language), now "
            f"{languages[1]}, or loosen it by `min_language_score` "
            f"(--min-language-score), now {options.min_language_score:g}.",
            "misaligned": "Loosen it by `min_alignment_score` "
            f"(--min-alignment-score), now {options.min_alignment_score}.",
        }[reason]
        if reason in ("length", "ratio"):
            remedy += self._language_hint(reason)
        return remedy

    def _language_hint(self, reason):
        """Returns a hint if a side lacks the spaces that its language has."""
        examples = self._examples[reason]
        for side, language in zip(
            ("source", "target"), self._languages, strict=True
        ):
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


def _shortened(text):
    text = " ".join(text.split())  # in one line
    if len(text) <= _LONGEST_TEXT:
        return text
    return text[: _LONGEST_TEXT - 3] + "..."
