"""What must be true of the tables of roles, counted by hand."""

import numpy as np
import pytest

from keras_deepnmt.analysis import role_entropy, role_uses

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
