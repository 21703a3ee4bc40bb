"""What must be true of the tables of roles, counted by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from toy_model import ToyModel

from keras_deepnmt import Translator
from keras_deepnmt.analysis import role_entropy, role_uses
from keras_deepnmt.analysis.role_interaction import role_figures
from keras_deepnmt.data import train_tokenizer

SENTENCES = [
    ["der", "Hund", "sieht", "der", "Katze", "zu"],
    ["Sie", "hilft", "der", "Frau"],
]
ROLES = [[2, 0, 1, 4, 0, 1], [3, 1, 4, 0]]


def test_roles_are_listed_by_frequency_with_tokens_and_contexts():
    uses = role_uses(SENTENCES, ROLES, num_tokens=2, context=1)
    assert [(use.role, use.count) for use in uses] == [
        *((0, 3), (1, 3), (4, 2), (2, 1), (3, 1)),
    ]
    assert uses[0].tokens == (("Hund", 1), ("Katze", 1))
    assert uses[2].tokens == (("der", 2),)
    assert uses[2].examples == ("sieht [der] Katze", "hilft [der] Frau")
    assert uses[3].examples == ("[der] Hund",)


def test_one_ambiguous_token_is_studied_by_itself():
    uses = role_uses(SENTENCES, ROLES, token="der", num_examples=1)
    assert [(use.role, use.count) for use in uses] == [(4, 2), (2, 1)]
    assert uses[0].examples == ("der Hund sieht [der] Katze zu",)
    assert role_uses(SENTENCES, ROLES, token="nosuch") == []


def test_lengths_must_agree():
    with pytest.raises(ValueError):
        role_uses(SENTENCES, [ROLES[0]])


def test_entropy_of_tokens_and_of_use():
    one_hot = np.eye(4)[None]
    found = role_entropy(one_hot)
    assert found["token"] == pytest.approx(0)
    assert found["use"] == pytest.approx(np.log(4))
    even = role_entropy(np.full((1, 3, 4), 0.25))
    assert even["token"] == even["use"] == pytest.approx(np.log(4))
    # Padding does not count.
    masked = role_entropy(one_hot, [[True, False, False, False]])
    assert masked == pytest.approx({"token": 0.0, "use": 0.0})
    with pytest.raises(ValueError, match="must sum to 1"):
        role_entropy(np.ones((1, 2, 3)))


TEXTS = ["a small dog runs", "two men read the old book"]
ROLES_NAME = "source_embedding_layer/roles/roles"


def words_of(pieces):
    """The word of each piece, from 0; -1 for a tag and for the end."""
    number, words = -1, []
    for piece in pieces:
        if piece.startswith("<"):
            number = -1
        elif piece.startswith("▁"):
            number += 1
        words.append(-1 if piece.startswith("<") else number)
    return [*words, -1]


@pytest.mark.parametrize(
    ("prefix", "options"),
    [
        ("", {}),
        ("", {"tag": "<2de>"}),
        ("", {"tag": "<2de>", "tag_side": "target"}),
        ("<2fr> ", {"tag_side": "target", "training_tags": ["<2fr>"]}),
    ],
)
def test_labels_are_those_of_the_words_of_the_line(
    tmp_path, caplog, prefix, options
):
    tokenizer = train_tokenizer(
        TEXTS * 9, tmp_path / "m", 36, user_defined_symbols=["<2de>", "<2fr>"]
    )
    model = ToyModel(36, 36)
    translator = Translator(model, tokenizer, tokenizer, **options)
    sources = [prefix + text for text in TEXTS]
    pieces = [
        tokenizer.pieces(ids)
        for ids in tokenizer.encode(translator.tagged(sources))
    ]
    assert sum(map(len, pieces)) > 14  # some words have several
    # The role of a token is the number of its word.
    words = [words_of(of_text) for of_text in pieces]
    mask = np.zeros((2, max(map(len, words))), bool)
    roles = np.zeros((*mask.shape, 9))
    for row, of_text in enumerate(words):
        mask[row, : len(of_text)] = True
        roles[row, range(len(of_text)), of_text] = 1
    labels = [
        {len(prefix.split()) + n: str(n) for n in range(len(text.split()))}
        for text in TEXTS
    ]
    run = SimpleNamespace(
        name="run",
        names=[ROLES_NAME],
        record=lambda names: {ROLES_NAME: roles},
        source_mask=mask,
        source_tokens=lambda row: [*pieces[row], "</s>"],
        sources=sources,
        token="dog",
        translator=translator,
        labels_of_words=labels,
    )
    figures = {figure.name: figure for figure in role_figures(run)}
    ((words, _, _, agreement, _),) = figures["role_agreement"].rows
    assert (words, agreement) == (10, 1.0)
    assert not caplog.messages
    run.labels_of_words = [{99: "subject"}, {}]
    names = [figure.name for figure in role_figures(run)]
    assert "role_agreement" not in names
    assert "run: roles are not compared with gold labels" in caplog.text
