"""What must be true of scores by type of error (Bryant et al., 2017).

* a right edit counts for the annotator's type, another one for ERRANT's
* of several annotators the best one counts
* the counts are those of `errant_compare`, if the package is installed
"""

import importlib.util
import os
import sys

import errant_stand_in
import pytest

from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation import (
    AnnotatedSentence,
    Edit,
    annotate_corrections,
    errant_score,
)
from keras_deepnmt.evaluation.errant_scores import load_annotator

# Folder or name of spaCy's model; there is none on PyPI.
REAL_MODEL = os.environ.get("DEEPNMT_SPACY_MODEL", errant_stand_in.MODEL)


@pytest.fixture
def stand_in(monkeypatch):
    errant_stand_in.install(monkeypatch)
    load_annotator.cache_clear()
    yield
    load_annotator.cache_clear()


def counts(score):
    return score.correct, score.proposed, score.gold


@pytest.mark.usefixtures("stand_in")
def test_edits_of_corrections_have_types():
    found = annotate_corrections(
        ["a b c", "a", ""], ["a x c", "a", "b"], ["b c d", None, "b"]
    )
    assert found == [
        AnnotatedSentence(
            ("a", "b", "c"),
            (
                (Edit(1, 2, ("x",)),),
                (Edit(0, 1, ("",)), Edit(3, 3, ("d",))),
            ),
        ),
        AnnotatedSentence(("a",), ((),)),
        AnnotatedSentence((), ((), ())),
    ]
    types = [edit.error_type for edits in found[0].edits for edit in edits]
    assert types == ["R:1", "U:0", "M:1"]


@pytest.mark.usefixtures("stand_in")
def test_right_edits_count_for_the_type_of_the_gold_edit():
    edits = (Edit(0, 1, ("x",), "SPELL"), Edit(2, 3, ("",), "U:DET"))
    gold = [AnnotatedSentence(("a", "b", "c"), (edits,))]
    score = errant_score(["x b c d"], gold)
    # Right: a -> x. Wrong: d is added. Missing: c is to go.
    assert counts(score) == (1, 2, 2)
    assert {name: counts(of) for name, of in score.by_type.items()} == {
        "M:1": (0, 1, 0),
        "SPELL": (1, 1, 1),
        "U:DET": (0, 0, 1),
    }
    assert score.f_score == pytest.approx(0.5)
    assert score.by_type["SPELL"].f_score == 1.0


@pytest.mark.usefixtures("stand_in")
def test_the_best_annotator_of_each_sentence_counts():
    gold = annotate_corrections(
        ["a b c", "d e f"], ["x b c", "d e f"], ["a b y", "d z f"]
    )
    score = errant_score(["a b y", "d e f"], gold)
    assert counts(score) == (1, 1, 1)
    # Any of several corrections is right, and unknown edits do not count.
    either = AnnotatedSentence(("a", "b"), ((Edit(0, 1, ("x", "y"), "R"),),))
    assert counts(errant_score(["y b"], [either])) == (1, 1, 1)
    assert counts(errant_score(["y ?"], [either])) == (0, 0, 1)


@pytest.mark.usefixtures("stand_in")
def test_what_is_missing_is_named(monkeypatch):
    with pytest.raises(UserError, match="python -m spacy download en_core"):
        load_annotator("none")
    monkeypatch.setitem(sys.modules, "errant", None)
    with pytest.raises(UserError, match=r"keras_deepnmt\[errant\]"):
        load_annotator()
    with pytest.raises(ValueError, match="same"):
        annotate_corrections(["a"], ["a", "b"])


# Not in [dev]: it needs spaCy and a model of English. The program leaves its
# files open.
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.skipif(
    importlib.util.find_spec("errant") is None,
    reason="needs the package errant, of the extra [errant]",
)
def test_the_counts_are_those_of_the_authors_programs(
    tmp_path, monkeypatch, capsys
):
    errant_compare = pytest.importorskip("errant.commands.compare_m2")
    try:
        load_annotator(REAL_MODEL)
    except UserError as error:
        pytest.skip(str(error))
    sources = [
        "He go to big school in Monday .",
        "I has seen two dog yesterday",
        "All is well .",
        "she are happy becuase it rain",
    ]
    first = [
        "He goes to a big school on Monday .",
        "I saw two dogs yesterday .",
        "All is well .",
        "She is happy because it rains .",
    ]
    second = [
        "He goes to the big school on Mondays .",
        "Yesterday I saw two dogs .",
        "Everything is well .",
        "She is happy because it is raining",
    ]
    system = [
        "He goes to big school on Mondays .",
        "I had seen two dogs yesterday",
        "All is well !",
        "she is happy because it rains .",
    ]
    gold = annotate_corrections(sources, first, second, spacy_model=REAL_MODEL)
    score = errant_score(system, gold, spacy_model=REAL_MODEL)
    found = annotate_corrections(sources, system, spacy_model=REAL_MODEL)
    for name, sentences in (("ref", gold), ("hyp", found)):
        (tmp_path / name).write_text(m2_text(sentences))
    command = ["errant_compare", "-hyp", str(tmp_path / "hyp")]
    command += ["-ref", str(tmp_path / "ref"), "-cat", "3"]
    monkeypatch.setattr(sys, "argv", command)
    errant_compare.main()
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    start = next(i for i, row in enumerate(rows) if row[:1] == ["Category"])
    stop = rows.index([], start)
    expected = {
        name: tuple(map(int, row))
        for name, *row, _, _, _ in rows[start + 1 : stop]
    }
    assert len(expected) > 5
    assert expected == {
        name: (of.correct, of.proposed - of.correct, of.gold - of.correct)
        for name, of in score.by_type.items()
    }


def m2_text(sentences):
    lines = []
    for sentence in sentences:
        lines.append(f"S {' '.join(sentence.words)}")
        for annotator, edits in enumerate(sentence.edits):
            for edit in edits:
                place = f"{edit.start} {edit.end}|||{edit.error_type}"
                rest = f"{edit.corrections[0]}|||REQUIRED|||-NONE-"
                lines.append(f"A {place}|||{rest}|||{annotator}")
            if not edits:
                rest = "noop|||-NONE-|||REQUIRED|||-NONE-"
                lines.append(f"A -1 -1|||{rest}|||{annotator}")
        lines.append("")
    return "\n".join(lines)
