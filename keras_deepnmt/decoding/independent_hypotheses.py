"""Grows hypotheses that do not compete: those of greedy search and sampling."""

from keras import ops

from keras_deepnmt.decoding.caches import growing_parts, own_caches
from keras_deepnmt.decoding.coverage import (
    add_coverage_score,
    decode_and_cover,
)
from keras_deepnmt.decoding.hypotheses import (
    score_divisor,
    unflatten_beams,
    write_step,
)
from keras_deepnmt.decoding.next_tokens import next_token_log_probs
from keras_deepnmt.decoding.stages import SearchStages
from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID


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
        """Chooses the next token of each hypothesis.

        Args:
            carried: what is carried, see `SearchStages`.
            log_probs: float tensor `(B * K, V)` of the tokens that may follow.
            step: int scalar tensor.

        Returns:
            int32 tensor `(B * K,)`.
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
