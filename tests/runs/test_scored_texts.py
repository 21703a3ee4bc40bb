"""What must be true of the texts that the scores of runs read.

* tags and contexts of sources, which models read, are no part of a sentence
* a target language that is asked for is that of the translations
* what tables of BLEU lack is told before the translation, whatever the metrics
"""

import json
import shutil
from types import SimpleNamespace

import pytest

from keras_deepnmt.cli import main
from keras_deepnmt.evaluation.scores import Score
from keras_deepnmt.runs.test_translations import translate_runs
from keras_deepnmt.translator import Translator


@pytest.fixture
def translate_lines(finished_run, tmp_path, monkeypatch):
    """Scores a text by a run of such a record.

    Returns the translations, and what was translated, and scored by COMET.
    """
    asked, scored = [], []

    def translate(translator, texts, **_):
        asked.extend(texts)
        return ["a b" for _ in texts]

    monkeypatch.setattr(Translator, "translate", translate)
    run_dir = tmp_path / "run"
    shutil.copytree(finished_run, run_dir)

    def sentence_scores(sources, hypotheses, references):
        scored.extend(sources)
        return [1.0 for _ in sources]

    comet = SimpleNamespace(
        sentence_scores=sentence_scores,
        corpus_score=lambda scores, resamples: Score(1.0, "stand-in"),
        sha256="0",
    )

    def run(lines, record, **options):
        file = run_dir / "run.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | record))
        text = tmp_path / "text"
        text.write_text("".join(f"{line}\n" for line in lines))
        found = translate_runs(
            [str(run_dir)],
            source_file=text,
            target_file=text,
            metrics=("comet",),
            comet_models={"comet": comet},
            **options,
        )
        return found, asked, scored

    return run


@pytest.mark.parametrize(
    ("record", "lines", "bare"),
    [
        ({"tags": ["<2de>", None]}, ["<2de> a b", "c"], ["a b", "c"]),
        (
            {"context": 2, "tags": ["<2de>"]},
            ["<2de> a", "<2de> a <sep> b c", "a <sep> b <sep> d", "e"],
            ["a", "b c", "d", "e"],
        ),
        # To a model that has learned neither, they are words.
        ({"context": 0}, ["<2de> a <sep> b"], ["<2de> a <sep> b"]),
    ],
)
def test_scores_read_sentences_without_tags_and_contexts(
    translate_lines, record, lines, bare
):
    found, asked, scored = translate_lines(lines, record)
    assert asked == lines
    assert scored == found.sources == bare


def test_the_language_that_is_asked_for_is_that_of_the_translations(
    translate_lines,
):
    direction = {"source": "en", "target": "de", "tag": None}
    record = {"directions": [direction]}
    found, *_ = translate_lines(["a"], record)
    assert found.language is None
    found, *_ = translate_lines(["a"], record, target_language="de")
    assert found.language == "de"


@pytest.mark.parametrize("verb", ["report", "evaluate"])
def test_a_missing_tokenizer_of_bleu_is_told_before_the_translation(
    finished_run, tmp_path, monkeypatch, capsys, verb
):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ja_mecab.MeCab", None)
    monkeypatch.setattr(Translator, "translate", pytest.fail)
    run_dir = tmp_path / "run"
    shutil.copytree(finished_run, run_dir)
    file = run_dir / "run.json"
    scoring = {"tokenize": "ja-mecab", "metrics": ["chrf"]}
    file.write_text(
        json.dumps(json.loads(file.read_text()) | {"evaluation": scoring})
    )
    more = ["--details"] if verb == "evaluate" else []
    assert main([verb, str(run_dir), *more]) == 2
    error = capsys.readouterr().err
    assert "tokenize='ja-mecab' needs the packages mecab-python3" in error
