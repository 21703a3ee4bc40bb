"""`--prefixes` gives the beginnings of translations."""

import pytest

from keras_deepnmt import Translator, UserError

pytestmark = pytest.mark.thorough(each_commit=True)

SENTENCES = "1 2 3\n\n4 5 6\n"


@pytest.mark.thorough
def test_translations_begin_so(deepnmt, digits, write_file):
    source = write_file("source", SENTENCES)
    prefixes = write_file("prefixes", "7\n\n\n")
    words = ["--prefixes", prefixes, "--input", source, "--no-compile", "-q"]
    done = deepnmt("translate", digits / "run", *words)
    assert done.code == 0, done.err
    lines = done.out.split("\n")[:-1]
    translator = Translator.load(digits / "run", compiled=False)
    assert lines[0].startswith("7")
    assert lines[1] == ""
    assert lines[2] == translator.translate("4 5 6")
    assert lines[0] == translator.translate("1 2 3", prefixes="7")
    (best,) = translator.translate_nbest("1 2 3", 1, prefixes="7")
    scored = translator.score("1 2 3", best.text)
    assert scored.total == pytest.approx(best.log_prob, abs=1e-4)


@pytest.mark.thorough
def test_other_numbers_of_lines_are_refused(refused, digits, write_file):
    source = write_file("source", SENTENCES)
    for text in ("7\n", "7\n\n7\n7\n"):
        prefixes = write_file("prefixes", text)
        error = refused(
            *("translate", digits / "run", "--input", source),
            *("--prefixes", prefixes, "--no-compile", "-q"),
        )
        assert "must have a line for each sentence" in error
    translator = Translator.load(digits / "run", compiled=False)
    with pytest.raises(UserError, match="2 prefixes for 1 sentences"):
        translator.translate(["1"], prefixes=["2", "3"])


def test_a_beginning_for_an_empty_line_is_told(deepnmt, digits, write_file):
    source = write_file("source", SENTENCES)
    prefixes = write_file("prefixes", "7\n7\n\n")
    words = ["--prefixes", prefixes, "--input", source, "--no-compile", "-q"]
    done = deepnmt("translate", digits / "run", *words)
    assert done.code == 0, done.err
    assert done.out.split("\n")[1] == ""
    assert "line 2: the sentence is empty, and so is its transl" in done.err
    assert "line 1" not in done.err


@pytest.mark.thorough
def test_a_beginning_without_room_is_named_by_its_line(
    refused, digits, write_file
):
    # Of a file, 64 lines are read at a time.
    source = write_file("source", "1\n" * 70)
    prefixes = write_file("prefixes", "7\n" * 65 + f"{'7 ' * 2_000}\n" * 5)
    error = refused(
        *("translate", digits / "run", "--input", source, "--batch-size", 1),
        *("--prefixes", prefixes, "--no-compile", "-q"),
    )
    assert f"{prefixes}, line 66: must have at most" in error


@pytest.mark.parametrize(
    "options",
    [
        pytest.param([], marks=pytest.mark.thorough),
        ["--allow-unknown", "false"],
        pytest.param(["--replace-unknown"], marks=pytest.mark.thorough),
    ],
)
def test_characters_that_the_vocabulary_lacks_are_kept(
    deepnmt, digits, write_file, options
):
    source = write_file("source", "1 2 3\n4\n")
    prefixes = write_file("prefixes", "Łódź 7\n7\n")
    phrases = write_file("phrases", "\nŻódź\n")
    done = deepnmt(
        *("translate", digits / "run", "--input", source, "--no-compile"),
        *("--prefixes", prefixes, "--constraints", phrases, "-q", *options),
    )
    assert done.code == 0, done.err
    lines = done.out.split("\n")[:-1]
    assert lines[0].startswith("Łódź 7")
    is_forbidden = "false" in options
    assert ("Żódź" in lines[1]) != is_forbidden
    told = "characters that the vocabulary lacks, and unknown tokens are forb"
    assert (told in done.err) == is_forbidden
