"""The search that options ask for."""

from keras import ops

from keras_deepnmt.decoding.beam import BeamSearch
from keras_deepnmt.decoding.greedy import GreedySearch
from keras_deepnmt.decoding.hypotheses import loop_length
from keras_deepnmt.decoding.options import SearchOptions
from keras_deepnmt.decoding.sampling import SampleSearch
from keras_deepnmt.models.projected_model import prepare_projection
from keras_deepnmt.models.restricted_vocabulary import restrict_vocabulary


def search(
    model,
    source_ids,
    prefix_ids=None,
    constraint_ids=None,
    max_lengths=None,
    candidate_ids=None,
    num_needed=None,
    *,
    max_length,
    options=None,
    **search_options,
):
    """Translates by sampling, greedy search or beam search, as options say.

    Args:
        model: a model of this package, of which only the methods that every
            model has are used.
        source_ids: int tensor `(B, S)`, each row ends with id 3, then 0s.
        prefix_ids: int tensor `(B, P)`: the tokens that each translation begins
            with, filled up with 0s. A maximum length that has no room for them
            and the end id is raised, to `max_length` at most. Defaults to none.
        constraint_ids: int tensor `(B, C, P)`: phrases that each translation
            contains, as for `beam_search`. Defaults to none.
        max_lengths: int tensor `(B,)`: maximum length of each translation, as
            for `beam_search`. Defaults to none.
        candidate_ids: int tensor `(W,)`: the tokens that translations may have,
            each once; the first four are the special ids 0 to 3. The
            probability of the others is 0, and their scores are not computed.
            The tokens of `prefix_ids` and `constraint_ids` must be among them.
            Defaults to all tokens.
        num_needed: int scalar tensor. How many of the best translations of each
            sentence are needed: the others may then be worse than those that a
            longer search would find. Phrases need all. Defaults to all.
        max_length: int or int scalar tensor. Maximum number of steps.
        options: `SearchOptions`. Defaults to `SearchOptions()`.
        **search_options: fields of `SearchOptions` that replace those of
            `options`.

    Returns:
        What `beam_search` returns, `ids` `(B, K, max_length)` and so on, with
        K 1 for greedy search.

    Raises:
        ValueError: if `max_length` or a search option is too small, or
            `source_ids` does not have two dimensions.
        UserError: if there are phrases and translations are drawn or have a
            single beam.

    Example:
    >>> search(model, source_ids, max_length=9, num_beams=1)["ids"].shape
    TensorShape([3, 1, 9])
    """
    options = (options or SearchOptions()).updated(**search_options)
    chosen = search_stages(model, options, candidate_ids, source_ids.shape[0])
    max_length = loop_length(model, max_length)
    carried = chosen.begin(
        source_ids,
        max_length,
        prefix_ids=prefix_ids,
        constraint_ids=constraint_ids,
        max_lengths=max_lengths,
        num_needed=num_needed,
    )
    return chosen.outputs(chosen.advance(carried))


def search_stages(model, options, candidate_ids=None, num_sentences=None):
    """Returns the stages of the search that options ask for.

    `candidate_ids` are those of `search`. `num_sentences` is the number of
    sentences of a batch, or `None` if it is not known.
    """
    if candidate_ids is None:
        num_states = num_sentences and num_sentences * options.num_beams
        return _stages(prepare_projection(model, num_states), options)
    restricted = restrict_vocabulary(model, candidate_ids)
    stages = _stages(restricted, options, candidate_ids)
    return _RestrictedSearch(stages, candidate_ids)


def _stages(model, options, token_ids=None):
    """Returns the stages for a model with all tokens, or some of them."""
    if options.sampling:
        return SampleSearch(model, options, token_ids)
    if options.num_beams == 1:
        return GreedySearch(model, options)
    return BeamSearch(model, options)


class _RestrictedSearch:
    """The stages of a search among some tokens, which are numbered anew.

    `candidate_ids` `(W,)` has the token of each number.
    """

    def __init__(self, stages, candidate_ids):
        self._stages = stages
        self._candidate_ids = ops.cast(candidate_ids, "int32")
        self.take = stages.take
        self.advance = stages.advance
        self.is_live = stages.is_live

    def begin(
        self,
        source_ids,
        max_length,
        length=None,
        *,
        prefix_ids=None,
        constraint_ids=None,
        max_lengths=None,
        num_needed=None,
    ):
        """Encodes the sources, as `SearchStages.begin`."""
        return self._stages.begin(
            source_ids,
            max_length,
            length,
            prefix_ids=self._numbers(prefix_ids),
            constraint_ids=self._numbers(constraint_ids),
            max_lengths=max_lengths,
            num_needed=num_needed,
        )

    def outputs(self, carried):
        """Returns the result, with the ids of the whole vocabulary."""
        found = self._stages.outputs(carried)
        ids = ops.take(self._candidate_ids, found["ids"], axis=0)
        return {**found, "ids": ids}

    def _numbers(self, ids):
        """Returns the numbers of ids; those of padding are 0."""
        if ids is None:
            return None
        is_same = ops.equal(ids[..., None], self._candidate_ids)
        return ops.cast(ops.argmax(is_same, axis=-1), "int32")
