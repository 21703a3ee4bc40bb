"""Sentence-level BLEU of token ids, inside a training step."""

from keras import ops

from keras_deepnmt.masks import END_ID, PADDING_ID


def sentence_bleu(candidates, references, max_order=4):
    """Computes the smoothed BLEU of each candidate.

    With the number m_n of n-grams of the candidate that the reference has,
    each at most as often, and the number g_n of its n-grams,

        BLEU = exp(min(0, 1 - r / c) + 1/N sum_n log p_n)
        p_1 = m_1 / g_1,  p_n = (m_n + 1) / (g_n + 1)  for n > 1

    where r and c are the numbers of tokens (Lin and Och, 2004, Section 4).

    Args:
        candidates: int tensor `(B, K, M)`; tokens, the end id 3, then 0s.
        references: int tensor `(B, T)`, likewise.
        max_order: int. Longest n-grams N. Defaults to `4`.

    Returns:
        Float32 tensor `(B, K)` in [0, 1].

    Example:
    >>> bleu = sentence_bleu(np.array([[[4, 5, 3]]]), np.array([[4, 5, 3, 0]]))
    >>> np.asarray(bleu).tolist()
    [[1.0]]

    Reference:
        - [Lin and Och, 2004](https://aclanthology.org/C04-1072).
    """
    is_token = _is_token(candidates)
    in_reference = _is_token(references)
    lengths = _sum(is_token)  # (B, K)
    same_as_reference = _same(
        candidates,
        ops.expand_dims(references, 1),
        is_token,
        in_reference[:, None],
    )  # (B, K, M, T)
    same_as_own = _same(candidates, candidates, is_token, is_token)
    found, own = same_as_reference, same_as_own
    mean = 0.0
    for order in range(1, max_order + 1):
        if order > 1:
            found = same_as_reference & _next(found)
            own = same_as_own & _next(own)
        # Each n-gram of the candidate has a share of the matches.
        matches = ops.sum(
            ops.minimum(1.0, _sum(found) / ops.maximum(_sum(own), 1.0)), axis=-1
        )
        total = ops.maximum(lengths - (order - 1.0), 0.0)
        if order > 1:
            matches, total = matches + 1.0, total + 1.0
        precision = matches / ops.maximum(total, 1.0)
        mean = mean + ops.log(ops.maximum(precision, 1e-30)) / max_order
    expected = ops.expand_dims(_sum(in_reference), 1)  # (B, 1)
    brevity = ops.minimum(0.0, 1.0 - expected / ops.maximum(lengths, 1.0))
    bleu = ops.exp(brevity + mean)
    # Without a match p_1 is 0.
    return ops.where(ops.any(same_as_reference, axis=(2, 3)), bleu, 0.0)


def _is_token(ids):
    return ops.not_equal(ids, PADDING_ID) & ops.not_equal(ids, END_ID)


def _same(ids, others, is_token, is_other):
    """Whether the token at i is the one at j: `(..., M, T)`."""
    same = ops.equal(ops.expand_dims(ids, -1), ops.expand_dims(others, -2))
    both = ops.expand_dims(is_token, -1) & ops.expand_dims(is_other, -2)
    return same & both


def _next(same):
    """Moves what holds of positions i + 1 and j + 1 to i and j."""
    moved = same[..., 1:, 1:]
    pads = [(0, 0)] * (len(same.shape) - 2) + [(0, 1), (0, 1)]
    return ops.cast(ops.pad(ops.cast(moved, "int32"), pads), "bool")


def _sum(values):
    return ops.sum(ops.cast(values, "float32"), axis=-1)
