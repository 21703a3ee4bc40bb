"""Modules that stand for `errant` and `spacy`, with the parts used of them.

The alignment is that of `difflib`, and the type of an edit says whether words
are missing, replaced or unnecessary, and how long the correction is.
"""

import difflib
import sys
from types import ModuleType, SimpleNamespace

MODEL = "en_core_web_sm"


class Words(list):
    """A parsed text."""


class Annotator:
    """Stands for `errant.annotator.Annotator`."""

    def __init__(self, nlp):
        self.nlp = nlp

    def parse(self, text, tokenise=False):
        """Splits a text into tokens."""
        assert not tokenise
        return Words(SimpleNamespace(text=word) for word in text.split())

    def annotate(self, orig, cor):
        """Returns the edits that lead from one text to the other."""
        sides = [[token.text for token in side] for side in (orig, cor)]
        edits = []
        for kind, *places in difflib.SequenceMatcher(
            None, *sides, autojunk=False
        ).get_opcodes():
            if kind == "equal":
                continue
            start, end, first, last = places
            letter = {"insert": "M", "replace": "R", "delete": "U"}[kind]
            edits.append(
                SimpleNamespace(
                    o_start=start,
                    o_end=end,
                    c_toks=cor[first:last],
                    type="UNK"
                    if "?" in sides[1][first:last]
                    else f"{letter}:{last - first}",
                )
            )
        return edits


def install(monkeypatch):
    """Puts the modules where an import finds them."""
    errant, spacy = ModuleType("errant"), ModuleType("spacy")

    def load_model(name, disable):
        if name != MODEL:
            raise OSError(f"[E050] Can't find model '{name}'.")
        assert disable == ["ner"]
        return "model"

    def load(language, nlp):
        assert (language, nlp) == ("en", "model")
        return Annotator(nlp)

    spacy.load, errant.load = load_model, load
    monkeypatch.setitem(sys.modules, "errant", errant)
    monkeypatch.setitem(sys.modules, "spacy", spacy)
