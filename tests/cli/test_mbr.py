"""`--mbr` prints the translation that agrees most with the others."""

from types import SimpleNamespace

import pytest

from keras_deepnmt import Translator
from keras_deepnmt.commands.translate import _Choice
from keras_deepnmt.evaluation import minimum_bayes_risk
from keras_deepnmt.translator import Hypothesis

SENTENCES = ["1 2 3", "4 4 1 7", "", "9 8 7 6"]


@pytest.mark.thorough
@pytest.mark.parametrize("sampling", [False, True])
def test_it_is_the_choice_of_the_function(deepnmt, digits, tmp_path, sampling):
    options = {"num_beams": 5, "sampling": sampling}
    if sampling:
        options["sampling_temperature"] = 3.0
    words = []
    for name, value in options.items():
        words += [f"--{name.replace('_', '-')}", str(value).lower()]
    file = tmp_path / "text"
    file.write_text("".join(f"{line}\n" for line in SENTENCES))
    run = digits / "run"
    words += ["--mbr", "chrf", "--input", file, "--no-compile", "-q"]
    done = deepnmt("translate", run, *words)
    assert done.code == 0, done.err
    translator = Translator.load(run, compiled=False, **options)
    expected = []
    for found in translator.translate_nbest(SENTENCES, 5, distinct=False):
        texts = [hypothesis.text for hypothesis in found]
        log_probs = [hypothesis.log_prob for hypothesis in found]
        place = minimum_bayes_risk(texts, None if sampling else log_probs)
        expected.append(texts[place])
    assert done.out.splitlines() == expected


def test_it_prints_one_translation(refused, digits):
    words = ["--mbr", "bleu", "--num-hypotheses", "2"]
    assert "no --num-hypotheses" in refused("translate", digits / "run", *words)


@pytest.mark.parametrize("option", ["--mbr", "--rerank", "--rerank-reverse"])
def test_there_must_be_several_to_choose_from(
    refused, digits, monkeypatch, option
):
    run = digits / "run"
    words = ["translate", run, option, "chrf" if option == "--mbr" else run]
    said = f"{option} chooses from several translations of a sentence: --num-b"
    assert said in refused(*words, "--num-beams", "1")
    assert said in refused(*words, "--num-beams", "1", "--sampling", "true")
    load = Translator.load.__func__
    # As of a run whose recipe says so.
    monkeypatch.setattr(
        Translator,
        "load",
        classmethod(
            lambda cls, run, **given: load(cls, run, num_beams=1, **given)
        ),
    )
    assert said in refused(*words)


def test_it_chooses_among_those_with_all_phrases():
    options = SimpleNamespace(num_hypotheses=1, nbest_format=None, mbr="chrf")
    choice = _Choice(options, None, None)
    beams = SimpleNamespace(sampling=False)
    other = [Hypothesis("a cat", 0, 0, (3,), constraints_met=False)] * 3
    with_all = Hypothesis("two dogs", -9, -9, (3,))
    for found, chosen in (([*other, with_all], with_all), (other, other[0])):
        assert choice.choose(beams, ["x"], [found], None) == [[chosen]]
