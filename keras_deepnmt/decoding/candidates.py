"""The best one-token extensions of live hypotheses."""

from keras import ops

from keras_deepnmt.decoding.blockwise_top_k import blockwise_top_k
from keras_deepnmt.decoding.constrained_extensions import (
    constrained_extensions,
)
from keras_deepnmt.decoding.hypotheses import (
    IMPOSSIBLE,
    gather_beams,
    unflatten_beams,
)
from keras_deepnmt.decoding.phrases import of_group


def extend_hypotheses(live_log_probs, log_probs, options, followed=None):
    """Finds the one-token extensions that a search goes on with.

    Args:
        live_log_probs: float tensor `(B * G, K)`, the sums of the hypotheses,
            the groups of a sentence one after another.
        log_probs: float tensor `(B * G * K, V)` of the tokens that may follow.
        options: `SearchOptions`.
        followed: dict from `follow_phrases`, if phrases are required.

    Returns:
        As `best_extensions`, of all groups, each `(B * G, K)`.
    """
    if options.num_groups > 1:
        return diverse_extensions(
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

    Args:
        live_log_probs: float tensor `(B, K)`, the sums of the hypotheses.
        log_probs: float tensor `(B * K, V)` of the tokens that may follow.
        penalties: float tensor `(B, V)` that is subtracted from the candidates'
            sums to choose them. Defaults to none.

    Returns:
        Sums of log-probabilities, without penalties, parent beams and new ids,
        each `(B, K)`, best first. A hypothesis that has ended has no possible
        extension.
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
    live_log_probs, log_probs, num_groups, penalty, followed=None
):
    """Finds extensions for groups of hypotheses that avoid each other's tokens.

    The groups choose one after another; a group's candidates lose `penalty` for
    each time that an earlier group has chosen their token at this step:
    Equation 4 of Vijayakumar et al. (2018) with Hamming diversity.

    Args:
        live_log_probs: float tensor `(B * G, K)`, the groups of a sentence one
            after another.
        log_probs: float tensor `(B * G * K, V)` of the tokens that may follow.
        num_groups: int, G.
        penalty: float or scalar tensor.
        followed: dict from `follow_phrases`, if phrases are required; each
            group must come to contain them.

    Returns:
        As `best_extensions`, of all groups, each `(B * G, K)`.
    """
    size, group_size = log_probs.shape[-1], live_log_probs.shape[1]
    live = ops.reshape(live_log_probs, (-1, num_groups, group_size))
    by_group = ops.reshape(log_probs, (-1, num_groups, group_size, size))
    counts, found = None, []
    for group in range(num_groups):
        hypotheses = live[:, group], ops.reshape(by_group[:, group], (-1, size))
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
        totals, _, new_ids = extended
        is_chosen = ops.cast(totals > IMPOSSIBLE / 2, "float32")[..., None]
        chosen = ops.sum(ops.one_hot(new_ids, size) * is_chosen, axis=1)
        counts = chosen if counts is None else counts + chosen  # (B, V)
    return tuple(
        ops.reshape(ops.stack(parts, axis=1), (-1, group_size))
        for parts in zip(*found, strict=True)
    )
