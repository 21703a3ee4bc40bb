"""Extensions of hypotheses that must come to contain phrases."""

from keras import ops

from keras_deepnmt.decoding.blockwise_top_k import blockwise_top_k
from keras_deepnmt.decoding.hypotheses import (
    IMPOSSIBLE,
    flatten_beams,
    gather_beams,
    unflatten_beams,
)


def constrained_extensions(live_log_probs, log_probs, followed, penalties=None):
    """Finds one-token extensions that make progress with required phrases.

    Candidates are the K best extensions of each hypothesis, and its extensions
    by the next token of each phrase that it lacks. They are sorted into banks
    by the number of phrase tokens that they have. The K places go to the best
    candidate of each bank, beginning with the largest number of tokens, then to
    the second best of each bank, and so on: dynamic beam allocation (Post and
    Vilar, 2018), by sorting alone (Hu et al., 2019).

    Args:
        live_log_probs: float tensor `(B, K)`, the sums of the hypotheses.
        log_probs: float tensor `(B * K, V)` of the tokens that may follow.
        followed: dict from `follow_phrases`.
        penalties: float tensor `(B, V)` that is subtracted from the candidates'
            sums to choose them. Defaults to none.

    Returns:
        As `best_extensions`.
    """
    num_beams = live_log_probs.shape[1]
    ranked = log_probs
    if penalties is not None:
        ranked = log_probs - ops.repeat(penalties, num_beams, axis=0)
    tokens, is_candidate = _candidates(ranked, followed, num_beams)
    num_tokens = ops.shape(tokens)[2]
    live = live_log_probs[:, :, None]

    def totals_of(values):
        values = ops.take_along_axis(values, flatten_beams(tokens), axis=-1)
        return _by_sentence(unflatten_beams(values, num_beams) + live)

    totals = ops.where(
        _by_sentence(is_candidate),
        ops.maximum(totals_of(log_probs), IMPOSSIBLE),
        IMPOSSIBLE,
    )  # (B, K * N)
    is_possible = totals > IMPOSSIBLE / 2
    places = _allocate(
        ops.where(is_possible, totals_of(ranked), IMPOSSIBLE),
        is_possible,
        _by_sentence(_banks(followed, tokens)),
        _most_tokens(followed) + 1,
        num_beams,
    )
    return (
        gather_beams(totals, places),
        places // num_tokens,
        gather_beams(_by_sentence(tokens), places),
    )


def _candidates(ranked, followed, num_beams):
    """Tokens that may extend each hypothesis, `(B, K, N)`, and which count.

    A token that is there twice counts once.
    """
    per_beam = min(num_beams, ranked.shape[-1])
    _, best = blockwise_top_k(ranked, per_beam)
    best = unflatten_beams(best, num_beams)
    is_missing = followed["is_missing"]  # (B, K, C)
    positions = ops.arange(ops.shape(followed["ids"])[-1], dtype="int32")
    is_next = ops.equal(positions, followed["progress"][..., None])
    next_ids = ops.where(is_next, followed["ids"][:, None], 0)
    next_ids = ops.sum(next_ids, axis=-1)  # (B, K, C)
    tokens = ops.concatenate([best, next_ids], axis=-1)
    places = ops.arange(ops.shape(tokens)[-1], dtype="int32")
    is_before = places[None] < places[:, None]  # (N, N)
    is_candidate = ops.concatenate(
        [ops.ones_like(best, dtype="bool"), is_missing], axis=-1
    )
    is_equal = ops.equal(tokens[..., :, None], tokens[..., None, :])
    is_same = ops.logical_and(is_equal, is_candidate[..., None, :])
    is_repeated = ops.any(ops.logical_and(is_same, is_before), axis=-1)
    return tokens, ops.logical_and(is_candidate, ops.logical_not(is_repeated))


def _banks(followed, tokens):
    """Number of phrase tokens that each extension has: `(B, K, N)`.

    All tokens of the phrases that it contains, and those of the phrase that it
    has begun.
    """
    numbers = ops.arange(ops.shape(followed["ids"])[-1], dtype="int32")
    lengths = followed["lengths"][:, None, None]  # (B, 1, 1, C)
    is_next = ops.equal(
        tokens[..., None, None], followed["ids"][:, None, None]
    )  # (B, K, N, C, P)
    continues = ops.logical_and(followed["begun"][:, :, None], is_next)
    is_last = ops.equal(numbers + 1, lengths[..., None])
    completes = ops.any(ops.logical_and(continues, is_last), axis=-1)
    occurrences = followed["occurrences"][:, :, None] + ops.cast(
        completes, "int32"
    )
    is_met = occurrences > followed["repeats"][:, None, None]
    is_part = ops.logical_and(continues, numbers + 1 < lengths[..., None])
    progress = ops.max(ops.where(is_part, numbers + 1, 0), axis=-1)
    progress = ops.max(ops.where(is_met, 0, progress), axis=-1)
    return ops.sum(ops.where(is_met, lengths, 0), axis=-1) + progress


def _most_tokens(followed):
    _, num_phrases, length = ops.shape(followed["ids"])
    return num_phrases * length


def _allocate(ranked, is_possible, banks, num_banks, num_beams):
    """Chooses candidates `(B, J)` of all banks in turn: places `(B, K)`.

    The places are sorted, best first.
    """
    ranked, order = ops.top_k(ranked, ops.shape(ranked)[1])
    order = ops.cast(order, "int32")
    is_possible = gather_beams(is_possible, order)
    banks = gather_beams(banks, order)
    in_bank = ops.one_hot(banks, num_banks, dtype="float32")
    in_bank = ops.where(is_possible[..., None], in_bank, 0.0)  # (B, J, banks)
    better = ops.cumsum(in_bank, axis=1) - in_bank
    # How many candidates of the same bank are better; K are enough.
    rank = ops.minimum(ops.sum(better * in_bank, axis=-1), num_beams)
    behind = rank * num_banks - ops.cast(banks, "float32")
    _, chosen = ops.top_k(
        ops.where(is_possible, -behind, IMPOSSIBLE), num_beams
    )
    # They are sorted, so their places are in the order of their ranks.
    chosen = ops.sort(ops.cast(chosen, "int32"), axis=-1)
    return gather_beams(order, chosen)


def _by_sentence(x):
    """Joins the candidates of a sentence: `(B, K, N)` to `(B, K * N)`."""
    shape = ops.shape(x)
    return ops.reshape(x, (-1, shape[1] * shape[2]))
