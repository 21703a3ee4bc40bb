"""The ranking of hypotheses: the length penalty, and the best that finished.

It also tells when the search of a sentence is over.
"""

from keras import ops

from keras_deepnmt.decoding.hypotheses import IMPOSSIBLE, gather_beams
from keras_deepnmt.decoding.phrases import (
    count_missed,
    follow_phrases,
    within_reach,
)


def score_divisor(length, length_penalty, length_offset=5.0):
    """Returns the length penalty: the divisor of a sum of log-probabilities.

    `((length_offset + length) / (length_offset + 1)) ** length_penalty`, see
    `SearchOptions`: float32 of the shape of `length`, at least 1, and never
    smaller for a greater length. `length` includes the end id; 0, a row that
    only fills up the batch, counts as 1, so that nothing is divided by 0.
    """
    length = ops.cast(ops.maximum(length, 1), "float32")
    return ops.power(
        (length_offset + length) / (length_offset + 1.0), length_penalty
    )


def is_possible(log_probs):
    """Whether sums or scores are those of hypotheses: bool, the same shape."""
    return log_probs > IMPOSSIBLE / 2


def keep_finished(state, grown, phrases):
    """Keeps the K best of the old and new finished hypotheses, best first.

    Of equal scores the older one is kept, since it comes first for `top_k`.
    """
    num_beams = grown["log_probs"].shape[1]
    is_new = ops.logical_and(grown["ended"], is_possible(grown["log_probs"]))
    new_scores = ops.where(is_new, grown["scores"], IMPOSSIBLE)
    scores = ops.concatenate([state["finished_scores"], new_scores], axis=1)
    ids = ops.concatenate([state["finished_ids"], grown["ids"]], axis=1)
    places = best_places(scores, ids, num_beams, phrases)
    if phrases is not None:
        has_all = ops.equal(count_missed(phrases, grown["ids"]), 0)
        is_new = ops.logical_and(is_new, has_all)

    def keep(old, new):
        return gather_beams(ops.concatenate([old, new], axis=1), places)

    return {
        "num_finished": state["num_finished"]
        + ops.sum(ops.cast(is_new, "int32"), axis=1),
        "finished_ids": gather_beams(ids, places),
        "finished_scores": gather_beams(scores, places),
        "finished_log_probs": keep(
            state["finished_log_probs"], grown["log_probs"]
        ),
        "finished_truncated": keep(
            state["finished_truncated"], grown["truncated"]
        ),
    }


def best_places(scores, ids, number, phrases):
    """Places of the best hypotheses `(B, J)` by their score: `(B, number)`.

    Those that lack fewer phrases come first.
    """
    if phrases is None:
        return ops.cast(ops.top_k(scores, number)[1], "int32")
    size = scores.shape[1]
    scores, order = ops.top_k(scores, size)
    order = ops.cast(order, "int32")
    missed = gather_beams(count_missed(phrases, ids), order)
    # A hypothesis that has not ended comes last, whatever it contains.
    num_phrases = ops.shape(phrases["ids"])[1]
    missed = ops.where(is_possible(scores), missed, num_phrases)
    behind = ops.cast(
        missed * size + ops.arange(size, dtype="int32"), "float32"
    )
    _, places = ops.top_k(-behind, number)
    return gather_beams(order, ops.cast(places, "int32"))


def still_live(
    grown, finished, limits, divisor, enough, phrases, num_needed=None
):
    """Returns the sums of live hypotheses, IMPOSSIBLE for those that are over.

    The search of a sentence is over if `enough` hypotheses have finished (0 is
    no limit), or if no live one can become better than the best `num_needed` of
    those that are kept, by default all.

    A sum never rises and the divisor never falls with the length, so the best
    score that a live hypothesis can reach is its sum over the divisor of the
    sentence's maximum length. If no live hypothesis of a sentence can reach
    more than the worst of these scores, the search of that sentence is over.
    A coverage penalty only makes scores smaller.
    """
    log_probs = ops.where(grown["ended"], IMPOSSIBLE, grown["log_probs"])
    reachable = log_probs / divisor(limits)[:, None]  # (B, K)
    worst = finished["finished_scores"][:, -1:]
    if num_needed is not None:
        place = ops.minimum(num_needed, log_probs.shape[1]) - 1
        worst = ops.take(finished["finished_scores"], place, axis=1)[:, None]
    is_better = reachable > worst
    if phrases is not None:
        kept = count_missed(phrases, finished["finished_ids"][:, -1:])  # (B, 1)
        missed = _least_missed(phrases, grown, limits)  # (B, K)
        is_better = ops.logical_or(
            missed < kept,
            ops.logical_and(ops.equal(missed, kept), is_better),
        )
    is_better = ops.logical_and(is_better, is_possible(log_probs))
    is_over = ops.logical_not(ops.any(is_better, axis=1))  # (B,)
    number = ops.cast(finished["num_finished"], "float32")
    has_enough = ops.logical_and(enough > 0.0, number >= enough)
    is_over = ops.logical_or(is_over, has_enough)
    return ops.where(is_over[:, None], IMPOSSIBLE, log_probs)


def _least_missed(phrases, grown, limits):
    """How many phrases a live hypothesis will lack at least: `(B, K)`."""
    followed = follow_phrases(phrases, grown["ids"], grown["step"])
    lost = ops.logical_and(
        followed["is_missing"],
        ops.logical_not(within_reach(followed, grown["step"], limits)),
    )
    return ops.sum(ops.cast(lost, "int32"), axis=-1)
