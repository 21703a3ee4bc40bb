"""Which token may follow a hypothesis: the rules that all searches share."""

from keras import ops

from keras_deepnmt.decoding.hypotheses import IMPOSSIBLE
from keras_deepnmt.masks import END_ID, PADDING_ID, UNKNOWN_ID


def next_token_log_probs(
    log_probs, ids, step, must_end, options, prefix_ids=None
):
    """Makes tokens that must not follow impossible.

    These are the padding and begin ids; all but the end id where `must_end` is
    true; the end id before the minimum length, unless nothing else may follow;
    and the tokens that `options` forbid. The others are not renormalized: the
    score of an output is the one that the model gives.

    `log_probs` `(R, V)` are of the token after each hypothesis. The hypotheses
    are `ids` `(R, M)`, filled up with 0s, of length `step`, and `must_end`
    `(R,)` tells whether their maximum length is reached. They begin with
    `prefix_ids` `(R, P)`, filled up with 0s: no other token may be in the place
    of these.

    The second result tells for each hypothesis whether it ends only because its
    maximum length is reached: the model gives another permitted token a higher
    probability than the end id.
    """
    log_probs = ops.maximum(ops.cast(log_probs, "float32"), IMPOSSIBLE)
    tokens = ops.arange(log_probs.shape[-1], dtype="int32")[None]  # (1, V)
    is_word = tokens > END_ID
    if options.allow_unknown:
        is_word = ops.logical_or(is_word, ops.equal(tokens, UNKNOWN_ID))
    words = ops.where(is_word, log_probs, IMPOSSIBLE)  # (R, V)
    if options.no_repeat_ngram_size:
        words = forbid_repeated_ngrams(
            words, ids, step, options.no_repeat_ngram_size
        )
    best_word = ops.max(words, axis=-1)  # (R,)
    end = log_probs[:, END_ID]
    may_end = ops.logical_or(
        ops.logical_or(must_end, step >= options.min_length),
        best_word <= IMPOSSIBLE / 2,
    )
    permitted = ops.where(must_end[:, None], IMPOSSIBLE, words)
    end_column = ops.where(may_end, end, IMPOSSIBLE)[:, None]
    permitted = ops.where(ops.equal(tokens, END_ID), end_column, permitted)
    truncated = ops.logical_and(must_end, best_word > end)
    if prefix_ids is None:
        return permitted, truncated
    is_here = ops.equal(ops.arange(ops.shape(prefix_ids)[1]), step)
    forced = ops.sum(ops.where(is_here, prefix_ids, 0), axis=1)  # (R,)
    is_forced = ops.logical_and(forced > 0, ops.logical_not(must_end))
    is_token = ops.equal(tokens, ops.cast(forced, "int32")[:, None])
    token_alone = ops.where(is_token, log_probs, IMPOSSIBLE)
    return ops.where(is_forced[:, None], token_alone, permitted), truncated


def forbid_repeated_ngrams(words, ids, step, size):
    """Makes tokens impossible that would repeat an n-gram of `size` tokens.

    A token is forbidden if it has followed the last `size - 1` tokens of its
    hypothesis before. `words` `(R, V)` are log-probabilities of the token after
    each hypothesis of `ids` `(R, M)`, which has `step` tokens.
    """
    positions = ops.arange(ops.shape(ids)[1], dtype="int32")  # (M,)
    # Whether the token at each position would be repeated: (R, M).
    repeats = ops.logical_and(positions >= size - 1, positions < step)[None]
    for distance in range(1, size):
        before = ops.take(ids, ops.maximum(positions - distance, 0), axis=1)
        is_last = ops.equal(positions, step - distance)
        last = ops.sum(ops.where(is_last, ids, 0), axis=1, keepdims=True)
        repeats = ops.logical_and(repeats, ops.equal(before, last))
    # The padding id is never permitted, so forbidding it changes nothing.
    forbidden = ops.where(repeats, ids, PADDING_ID)
    rows = ops.arange(ops.shape(ids)[0], dtype="int32")[:, None]
    places = ops.stack([ops.zeros_like(forbidden) + rows, forbidden], axis=-1)
    places = ops.reshape(places, (-1, 2))
    values = ops.zeros_like(places[:, 0], dtype="float32") + IMPOSSIBLE
    return ops.scatter_update(words, places, values)
