"""Figures of the roles of tokens (Weissenborn et al., 2019)."""

import math

import numpy as np

from keras_deepnmt.analysis import (
    role_entropy,
    role_uses,
    v_measure,
    v_measure_by_chance,
)
from keras_deepnmt.figures.analyzed_run import AnalyzedRun
from keras_deepnmt.figures.figure import Bars, Figure, Table

_END = "/roles/roles"


def role_figures(run: AnalyzedRun) -> list[Figure]:
    """How often roles are played, by which tokens; the roles of one token.

    There are none for a model without roles of the source.
    """
    names = [n for n in run.names if n == f"source_embedding_layer{_END}"]
    if not names:
        return []
    probabilities = run.record(names)[names[0]]
    mask = run.source_mask
    chosen = [
        row[real].tolist()
        for row, real in zip(probabilities.argmax(-1), mask, strict=True)
    ]
    sentences = [
        [piece.replace("▁", "") or piece for piece in run.source_tokens(row)]
        for row in range(len(run.sources))
    ]
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
    labels, roles = [], []
    for row, of_words in enumerate(run.labels_of_words):
        word = -1
        for piece, role in zip(
            run.source_tokens(row), chosen[row], strict=True
        ):
            # The first piece of a word plays the word's role.
            if piece.startswith("▁"):
                word += 1
                if word in of_words:
                    labels.append(of_words[word])
                    roles.append(role)
    if not labels:
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
