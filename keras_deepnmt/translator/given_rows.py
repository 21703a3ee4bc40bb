"""What is asked of the translation of each sentence, as rows of ids."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from keras_deepnmt.errors import UserError
from keras_deepnmt.translator.batches import (
    padded_batch,
    padded_length,
    padded_phrases,
)
from keras_deepnmt.translator.requests import (
    as_sentences,
    label_rows,
    refuse_one_sentence,
)
from keras_deepnmt.validation import LARGEST


@dataclass(frozen=True)
class GivenRows:
    """The beginnings, phrases and maximum lengths of some translations.

    Attributes:
        prefixes: ids that each translation begins with.
        constraints: phrases of ids that each translation contains.
        max_lengths: maximum length of each translation in tokens, the end token
            included; 0 where there is no own one.
    """

    prefixes: Sequence[Sequence[int]]
    constraints: Sequence[Sequence[Sequence[int]]]
    max_lengths: Sequence[int]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is asked of any translation."""
        given = (self.prefixes, self.constraints, self.max_lengths)
        return not any(map(any, given))

    def of(self, numbers: Iterable[int]) -> "GivenRows":
        """Takes the rows of some sentences."""
        return GivenRows(
            *(
                [values[number] for number in numbers]
                for values in (
                    self.prefixes,
                    self.constraints,
                    self.max_lengths,
                )
            )
        )

    def least_room(self) -> list[int]:
        """Returns how many tokens each translation must have room for.

        It is its own maximum length, or that of a prefix and the end token; 0
        where there is neither.
        """
        beginnings = [len(row) + 1 if row else 0 for row in self.prefixes]
        return list(map(max, self.max_lengths, beginnings))

    def token_ids(self) -> list[Sequence[int]]:
        """Lists the rows of ids that translations must be able to contain."""
        phrases = [row for rows in self.constraints for row in rows]
        return [*self.prefixes, *phrases]

    def arrays(
        self, batch_size: int, largest: int | None
    ) -> dict[str, np.ndarray]:
        """Returns the arguments of `decoding.search` for a batch.

        Args:
            batch_size: number of rows of the batch.
            largest: the model's position range, if it has one.

        Returns:
            Arrays by the name of the argument, without those that ask nothing.
        """
        arrays = {}
        if any(map(len, self.prefixes)):
            length = padded_length(max(map(len, self.prefixes)), largest)
            arrays["prefix_ids"] = padded_batch(
                self.prefixes, batch_size, length
            )
        if any(map(len, self.constraints)):
            arrays["constraint_ids"] = padded_phrases(
                self.constraints, batch_size
            )
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
    prefixes: str | Iterable[str] | None = None,
    constraints: Iterable[Iterable[str]] | None = None,
    max_lengths: Iterable[int] | None = None,
) -> GivenRows:
    """Turns what is asked of `number` translations into rows of ids.

    Args:
        tokenizer: tokenizer of the target side.
        number: number of sentences.
        max_length: the model's position range, if it has one.
        prefixes: texts that the translations begin with.
        constraints: lists of phrases that the translations contain.
        max_lengths: maximum lengths of the translations in tokens, the end
            token included; 0 for no own one.

    Returns:
        The rows; empty ones where nothing is asked. No maximum length is
        greater than `max_length`.

    Raises:
        TypeError: if an argument is a string where a list is needed, or a
            length is no integer.
        UserError: if there is not one value for each sentence, a prefix leaves
            no room in the model's position range, or a length is negative or
            too large.

    Example:
    >>> given_rows(target_tokenizer, 2, None, max_lengths=[5, 0])
    GivenRows(prefixes=[[], []], constraints=[[], []], max_lengths=[5, 0])
    """
    rows = GivenRows(
        _prefix_rows(tokenizer, prefixes, max_length)
        if prefixes is not None
        else [[] for _ in range(number)],
        _phrase_rows(tokenizer, constraints)
        if constraints is not None
        else [[] for _ in range(number)],
        _lengths(max_lengths, max_length)
        if max_lengths is not None
        else [0] * number,
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


def _prefix_rows(tokenizer, prefixes, max_length):
    texts, _ = as_sentences(prefixes, "prefixes")
    # Room for the end id: as for whole targets.
    rows = label_rows(tokenizer, texts, max_length, "`prefixes`")
    return [row[:-1] for row in rows]


def _phrase_rows(tokenizer, constraints):
    """Turns lists of phrases into ids; empty phrases are left out."""
    refuse_one_sentence(constraints, "constraints")
    rows = []
    for phrases in constraints:
        refuse_one_sentence(phrases, "constraints")
        texts, _ = as_sentences(phrases, "constraints")
        ids = [row.tolist() for row in tokenizer.encode(texts)] if texts else []
        rows.append([row for row in ids if row])
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
                "`max_lengths` must be at least 1, or 0 for no own maximum, "
                f"and at most {LARGEST:,}. Received: {length}"
            )
        # The translation cannot be longer than the model's position range.
        lengths.append(min(int(length), max_length or LARGEST))
    return lengths
