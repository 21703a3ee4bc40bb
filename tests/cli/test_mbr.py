"""`--mbr` prints the translation that agrees most with the others."""

import pytest

from keras_deepnmt import Translator
from keras_deepnmt.evaluation import minimum_bayes_risk

SENTENCES = ["1 2 3", "4 4 1 7", "", "9 8 7 6"]


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
    for found in translator.translate_nbest(SENTENCES, 5):
        texts = [hypothesis.text for hypothesis in found]
        log_probs = [hypothesis.log_prob for hypothesis in found]
        place = minimum_bayes_risk(texts, None if sampling else log_probs)
        expected.append(texts[place])
    assert done.out.splitlines() == expected


def test_it_prints_one_translation(refused, digits):
    words = ["--mbr", "bleu", "--num-hypotheses", "2"]
    assert "no --num-hypotheses" in refused("translate", digits / "run", *words)
