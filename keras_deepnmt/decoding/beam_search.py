"""Beam search: the K best translations of each sentence of a batch.

One loop with static caches, written once for compiled TensorFlow, plain
TensorFlow graphs (export) and JAX. It keeps two sets of K hypotheses for each
sentence:

* live: still growing, ranked by their sum of log-probabilities;
* finished: ended with the end id, frozen, ranked by their final score.

At each step the K best one-token extensions of the live hypotheses are taken.
Those that ended move to the finished set, if they are good enough for it; the
others are the next live ones. The places of the ended are filled again by the
next step's extensions, so one beam is exactly greedy search.
"""

from keras import ops

from keras_deepnmt.decoding.beams import (
    IMPOSSIBLE,
    check_length_offset,
    gather_beams,
    loop_length,
    output_limits,
    permitted_log_probs,
    reorder_cache,
    score_divisor,
    unflatten_beams,
    write_step,
)
from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID


def beam_search(
    model,
    source_ids,
    *,
    num_beams=4,
    length_penalty=0.6,
    length_offset=5.0,
    max_length,
):
    """Finds the best translations of each sentence, best first.

    A translation has at most (real source length + 50) tokens, its end id
    included, and never more than `max_length` or the model's position range;
    the last token it may have can only be the end id, and counts with the
    log-probability that the model gives to it. Padding and begin are never
    produced. The loop stops when no live hypothesis of any sentence can still
    beat the worst finished one that is kept.

    Args:
        model: a model of this package (its contract is all that is used).
        source_ids: int tensor `(B, S)`, each row ends with id 3, then 0s. A
            row of 0s only fills up the batch and gives no translation.
        num_beams: int. Hypotheses K kept for each sentence.
        length_penalty: float, at least 0. Exponent of the length penalty; 0
            compares plain sums of log-probabilities.
        length_offset: float, at least 0. What the penalty adds to lengths: 5
            is GNMT's, 0 divides by a plain power of the length.
        max_length: int or int scalar tensor. Steps of the loop.

    Returns:
        A dict, best hypothesis first along K:
        `ids` int32 `(B, K, max_length)`: tokens, the end id 3, then 0s;
        `scores` float32 `(B, K)`: log_probs / ((length_offset + length) /
        (length_offset + 1)) ** length_penalty, where length counts the end id;
        `log_probs` float32 `(B, K)`: sum over the tokens and the end id.
        Where fewer than K translations exist (tiny vocabularies) and in rows
        of 0s, ids are 0 and the numbers minus infinity.

    Raises:
        ValueError: if `num_beams`, `length_penalty`, `length_offset` or
            `max_length` is too small.

    Example:
    >>> found = beam_search(model, source_ids, num_beams=2, max_length=9)
    >>> found["ids"].shape, found["scores"].shape
    (TensorShape([3, 2, 9]), TensorShape([3, 2]))
    """
    _check(num_beams, length_penalty)
    check_length_offset(length_offset)
    max_length = loop_length(model, max_length)
    limits = output_limits(source_ids, max_length)  # (B,)
    memory = model.encode(source_ids)
    cache = model.init_cache(memory, max_length, num_beams)

    def divisor(lengths):
        return score_divisor(lengths, length_penalty, length_offset)

    state = ops.while_loop(
        lambda state: ops.logical_and(
            state["step"] < max_length,
            ops.any(_is_possible(state["live_log_probs"])),
        ),
        lambda state: (
            _grow(model, memory, cache["static"], limits, divisor, state),
        ),
        (_first_state(limits, num_beams, max_length, cache["dynamic"]),),
    )[0]
    return {
        "ids": state["finished_ids"],
        "scores": _or_minus_infinity(state["finished_scores"]),
        "log_probs": _or_minus_infinity(state["finished_log_probs"]),
    }


def _grow(model, memory, static_cache, limits, divisor, state):
    """One step of the search: every live hypothesis one token longer."""
    scores, cache = model.decode(
        ops.reshape(state["last_ids"], (-1, 1)),
        memory,
        {"static": static_cache, "dynamic": state["cache"]},
        state["step"],
    )  # (B * K, 1, V)
    totals, parents, new_ids = _best_extensions(
        state, model.log_probs(scores)[:, 0], limits
    )
    ids = gather_beams(state["live_ids"], parents)  # (B, K, M)
    grown = {
        "step": state["step"] + 1,
        "ids": write_step(ids, state["step"], new_ids),
        "log_probs": totals,
        "ended": ops.equal(new_ids, END_ID),
    }
    finished = _keep_finished(state, grown, divisor)
    return {
        "step": grown["step"],
        "last_ids": new_ids,
        "live_ids": grown["ids"],
        "live_log_probs": _still_live(grown, finished, limits, divisor),
        **finished,
        "cache": reorder_cache(cache["dynamic"], parents),
    }


def _check(num_beams, length_penalty):
    if num_beams < 1:
        raise ValueError(
            f"`num_beams` must be at least 1. Received: num_beams={num_beams}"
        )
    if isinstance(length_penalty, (int, float)) and length_penalty < 0:
        raise ValueError(
            "`length_penalty` must be at least 0. "
            f"Received: length_penalty={length_penalty}"
        )


def _is_possible(log_probs):
    return log_probs > IMPOSSIBLE / 2


def _or_minus_infinity(log_probs):
    return ops.where(_is_possible(log_probs), log_probs, -float("inf"))


def _first_state(limits, num_beams, max_length, dynamic_cache):
    """One live hypothesis in beam 0 of each sentence, nothing finished."""
    batch_size = ops.shape(limits)[0]
    by_beam = (batch_size, num_beams)
    no_ids = ops.full((*by_beam, max_length), PADDING_ID, dtype="int32")
    impossible = ops.full(by_beam, IMPOSSIBLE, dtype="float32")
    is_first = ops.equal(ops.arange(num_beams), 0)[None]  # (1, K)
    is_live = ops.logical_and(is_first, (limits > 0)[:, None])  # (B, K)
    return {
        # Tokens produced so far: scalar.
        "step": ops.convert_to_tensor(0, dtype="int32"),
        # What each live hypothesis ends in: (B, K).
        "last_ids": ops.full(by_beam, BEGIN_ID, dtype="int32"),
        # Live hypotheses and their sums; a place is empty where the sum is
        # IMPOSSIBLE, a sentence is over where all of them are:
        # (B, K, M), (B, K).
        "live_ids": no_ids,
        "live_log_probs": ops.where(is_live, 0.0, impossible),
        # Finished hypotheses, best score first: (B, K, M), (B, K), (B, K).
        "finished_ids": no_ids,
        "finished_scores": impossible,
        "finished_log_probs": impossible,
        # The model's, per live hypothesis: nested dict of (B * K, ...).
        "cache": dynamic_cache,
    }


def _best_extensions(state, log_probs, limits):
    """The K best ways to extend a sentence's live hypotheses by one id.

    None of them can lie outside the K best of its own beam, so a full sort of
    K * V candidates is not needed.

    Returns:
        Sums of log-probabilities, parent beams and new ids, each `(B, K)`,
        best first. An ended place of the beam has no possible extension.
    """
    num_beams = state["live_log_probs"].shape[1]
    per_beam = min(num_beams, log_probs.shape[-1])
    must_end = ops.repeat(limits <= state["step"] + 1, num_beams)  # (B * K,)
    token_log_probs, token_ids = ops.top_k(
        permitted_log_probs(log_probs, must_end), per_beam
    )  # (B * K, J)
    totals = unflatten_beams(token_log_probs, num_beams)  # (B, K, J)
    totals = totals + state["live_log_probs"][:, :, None]
    token_ids = unflatten_beams(ops.cast(token_ids, "int32"), num_beams)
    by_sentence = (-1, num_beams * per_beam)
    totals, places = ops.top_k(ops.reshape(totals, by_sentence), num_beams)
    places = ops.cast(places, "int32")  # (B, K)
    return (
        ops.maximum(totals, IMPOSSIBLE),
        places // per_beam,
        gather_beams(ops.reshape(token_ids, by_sentence), places),
    )


def _keep_finished(state, grown, divisor):
    """The K best of the finished hypotheses, old and new, best first.

    Of equal scores the older stays: it comes first in what `top_k` sees.
    """
    num_beams = grown["log_probs"].shape[1]
    is_new = ops.logical_and(grown["ended"], _is_possible(grown["log_probs"]))
    new_scores = ops.where(
        is_new,
        grown["log_probs"] / divisor(grown["step"]),
        IMPOSSIBLE,
    )
    scores, places = ops.top_k(
        ops.concatenate([state["finished_scores"], new_scores], axis=1),
        num_beams,
    )

    def keep(old, new):
        return gather_beams(ops.concatenate([old, new], axis=1), places)

    return {
        "finished_ids": keep(state["finished_ids"], grown["ids"]),
        "finished_scores": scores,
        "finished_log_probs": keep(
            state["finished_log_probs"], grown["log_probs"]
        ),
    }


def _still_live(grown, finished, limits, divisor):
    """Sums of the grown hypotheses, IMPOSSIBLE for those that are over.

    Sums are negative and only fall; the divisor, whatever the offset, only
    rises with length. So what a live hypothesis can still reach is its sum over
    the divisor of the sentence's limit. A sentence where that beats nothing
    kept is over as a whole.
    """
    log_probs = ops.where(grown["ended"], IMPOSSIBLE, grown["log_probs"])
    best_reachable = ops.max(log_probs, axis=1) / divisor(limits)  # (B,)
    is_over = best_reachable <= finished["finished_scores"][:, -1]
    return ops.where(is_over[:, None], IMPOSSIBLE, log_probs)
