"""A translation with line ends, from pieces for bytes, stays one line.

So that all lines of a file belong to those of the input.
"""

import pytest

from keras_deepnmt.runs.evaluate import evaluate
from keras_deepnmt.translator import Hypothesis, Translator

pytestmark = pytest.mark.thorough(each_commit=True)

DEMO = "transformer_tiny.demo_de_en"


@pytest.fixture
def source(monkeypatch, write_file):
    """A file of two lines, whose translations have line ends."""

    def translate(self, texts, number=1, *more, **given):
        found = [
            Hypothesis(f"{text}\nb\rc\u2028d{n}", 0.0, 0.0, (5, 3))
            for text in texts
            for n in range(number)
        ]
        return [found[n : n + number] for n in range(0, len(found), number)]

    monkeypatch.setattr(Translator, "translate_nbest", translate)
    return write_file("source", "eins\nzwei\n")


def test_of_translate(deepnmt, source):
    words = ["translate", DEMO, "--input", source, "--no-compile", "-q"]
    done = deepnmt(*words)
    assert done.code == 0, done.err
    assert done.out == "eins b c\u2028d0\nzwei b c\u2028d0\n"
    for kind in ("plain", "moses"):
        more = ["--num-hypotheses", "2", "--nbest-format", kind]
        done = deepnmt(*words, *more)
        fields = [line.split(" ||| ") for line in done.out.split("\n")[:-1]]
        assert [(number, text) for number, text, *_ in fields] == [
            (str(number), f"{text} b c\u2028d{n}")
            for number, text in enumerate(["eins", "zwei"])
            for n in range(2)
        ]


def test_of_evaluate(deepnmt, source, tmp_path):
    output = tmp_path / "out"
    texts = ["--source", source, "--target", source, "--metrics", "chrf"]
    words = ["evaluate", DEMO, *texts, "--no-compile", "-q", "-o", output]
    done = deepnmt(*words)
    assert done.code == 0, done.err
    expected = "eins b c\u2028d0\nzwei b c\u2028d0\n"
    assert output.read_bytes().decode() == expected
    output.unlink()
    evaluate(
        DEMO,
        source_file=source,
        target_file=source,
        metrics=("chrf",),
        compiled=False,
        output_file=output,
    )
    assert output.read_bytes().decode() == expected
