"""What must be true of BLEU under several definitions.

* each definition is the BLEU of the text that it describes
* Moses' tokenizer is used where it is installed, and named where it is not
"""

import sys

import pytest

from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation import (
    available_definitions,
    bleu_by_definition,
    corpus_scores,
)
from keras_deepnmt.evaluation.bleu_definitions import (
    DEFINITIONS,
    moses_tokenizer,
    split_compounds,
)

REFERENCES = ["The well-known dog's owner, Mr. Smith, sleeps.", "He's here!"]
HYPOTHESES = ["the well-known dog's owner , Mr. Smith sleeps.", "He's there!"]


def bleu(hypotheses, references, **options):
    return corpus_scores(hypotheses, references, ["bleu"], **options)["bleu"]


def test_each_definition_is_bleu_of_the_text_that_it_describes():
    scores = bleu_by_definition(HYPOTHESES, REFERENCES)
    assert list(scores) == [each.name for each in DEFINITIONS]
    assert scores["13a"] == bleu(HYPOTHESES, REFERENCES)
    assert scores["as it is, lower case"] == bleu(
        HYPOTHESES, REFERENCES, tokenize="none", lowercase=True
    )
    moses = moses_tokenizer("en")
    sides = [[moses(line) for line in s] for s in (HYPOTHESES, REFERENCES)]
    assert scores["Moses"] == bleu(*sides, tokenize="none")
    split = [[split_compounds(line) for line in side] for side in sides]
    assert "well ##AT##-##AT## known" in split[1][0]
    assert scores["Moses, compounds split"] == bleu(*split, tokenize="none")
    # Splitting adds words that both sides have.
    assert scores["Moses, compounds split"].value > scores["Moses"].value
    # The definitions differ: that is why they are listed.
    assert len({round(score.value, 1) for score in scores.values()}) >= 5


def test_moses_splits_as_its_scripts_do():
    assert (
        moses_tokenizer("en")(REFERENCES[0])
        == "The well-known dog 's owner , Mr. Smith , sleeps ."
    )
    assert moses_tokenizer("fr")("l'homme & moi") == "l' homme & moi"


def test_without_sacremoses_the_other_definitions_are_left(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    names = [each.name for each in available_definitions()]
    assert "13a" in names and "Moses" not in names
    with pytest.raises(UserError, match=r"pip install keras_deepnmt\[moses\]"):
        bleu_by_definition(HYPOTHESES, REFERENCES)
