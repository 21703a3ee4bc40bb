"""Greedy search: the most probable token at every step.

It shares `IndependentSearch` with sampling: in both, hypotheses do not compete.
"""

from keras import ops

from keras_deepnmt.decoding.caches import growing_parts, own_caches
from keras_deepnmt.decoding.coverage import (
    add_coverage_score,
    decode_and_cover,
)
from keras_deepnmt.decoding.hypotheses import (
    loop_length,
    unflatten_beams,
    write_step,
)
from keras_deepnmt.decoding.next_tokens import next_token_log_probs
from keras_deepnmt.decoding.options import SearchOptions
from keras_deepnmt.decoding.ranking import score_divisor
from keras_deepnmt.decoding.stages import SearchStages
from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID


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
        model: a model of this package, of which only the methods that every
            model has are used.
        source_ids: int tensor `(B, S)`, each row ends with id 3, then 0s. A
            row of 0s only fills up the batch and has no translation.
        prefix_ids: int tensor `(B, P)`: the tokens that each translation begins
            with, filled up with 0s. A maximum length that has no room for them
            and the end id is raised, to `max_length` at most. Defaults to none.
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
        `scores` float32 `(B,)`: see `SearchOptions`; `log_probs` float32
        `(B,)`: sum over the tokens and the end id; `truncated` bool `(B,)`:
        whether the translation ends only because of its limit. In rows of 0s
        the ids are 0, the score and the sum minus infinity, and `truncated` is
        `False`.

    Raises:
        ValueError: if `max_length` or a search option is too small, or
            `source_ids` does not have two dimensions.

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


class IndependentSearch(SearchStages):
    """The stages of a search whose hypotheses do not compete.

    Each hypothesis has a maximum length and a cache of its own.
    """

    _first_cache = staticmethod(own_caches)

    @property
    def _num_limits(self):
        return self._options.num_beams

    def _first_state(self, limits, length, cache):
        return _first_state(limits, length, cache)

    def _is_live(self, state):
        return state["is_live"]

    def choose(self, carried, log_probs, step):
        """Chooses the next token of each hypothesis: int32 `(B * K,)`.

        `log_probs` `(B * K, V)` are those of the tokens that may follow.
        `carried` is explained in `SearchStages`.
        """
        raise NotImplementedError

    def outputs(self, carried):
        """Returns the result, as `beam_search`.

        The hypotheses of a sentence are in the order of their numbers.
        """
        state, limits = carried["state"], carried["limits"]
        ids, options = state["ids"], self._options
        lengths = ops.sum(ops.cast(ops.not_equal(ids, PADDING_ID), "int32"), -1)
        # Rows of padding have no translation.
        log_probs = ops.where(limits > 0, state["log_probs"], -float("inf"))
        divisor = score_divisor(
            lengths, options.length_penalty, options.length_offset
        )
        found = {
            "ids": ids,
            "scores": add_coverage_score(
                log_probs / divisor, state, options.coverage_penalty
            ),
            "log_probs": log_probs,
            "truncated": state["truncated"],
        }
        return {
            name: unflatten_beams(x, self._options.num_beams)
            for name, x in found.items()
        }

    def _grow(self, carried, state):
        """Extends every live hypothesis by one token."""
        scores, cache, coverage = decode_and_cover(
            self._model,
            state,
            state["last_ids"][:, None],
            carried["memory"],
            {"static": carried["static"], **state["cache"]},
            state["step"],
        )  # (B * K, 1, V)
        log_probs, cut_off = next_token_log_probs(
            self._model.log_probs(scores)[:, 0],
            state["ids"],
            state["step"],
            carried["limits"] <= state["step"] + 1,
            self._options,
            carried.get("prefix_ids"),
        )  # (B * K, V), (B * K,)
        is_live = state["is_live"]
        new_ids = self.choose(carried, log_probs, state["step"])
        gain = ops.take_along_axis(log_probs, new_ids[:, None], axis=1)[:, 0]
        # NaN of the model must reach the sums, where it is reported.
        largest = ops.max(log_probs, axis=-1)
        gain = ops.where(ops.isnan(largest), largest, gain)
        new_ids = ops.where(is_live, new_ids, PADDING_ID)
        return {
            **{
                name: ops.where(is_live[:, None], x, state[name])
                for name, x in coverage.items()
            },
            "step": state["step"] + 1,
            "last_ids": new_ids,
            "is_live": ops.logical_and(is_live, ops.not_equal(new_ids, END_ID)),
            "ids": write_step(state["ids"], state["step"], new_ids),
            "log_probs": state["log_probs"] + ops.where(is_live, gain, 0.0),
            "truncated": ops.logical_or(
                state["truncated"], ops.logical_and(is_live, cut_off)
            ),
            "cache": growing_parts(cache),
        }


class GreedySearch(IndependentSearch):
    """The stages of a greedy search."""

    def choose(self, carried, log_probs, step):
        return ops.cast(ops.argmax(log_probs, axis=-1), "int32")


def _first_state(limits, max_length, cache):
    num_rows = ops.shape(limits)[0]
    return {
        # Number of tokens produced so far: scalar.
        "step": ops.convert_to_tensor(0, dtype="int32"),
        # Last token of each hypothesis, and whether it has not ended: (B * K,).
        "last_ids": ops.full((num_rows,), BEGIN_ID, dtype="int32"),
        "is_live": limits > 0,
        # The hypotheses (B * K, M), their sums, whether a limit ended them.
        "ids": ops.full((num_rows, max_length), PADDING_ID, dtype="int32"),
        "log_probs": ops.zeros((num_rows,), dtype="float32"),
        "truncated": ops.zeros((num_rows,), dtype="bool"),
        # Cache of the model, without its static part. With a coverage penalty
        # there is also the attention to each source token: (B * K, S).
        "cache": cache,
    }
