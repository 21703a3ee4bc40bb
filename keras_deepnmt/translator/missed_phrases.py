"""Tells why a translation lacks phrases that it was to contain."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from keras_deepnmt.decoding.hypotheses import longest_output
from keras_deepnmt.translator.given_text import find_given
from keras_deepnmt.translator.requests import given_rows, source_rows
from keras_deepnmt.translator.results import Hypothesis

if TYPE_CHECKING:
    from keras_deepnmt.translator.translator import Translator

Reason = Literal["empty", "unknown", "room", "contradiction"]


def why_missed(
    translator: "Translator",
    source: str,
    hypothesis: Hypothesis,
    *,
    prefixes: str | None = None,
    constraints: Sequence[str] | None = None,
    max_lengths: int | None = None,
) -> Reason | None:
    """Returns why a translation lacks a phrase; `None` if it has all.

    It is `"empty"` if the sentence has no token; `"unknown"` if a phrase that
    is missing has characters that the vocabulary lacks, and unknown tokens are
    forbidden; `"room"` if the prefix and the phrases together are too long for
    the maximum length; otherwise `"contradiction"`.

    `hypothesis` is the translation of `source` by `translator`. What was
    required of it is given as for `Translator.translate`.
    """
    model = translator.model
    given = given_rows(
        translator.target_tokenizer,
        1,
        model.max_length,
        *(
            None if value is None else [value]
            for value in (prefixes, constraints, max_lengths)
        ),
        tags=translator.target_tags([source]),
    )
    (prefix,), (phrases,), (own_limit,) = (
        given.prefixes,
        given.constraints,
        given.max_lengths,
    )
    missed = find_given(hypothesis.ids, prefix, phrases).missed
    if not missed:
        return None
    is_source = translator.tag_side == "source"
    (row,), _ = source_rows(
        translator.source_tokenizer,
        translator.tagged([source]),
        translator.max_source_length,
        known_tags=translator.training_tags if is_source else (),
    )
    if len(row) == 1:  # the end id alone
        return "empty"
    has_unknown = any(phrase.has_unknown for phrase in missed)
    if has_unknown and not translator.allow_unknown:
        return "unknown"
    limit = own_limit or longest_output(len(row), translator.options)
    limit = max(limit, len(prefix.ids) + 1)
    limit = min(limit, model.max_length or limit)
    needed = len(prefix.ids) + sum(len(phrase.ids) for phrase in phrases)
    return "room" if needed >= limit else "contradiction"
