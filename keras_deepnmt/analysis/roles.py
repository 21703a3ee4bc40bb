"""Which roles tokens play, and in which contexts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class RoleUse:
    """How one role is used.

    Attributes:
        role: Number of the role, from 0.
        count: Number of tokens that play it.
        tokens: The most frequent of them with their counts.
        examples: Occurrences in their context; see `role_uses`.
    """

    role: int
    count: int
    tokens: tuple[tuple[str, int], ...]
    examples: tuple[str, ...]


def role_uses(
    sentences: Sequence[Sequence[str]],
    roles: Sequence[Sequence[int]],
    token: str | None = None,
    num_tokens: int = 5,
    num_examples: int = 3,
    context: int = 3,
) -> list[RoleUse]:
    """Lists the roles by frequency, with typical tokens and their contexts.

    It is the table of Weissenborn et al. (2019, Tables 3 to 5): each token of
    the source is assigned its most probable role.

    Args:
        sentences: Tokens of each sentence.
        roles: Role of each token.
        token: Only occurrences of this token, as in the study of "der".
            Defaults to all tokens.
        num_tokens: Number of most frequent tokens for each role.
        num_examples: Number of occurrences for each role, the first ones.
        context: Number of tokens on each side of an occurrence.

    Returns:
        One `RoleUse` for each role that occurs, the most frequent first. In an
        example the token stands in brackets: `"sieht [der] Hund"`.

    Raises:
        ValueError: if sentences and roles differ in length.

    Example:
    >>> uses = role_uses([["der", "Hund"], ["der", "Mann"]], [[0, 1], [0, 1]])
    >>> uses[0].count, uses[0].tokens, uses[1].examples[0]
    (2, (('der', 2),), 'der [Hund]')
    """
    counts: dict[int, Counter[str]] = {}
    examples: dict[int, list[str]] = {}
    for words, numbers in zip(sentences, roles, strict=True):
        for place, (word, role) in enumerate(zip(words, numbers, strict=True)):
            if token is not None and word != token:
                continue
            role = int(role)
            counts.setdefault(role, Counter())[word] += 1
            shown = examples.setdefault(role, [])
            if len(shown) < num_examples:
                left = words[max(place - context, 0) : place]
                right = words[place + 1 : place + 1 + context]
                shown.append(" ".join([*left, f"[{word}]", *right]))
    order = sorted(counts, key=lambda role: (-counts[role].total(), role))
    return [
        RoleUse(
            role,
            counts[role].total(),
            tuple(counts[role].most_common(num_tokens)),
            tuple(examples[role]),
        )
        for role in order
    ]


def role_entropy(
    probabilities: np.ndarray, mask: np.ndarray | None = None
) -> dict[str, float]:
    """Measures how certain roles are, and how evenly they are used.

        certain = mean over tokens of -sum_r p_r ln p_r
        used    = -sum_r q_r ln q_r,  q_r = mean over tokens of p_r

    Args:
        probabilities: Array `(B, S, h_r)`, such as the tensor `.../roles` of
            `record` with soft or one-hot roles.
        mask: Bool array `(B, S)`, `True` = real token. Defaults to all.

    Returns:
        Dict `{"token", "use"}` in nats: 0 for a token with one sure role, and
        for a use of one role only; at most ln h_r.

    Raises:
        ValueError: if the probabilities do not sum to 1.

    Example:
    >>> role_entropy(np.array([[[1.0, 0.0], [0.0, 1.0]]]))["token"]
    0.0
    """
    p = np.asarray(probabilities, "float64")
    p = p[np.asarray(mask, "bool")] if mask is not None else _rows(p)
    if not len(p) or not np.allclose(p.sum(axis=-1), 1.0, atol=1e-3):
        raise ValueError(
            "`probabilities` must sum to 1 over the last axis. Received: sums "
            f"from {p.sum(-1).min():.3g} to {p.sum(-1).max():.3g}. Dense roles "
            "are no probabilities."
        )
    return {
        "token": float(_entropy(p).mean()),
        "use": float(_entropy(p.mean(axis=0))),
    }


def _rows(p):
    return p.reshape(-1, p.shape[-1])


def _entropy(p):
    # The limit of p ln p at 0 is 0.
    logs = np.log(np.where(p > 0.0, p, 1.0))
    return np.abs(np.sum(p * logs, axis=-1))
