"""The search that options ask for."""

from keras_deepnmt.decoding.beam import BeamSearch
from keras_deepnmt.decoding.greedy import GreedySearch
from keras_deepnmt.decoding.hypotheses import loop_length
from keras_deepnmt.decoding.options import SearchOptions
from keras_deepnmt.decoding.sampling import SampleSearch


def search(
    model,
    source_ids,
    prefix_ids=None,
    constraint_ids=None,
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
        constraint_ids: int tensor `(B, C, P)`: phrases that each translation
            contains, as for `beam_search`. Defaults to none.
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
        UserError: if there are phrases and translations are drawn or have a
            single beam.

    Example:
    >>> search(model, source_ids, max_length=9, num_beams=1)["ids"].shape
    TensorShape([3, 1, 9])
    """
    options = (options or SearchOptions()).updated(**search_options)
    chosen = search_stages(model, options)
    max_length = loop_length(model, max_length)
    carried = chosen.begin(
        source_ids, prefix_ids, max_length, constraint_ids=constraint_ids
    )
    return chosen.outputs(chosen.advance(carried))


def search_stages(model, options):
    """Returns the stages of the search that options ask for.

    Returns:
        A `BeamSearch`, or another search with its methods.
    """
    if options.sampling:
        return SampleSearch(model, options)
    if options.num_beams == 1:
        return GreedySearch(model, options)
    return BeamSearch(model, options)
