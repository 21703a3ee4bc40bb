"""`--constraints` gives phrases that translations must contain."""

import pytest

from keras_deepnmt import Translator, UserError

SENTENCES = "1 2 3\n\n4 5 6\n7 8\n"


@pytest.mark.thorough
def test_translations_contain_the_phrases(deepnmt, digits, write_file):
    source = write_file("source", SENTENCES)
    # That of the empty sentence, and one longer than any translation.
    constraints = write_file("phrases", f"9 8\t7\n5\n\n{'1 ' * 90}\n")
    words = ["--constraints", constraints, "--input", source, "--no-compile"]
    done = deepnmt("translate", digits / "run", *words, "-q")
    assert done.code == 0, done.err
    lines = done.out.split("\n")[:-1]
    assert "9 8" in lines[0] and "7" in lines[0]
    translator = Translator.load(digits / "run", compiled=False)
    assert lines[1:] == ["", *translator.translate(["4 5 6", "7 8"])]
    assert "line 2: the sentence is empty, and so is its tra" in done.err
    assert "line 4: the translation lacks a phrase of `--con" in done.err
    assert "which has no room within the maximum length" in done.err
    assert "line 1" not in done.err
    best, *_ = translator.translate_nbest("1 2 3", 2, constraints=["9 8", "7"])
    assert best.text == lines[0] and best.constraints_met
    scored = translator.score("1 2 3", best.text)
    assert scored.total == pytest.approx(best.log_prob, abs=1e-4)


def test_mistakes_are_refused(refused, digits, write_file, monkeypatch):
    source = write_file("source", SENTENCES)
    words = ["translate", digits / "run", "--input", source, "--no-compile"]
    one_line = write_file("phrases", "7\n")
    error = refused(*words, "--constraints", one_line, "-q")
    assert "must have a line for each sentence" in error
    phrases = write_file("phrases", "\n\n\n7\n")
    tuning = ["tune", digits / "run", "--rerank", digits / "run"]
    tuning += ["--source", source, "--target", source, "--no-compile"]
    with monkeypatch.context() as patch:
        # Before anything is translated, also lines without a phrase.
        patch.setattr(Translator, "translate_nbest", pytest.fail)
        for command, options in (
            (words, ["--num-beams", 1]),
            (words, ["--sampling", "true"]),
            (words, ["--num-beams", 3, "--num-groups", 3]),
            (tuning, ["--sampling", "true"]),
        ):
            error = refused(*command, "--constraints", phrases, *options)
            assert "Phrases that translations must contain" in error
    translator = Translator.load(digits / "run", compiled=False)
    with pytest.raises(UserError, match="2 lists for 1 sentences"):
        translator.translate(["1"], constraints=[["2"], ["3"]])
    with pytest.raises(TypeError, match="`constraints` must hold sentences"):
        translator.translate(["1"], constraints=["2"])
