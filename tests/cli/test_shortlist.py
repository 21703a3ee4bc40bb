"""`--shortlist` searches among the likely target tokens."""

import numpy as np
import pytest

from keras_deepnmt import Translator, UserError
from keras_deepnmt.data import Shortlists
from keras_deepnmt.translator.batches import CandidateTokens

SENTENCES = ["1 2 3", "", "4 5 6 7 8"]


def shortlists(size=25, by_source=None, frequent=()):
    by_source = [[0]] * size if by_source is None else by_source
    return Shortlists(
        np.array(by_source, "int32"), np.array(frequent, "int32"), size
    )


def chosen(lists, rows, needed=(), size=2_000):
    return CandidateTokens(lists, size).of(rows, needed)


def test_candidates_are_likely_frequent_or_needed():
    by_source = [[0, 0]] * 2_000
    by_source[7] = [1_500, 1_600]
    lists = shortlists(2_000, by_source, [1_700])
    ids = chosen(lists, [[7, 3]], needed=[[1_800], [1_900, 1_600]])
    assert ids[:4].tolist() == [0, 1, 2, 3]
    assert {1_500, 1_600, 1_700, 1_800, 1_900} <= set(ids.tolist())
    assert len(ids) == len(set(ids.tolist())) == 256
    assert (np.diff(ids) > 0).all()


def test_a_large_part_is_the_whole_vocabulary():
    assert chosen(shortlists(300), [[7, 3]], size=300) is None
    assert chosen(None, [[7, 3]]) is None


def test_all_batches_of_a_call_have_one_number_of_tokens():
    by_source = [[0] * 600] * 2_000
    by_source[7] = list(range(100, 700))
    candidates = CandidateTokens(shortlists(2_000, by_source), 2_000)
    candidates.plan([[[8, 3]], [[7, 3]]], [[], []])
    assert len(candidates.of([[8, 3]])) == 768
    candidates.plan([[[8, 3]], [[7, 3]]], [[], [range(700, 1_000)]])
    assert len(candidates.of([[8, 3]])) == 1_024
    # A batch of all tokens does not make the others larger.
    by_source[9] = list(range(600)) * 2 + list(range(1_000, 2_000))
    by_source = [(row * 4)[:2_200] for row in by_source]
    candidates = CandidateTokens(shortlists(2_000, by_source), 2_000)
    candidates.plan([[[8, 3]], [[7, 3]], [[9, 3]]], [[]] * 3)
    assert candidates.of([[9, 3]]) is None
    assert len(candidates.of([[8, 3]])) == 768


def test_the_translation_of_a_term_is_among_them(digits, monkeypatch):
    monkeypatch.setattr(
        "keras_deepnmt.translator.batches.padded_number",
        lambda number: number,
    )
    translator = Translator.load(digits / "run", compiled=False)
    size = translator.model.target_vocabulary_size
    few = translator.replaced(shortlists=shortlists(size))
    found = []

    def search(*_, candidate_ids, **__):
        found.append(candidate_ids.tolist())
        raise KeyboardInterrupt

    monkeypatch.setattr(few._decoder, "search", search)
    source = "1 2 <term> 3 <is> 9 8 </term> 4 <term> 5 <is> 7</term>"
    for text, terms in (("1 2 3", []), (source, ["9 8", "7"])):
        with pytest.raises(KeyboardInterrupt):
            few.translate([text, "6"])
        ids = translator.target_tokenizer.encode(terms) if terms else []
        assert set(found.pop()) == {
            0,
            1,
            2,
            3,
            *map(int, np.hstack([[], *ids])),
        }


@pytest.mark.thorough
def test_translations_consist_of_them(deepnmt, digits, tmp_path, monkeypatch):
    # The digits have fewer tokens than a shortlist of usual size.
    monkeypatch.setattr(
        "keras_deepnmt.translator.batches.padded_number",
        lambda number: number,
    )
    translator = Translator.load(digits / "run", compiled=False)
    tokenizer = translator.target_tokenizer
    (allowed,) = tokenizer.encode(["1 2 3"])
    size = translator.model.target_vocabulary_size
    lists = shortlists(size, frequent=allowed)
    lists.save(tmp_path / "few.npz")
    (tmp_path / "text").write_text("".join(f"{x}\n" for x in SENTENCES))
    done = deepnmt(
        *("translate", digits / "run", "--input", tmp_path / "text"),
        *("--shortlist", tmp_path / "few.npz", "--no-compile", "-q"),
    )
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[1] == ""
    assert set("".join(lines)) <= set("123 ")
    assert lines[0] == translator.translate("1 2 3")
    # Required tokens stay possible.
    translator = Translator.load(
        digits / "run", compiled=False, shortlists=lists
    )
    found = translator.translate("1 2 3", prefixes="7", constraints=["9 8"])
    assert found.startswith("7")
    assert "9 8" in found


def test_mistakes_are_refused(refused, digits, tmp_path):
    words = ("translate", digits / "run", "--no-compile", "-q", "--shortlist")
    error = refused(*words)
    assert "has no shortlist.npz" in error
    assert "data.shortlist_targets" in error
    assert "missing.npz" in refused(*words, tmp_path / "missing.npz")
    (tmp_path / "broken.npz").write_bytes(b"PK")
    assert "broken.npz" in refused(*words, tmp_path / "broken.npz")
    shortlists(7).save(tmp_path / "other.npz")
    assert "7 source and 7 target tokens" in refused(
        *words, tmp_path / "other.npz"
    )


def test_other_vocabularies_are_refused(digits):
    with pytest.raises(UserError, match="must have the vocabularies"):
        Translator.load(digits / "run", shortlists=shortlists(7))
