"""The options of a search: definition, checks and descriptions."""

from collections.abc import Mapping
from dataclasses import field, fields, replace
from numbers import Real
from typing import Annotated, Any, TypeVar

from pydantic import WrapValidator

from keras_deepnmt.errors import UserError
from keras_deepnmt.validation import (
    Count,
    Flag,
    Natural,
    NotNegative,
    checked_dataclass,
    integer,
    number,
)

_Number = TypeVar("_Number")


def _check_unless_tensor(value, check):
    is_tensor = hasattr(value, "dtype") and not isinstance(value, Real)
    # An exported graph checks its tensors itself.
    return value if is_tensor else check(value)


OrTensor = Annotated[_Number, WrapValidator(_check_unless_tensor)]

# Far beyond any use: a file with larger values would take all memory.
_MOST_RATIO = 1_000.0
_MOST_TOKENS = 100_000
_MOST_NGRAM = 100


@checked_dataclass
class SearchOptions:
    """Options of the search for translations.

    The same object is used by `beam_search`, `Translator`, recipes, `run.json`,
    exports and the command line. The functions that take its fields as keyword
    arguments make one from them.

    Hypotheses are ranked by

        score = log_prob / ((length_offset + length) / (length_offset + 1))
                           ** length_penalty

    where `length` is the number of tokens, the end token included. A
    `coverage_penalty` adds a term to the score.

    Args:
        num_beams: Number of hypotheses kept for each sentence, at least 1; 1
            is greedy search.
        num_groups: Number of groups of beams, at least 1, that divides
            `num_beams`. Each group searches by itself, but avoids the tokens of
            earlier groups (Vijayakumar et al., 2018), so that the translations
            differ more. 1 is plain beam search.
        diversity_penalty: Number, at least 0, that is subtracted from a token's
            log-probability for each time that an earlier group has chosen it at
            the same position.
        length_penalty: Exponent of the length penalty, at least 0; 0 ranks by
            the sum of log-probabilities.
        length_offset: Number that the length penalty adds to the length, at
            least 0: 5 gives the length penalty of GNMT (Wu et al., 2016, Eq.
            14), 0 divides by a power of the length (Gehring et al., 2017).
        coverage_penalty: If above 0, this number times a sum is added to the
            score of a translation: the sum over the source tokens of the
            logarithm of the attention to the token, at most 1 (Wu et al., 2016,
            Eq. 14). The attention is the mean of all heads of all decoder
            blocks, summed over the tokens of the translation. 0 adds nothing.
        patience: If above 0, the search of a sentence stops as soon as
            `patience * num_beams` hypotheses have finished (Kasai et al.,
            2022); each group counts its own beams. 1 is what other toolkits
            call early stopping. 0 searches until no unfinished hypothesis can
            become better than those kept.
        min_length: Minimum number of tokens of a translation, the end token
            not included, at least 0. If it is greater than the maximum length
            of a translation, only that length is possible. A translation is
            shorter if no other token may follow.
        max_length_ratio: Maximum length of a translation: this number times
            the length of its source, rounded up, plus `max_extra_tokens`. Both
            lengths are in tokens, the end token included. In [0, 1,000]; 0
            makes the maximum independent of the source.
        max_extra_tokens: Number of tokens that is added to the maximum length
            of a translation, from 0 to 100,000. With ratio 0 it must be at
            least 1.
        no_repeat_ngram_size: Length n of the sequences of tokens that must not
            occur twice in a translation, from 1 to 100; 0 permits repetitions.
        allow_unknown: Whether a translation may have unknown tokens.
        sampling: Whether translations are drawn at random, `num_beams` for each
            sentence, instead of searched.
        sampling_temperature: Temperature of the distribution that tokens are
            drawn from, above 0: 1 is the model's own, a smaller one prefers
            probable tokens.
        sampling_top_k: Number of the most probable tokens that are drawn from,
            at least 1; 0 is all of them.
        sampling_top_p: Probability, above 0 and at most 1, that the most
            probable tokens which are drawn from must have together.
        sampling_seed: Seed of the draws, at least 0. With the same seed a
            sentence has the same translations.

    Raises:
        TypeError: if a value is of another type.
        UserError: if a value is too small or too large, the maximum length
            is 0, or `num_groups` does not divide `num_beams`. Greedy search
            and sampling have no groups, so that `num_groups` may then have any
            value.

    Example:
    >>> options = SearchOptions(num_beams=2)
    >>> options.updated(length_penalty=1.0)
    SearchOptions(num_beams=2, ..., length_penalty=1.0, ..., sampling_seed=0)
    """

    num_beams: Count = 4
    num_groups: Count = 1
    diversity_penalty: OrTensor[NotNegative] = 0.5
    length_penalty: OrTensor[NotNegative] = 0.6
    length_offset: OrTensor[NotNegative] = field(
        default=5.0,
        metadata={
            "remedy": "Take 5 for the length penalty of GNMT, 0 to divide by a "
            "power of the length."
        },
    )
    # No tensor: without the penalty a program has no attention to sum.
    coverage_penalty: NotNegative = field(
        default=0.0, metadata={"is_tensor": False}
    )
    patience: OrTensor[NotNegative] = 0.0
    min_length: OrTensor[Natural] = 0
    max_length_ratio: OrTensor[number(ge=0, le=_MOST_RATIO)] = 1.0
    max_extra_tokens: OrTensor[integer(0, _MOST_TOKENS)] = 50
    no_repeat_ngram_size: integer(0, _MOST_NGRAM) = 0
    allow_unknown: Flag = True
    sampling: Flag = False
    sampling_temperature: OrTensor[number(ge=1e-6)] = 1.0
    sampling_top_k: Natural = 0
    sampling_top_p: OrTensor[number(ge=1e-6, le=1)] = 1.0
    # A tensor for compiled programs, as floats are: see `compile_for`.
    sampling_seed: OrTensor[Natural] = field(
        default=0, metadata={"is_tensor": True}
    )

    def __post_init__(self):
        if self.num_beams > 1 and not self.sampling:
            check_groups(self)
        limit = (self.max_length_ratio, self.max_extra_tokens)
        if all(isinstance(value, Real) and value == 0 for value in limit):
            # The two values may come from a recipe and from the command line.
            raise UserError(
                "`max_length_ratio` and `max_extra_tokens` must not both be 0, "
                "since a translation has at least its end token. Received: "
                "max_length_ratio=0.0, max_extra_tokens=0"
            )

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Returns the names of the options."""
        return tuple(field.name for field in fields(SearchOptions))

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> "SearchOptions":
        """Takes the options from a mapping that may hold other keys too.

        An option that is missing or `None` has its default. Files written
        before an option existed were made with its default, so they are read
        correctly.

        Args:
            values: for instance the content of a JSON file.

        Returns:
            The options.

        Example:
        >>> SearchOptions.from_mapping({"num_beams": 2, "batch_size": 7})
        SearchOptions(num_beams=2, num_groups=1, ..., sampling_seed=0)
        """
        return SearchOptions().updated(
            **{name: values.get(name) for name in cls.names()}
        )

    def for_hypotheses(self, number: int) -> "SearchOptions":
        """Returns a copy with enough beams, in groups of equal size.

        Args:
            number: how many hypotheses of each sentence are asked for.

        Returns:
            The options, unchanged if they have enough beams.

        Example:
        >>> SearchOptions(num_beams=4, num_groups=2).for_hypotheses(5).num_beams
        6
        """
        if number <= self.num_beams:
            return self
        groups = 1 if self.sampling else self.num_groups
        return self.updated(num_beams=-(-number // groups) * groups)

    def updated(self, **changes: Any) -> "SearchOptions":
        """Returns a copy with other values.

        Args:
            **changes: fields and their new values; `None` changes nothing.

        Returns:
            The changed options.

        Raises:
            TypeError: if there is no such option.
            UserError: if a value is too small or not finite.
        """
        return replace(
            self, **{k: v for k, v in changes.items() if v is not None}
        )

    def as_dict(self) -> dict[str, Any]:
        """Returns the values by name, for a JSON file."""
        return {name: getattr(self, name) for name in self.names()}


def check_groups(options: SearchOptions) -> None:
    """Raises a `UserError` if groups would have different numbers of beams."""
    beams, groups = options.num_beams, options.num_groups
    if beams % groups:
        # The two values may come from a recipe and from the command line.
        raise UserError(
            "`num_groups` must divide `num_beams`, since all groups have "
            f"the same number of beams. Received: num_groups={groups}, "
            f"num_beams={beams}. Take {-(-beams // groups) * groups} beams, or "
            "1 group, which is plain beam search."
        )


class SearchOptionAttributes:
    """Makes the fields of `self.options` attributes of an object.

    With it `translator.num_beams` is `translator.options.num_beams`, for every
    field of `SearchOptions`. Setting the attribute replaces `options`.
    """

    options: SearchOptions

    def __setattr__(self, name, value):
        if name in SearchOptions.names():
            name, value = "options", replace(self.options, **{name: value})
        super().__setattr__(name, value)

    def __getattr__(self, name):
        if name in SearchOptions.names():
            return getattr(self.options, name)
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}"
        )
