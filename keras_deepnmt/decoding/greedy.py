"""Greedy search: the most probable token at every step."""

from keras import ops

from keras_deepnmt.decoding.hypotheses import (
    is_cut_off,
    loop_length,
    output_limits,
    permitted_log_probs,
    score_divisor,
    write_step,
)
from keras_deepnmt.decoding.options import SearchOptions
from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID


def greedy_search(
    model, source_ids, *, max_length, options=None, **search_options
):
    """Translates each sentence by the most probable token at every step.

    It has the limits and the result of `beam_search` with one beam, and needs
    less time.

    Args:
        model: a model of this package (its contract is all that is used).
        source_ids: int tensor `(B, S)`, each row ends with id 3, then 0s. A
            row of 0s only fills up the batch and has no translation.
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
    options = options.updated(num_beams=1, **search_options)
    max_length = loop_length(model, max_length)
    limits = output_limits(source_ids, max_length, options)  # (B,)
    memory = model.encode(source_ids)
    cache = model.init_cache(memory, max_length, 1)

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
        )  # (B, 1, V)
        must_end = limits <= state["step"] + 1  # (B,)
        log_probs = model.log_probs(scores)[:, 0]  # (B, V)
        cut_off = ops.logical_and(
            state["is_live"], is_cut_off(log_probs, must_end)
        )
        log_probs = permitted_log_probs(
            log_probs, must_end, state["step"] >= options.min_length
        )
        new_ids = ops.cast(ops.argmax(log_probs, axis=-1), "int32")
        new_ids = ops.where(state["is_live"], new_ids, PADDING_ID)
        gain = ops.where(state["is_live"], ops.max(log_probs, axis=-1), 0.0)
        return {
            "step": state["step"] + 1,
            "last_ids": new_ids,
            "is_live": ops.logical_and(
                state["is_live"], ops.not_equal(new_ids, END_ID)
            ),
            "ids": write_step(state["ids"], state["step"], new_ids),
            "log_probs": state["log_probs"] + gain,
            "truncated": ops.logical_or(state["truncated"], cut_off),
            "cache": new_cache["dynamic"],
        }

    state = ops.while_loop(
        is_anything_live,
        lambda state: (grow(state),),
        (_first_state(limits, max_length, cache["dynamic"]),),
    )[0]
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


def _first_state(limits, max_length, dynamic_cache):
    batch_size = ops.shape(limits)[0]
    return {
        # Number of tokens produced so far: scalar.
        "step": ops.convert_to_tensor(0, dtype="int32"),
        # Last token of each hypothesis, and whether it has not ended: (B,).
        "last_ids": ops.full((batch_size,), BEGIN_ID, dtype="int32"),
        "is_live": limits > 0,
        # The hypotheses (B, M), their sums, whether a limit ended them: (B,).
        "ids": ops.full((batch_size, max_length), PADDING_ID, dtype="int32"),
        "log_probs": ops.zeros((batch_size,), dtype="float32"),
        "truncated": ops.zeros((batch_size,), dtype="bool"),
        # Cache of the model: nested dict of (B, ...).
        "cache": dynamic_cache,
    }
