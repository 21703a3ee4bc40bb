"""Several models translate and score together on the command line."""

import math
from types import SimpleNamespace

import pytest

from keras_deepnmt import Translator
from keras_deepnmt.errors import UserError
from keras_deepnmt.translator import join_translators

SENTENCES = "1 2 3\n4 4\n\n9 8 7 6\n"


@pytest.mark.thorough
def test_equal_models_translate_as_one(deepnmt, digits, tmp_path):
    run = digits / "run"
    file = tmp_path / "text"
    file.write_text(SENTENCES)
    one = deepnmt("translate", run, "-q", "--input", file)
    words = ["--ensemble-mean", "geometric", "--ensemble-weights", "1", "2"]
    two = deepnmt("translate", run, run, *words, "-q", "--input", file)
    assert (one.code, two.code) == (0, 0), two.err
    assert one.out == two.out


@pytest.mark.thorough
def test_scores_of_a_search_are_those_of_the_same_ensemble(
    deepnmt, digits, tmp_path
):
    runs = [digits / "run"] * 2
    words = ["--num-hypotheses", "2", "--length-penalty", "0", "-q"]
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("1 2 3\n")
    done = deepnmt("translate", *runs, *words, "--input", source)
    _, text, score = done.out.splitlines()[0].split(" ||| ")
    target.write_text(f"{text}\n")
    words = ["--source", source, "--target", target, "--totals", "-q"]
    done = deepnmt("score", *runs, *words)
    total = done.out.splitlines()[1].split("\t")[-1]
    assert math.isclose(float(total), float(score), abs_tol=1e-4)


def test_mistakes_are_told_in_one_line(refused, digits):
    run = digits / "run"
    weights = ["--ensemble-weights", "1"]
    assert "needs several runs" in refused("translate", run, *weights)
    for mean in ("arithmetic", "geometric"):
        error = refused("translate", run, "--ensemble-mean", mean)
        assert "--ensemble-mean needs several runs. Received: " in error
    error = refused("translate", run, run, *weights)
    assert "must be 2 positive numbers" in error
    error = refused("translate", run, "no_such_run")
    assert "no_such_run" in error


def test_other_tokenizers_are_refused(digits):
    first, second = (Translator.load(digits / "run") for _ in range(2))
    second.target_tokenizer = SimpleNamespace(sha256="another")
    with pytest.raises(UserError, match="target tokenizer of model 2 is not"):
        join_translators([first, second])
    with pytest.raises(ValueError, match="at least one translator"):
        join_translators([])
