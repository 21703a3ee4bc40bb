"""Grows hypotheses that do not compete: those of greedy search and sampling."""

from keras import ops

from keras_deepnmt.decoding.candidates.next_tokens import next_token_log_probs
from keras_deepnmt.decoding.hypotheses import (
    loop_length,
    output_limits,
    score_divisor,
    write_step,
)
from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID


def grow_hypotheses(
    model, source_ids, prefix_ids, max_length, options, num_hypotheses, choose
):
    """Extends each hypothesis by one token at a time, until all have ended.

    Args:
        model: a model of this package.
        source_ids: int tensor `(B, S)`.
        prefix_ids: int tensor `(B, P)`, as in `beam_search`, or `None`.
        max_length: int or int scalar tensor. Maximum number of steps.
        options: `SearchOptions`.
        num_hypotheses: int. Number of hypotheses of each sentence, K.
        choose: function of the log-probabilities `(B * K, V)` of the tokens
            that may follow and of the step; it returns int32 ids `(B * K,)`.

    Returns:
        A dict, with the hypotheses of a sentence one after another: `ids`
        `(B * K, max_length)`, `scores`, `log_probs` and `truncated` `(B * K,)`,
        as in `greedy_search`.
    """
    max_length = loop_length(model, max_length)
    limits = output_limits(source_ids, max_length, options, prefix_ids)
    limits = ops.repeat(limits, num_hypotheses)  # (B * K,)
    if prefix_ids is not None:
        prefix_ids = ops.repeat(prefix_ids, num_hypotheses, axis=0)
    memory = model.encode(source_ids)
    cache = model.init_cache(memory, max_length, num_hypotheses)

    def is_anything_live(state):
        return ops.logical_and(
            state["step"] < max_length, ops.any(state["is_live"])
        )

    def grow(state):
        scores, new_cache = model.decode(
            state["last_ids"][:, None],
            memory,
            {"static": cache["static"], "dynamic": state["cache"]},
            state["step"],
        )  # (B * K, 1, V)
        log_probs, cut_off = next_token_log_probs(
            model.log_probs(scores)[:, 0],
            state["ids"],
            state["step"],
            limits <= state["step"] + 1,
            options,
            prefix_ids,
        )  # (B * K, V), (B * K,)
        is_live = state["is_live"]
        new_ids = choose(log_probs, state["step"])
        gain = ops.take_along_axis(log_probs, new_ids[:, None], axis=1)[:, 0]
        # NaN of the model must reach the sums, where it is reported.
        largest = ops.max(log_probs, axis=-1)
        gain = ops.where(ops.isnan(largest), largest, gain)
        new_ids = ops.where(is_live, new_ids, PADDING_ID)
        return {
            "step": state["step"] + 1,
            "last_ids": new_ids,
            "is_live": ops.logical_and(is_live, ops.not_equal(new_ids, END_ID)),
            "ids": write_step(state["ids"], state["step"], new_ids),
            "log_probs": state["log_probs"] + ops.where(is_live, gain, 0.0),
            "truncated": ops.logical_or(
                state["truncated"], ops.logical_and(is_live, cut_off)
            ),
            "cache": new_cache["dynamic"],
        }

    state = ops.while_loop(
        is_anything_live,
        lambda state: (grow(state),),
        (_first_state(limits, max_length, cache["dynamic"]),),
    )[0]
    return _outputs(state, limits, options)


def _first_state(limits, max_length, dynamic_cache):
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
        # Cache of the model: nested dict of (B * K, ...).
        "cache": dynamic_cache,
    }


def _outputs(state, limits, options):
    """The result of a search; rows of padding have no translation."""
    ids = state["ids"]
    lengths = ops.sum(ops.cast(ops.not_equal(ids, PADDING_ID), "int32"), -1)
    log_probs = ops.where(limits > 0, state["log_probs"], -float("inf"))
    return {
        "ids": ids,
        "scores": log_probs
        / score_divisor(lengths, options.length_penalty, options.length_offset),
        "log_probs": log_probs,
        "truncated": state["truncated"],
    }
