"""`--max-lengths` gives the maximum length of each translation."""

import pytest

from keras_deepnmt import Translator, UserError

SENTENCES = "1 2 3\n\n4 5 6 7 8\n"


@pytest.mark.thorough
def test_translations_end_there(deepnmt, digits, write_file):
    source = write_file("source", SENTENCES)
    lengths = write_file("lengths", "2\n\n\n")
    words = ["--max-lengths", lengths, "--input", source, "--no-compile", "-q"]
    done = deepnmt("translate", digits / "run", *words)
    assert done.code == 0
    assert "line 1: the translation was cut at the maximum length" in done.err
    translator = Translator.load(digits / "run", compiled=False)
    lines = done.out.split("\n")[:-1]
    assert lines[0] == translator.translate("1 2 3", max_lengths=2)
    (best,) = translator.translate_nbest("1 2 3", 1, max_lengths=2)
    assert len(best.ids) == 2
    assert best.truncated
    assert lines[2] == translator.translate("4 5 6 7 8")


@pytest.mark.thorough
def test_a_longer_one_than_the_options_allow(digits):
    translator = Translator.load(
        digits / "run", compiled=False, max_length_ratio=0, max_extra_tokens=3
    )
    (short,) = translator.translate_nbest("1 2 3 4 5", 1)
    assert len(short.ids) == 3
    (longer,) = translator.translate_nbest("1 2 3 4 5", 1, max_lengths=40)
    assert 3 < len(longer.ids) <= 40


@pytest.mark.thorough(each_commit=True)
def test_wrong_lines_are_refused(refused, digits, write_file):
    source = write_file("source", SENTENCES)
    for text, said in (
        ("2\n0\n\n", "line 2: must be a number of at least 1, or empty"),
        ("2\n-1\n\n", "line 2: must be a number"),
        ("two\n\n\n", "line 1: must be a number"),
        ("2\n\n2147483648\n", "line 3: must be a number"),
        ("2\n", "must have a line for each sentence"),
    ):
        lengths = write_file("lengths", text)
        error = refused(
            *("translate", digits / "run", "--input", source),
            *("--max-lengths", lengths, "--no-compile", "-q"),
        )
        assert said in error


def test_wrong_values_are_refused(digits):
    translator = Translator.load(digits / "run", compiled=False)
    with pytest.raises(UserError, match="2 numbers for 1 sentences"):
        translator.translate(["1"], max_lengths=[2, 3])
    with pytest.raises(UserError, match="at least 1, or 0"):
        translator.translate(["1"], max_lengths=[-2])
    with pytest.raises(TypeError, match="must hold integers"):
        translator.translate(["1"], max_lengths=["2"])
