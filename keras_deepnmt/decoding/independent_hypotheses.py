"""Grows hypotheses that do not compete: those of greedy search and sampling."""

from keras import ops

from keras_deepnmt.decoding.caches import (
    growing_parts,
    make_longer,
    own_caches,
)
from keras_deepnmt.decoding.candidates.next_tokens import next_token_log_probs
from keras_deepnmt.decoding.candidates.phrases import check_beams
from keras_deepnmt.decoding.hypotheses import (
    output_limits,
    score_divisor,
    unflatten_beams,
    write_step,
)
from keras_deepnmt.decoding.ranking.coverage import (
    add_coverage_score,
    decode_and_cover,
    first_coverage,
)
from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID


class IndependentSearch:
    """The stages of a search whose hypotheses do not compete.

    What it carries from one stage to the next is as in `BeamSearch`, with the
    maximum lengths `limits` `(B * K,)`.

    Args:
        model: a model of this package.
        options: `SearchOptions`, with the number K of hypotheses of each
            sentence, `num_beams`.
    """

    def __init__(self, model, options):
        self._model = model
        self._options = options
        self._num_hypotheses = options.num_beams

    def choose(self, carried, log_probs, step):
        """Chooses the next token of each hypothesis.

        Args:
            carried: what is carried, see `BeamSearch`.
            log_probs: float tensor `(B * K, V)` of the tokens that may follow.
            step: int scalar tensor.

        Returns:
            int32 tensor `(B * K,)`.
        """
        raise NotImplementedError

    def begin(
        self,
        source_ids,
        max_length,
        length=None,
        *,
        prefix_ids=None,
        constraint_ids=None,
        max_lengths=None,
    ):
        """Encodes the sources, as `BeamSearch.begin`.

        Raises:
            UserError: if there are phrases.
        """
        if constraint_ids is not None:
            check_beams(self._options)
        number = self._num_hypotheses
        limits = output_limits(
            source_ids, max_length, self._options, prefix_ids, max_lengths
        )
        limits = ops.repeat(limits, number)  # (B * K,)
        memory = self._model.encode(source_ids)
        cache = own_caches(self._model, memory, max_length, length, number)
        length = max_length if length is None else length
        state = _first_state(limits, length, growing_parts(cache))
        if self._options.coverage_penalty:
            state["coverage"] = first_coverage(source_ids, number)
        carried = {
            "memory": memory,
            "static": cache["static"],
            "limits": limits,
            "state": state,
        }
        if prefix_ids is not None:
            carried["prefix_ids"] = ops.repeat(prefix_ids, number, axis=0)
        return carried

    def advance(self, carried, length=None):
        """Goes on until there is no more room, as `BeamSearch.advance`."""
        state = carried["state"]
        if length is not None:
            state = make_longer(state, state["ids"].shape[-1], length)
        length = ops.shape(state["ids"])[-1]
        state = ops.while_loop(
            lambda state: ops.logical_and(
                state["step"] < length, ops.any(state["is_live"])
            ),
            lambda state: (self._grow(carried, state),),
            (state,),
        )[0]
        return {**carried, "state": state}

    def is_live(self, carried):
        """Returns for each sentence whether its search goes on: bool `(B,)`."""
        is_live = carried["state"]["is_live"]
        return ops.any(ops.reshape(is_live, (-1, self._num_hypotheses)), axis=1)

    def outputs(self, carried):
        """Returns the result, as `BeamSearch.outputs`.

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
            name: unflatten_beams(x, self._num_hypotheses)
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
