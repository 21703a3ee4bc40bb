"""What must be true of COMET scores, with a stand-in for its package.

* each sentence has the score that the model gives its texts, in their order
* the score of a text is their mean; its signature tells the model
* a model without references does not get them, and others are not run without
* what is missing, or does not fit, is told in a line before the model runs
* systems are compared by the scores of their sentences
"""

import importlib.metadata
import itertools
import sys

import numpy as np
import pytest
from comet_stand_in import make_environment, make_model, share

from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation import CometModel, compare_sentence_scores
from keras_deepnmt.files import file_sha256

SOURCES = ["ein Hund schläft", "das Haus", "der Vogel singt"]
REFERENCES = ["a dog sleeps", "the house", "the bird sings"]
TEXTS = ["a Hund sleeps here", "the house", "ein Vogel sings|\n:"]
QE = "referenceless_regression_metric"


@pytest.fixture
def python(tmp_path):
    return make_environment(tmp_path / "environment")


def test_sentences_have_the_scores_of_the_model(tmp_path, python):
    folder = make_model(tmp_path / "models--Some--wmt22" / "snapshots" / "f00")
    model = CometModel(folder, python=python)
    scores = model.sentence_scores(SOURCES, TEXTS, REFERENCES)
    assert scores == [
        pytest.approx(share(*pair))
        for pair in zip(TEXTS, REFERENCES, strict=True)
    ]
    assert scores == pytest.approx([50, 100, 0])
    checkpoint = f"{folder}/checkpoints/model.ckpt"
    assert model.sha256 == file_sha256(checkpoint)
    assert model.signature == (
        f"model:Some/wmt22|sha256:{model.sha256[:12]}|refs:yes|scale:100|"
        "unbabel-comet:2.2.7"
    )
    # The file itself, of the same model.
    other = CometModel(checkpoint, python=python)
    assert other.signature == model.signature


def test_a_model_without_references_reads_sources(tmp_path, python):
    folder = make_model(tmp_path / "kiwi", QE)
    model = CometModel(folder, "comet-qe", python)
    for references in (None, REFERENCES):
        assert model.sentence_scores(
            SOURCES, TEXTS, references
        ) == pytest.approx([25, 0, 25])
    assert model.signature.startswith("model:kiwi|")
    assert "|refs:no|" in model.signature


def test_the_score_of_a_text_is_the_mean_with_an_interval(tmp_path, python):
    model = CometModel(make_model(tmp_path / "model"), python=python)
    draw = np.random.default_rng(1)
    scores = list(draw.normal(80, 6, 400))
    assert model.corpus_score(scores).interval is None
    found = model.corpus_score(scores, 1_000)
    assert found.value == pytest.approx(np.mean(scores))
    assert found.signature == model.signature
    # Of a mean, it is known.
    assert found.interval == pytest.approx(1.96 * np.std(scores) / 20, rel=0.1)


def test_systems_are_compared_by_the_scores_of_sentences():
    one, other = [80.0, 91.0, 60.0, 75.5, 70.0], [82.0, 83.0, 60.0, 70.0, 71.0]
    found = compare_sentence_scores(one, other)
    assert found.difference == pytest.approx(np.mean(one) - np.mean(other))
    changes = np.subtract(one, other)
    sizes = [
        abs(np.dot(signs, changes)) / 5
        for signs in itertools.product((1, -1), repeat=5)
    ]
    expected = np.mean(np.array(sizes) >= found.difference - 1e-9)
    assert found.randomization_p_value == expected
    assert 0 < found.bootstrap_p_value < 1
    with pytest.raises(ValueError, match="same length"):
        compare_sentence_scores(one, other[1:])


def test_models_that_do_not_fit_are_refused(tmp_path, python):
    with pytest.raises(UserError, match="no such file. A folder of a COMET"):
        CometModel(tmp_path / "none", python=python)
    model = make_model(tmp_path / "model")
    with pytest.raises(UserError, match="needs references; choose .* comet"):
        CometModel(model, "comet-qe", python)
    with pytest.raises(UserError, match="does not read .* comet-qe"):
        CometModel(make_model(tmp_path / "qe", QE), python=python)
    with pytest.raises(UserError, match="one of comet, comet-qe"):
        CometModel(model, "bleurt", python)
    unified = make_model(tmp_path / "unified", "unified_metric")
    with pytest.raises(UserError, match="the model needs references; choose"):
        CometModel(unified, "comet-qe", python).sentence_scores(SOURCES, TEXTS)
    with pytest.raises(ValueError, match="same length"):
        CometModel(model, python=python).sentence_scores(SOURCES, TEXTS)
    strange = "class_identifier: unified_metric\ninput_segments: 3\n"
    for content in ("", "other: 1\n", strange):
        (tmp_path / "model" / "hparams.yaml").write_text(content)
        with pytest.raises(UserError, match="not the file of a COMET model"):
            CometModel(model, python=python)


@pytest.mark.parametrize(
    ("segments", "refused", "said"),
    [
        ("[mt, src]", "comet", "does not read references; choose .* comet-qe"),
        ("[mt, ref]", "comet-qe", "needs references; choose the metric comet"),
        ("[mt, src, ref]", None, None),
    ],
)
def test_a_unified_model_has_the_metrics_of_what_it_reads(
    tmp_path, python, segments, refused, said
):
    model = make_model(tmp_path / "model", "unified_metric")
    with open(tmp_path / "model" / "hparams.yaml", "a") as file:
        file.write(f"input_segments: {segments}\n")
    for metric in ("comet", "comet-qe"):
        if metric != refused:
            assert CometModel(model, metric, python).metric == metric
            continue
        with pytest.raises(UserError, match=rf"\(unified_metric\) {said}"):
            CometModel(model, metric, python)


def test_a_failing_model_is_told_in_a_line(tmp_path, python):
    broken = make_model(tmp_path / "broken", content="broken")
    with pytest.raises(UserError, match="COMET failed: Invalid magic number$"):
        CometModel(broken, python=python).sentence_scores(
            SOURCES, TEXTS, REFERENCES
        )


def test_nothing_is_downloaded_unless_the_user_says_so(
    tmp_path, python, monkeypatch
):
    model = CometModel(make_model(tmp_path / "model"), python=python)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    with pytest.raises(UserError, match="would be downloaded"):
        model.sentence_scores(SOURCES, TEXTS, REFERENCES)


def test_a_missing_or_old_package_is_told_with_the_remedy(tmp_path):
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version("unbabel-comet")
    model = make_model(tmp_path / "model")
    old = make_environment(tmp_path / "old", "1.1.3")
    for python in (None, old):
        with pytest.raises(UserError, match="in another environment") as told:
            CometModel(model, python=python)
        assert (python or sys.executable) in str(told.value)
    with pytest.raises(UserError, match="none/python: cannot be run"):
        CometModel(model, python="none/python")


def test_a_description_of_a_model_is_read_with_limits(tmp_path, python):
    model = make_model(tmp_path / "model")
    for text, said in (
        ("a: [1\n", "hparams.yaml, line 2: not YAML"),
        (f"a: {'[' * 60}{']' * 60}\n", "hparams.yaml, line 1: must have at"),
        ("# " + "x" * 1_000_000, "hparams.yaml: must have at most"),
        ("[]", "hparams.yaml: not the file of a COMET model"),
    ):
        (tmp_path / "model" / "hparams.yaml").write_text(text)
        with pytest.raises(UserError, match=said):
            CometModel(model, python=python)
