"""Phrases that translations must contain, and how much of them there is.

All of this follows from the ids of a hypothesis, so the state of a search does
not hold it.
"""

from keras import ops

from keras_deepnmt.decoding.hypotheses import (
    IMPOSSIBLE,
    flatten_beams,
    unflatten_beams,
)
from keras_deepnmt.errors import UserError
from keras_deepnmt.masks import END_ID, PADDING_ID, UNKNOWN_ID, padding_mask


def required_phrases(constraint_ids, limits, options, vocabulary_size):
    """Describes phrases `(B, C, P)`, filled up with 0s.

    Those that no translation of their sentence can contain are left out: they
    have no room before the end token of the longest translation, whose length
    is in `limits` `(B,)`, or have tokens that are never produced.

    The result has `ids` int32 `(B, C, P)`, 0 for those left out; `lengths`
    int32 `(B, C)`; `repeats` int32 `(B, C)`, how many earlier phrases of the
    sentence are equal; and `is_complete` bool `(B,)`, whether none is left out.

    Example:
    >>> from keras_deepnmt.decoding import SearchOptions
    >>> ids = np.array([[[7, 8], [9, 0], [9, 0]]])
    >>> limits = np.array([5], "int32")
    >>> phrases = required_phrases(ids, limits, SearchOptions(), 11)
    >>> np.asarray(phrases["lengths"]), np.asarray(phrases["repeats"])
    (array([[2, 1, 1]], dtype=int32), array([[0, 0, 1]], dtype=int32))
    """
    shape = tuple(constraint_ids.shape)
    if len(shape) != 3 or 0 in shape[1:]:
        raise ValueError(
            "`constraint_ids` must have the shape (number of sentences, number "
            "of phrases, number of tokens), filled up with 0s. Received: shape "
            f"{shape}"
        )
    ids = ops.cast(constraint_ids, "int32")
    is_produced = ops.logical_and(ids > END_ID, ids < vocabulary_size)
    for token in [PADDING_ID] + [UNKNOWN_ID] * options.allow_unknown:
        is_produced = ops.logical_or(is_produced, ops.equal(ids, token))
    lengths = ops.sum(ops.cast(padding_mask(ids), "int32"), axis=-1)
    is_possible = ops.logical_and(
        ops.all(is_produced, axis=-1),
        lengths < ops.maximum(limits, 1)[:, None],
    )  # (B, C)
    is_equal = ops.all(ops.equal(ids[:, :, None], ids[:, None]), axis=-1)
    # Sizes are not known in an exported graph.
    numbers = ops.arange(ops.shape(ids)[1], dtype="int32")
    is_before = numbers[None] < numbers[:, None]  # (C, C)
    repeats = ops.logical_and(is_equal, is_before[None])
    return {
        "ids": ops.where(is_possible[..., None], ids, PADDING_ID),
        "lengths": ops.where(is_possible, lengths, 0),
        "repeats": ops.sum(ops.cast(repeats, "int32"), axis=-1),
        "is_complete": ops.all(is_possible, axis=-1),
    }


def of_group(phrases, group, num_groups):
    """Takes one group of every sentence of a dict of tensors `(B * G, ...)`."""
    return {
        name: unflatten_beams(x, num_groups)[:, group]
        for name, x in phrases.items()
    }


def count_missed(phrases, ids):
    """Counts the phrases that hypotheses `(B, K, M)` lack: int32 `(B, K)`.

    A phrase that is required several times must occur as often; occurrences
    may overlap.

    Example:
    >>> from keras_deepnmt.decoding import SearchOptions
    >>> ids = np.array([[[7, 8], [9, 0], [9, 0]]])
    >>> limits = np.array([5], "int32")
    >>> phrases = required_phrases(ids, limits, SearchOptions(), 11)
    >>> ids = np.array([[[7, 8, 9, 3], [9, 7, 9, 3]]])
    >>> np.asarray(count_missed(phrases, ids)).tolist()
    [[1, 1]]
    """
    missing = _is_missing(phrases, _occurrences(phrases, ids))
    return ops.sum(ops.cast(missing, "int32"), axis=-1)


def contains_all(phrases, ids):
    """Tells which hypotheses `(B, K, M)` contain all phrases: bool `(B, K)`.

    None does where `required_phrases` left out a phrase.
    """
    return ops.logical_and(
        ops.equal(count_missed(phrases, ids), 0),
        phrases["is_complete"][:, None],
    )


def follow_phrases(phrases, ids, step):
    """Finds how far hypotheses `(B, K, M)` have come with their phrases.

    The hypotheses are filled up with 0s and have `step` tokens. The result is
    `phrases`, from `required_phrases`, and also: `occurrences` int32
    `(B, K, C)`; `is_missing` bool `(B, K, C)`; `begun` bool `(B, K, C, P)`,
    whether the last p tokens of the hypothesis are the first p of the phrase;
    `progress` int32 `(B, K, C)`, the largest such p of a phrase that is
    missing.
    """
    occurrences = _occurrences(phrases, ids)
    begun = _begun(phrases["ids"], ids, step)
    is_missing = _is_missing(phrases, occurrences)
    numbers = ops.arange(ops.shape(begun)[-1], dtype="int32")
    is_part = ops.logical_and(
        begun, numbers < phrases["lengths"][:, None, :, None]
    )
    progress = ops.max(ops.where(is_part, numbers, 0), axis=-1)
    return {
        **phrases,
        "occurrences": occurrences,
        "is_missing": is_missing,
        "begun": begun,
        "progress": ops.where(is_missing, progress, 0),
    }


def within_reach(followed, step, limits):
    """Tells which missing phrases still have room: bool `(B, K, C)`.

    `followed` is from `follow_phrases`. The hypotheses have `step` tokens;
    their maximum lengths `limits` `(B,)` include the end token.
    """
    rest = followed["lengths"][:, None] - followed["progress"]
    has_room = step + rest < limits[:, None, None]
    return ops.logical_and(followed["is_missing"], has_room)


def forbid_early_end(log_probs, followed, step, limits):
    """Makes the end impossible where a phrase that is missing has room.

    Where no other token may follow, the end remains possible. `log_probs`
    `(B * K, V)` are those of the tokens that may follow; the other arguments
    are those of `within_reach`.
    """
    is_early = ops.any(within_reach(followed, step, limits), axis=-1)
    is_early = flatten_beams(is_early[..., None])  # (B * K, 1)
    tokens = ops.arange(log_probs.shape[-1], dtype="int32")[None]
    is_end = ops.equal(tokens, END_ID)
    others = ops.where(is_end, IMPOSSIBLE, log_probs)
    may_continue = ops.max(others, axis=-1, keepdims=True) > IMPOSSIBLE / 2
    return ops.where(ops.logical_and(is_early, may_continue), others, log_probs)


def check_beams(options):
    """Refuses searches that cannot choose where a phrase stands.

    These draw translations at random, or have a group with a single beam.
    """
    if options.sampling:
        raise UserError(
            "Phrases that translations must contain need a search, not draws "
            "at random. Received: sampling=True"
        )
    if options.num_beams // options.num_groups < 2:
        raise UserError(
            "Phrases that translations must contain need at least 2 beams in "
            "each group, better one more than the phrases have tokens. "
            f"Received: num_beams={options.num_beams}, "
            f"num_groups={options.num_groups}"
        )


def _is_missing(phrases, occurrences):
    """Whether hypotheses lack each phrase: bool `(B, K, C)`."""
    return ops.logical_and(
        phrases["lengths"][:, None] > 0,
        occurrences <= phrases["repeats"][:, None],
    )


def _occurrences(phrases, ids):
    """How often hypotheses contain each phrase: int32 `(B, K, C)`."""
    phrase_ids = phrases["ids"]
    num_positions, length = ops.shape(ids)[-1], ops.shape(phrase_ids)[-1]
    ids = ops.pad(ids, [[0, 0], [0, 0], [0, length]])
    starts = ops.arange(num_positions, dtype="int32")[:, None]  # (M, 1)
    places = starts + ops.arange(length, dtype="int32")  # (M, P)
    windows = ops.take(ids, places, axis=2)[:, :, None]  # (B, K, 1, M, P)
    expected = phrase_ids[:, None, :, None]  # (B, 1, C, 1, P)
    fits = ops.logical_or(
        ops.equal(windows, expected), ops.equal(expected, PADDING_ID)
    )
    found = ops.all(fits, axis=-1)  # (B, K, C, M)
    return ops.sum(ops.cast(found, "int32"), axis=-1)


def _begun(phrase_ids, ids, step):
    """Whether the last p tokens are a phrase's first p: `(B, K, C, P)`."""
    numbers = ops.arange(ops.shape(phrase_ids)[-1], dtype="int32")
    parts = numbers[:, None]  # (P, 1): p tokens of the phrase
    places = step - parts + numbers[None]  # (P, P)
    last = ops.shape(ids)[-1] - 1
    windows = ops.take(ids, ops.clip(places, 0, last), axis=2)[:, :, None]
    expected = phrase_ids[:, None, :, None]  # (B, 1, C, 1, P)
    fits = ops.logical_or(ops.equal(windows, expected), numbers >= parts)
    return ops.logical_and(ops.all(fits, axis=-1), numbers <= step)
