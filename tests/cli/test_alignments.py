"""`--alignments` writes the aligned words of each translation."""

from keras_deepnmt import Translator
from keras_deepnmt.analysis import align_words
from keras_deepnmt.evaluation import format_alignment

SENTENCES = ["1 2 3", "", "4 4 1 7"]


def test_lines_are_those_of_the_function(deepnmt, digits, tmp_path):
    source, found = tmp_path / "source", tmp_path / "found"
    source.write_text("".join(f"{line}\n" for line in SENTENCES))
    words = ["--alignments", found, "--alignment-layer", "1"]
    done = deepnmt(
        *("translate", digits / "run", "--input", source, *words),
        *("--no-compile", "-q"),
    )
    assert done.code == 0, done.err
    targets = done.out.split("\n")[:-1]
    translator = Translator.load(digits / "run", compiled=False)
    expected = align_words(translator, SENTENCES, targets, layer=1)
    lines = found.read_text().split("\n")[:-1]
    assert lines == [format_alignment(links) for links in expected]
    assert lines[1] == ""


def test_a_block_that_the_model_lacks_is_refused(refused, digits, tmp_path):
    words = ["--alignments", tmp_path / "a", "--alignment-layer", "99"]
    source = tmp_path / "source"
    source.write_text("1 2\n")
    error = refused("translate", digits / "run", "--input", source, *words)
    assert "--alignment-layer must be a decoder block" in error
    assert not (tmp_path / "a").exists()
