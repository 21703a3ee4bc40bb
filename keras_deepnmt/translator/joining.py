"""Joins translators into one that translates with all their models."""

from collections.abc import Sequence

from keras_deepnmt.errors import UserError
from keras_deepnmt.models.ensemble import Ensemble
from keras_deepnmt.translator.translator import Translator


def join_translators(
    translators: Sequence[Translator],
    weights: Sequence[float] | None = None,
    mean: str = "arithmetic",
) -> Translator:
    """Makes a translator with the mean of several models' probabilities.

    See `models.Ensemble`. Everything else, such as the search options, is that
    of the first translator.

    Args:
        translators: Translators with the same tokenizers.
        weights: Positive numbers, one for each model, of which only the ratios
            count. Defaults to equal ones.
        mean: `"arithmetic"` or `"geometric"`.

    Returns:
        The translator.

    Raises:
        UserError: if a tokenizer differs from that of the first translator, or
            the number of weights is wrong or one is not positive.
        ValueError: if there is no translator, or `mean` is another one.

    Example:
    >>> runs = ["runs/demo", "runs/demo"]
    >>> joined = join_translators([Translator.load(run) for run in runs])
    >>> len(joined.model.models)
    2
    """
    if not translators:
        raise ValueError("`translators` must have at least one translator.")
    first = translators[0]
    for number, other in enumerate(translators, start=1):
        for side in ("source", "target"):
            tokenizers = [
                getattr(t, f"{side}_tokenizer").sha256 for t in (first, other)
            ]
            if len(set(tokenizers)) > 1:
                raise UserError(
                    "Models that translate together must have the same "
                    f"tokenizers. The {side} tokenizer of model {number} is "
                    "not that of model 1. Train both on the same prepared data."
                )
    if weights is not None and (
        len(weights) != len(translators) or min(weights) <= 0
    ):
        raise UserError(
            f"The weights of an ensemble must be {len(translators)} positive "
            f"numbers, one for each model. Received: {list(weights)}"
        )
    return Translator(
        Ensemble([t.model for t in translators], weights, mean),
        first.source_tokenizer,
        first.target_tokenizer,
        options=first.options,
        batch_size=first.batch_size,
        batch_tokens=first.batch_tokens,
        max_source_length=min(t.max_source_length for t in translators),
        compiled=first.compiled,
        shortlists=first.shortlists,
        on_truncated=first.on_truncated,
    )
