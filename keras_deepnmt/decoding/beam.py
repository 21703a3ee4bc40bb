"""Beam search: the K best translations of each sentence of a batch.

One loop with caches of fixed size, written once for compiled TensorFlow, plain
TensorFlow graphs (export) and JAX. It keeps two sets of K hypotheses for each
sentence:

* live: still growing, ranked by their sum of log-probabilities;
* finished: ended with the end id, ranked by their score.

Each step takes the K best one-token extensions of the live hypotheses. Those
that end with the end id move to the finished set if their score is among its K
best; the others are the next live hypotheses. The next step's extensions fill
the places of those that ended, so a search with one beam is greedy search.
"""

from keras import ops

from keras_deepnmt.decoding.candidates.extensions import (
    best_extensions,
    diverse_extensions,
)
from keras_deepnmt.decoding.candidates.next_tokens import next_token_log_probs
from keras_deepnmt.decoding.hypotheses import (
    IMPOSSIBLE,
    flatten_beams,
    gather_beams,
    loop_length,
    output_limits,
    reorder_cache,
    score_divisor,
    unflatten_beams,
    write_step,
)
from keras_deepnmt.decoding.options import SearchOptions
from keras_deepnmt.errors import UserError
from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID


def beam_search(
    model,
    source_ids,
    prefix_ids=None,
    *,
    max_length,
    options=None,
    **search_options,
):
    """Finds the best translations of each sentence, best first.

    The maximum length of a translation follows from the real length of its
    source, see `max_length_ratio` of `SearchOptions` (by default that length +
    50, with the end ids), and is never more than `max_length` or the model's
    position range. At that limit only the end id is allowed; it counts with
    the log-probability that the model gives to it. The translation is marked
    as truncated if the model gives another token a higher probability there.
    The padding and begin ids are never produced. The loop stops when no live
    hypothesis of any sentence can reach a better score than the worst finished
    hypothesis that is kept, or enough have finished (`patience`).

    Args:
        model: a model of this package (its contract is all that is used).
        source_ids: int tensor `(B, S)`, each row ends with id 3, then 0s. A
            row of 0s only fills up the batch and has no translation.
        prefix_ids: int tensor `(B, P)`: the tokens that each translation begins
            with, filled up with 0s. Defaults to none.
        max_length: int or int scalar tensor. Maximum number of steps.
        options: `SearchOptions`. Defaults to `SearchOptions()`.
        **search_options: fields of `SearchOptions`, such as `num_beams=4` and
            `length_penalty=0.6`, that replace those of `options`.

    Returns:
        A dict, best hypothesis first along K:
        `ids` int32 `(B, K, max_length)`: tokens, the end id 3, then 0s;
        `scores` float32 `(B, K)`: what `SearchOptions` ranks by;
        `log_probs` float32 `(B, K)`: sum over the tokens and the end id;
        `truncated` bool `(B, K)`: whether it ends only because of its limit.
        If fewer than K translations exist (tiny vocabularies), and in rows of
        0s, the ids are 0, the scores and sums minus infinity, and `truncated`
        is `False`.

    Raises:
        ValueError: if `max_length` or a search option is too small, or
            `source_ids` has not two dimensions.
        UserError: if `num_groups` does not divide `num_beams`.

    Example:
    >>> outputs = beam_search(model, source_ids, num_beams=2, max_length=9)
    >>> outputs["ids"].shape, outputs["scores"].shape
    (TensorShape([3, 2, 9]), TensorShape([3, 2]))
    """
    options = (options or SearchOptions()).updated(**search_options)
    num_beams, num_groups = options.num_beams, options.num_groups
    _check_groups(num_beams, num_groups)
    max_length = loop_length(model, max_length)
    limits = output_limits(source_ids, max_length, options, prefix_ids)
    # From here on, a group of beams is what a sentence is without groups.
    limits = ops.repeat(limits, num_groups)  # (B * G,)
    if prefix_ids is not None:
        prefix_ids = ops.repeat(prefix_ids, num_beams, axis=0)  # (B * K, P)
    memory = model.encode(source_ids)
    cache = model.init_cache(memory, max_length, num_beams)

    def divisor(lengths):
        return score_divisor(
            lengths, options.length_penalty, options.length_offset
        )

    state = ops.while_loop(
        lambda state: ops.logical_and(
            state["step"] < max_length,
            ops.any(_is_possible(state["live_log_probs"])),
        ),
        lambda state: (
            _grow(
                model,
                memory,
                cache["static"],
                limits,
                divisor,
                options,
                prefix_ids,
                state,
            ),
        ),
        (
            _first_state(
                limits, num_beams // num_groups, max_length, cache["dynamic"]
            ),
        ),
    )[0]
    found = {
        "ids": state["finished_ids"],
        "scores": _or_minus_infinity(state["finished_scores"]),
        "log_probs": _or_minus_infinity(state["finished_log_probs"]),
        "truncated": state["finished_truncated"],
    }
    return found if num_groups == 1 else _join_groups(found, num_beams)


def _check_groups(num_beams, num_groups):
    if num_beams % num_groups:
        raise UserError(
            "`num_groups` must divide `num_beams`. Received: num_groups="
            f"{num_groups}, num_beams={num_beams}"
        )


def _join_groups(found, num_beams):
    """Sorts the hypotheses of all groups of a sentence, best first."""
    found = {
        name: ops.reshape(x, (-1, num_beams, *ops.shape(x)[2:]))
        for name, x in found.items()
    }
    scores = ops.maximum(found["scores"], IMPOSSIBLE)
    _, order = ops.top_k(scores, num_beams)
    return {name: gather_beams(x, order) for name, x in found.items()}


def _grow(
    model, memory, static_cache, limits, divisor, options, prefix_ids, state
):
    """One step of the search: extends every live hypothesis by one token."""
    scores, cache = model.decode(
        ops.reshape(state["last_ids"], (-1, 1)),
        memory,
        {"static": static_cache, "dynamic": state["cache"]},
        state["step"],
    )  # (B * K, 1, V)
    num_beams = state["live_log_probs"].shape[1]
    log_probs, cut_off = next_token_log_probs(
        model.log_probs(scores)[:, 0],
        flatten_beams(state["live_ids"]),
        state["step"],
        ops.repeat(limits <= state["step"] + 1, num_beams),
        options,
        prefix_ids,
    )  # (B * K, V), (B * K,)
    if options.num_groups == 1:
        extended = best_extensions(state["live_log_probs"], log_probs)
    else:
        extended = diverse_extensions(
            state["live_log_probs"],
            log_probs,
            options.num_groups,
            options.diversity_penalty,
        )
    totals, parents, new_ids = extended
    ids = gather_beams(state["live_ids"], parents)  # (B, K, M)
    grown = {
        "step": state["step"] + 1,
        "ids": write_step(ids, state["step"], new_ids),
        "log_probs": totals,
        "ended": ops.equal(new_ids, END_ID),
        "truncated": gather_beams(unflatten_beams(cut_off, num_beams), parents),
    }
    finished = _keep_finished(state, grown, divisor)
    return {
        "step": grown["step"],
        "last_ids": new_ids,
        "live_ids": grown["ids"],
        "live_log_probs": _still_live(
            grown, finished, limits, divisor, options.patience * num_beams
        ),
        **finished,
        "cache": reorder_cache(cache["dynamic"], parents),
    }


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
        # Number of tokens produced so far: scalar.
        "step": ops.convert_to_tensor(0, dtype="int32"),
        # Last token of each live hypothesis: (B, K).
        "last_ids": ops.full(by_beam, BEGIN_ID, dtype="int32"),
        # Live hypotheses and their sums. A place is empty if its sum is
        # IMPOSSIBLE, a sentence is over if all its sums are:
        # (B, K, M), (B, K).
        "live_ids": no_ids,
        "live_log_probs": ops.where(is_live, 0.0, impossible),
        # How many hypotheses have finished, also those not kept: (B,).
        "num_finished": ops.zeros((batch_size,), dtype="int32"),
        # Finished hypotheses, best score first: (B, K, M), then (B, K).
        "finished_ids": no_ids,
        "finished_scores": impossible,
        "finished_log_probs": impossible,
        "finished_truncated": ops.zeros(by_beam, dtype="bool"),
        # Cache of the model for each live hypothesis: dict of (B * K, ...).
        "cache": dynamic_cache,
    }


def _keep_finished(state, grown, divisor):
    """Keeps the K best of the old and new finished hypotheses, best first.

    Of equal scores the older one is kept, since it comes first for `top_k`.
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
        "num_finished": state["num_finished"]
        + ops.sum(ops.cast(is_new, "int32"), axis=1),
        "finished_ids": keep(state["finished_ids"], grown["ids"]),
        "finished_scores": scores,
        "finished_log_probs": keep(
            state["finished_log_probs"], grown["log_probs"]
        ),
        "finished_truncated": keep(
            state["finished_truncated"], grown["truncated"]
        ),
    }


def _still_live(grown, finished, limits, divisor, enough):
    """Returns the sums of live hypotheses, IMPOSSIBLE for those that are over.

    The search of a sentence is over if `enough` hypotheses have finished (0 is
    no limit), or if no live one can become better than those that are kept.

    A sum never rises and the divisor never falls with the length, so the best
    score that a live hypothesis can reach is its sum over the divisor of the
    sentence's maximum length. If no live hypothesis of a sentence can reach
    more than the worst finished score, the search of that sentence is over.
    """
    log_probs = ops.where(grown["ended"], IMPOSSIBLE, grown["log_probs"])
    best_reachable = ops.max(log_probs, axis=1) / divisor(limits)  # (B,)
    is_over = best_reachable <= finished["finished_scores"][:, -1]
    number = ops.cast(finished["num_finished"], "float32")
    has_enough = ops.logical_and(enough > 0.0, number >= enough)
    is_over = ops.logical_or(is_over, has_enough)
    return ops.where(is_over[:, None], IMPOSSIBLE, log_probs)
