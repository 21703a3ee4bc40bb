"""The search that options ask for."""

from keras_deepnmt.decoding.beam import beam_search
from keras_deepnmt.decoding.greedy import greedy_search
from keras_deepnmt.decoding.options import SearchOptions
from keras_deepnmt.decoding.sampling import sample_search


def search(
    model,
    source_ids,
    prefix_ids=None,
    *,
    max_length,
    options=None,
    **search_options,
):
    """Translates by sampling, greedy search or beam search, as options say.

    Args:
        model: a model of this package (its contract is all that is used).
        source_ids: int tensor `(B, S)`, each row ends with id 3, then 0s.
        prefix_ids: int tensor `(B, P)`: the tokens that each translation begins
            with, filled up with 0s. Defaults to none.
        max_length: int or int scalar tensor. Maximum number of steps.
        options: `SearchOptions`. Defaults to `SearchOptions()`.
        **search_options: fields of `SearchOptions` that replace those of
            `options`.

    Returns:
        What `beam_search` returns, `ids` `(B, K, max_length)` and so on, with
        K 1 for greedy search.

    Raises:
        ValueError: if `max_length` or a search option is too small, or
            `source_ids` has not two dimensions.

    Example:
    >>> search(model, source_ids, max_length=9, num_beams=1)["ids"].shape
    TensorShape([3, 1, 9])
    """
    options = (options or SearchOptions()).updated(**search_options)
    ids = source_ids, prefix_ids
    if options.sampling:
        return sample_search(
            model, *ids, max_length=max_length, options=options
        )
    if options.num_beams == 1:
        outputs = greedy_search(
            model, *ids, max_length=max_length, options=options
        )
        return {name: value[:, None] for name, value in outputs.items()}
    return beam_search(model, *ids, max_length=max_length, options=options)
