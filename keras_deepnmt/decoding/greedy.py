"""Greedy search: the most probable token at every step."""

from keras import ops

from keras_deepnmt.decoding.hypotheses import loop_length
from keras_deepnmt.decoding.independent_hypotheses import (
    IndependentSearch,
)
from keras_deepnmt.decoding.options import SearchOptions


def greedy_search(
    model,
    source_ids,
    prefix_ids=None,
    max_lengths=None,
    *,
    max_length,
    options=None,
    **search_options,
):
    """Translates each sentence by the most probable token at every step.

    It has the limits and the result of `beam_search` with one beam, and needs
    less time.

    Args:
        model: a model of this package (its contract is all that is used).
        source_ids: int tensor `(B, S)`, each row ends with id 3, then 0s. A
            row of 0s only fills up the batch and has no translation.
        prefix_ids: int tensor `(B, P)`: the tokens that each translation begins
            with, filled up with 0s. Defaults to none.
        max_lengths: int tensor `(B,)`: maximum length of each translation, the
            end id included, in place of the one that follows from its source;
            0 where there is no other. Defaults to none.
        max_length: int or int scalar tensor. Maximum number of steps.
        options: `SearchOptions`; `num_beams` is ignored, and the length
            penalty and its offset change only the reported score. Defaults to
            `SearchOptions()`.
        **search_options: fields of `SearchOptions` other than `num_beams` that
            replace those of `options`.

    Returns:
        A dict: `ids` int32 `(B, max_length)`: tokens, the end id 3, then 0s;
        `scores` float32 `(B,)`: what `SearchOptions` ranks by; `log_probs`
        float32 `(B,)`: sum over the tokens and the end id; `truncated` bool
        `(B,)`: whether the translation ends only because of its limit. In rows
        of 0s the ids are 0, the score and the sum minus infinity, and
        `truncated` is `False`.

    Raises:
        ValueError: if `max_length` or a search option is too small, or
            `source_ids` has not two dimensions.

    Example:
    >>> greedy_search(model, source_ids, max_length=9)["ids"].shape
    TensorShape([3, 9])
    """
    options = options or SearchOptions()
    search = GreedySearch(model, options.updated(num_beams=1, **search_options))
    max_length = loop_length(model, max_length)
    carried = search.begin(
        source_ids, max_length, prefix_ids=prefix_ids, max_lengths=max_lengths
    )
    outputs = search.outputs(search.advance(carried))
    return {name: value[:, 0] for name, value in outputs.items()}


class GreedySearch(IndependentSearch):
    """The stages of a greedy search."""

    def choose(self, carried, log_probs, step):
        return ops.cast(ops.argmax(log_probs, axis=-1), "int32")
