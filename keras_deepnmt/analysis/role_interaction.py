"""Which roles tokens play, and where (Weissenborn et al., 2019)."""

import logging
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import keras
import numpy as np

from keras_deepnmt.analysis.analyzed_run import AnalyzedRun
from keras_deepnmt.analysis.figure import Bars, Figure, HeatMap, Table
from keras_deepnmt.analysis.recorded_model import recorded_names
from keras_deepnmt.analysis.role_agreement import v_measure, v_measure_by_chance
from keras_deepnmt.analysis.word_alignments import first_word, tag_starts

_log = logging.getLogger(__name__)
_END = "/roles/roles"
_OF_SOURCE = f"source_embedding_layer{_END}"


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
            "are not probabilities."
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


def has_roles(model: keras.Model) -> bool:
    """Whether `role_figures` has figures of a model."""
    return _OF_SOURCE in recorded_names(model)


def role_figures(run: AnalyzedRun) -> list[Figure]:
    """How often roles are played, by which tokens; the roles of one token.

    There are none for a model without roles of the source.
    """
    if _OF_SOURCE not in run.names:
        return []
    probabilities = run.record([_OF_SOURCE])[_OF_SOURCE]
    mask = run.source_mask
    chosen = [
        row[real].tolist()
        for row, real in zip(probabilities.argmax(-1), mask, strict=True)
    ]
    sentences = [run.source_tokens(row) for row in range(len(run.sources))]
    uses = role_uses(sentences, chosen)
    of_token = role_uses(sentences, chosen, run.token, num_examples=5)
    return [
        _frequencies(uses),
        _table("role_uses", "Roles and their typical tokens", uses),
        *_entropies(probabilities, mask),
        *_agreement(run, chosen),
        _table(
            "role_uses_of_token",
            f"Roles of the token “{run.token}”",
            of_token,
        ),
    ]


def role_map_figures(run: AnalyzedRun) -> list[Figure]:
    """The roles of the tokens of the first sentence, of both sides."""
    figures: list[Figure] = []
    for side, tokens in (
        ("source", run.source_tokens(0)),
        ("target", run.target_tokens(0)),
    ):
        name = f"{side}_embedding_layer{_END}"
        if name not in run.names:
            continue
        roles = run.record([name])[name][0]
        if side == "target":
            # The model reads a translation after the token that begins it.
            tokens = ["(begin)", *tokens[:-1]]
        figures.append(
            HeatMap(
                name=f"{side}_roles",
                title=f"Roles of the {side} tokens",
                caption="How much each token plays each role (Weissenborn et "
                "al., 2019).",
                values=roles[: len(tokens)],
                row_names=tokens,
                column_names=[str(role) for role in range(roles.shape[-1])],
                row_label="token",
                column_label="role",
                unit="weight of the role",
            )
        )
    return figures


def _frequencies(uses):
    return Bars(
        name="role_frequencies",
        title="Tokens that play each role",
        caption="The most probable role of each source token.",
        names=[str(use.role) for use in uses],
        series={"tokens": [use.count for use in uses]},
        y_label="number of tokens",
        x_label="role",
    )


def _table(name, title, uses):
    return Table(
        name=name,
        title=title,
        caption="The most frequent tokens of a role with their counts, and "
        "occurrences in their context.",
        header=["role", "count", "tokens", "examples"],
        rows=[
            [
                use.role,
                use.count,
                ", ".join(f"{word} ({n})" for word, n in use.tokens),
                " | ".join(use.examples),
            ]
            for use in uses
        ],
    )


def _entropies(probabilities, mask):
    """Entropies of roles that are probabilities; dense roles have none."""
    of_tokens = probabilities[mask]
    if not np.allclose(of_tokens.sum(-1), 1.0, atol=1e-3):
        return []
    found = role_entropy(probabilities, mask)
    return [
        Table(
            name="role_entropy",
            title="Entropy of roles",
            caption="Token: mean entropy of a token's roles, 0 if it has one "
            "sure role. Use: entropy of the mean over all tokens. At most ln "
            f"{probabilities.shape[-1]} = "
            f"{math.log(probabilities.shape[-1]):.3f}.",
            header=["entropy of", "nats"],
            rows=[[name, round(value, 4)] for name, value in found.items()],
        )
    ]


def _agreement(run, chosen):
    """How well the roles of labelled words agree with their labels."""
    if run.labels_of_words is None:
        return []
    translator = run.translator
    labels, roles = [], []
    for of_words, given, text, tag, (*of_tokens, _) in zip(
        run.labels_of_words,
        run.sources,
        translator.tagged(run.sources),
        translator.target_tags(run.sources),
        chosen,  # the last role is that of the end of the sentence
        strict=True,
    ):
        start, _ = tag_starts(translator, tag)
        words = translator.source_tokenizer.token_words(text, start)
        first = first_word(given, tag)
        seen = set()
        for numbers, role in zip(words, of_tokens, strict=True):
            if not numbers:  # a token of the tag
                continue
            word = first + numbers[0]
            # The first piece of a word plays the word's role.
            if word in of_words and word not in seen:
                labels.append(of_words[word])
                roles.append(role)
            seen.add(word)
    if not labels:
        _log.warning(
            "%s: roles are not compared with gold labels, none of which is of "
            "a word of the sentences. Labels number the words of a source "
            "from 0.",
            run.name,
        )
        return []
    return [
        Table(
            name="role_agreement",
            title="Agreement of roles with gold labels",
            caption="V-measure (Rosenberg and Hirschberg, 2007) of labels and "
            "most probable roles; by chance: of shuffled roles. 1 is a perfect "
            "agreement.",
            header=["labelled words", "labels", "roles", "V-measure", "chance"],
            rows=[
                [
                    *(len(labels), len(set(labels)), len(set(roles))),
                    round(v_measure(labels, roles), 4),
                    round(v_measure_by_chance(labels, roles), 4),
                ]
            ],
        )
    ]
