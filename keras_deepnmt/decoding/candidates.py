"""The best one-token extensions of live hypotheses.

They are chosen for beam search, for groups that avoid each other's tokens, and
for hypotheses that must contain phrases when they end.
"""

import math

from keras import ops

from keras_deepnmt.decoding.hypotheses import (
    IMPOSSIBLE,
    flatten_beams,
    gather_beams,
    unflatten_beams,
)
from keras_deepnmt.decoding.phrases import of_group
from keras_deepnmt.masks import END_ID


def extend_hypotheses(
    live_ids, live_log_probs, log_probs, options, followed=None
):
    """Finds the one-token extensions that a search continues with.

    `live_ids` `(B * G, K, M)` are the hypotheses, filled up with 0s, the groups
    of a sentence one after another. `live_log_probs` `(B * G, K)` are their
    sums, and `log_probs` `(B * G * K, V)` those of the tokens that may follow.
    If phrases are required, `followed` is from `follow_phrases`. The result is
    that of `best_extensions` for all groups, each tensor `(B * G, K)`.
    """
    if options.num_groups > 1:
        return diverse_extensions(
            live_ids,
            live_log_probs,
            log_probs,
            options.num_groups,
            options.diversity_penalty,
            followed,
        )
    if followed is not None:
        return constrained_extensions(live_log_probs, log_probs, followed)
    return best_extensions(live_log_probs, log_probs)


def best_extensions(live_log_probs, log_probs, penalties=None):
    """Finds the K best one-token extensions of a sentence's live hypotheses.

    Each of them is among the K best extensions of its own hypothesis, so the
    K * V candidates need not be sorted.

    `live_log_probs` `(B, K)` are the sums of the hypotheses, and `log_probs`
    `(B * K, V)` those of the tokens that may follow. `penalties` `(B, V)` are
    subtracted from the candidates' sums only to choose them. The result is sums
    without penalties, parent beams and new ids, each `(B, K)`, best first. A
    hypothesis that has ended has no possible extension.
    """
    num_beams = live_log_probs.shape[1]
    per_beam = min(num_beams, log_probs.shape[-1])
    if penalties is None:
        token_log_probs, token_ids = blockwise_top_k(log_probs, per_beam)
        ranked = token_log_probs
    else:
        by_hypothesis = ops.repeat(penalties, num_beams, axis=0)  # (B * K, V)
        ranked, token_ids = blockwise_top_k(log_probs - by_hypothesis, per_beam)
        token_log_probs = ops.take_along_axis(log_probs, token_ids, axis=-1)
    live = live_log_probs[:, :, None]
    by_sentence = (-1, num_beams * per_beam)

    def totals(values):
        return ops.reshape(
            unflatten_beams(values, num_beams) + live, by_sentence
        )

    _, places = ops.top_k(totals(ranked), num_beams)
    places = ops.cast(places, "int32")  # (B, K)
    return (
        ops.maximum(gather_beams(totals(token_log_probs), places), IMPOSSIBLE),
        places // per_beam,
        gather_beams(ops.reshape(token_ids, by_sentence), places),
    )


def diverse_extensions(
    live_ids, live_log_probs, log_probs, num_groups, penalty, followed=None
):
    """Finds extensions for groups of hypotheses that avoid each other's tokens.

    The groups choose one after another; a group's candidates lose `penalty` for
    each time that an earlier group has chosen their token at this step:
    Equation 4 of Vijayakumar et al. (2018) with Hamming diversity.

    Differs from the paper: a hypothesis that an earlier group ends at this step
    does not end in another group, too; its next best extension takes the place.
    Equal hypotheses end at the same step, so all finished ones differ.

    The other arguments and the result are those of `extend_hypotheses`. Each
    group must contain the phrases in the end.
    """
    size, group_size = log_probs.shape[-1], live_log_probs.shape[1]
    live = ops.reshape(live_log_probs, (-1, num_groups, group_size))
    by_group = ops.reshape(log_probs, (-1, num_groups, group_size, size))
    is_same = _is_same(live_ids, num_groups)
    is_end = ops.equal(ops.arange(size, dtype="int32"), END_ID)
    counts, ended, found = None, [], []
    for group in range(num_groups):
        of_words = by_group[:, group]  # (B, K, V)
        if ended:
            # Whether an earlier group ended the same hypothesis: (B, K).
            has_ended = ops.logical_and(
                is_same[:, group, :, :group],
                ops.stack(ended, axis=1)[:, None],
            )
            has_ended = ops.any(has_ended, axis=(-2, -1))
            of_words = ops.where(
                ops.logical_and(has_ended[..., None], is_end),
                IMPOSSIBLE,
                of_words,
            )
        hypotheses = live[:, group], ops.reshape(of_words, (-1, size))
        penalties = None if counts is None else penalty * counts
        if followed is None:
            extended = best_extensions(*hypotheses, penalties)
        else:
            extended = constrained_extensions(
                *hypotheses,
                of_group(followed, group, num_groups),
                penalties,
            )
        found.append(extended)
        totals, parents, new_ids = extended
        is_chosen = totals > IMPOSSIBLE / 2  # (B, K)
        ended.append(
            _is_parent(
                parents,
                ops.logical_and(is_chosen, ops.equal(new_ids, END_ID)),
            )
        )
        is_chosen = ops.cast(is_chosen, "float32")[..., None]
        chosen = ops.sum(ops.one_hot(new_ids, size) * is_chosen, axis=1)
        counts = chosen if counts is None else counts + chosen  # (B, V)
    return tuple(
        ops.reshape(ops.stack(parts, axis=1), (-1, group_size))
        for parts in zip(*found, strict=True)
    )


def constrained_extensions(live_log_probs, log_probs, followed, penalties=None):
    """Finds one-token extensions that make progress with required phrases.

    Candidates are the K best extensions of each hypothesis, and its extensions
    by the next token of each phrase that it lacks. They are sorted into banks
    by the number of phrase tokens that they have. The K places go to the best
    candidate of each bank, beginning with the largest number of tokens, then to
    the second best of each bank, and so on: dynamic beam allocation (Post and
    Vilar, 2018), by sorting alone (Hu et al., 2019).

    `followed` is from `follow_phrases`; the other arguments and the result are
    those of `best_extensions`.
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


def blockwise_top_k(x, k):
    """Finds the `k` largest values of each row, as `ops.top_k`, but faster.

    They are in the `k` blocks with the largest maxima: any other block has only
    values that are at most as large as `k` others. So one pass over the rows
    computes the maxima, and only these and `k` blocks of each row are sorted:
    `2 sqrt(k V)` values with blocks of `sqrt(V / k)` values, the best size. Of
    equal values the first one counts, as for `ops.top_k`.

    `x` is `(R, V)`, with V static and at least `k`. The result is the values
    `(R, k)`, largest first, and their places.
    """
    size = x.shape[-1]
    block_size = _block_size(size, k)
    num_blocks = -(-size // block_size)
    if num_blocks <= k:
        values, places = ops.top_k(x, k)
        return values, ops.cast(places, "int32")
    if size % block_size:
        x = ops.pad(
            x,
            [[0, 0], [0, num_blocks * block_size - size]],
            constant_values=2 * IMPOSSIBLE,
        )
    blocks = ops.reshape(x, (-1, num_blocks, block_size))
    _, best = ops.top_k(ops.max(blocks, axis=-1), k)  # (R, k)
    # In the order of the row, so that of equal values the first one is found.
    best = ops.sort(ops.cast(best, "int32"), axis=-1)
    candidates = ops.take_along_axis(blocks, best[..., None], axis=1)
    values, places = ops.top_k(ops.reshape(candidates, (-1, k * block_size)), k)
    places = ops.cast(places, "int32")
    block = ops.take_along_axis(best, places // block_size, axis=1)
    return values, block * block_size + places % block_size


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

    These are all tokens of the phrases that it contains, and those of the
    phrase that it has begun.
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
    behind = rank * ops.cast(num_banks, "float32")
    behind -= ops.cast(banks, "float32")
    _, chosen = ops.top_k(
        ops.where(is_possible, -behind, IMPOSSIBLE), num_beams
    )
    # They are sorted, so their places are in the order of their ranks.
    chosen = ops.sort(ops.cast(chosen, "int32"), axis=-1)
    return gather_beams(order, chosen)


def _is_same(live_ids, num_groups):
    """Which hypotheses of a sentence are equal: bool `(B, G, K, G, K)`."""
    _, group_size, length = ops.shape(live_ids)
    ids = ops.reshape(live_ids, (-1, num_groups * group_size, length))
    is_same = ops.all(ops.equal(ids[:, :, None], ids[:, None]), axis=-1)
    sizes = (num_groups, group_size)
    return ops.reshape(is_same, (-1, *sizes, *sizes))


def _is_parent(parents, is_counted):
    """Which beams are parents `(B, K)` of an extension that counts."""
    beams = ops.arange(ops.shape(parents)[1], dtype="int32")
    is_here = ops.equal(parents[..., None], beams)  # (B, extensions, K)
    return ops.any(ops.logical_and(is_here, is_counted[..., None]), axis=1)


def _by_sentence(x):
    """Joins the candidates of a sentence: `(B, K, N)` to `(B, K * N)`."""
    shape = ops.shape(x)
    return ops.reshape(x, (-1, shape[1] * shape[2]))


def _block_size(size, k):
    """Returns the block size for rows of a size.

    A size that divides the row is better: padding costs about as much as the
    search for the maxima.
    """
    best = max(1, round(math.sqrt(size / k)))
    near = range(best // 2 + 1, 2 * best)
    sizes = sorted(near, key=lambda n: abs(n - best))
    return next((n for n in sizes if size % n == 0), best)
