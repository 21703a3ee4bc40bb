"""What must be true of `deepnmt evaluate`, as its users see it.

* translations in files are scored as sacreBLEU scores them, without a run
* several systems are compared with the first one
* details, definitions of BLEU and differing sentences are printed when asked
* several runs translate and score the same test set
"""

import itertools
import json
import os
import shutil
import sys

import errant_stand_in
import pytest
import yaml
from comet_stand_in import make_environment, make_model, share
from sacrebleu.metrics import BLEU

from keras_deepnmt.analysis.comparisons import comparison_figures
from keras_deepnmt.commands.terminal import score_tables
from keras_deepnmt.evaluation import Comparison, corpus_gleu, rouge_scores
from keras_deepnmt.evaluation.errant_scores import load_annotator
from keras_deepnmt.runs.test_translations import (
    TestTranslations,
    read_translations,
)
from keras_deepnmt.translator import Translator

pytestmark = pytest.mark.thorough(each_commit=True)

SOURCES = ["ein Hund", "eine Katze schläft", "das Haus", "der Vogel singt laut"]
REFERENCES = ["a dog", "a cat is sleeping", "the house", "the bird sings loud"]
GOOD = ["a dog", "a cat is sleeping", "the house", "the bird sings"]
M2 = """S It are late .
A 1 2|||R:VERB|||is|||REQUIRED|||-NONE-|||0
A 2 2|||M:ADV|||very|||REQUIRED|||-NONE-|||0

S All is well .
A -1 -1|||noop|||-NONE-|||REQUIRED|||-NONE-|||0

"""
BAD = ["a Hund", "a cat is is sleeping", "house", "the the bird sings"]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = {
        "source": SOURCES,
        "reference": REFERENCES,
        "good": GOOD,
        "bad": BAD,
        "short": GOOD[:3],
    }
    for name, lines in texts.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


def tables(done):
    """The tables that were printed, as lists of cells."""
    assert done.code == 0, done.err
    return [
        [line.split("\t") for line in table.splitlines()]
        for table in done.out.split("\n\n")
    ]


def test_translations_in_a_file_are_scored_by_sacrebleu(deepnmt, files):
    words = ["--hypotheses", "good", "--references", "reference"]
    ((bleu, chrf, ter),) = tables(deepnmt("evaluate", *words))
    expected = BLEU().corpus_score(GOOD, [REFERENCES], n_bootstrap=1_000)
    assert bleu[:2] == ["bleu", f"{expected.score:.2f}"]
    assert bleu[2].startswith("± ")
    assert "tok:13a" in bleu[3] and "bs:1000" in bleu[3]
    assert (chrf[0], ter[0]) == ("chrf", "ter")
    words += ["--metrics", "bleu", "--tokenize", "none", "--resamples", "1"]
    (((name, _, interval, signature),),) = tables(deepnmt("evaluate", *words))
    assert (name, interval) == ("bleu", "")
    assert "tok:none" in signature


def test_systems_are_compared_with_the_first(deepnmt, files):
    words = ["--hypotheses", "bad", "good", "--references", "reference"]
    scores, differences, signs = tables(deepnmt("evaluate", *words))
    assert [row[:2] for row in scores] == [
        [system, metric]
        for system in ("bad", "good")
        for metric in ("bleu", "chrf", "ter")
    ]
    heading, bleu, _, ter = differences
    assert heading[:4] == ["system", "compared with", "metric", "difference"]
    assert bleu[:3] == ["good", "bad", "bleu"]
    values = [float(row[2]) for row in (scores[3], scores[0])]
    assert float(bleu[3]) == pytest.approx(values[0] - values[1], abs=0.011)
    assert bleu[3].startswith("+") and ter[3].startswith("-")
    assert 0 < float(bleu[4]) < 1 and 0 < float(bleu[5]) < 1
    # TER counts edits.
    better = ["better", "higher", "higher", "lower"]
    assert [row[-1] for row in differences] == better
    assert signs[1][:5] == ["good", "bad", "3", "0", "1"] or (
        sum(map(int, signs[1][2:5])) == 4
    )


def test_what_needs_no_bleu_needs_none_of_its_tokenizers(
    deepnmt, refused, files, monkeypatch
):
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ja_mecab.MeCab", None)
    for name in ("one", "two", "three"):
        (files / name).write_text("これは古い本です。\n", encoding="utf-8")
    words = ["evaluate", "--hypotheses", "one", "two"]
    words += ["--references", "three", "--metrics", "chrf"]
    scores, differences = tables(deepnmt(*words))
    assert [row[:2] for row in scores] == [["one", "chrf"], ["two", "chrf"]]
    assert differences[1][:3] == ["two", "one", "chrf"]
    text = read_translations(
        ["one", "two"], ["three"], None, {"metrics": ("chrf",)}, 10
    )
    _, figures = comparison_figures(text, 10)
    assert [figure.name for figure in figures] == ["differences"]
    for option in (["--details"], ["--differences", "changed.tsv"]):
        error = refused(*words, *option, "--quiet")
        assert "tokenize='ja-mecab' needs the packages mecab-python3" in error


def test_tests_that_disagree_say_which_one_to_believe(
    deepnmt, files, monkeypatch
):
    words = ["evaluate", "--hypotheses", "bad", "good"]
    words += ["--references", "reference", "--metrics", "bleu", "ter"]

    def compare(self, system, baseline, num_resamples):
        return {
            "bleu": Comparison(2.0, 0.03, 0.06),
            "ter": Comparison(-2.0, 0.03, 0.04),
        }

    monkeypatch.setattr(TestTranslations, "compare", compare)
    done = deepnmt(*words)
    (line,) = [line for line in done.err.splitlines() if "disagree" in line]
    assert line.startswith("The tests of BLEU of good against bad disagree:")
    assert "Believe that of approximate randomization" in line
    text = read_translations(
        ["bad", "good"], ["reference"], None, {"metrics": ("bleu",)}, 10
    )
    _, (table, _) = comparison_figures(text, 10)
    assert line in table.caption


@pytest.fixture
def comet(tmp_path):
    """The options of COMET with a stand-in for its package and models."""
    qe = "referenceless_regression_metric"
    return [
        *("--metrics", "comet-qe", "bleu", "comet"),
        *("--comet-model", make_model(tmp_path / "wmt22")),
        *("--comet-qe-model", make_model(tmp_path / "kiwi", qe)),
        *("--comet-python", make_environment(tmp_path / "environment")),
    ]


def test_comet_scores_translations_beside_other_metrics(deepnmt, files, comet):
    scores, differences, signs = tables(
        deepnmt(
            *("evaluate", "--hypotheses", "bad", "good"),
            *("--references", "reference", "--source", "source", *comet),
        )
    )
    metrics = ["comet-qe", "bleu", "comet"]
    assert [row[1] for row in scores] == 2 * metrics
    assert [row[2] for row in differences[1:]] == metrics
    for row, texts, sides in (
        (scores[0], BAD, SOURCES),
        (scores[5], GOOD, REFERENCES),
    ):
        values = [share(*pair) for pair in zip(texts, sides, strict=True)]
        assert row[2] == f"{sum(values) / 4:.2f}"
    assert scores[5][4].startswith("model:wmt22|sha256:")
    # One of four sentences differs.
    assert differences[3][3] == "+12.50" and differences[3][5] == "1.0000"
    assert signs[0][2] == "better"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (["--metrics", "comet"], "--comet-qe-model needs --metrics comet-qe"),
        (["--source", None], "--metrics comet needs --source"),
        (["--comet-model", None], "--metrics comet needs --comet-model"),
        (["--comet-model", "none"], "none/checkpoints/model.ckpt: no such"),
        (["--comet-python", None], "lacks unbabel-comet"),
        (["--references", ["reference"] * 2], "one reference per sentence"),
        (
            ["--metrics", "bleu", "--comet-model", None]
            + ["--comet-qe-model", None],
            "--comet-python needs --metrics comet or comet-qe",
        ),
    ],
)
def test_what_comet_needs_is_told_in_one_line(
    refused, files, comet, change, said
):
    names, values = comet[4::2], [[value] for value in comet[5::2]]
    given = {
        "--hypotheses": ["good"],
        "--references": ["reference"],
        "--source": ["source"],
        "--metrics": comet[1:4],
        **dict(zip(names, values, strict=True)),
    }
    for name, value in zip(change[::2], change[1::2], strict=True):
        given[name] = [value] if isinstance(value, str) else value
    words = [w for n, v in given.items() if v for w in (n, *v)]
    assert said in refused("evaluate", *words)


def test_details_definitions_and_differences(deepnmt, files):
    done = deepnmt(
        *("evaluate", "--hypotheses", "good", "bad"),
        *("--references", "reference", "--source", "source"),
        *("--details", "--ladder", "--differences", "changed.tsv"),
    )
    *_, lengths, rates, ladder = tables(done)
    assert lengths[0] == ["source words", "sentences", "good", "bad"]
    assert lengths[1][:2] == ["0-10", "4"]
    assert rates[0][0] == "system"
    by_system = {row[0]: row[1:] for row in rates[1:]}
    assert by_system["references"][0] == "1.000"
    # "a Hund" shares half of its words with "ein Hund".
    assert by_system["bad"][2] == "25.00%" and by_system["good"][2] == "0.00%"
    assert ladder[0][:3] == ["definition of BLEU", "good", "bad"]
    assert [row[0] for row in ladder[1:4]] == [
        *("13a", "13a, lower case", "intl"),
    ]
    rows = [
        line.split("\t")
        for line in (files / "changed.tsv").read_text().splitlines()
    ]
    assert rows[0][:4] == ["line", "BLEU of good", "BLEU of bad", "difference"]
    changes = [abs(float(row[3])) for row in rows[1:]]
    assert changes == sorted(changes, reverse=True)
    assert sorted(int(row[0]) for row in rows[1:]) == [1, 2, 3, 4]
    line = int(rows[1][0]) - 1
    assert rows[1][4:] == [
        *(SOURCES[line], REFERENCES[line], GOOD[line], BAD[line]),
    ]


def test_a_line_end_in_a_translation_ends_no_row_of_differences():
    text = TestTranslations(
        ["ein\tHund"],
        ["a dog"],
        {"one": ["a\ndog"], "two": ["a\r\ndog"]},
        {},
        {"tokenize": "13a", "lowercase": False},
    )
    _, row = score_tables.differences(text)
    assert row[4:6] == ["ein Hund", "a dog"]
    assert [cell.split() for cell in row[6:]] == [["a", "dog"]] * 2
    assert not {*"\r\n\t"} & {*"".join(row)}


def test_runs_translate_and_are_compared(deepnmt, digits, tmp_path, comet):
    # Copies, since other tests read the scores of the run.
    first, other = tmp_path / "first", tmp_path / "other"
    for folder in (first, other):
        shutil.copytree(digits / "run", folder)
        (folder / "scores.json").unlink(missing_ok=True)
    text = []
    for side in ("source", "target"):
        lines = (digits / f"train.{side}").read_text().splitlines()[:20]
        (tmp_path / side).write_text("".join(f"{line}\n" for line in lines))
        text += [f"--{side}", tmp_path / side]
    done = deepnmt(
        *("evaluate", first, other, *text, "--details"),
        *(*comet, "--quiet"),
    )
    scores, differences, signs, lengths, *rest = tables(done)
    assert [row[0] for row in scores[::3]] == [str(first), str(other)]
    # The same weights translate the same.
    assert [float(row[3]) for row in differences[1:]] == [0.0] * 3
    assert signs[1][2:5] == ["0", "0", "20"]
    assert sum(int(row[1]) for row in lengths[1:]) == 20
    assert rest[0][0][0] == "frequency of the rarest word"
    (row,) = json.loads((other / "scores.json").read_text())["evaluations"]
    assert row["scores"]["bleu"]["interval"] >= 0
    found = row["scores"]["comet"]
    assert scores[2][2] == f"{found['value']:.2f}"
    sha256 = row["evaluation"]["comet_models"]["comet"]
    assert f"sha256:{sha256[:12]}" in found["signature"]


CHINESE = ["今天早上，我的老老师画了一本旧书。", "那只猫在唱歌。"]


@pytest.fixture
def chinese(files):
    """The words of a command that scores two equal Chinese files."""
    for name in ("zh", "zh2"):
        lines = "".join(f"{line}\n" for line in CHINESE)
        (files / name).write_text(lines, encoding="utf-8")
    return "evaluate", "--hypotheses", "zh", "--references", "zh2"


def test_the_script_of_references_chooses_the_tokenizer(deepnmt, chinese):
    done = deepnmt(*chinese)
    ((bleu, _, ter),) = tables(done)
    assert (bleu[1], ter[1]) == ("100.00", "0.00")
    assert "tok:zh|" in bleu[3] and "asian:yes" in ter[3]
    assert "zh2: the script is Chinese; BLEU has tokenize=zh." in done.err
    assert deepnmt(*chinese, "--quiet").err == ""


def test_a_given_language_or_tokenizer_is_used(deepnmt, chinese):
    for words, name in (
        (["--language", "zh-TW"], "zh"),
        (["--language", "de"], "13a"),
        (["--tokenize", "char"], "char"),
    ):
        done = deepnmt(*chinese, *words)
        ((bleu, *_),) = tables(done)
        assert f"tok:{name}|" in bleu[3] and done.err == ""


def test_tables_of_scripts_without_spaces_name_their_unit(deepnmt, chinese):
    done = deepnmt(*chinese, "--source", "zh2", "--details")
    *_, lengths, rates = tables(done)
    unit = "source words (each letter of Chinese counts)"
    assert lengths[0] == [unit, "sentences", "BLEU"]
    assert [row[:2] for row in lengths[1:]] == [["0-10", "1"], ["11-20", "1"]]
    assert rates[0][0] == "system (words of zh)"
    assert rates[1][1] == "1.000"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "needs either run folders or --hypotheses"),
        (["run", "--hypotheses", "good"], "either run folders or"),
        (["--hypotheses", "good"], "--hypotheses needs --references"),
        (
            ["run", "--references", "good"],
            "--references needs --hypotheses or --source",
        ),
        (
            ["run", *("--source", "a", "--target", "b"), "--references", "c"],
            "--target and --references cannot be given together",
        ),
        (["run", "run"], "run: given more than once"),
        (["a", "b", "--output", "x"], "--output needs exactly one run"),
        (["a", "--differences", "x"], "needs at least two systems"),
        (["a", "--language", "de"], "--language needs --ladder or --hypothe"),
        (
            [
                *("--hypotheses", "good", "--references", "reference"),
                *("--language", "de", "--tokenize", "char"),
            ],
            "--language cannot be given with --tokenize",
        ),
        (
            ["a", "--source", "a", "--target", "b", "--split", "valid"],
            "--split valid cannot be given with --source",
        ),
        (
            ["--hypotheses", "short", "--references", "reference"],
            "short must have as many lines as reference. Received: 3 and 4",
        ),
        (["--hypotheses", "none", "--references", "reference"], "none"),
    ],
)
def test_mistakes_are_told_in_one_line(refused, files, words, said):
    assert said in refused("evaluate", *words)


@pytest.mark.parametrize(
    "words",
    [
        *(["--num-beams", "5"], ["--batch-size", "8"], ["--no-compile"]),
        *(["--checkpoint", "best"], ["--prepared", "x"], ["--split", "valid"]),
    ],
)
def test_options_of_translating_are_refused_with_translations(
    refused, files, words
):
    given = ["--hypotheses", "good", "--references", "reference", *words]
    option = words[0].replace("--no-", "--")
    message = f"{option} cannot be given with --hypotheses"
    assert message in refused("evaluate", *given)


def test_translations_are_written_before_they_are_scored(
    deepnmt, digits, tmp_path, monkeypatch
):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    # A bootstrap of many samples takes long enough to be interrupted.
    monkeypatch.setattr(
        "keras_deepnmt.runs.evaluate.translation_scores", interrupted
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines").write_text("1 2 3 4\n5 6 7 8\n")
    words = ["--source", "lines", "--target", "lines", "--output", "out"]
    assert deepnmt("evaluate", digits / "run", *words).code != 0
    assert len((tmp_path / "out").read_text().splitlines()) == 2


def test_several_references_are_those_of_sacrebleu(deepnmt, files):
    other = ["one dog", "a cat sleeps", "the home", "the bird sings loudly"]
    (files / "other").write_text("".join(f"{line}\n" for line in other))
    words = [
        "--hypotheses",
        "bad",
        "good",
        "--references",
        "reference",
        "other",
    ]
    words += ["--metrics", "bleu", "--resamples", "10"]
    scores, *_ = tables(deepnmt("evaluate", *words))
    for row, lines in zip(scores, (BAD, GOOD), strict=True):
        expected = BLEU().corpus_score(lines, [REFERENCES, other])
        assert row[2] == f"{expected.score:.2f}"
        assert "nrefs:2" in row[4]


def test_rouge_is_that_of_the_best_reference(deepnmt, files):
    pytest.importorskip("rouge_score", reason="needs the extra [rouge]")
    other = ["one dog", "a cat sleeps", "the home", "the bird sings loudly"]
    (files / "other").write_text("".join(f"{line}\n" for line in other))
    words = ["--hypotheses", "bad", "good"]
    words += ["--references", "reference", "other", "--metrics", "bleu"]
    words += ["--resamples", "10", "--rouge"]
    *_, rouge = tables(deepnmt("evaluate", *words))
    found = rouge_scores(GOOD, list(zip(REFERENCES, other, strict=True)))
    assert rouge[0] == ["system", "ROUGE-1", "ROUGE-2", "ROUGE-L"]
    assert rouge[2] == ["good", *(f"{value:.2f}" for value in found.values())]


@pytest.mark.thorough
def test_a_run_is_scored_with_several_references(
    deepnmt, digits, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    # The run reverses digits. The second set has no reference of line 2.
    lines = {"source": ["1 2 3 4", "5 6 7 8"], "first": ["9 9", "8 7 6 5"]}
    lines["second"] = ["4 3 2 1", ""]
    for name, texts in lines.items():
        (tmp_path / name).write_text("".join(f"{t}\n" for t in texts))
    run_dir = tmp_path / "run"
    shutil.copytree(digits / "run", run_dir)
    words = ["--metrics", "bleu", "--output", "translated", "--quiet"]
    words += ["--source", "source", "--references", "first"]
    ((one,),) = tables(deepnmt("evaluate", run_dir, *words))
    reading, writing = os.pipe()
    words += ["second", "--output", f"/dev/fd/{writing}"]
    ((two,),) = tables(deepnmt("evaluate", run_dir, *words))
    os.close(writing)
    translated = (tmp_path / "translated").read_text().splitlines()
    # A pipe of the shell, as of `>(gzip > out.gz)`, is written to as well.
    with open(reading) as pipe:
        assert pipe.read().splitlines() == translated
    for row, names in ((one, ["first"]), (two, ["first", "second"])):
        # As sacreBLEU says that there is no reference.
        sets = [[text or None for text in lines[name]] for name in names]
        expected = BLEU(tokenize="13a").corpus_score(translated, sets)
        assert row[1] == f"{expected.score:.2f}"
    assert "nrefs:var" in two[3]
    first, second = json.loads((run_dir / "scores.json").read_text())[
        "evaluations"
    ][-2:]
    assert "more_references_sha256" not in first["test_set"]
    assert len(second["test_set"]["more_references_sha256"]) == 1


def test_corrections_are_scored_by_gold_edits(deepnmt, files):
    (files / "gold.m2").write_text(M2)
    (files / "corrected").write_text("It is late .\nAll is well .\n")
    words = ["--hypotheses", "corrected", "--m2", "gold.m2"]
    ((_, row),) = tables(deepnmt("evaluate", *words))
    # One of two gold edits is made, and no other.
    f_score = 100 * 1.25 * 1.0 * 0.5 / (0.25 * 1.0 + 0.5)
    assert row == [
        *("corrected", "100.00", "50.00", f"{f_score:.2f}", "1", "1", "2"),
    ]
    whole, types = tables(deepnmt("evaluate", *words, "--details"))
    assert whole[1] == row
    assert types[1:] == [
        ["corrected", "M:ADV", "0.00", "0", "1"],
        ["corrected", "R:VERB", "100.00", "1", "1"],
    ]


def test_corrections_are_scored_by_gleu_with_their_sources(
    deepnmt, refused, files
):
    words = ["--hypotheses", "good", "bad", "--references", "reference", "good"]
    words += ["--metrics", "gleu", "--resamples", "50"]
    error = refused("evaluate", *words)
    assert "--metrics gleu needs --source" in error
    words += ["--source", "source"]
    scores, differences = tables(deepnmt("evaluate", *words))
    values = []
    for row, lines in zip(scores, (GOOD, BAD), strict=True):
        score = corpus_gleu(lines, SOURCES, REFERENCES, [GOOD])
        values.append(score.value)
        assert row[1:3] == ["gleu", f"{score.value:.2f}"]
        assert row[4] == score.signature
    assert differences[1][3] == f"{values[1] - values[0]:+.2f}"


def test_corrections_are_scored_by_type_of_error(
    deepnmt, refused, files, monkeypatch
):
    errant_stand_in.install(monkeypatch)
    load_annotator.cache_clear()
    (files / "gold.m2").write_text(M2)
    (files / "corrected").write_text("It is late .\nAll was well .\n")
    words = ["--hypotheses", "corrected", "--m2", "gold.m2", "--errant"]
    _, (_, *rows) = tables(deepnmt("evaluate", *words))
    assert rows == [
        ["corrected", "all", "50.00", "50.00", "50.00", "1", "2", "2"],
        ["corrected", "M:ADV", "100.00", "0.00", "0.00", "0", "0", "1"],
        ["corrected", "R:1", "0.00", "100.00", "0.00", "0", "1", "0"],
        ["corrected", "R:VERB", "100.00", "100.00", "100.00", "1", "1", "1"],
    ]
    # The edits of the references, found in the same way.
    (files / "before").write_text("It are late .\nAll is well .\n")
    (files / "after").write_text("It is late .\nAll is good .\n")
    words = ["--hypotheses", "corrected", "--references", "after", "--errant"]
    words += ["--metrics", "bleu", "--resamples", "1"]
    error = refused("evaluate", *words)
    assert "--errant needs --source" in error
    words += ["--source", "before"]
    _, (_, whole, *_) = tables(deepnmt("evaluate", *words))
    assert whole[1:] == ["all", "50.00", "50.00", "50.00", "1", "2", "2"]
    error = refused("evaluate", *words, "--spacy-model", "none")
    assert "spaCy cannot load the model none" in error
    load_annotator.cache_clear()
    monkeypatch.setitem(sys.modules, "errant", None)
    error = refused("evaluate", "run", "--m2", "gold.m2", "--errant")
    assert "pip install keras_deepnmt[errant]" in error


def test_files_that_do_not_fit_each_other_are_refused(refused, files):
    words = ["--hypotheses", "good", "--m2", "gold.m2"]
    (files / "gold.m2").write_text(M2)
    error = refused("evaluate", *words)
    assert "Received: 4 lines and 2 sentences" in error
    for name, value in {
        **{"--references": "reference", "--differences": "changed.tsv"},
        **{"--tokenize": "none", "--split": "valid", "--resamples": "10"},
    }.items():
        error = refused("evaluate", *words, name, value)
        assert f"{name} cannot be given with --m2" in error
    error = refused("evaluate", *words, "--rouge")
    assert "--rouge cannot be given with --m2" in error
    words = ["--hypotheses", "good", "--references", "reference"]
    error = refused("evaluate", *words, "bad", "--details")
    assert "--details needs a single file of --references" in error


def test_a_run_corrects_the_sentences_of_the_gold_file(
    deepnmt, digits, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    # The run reverses digits: one gold edit, to the reversed string.
    edit = "A 0 3|||R|||3 2 1|||REQUIRED|||-NONE-|||0"
    (tmp_path / "gold.m2").write_text(f"S 1 2 3\n{edit}\n")
    run_dir = str(digits / "run")
    ((_, row),) = tables(deepnmt("evaluate", run_dir, "--m2", "gold.m2"))
    assert row[0] == run_dir
    assert row[6] == "1"


@pytest.mark.thorough
def test_corrections_are_those_of_translate_with_the_same_options(
    deepnmt, digits, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    lines = (digits / "test.source").read_text().splitlines()
    (tmp_path / "source").write_text("".join(f"{t}\n" for t in lines))
    gold = [f"S {t}\nA -1 -1|||noop|||-NONE-|||R|||-NONE-|||0\n" for t in lines]
    (tmp_path / "gold.m2").write_text("\n".join(gold))
    sizes = []
    constructor = Translator.__init__

    def keep_sizes(self, *args, **options):
        sizes.append((options["batch_size"], options["batch_tokens"]))
        constructor(self, *args, **options)

    monkeypatch.setattr(Translator, "__init__", keep_sizes)
    words = [digits / "run", "--checkpoint", "200", "--num-beams", "1"]
    words += ["--batch-size", "7", "--batch-tokens", "500", "--no-compile"]
    done = deepnmt("evaluate", *words, "--m2", "gold.m2", "--output", "out")
    assert done.code == 0, done.err
    assert sizes == [(7, 500)]
    done = deepnmt("translate", *words, "--input", "source")
    corrected = (tmp_path / "out").read_text()
    assert corrected == done.out
    # The final model corrects otherwise.
    done = deepnmt("translate", digits / "run", "--input", "source")
    assert corrected != done.out


def test_a_missing_package_is_told_before_the_translation(
    refused, files, monkeypatch
):
    monkeypatch.setitem(sys.modules, "rouge_score", None)
    words = ["--source", "source", "--target", "reference", "--rouge"]
    # There is no such run, which would be reported first.
    error = refused("evaluate", "run", *words)
    assert "needs the package rouge_score" in error
    assert 'pip install "keras_deepnmt[rouge]"' in error


@pytest.fixture
def seeds(digits, tmp_path, monkeypatch):
    """Runs of two recipes with the seeds 1 and 2, and files with a text."""
    monkeypatch.chdir(tmp_path)
    for side in ("source", "target"):
        lines = (digits / f"test.{side}").read_text().splitlines()[:12]
        (tmp_path / side).write_text("".join(f"{line}\n" for line in lines))
    for name, smoothing in (("plain", 0.1), ("other", 0.2)):
        for seed in (1, 2):
            folder = tmp_path / f"{name}-{seed}"
            shutil.copytree(digits / "run", folder)
            recipe = yaml.safe_load((folder / "recipe.yaml").read_text())
            recipe["seed"] = seed
            recipe["training"]["label_smoothing"] = smoothing
            (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
            (folder / "scores.json").unlink(missing_ok=True)
    wrong = itertools.cycle((6, 3, 4, 2))

    def translate(translator, texts, **options):
        # As a run that gets some sentences wrong.
        number = next(wrong)
        return [
            " ".join(text.split()[:: 1 if place < number else -1])
            for place, text in enumerate(texts)
        ]

    monkeypatch.setattr(Translator, "translate", translate)
    words = ["--source", "source", "--target", "target", "--metrics", "bleu"]
    return [*words, "--resamples", "10", "--no-compile"]


def test_seeds_of_one_recipe_are_summed_up_and_not_tested(deepnmt, seeds):
    done = deepnmt("evaluate", "plain-1", "plain-2", *seeds)
    scores, means = tables(done)
    values = [float(row[2]) for row in scores]
    assert means[0][:5] == [
        *("recipe", "metric", "seeds", "mean", "standard deviation")
    ]
    mean = sum(values) / 2
    assert means[1][:3] == ["transformer_tiny.digits", "bleu", "1 2"]
    assert [means[0][-1], means[1][-1]] == ["better", "higher"]
    assert float(means[1][3]) == pytest.approx(mean, abs=0.011)
    # Student's t of two seeds: 12.706 |a - b| / 2.
    half = 12.706 * abs(values[0] - values[1]) / 2
    assert float(means[1][5].removeprefix("± ")) == pytest.approx(half, abs=0.1)
    assert "one recipe with different seeds, so no test compares" in done.err
    assert "The tests tell" not in done.err


def test_recipes_are_compared_seed_by_seed(deepnmt, seeds):
    runs = ["plain-1", "plain-2", "other-1", "other-2"]
    done = deepnmt("evaluate", *runs, *seeds)
    scores, means, paired, tests, signs = tables(done)
    a, b, c, d = (float(row[2]) for row in scores)
    assert [row[0] for row in means[1:]] == [
        f"transformer_tiny.digits (label_smoothing={smoothing})"
        for smoothing in (0.1, 0.2)
    ]
    assert paired[1][3] == "1 2"
    assert float(paired[1][4]) == pytest.approx((c - a + d - b) / 2, abs=0.02)
    assert [row[:2] for row in tests[1:]] == [
        ["other-1", "plain-1"],
        ["other-2", "plain-2"],
    ]
    assert [row[:2] for row in signs[1:]] == [row[:2] for row in tests[1:]]
    assert "not whether trainings with other seeds would" in done.err


def test_a_test_of_two_single_seeds_says_what_it_does_not_cover(deepnmt, seeds):
    done = deepnmt("evaluate", "plain-1", "other-2", *seeds)
    scores, tests, signs = tables(done)
    assert tests[1][:2] == ["other-2", "plain-1"]
    assert "not whether trainings with other seeds would" in done.err
    assert "Train each recipe with several seeds" in done.err
    quiet = deepnmt("evaluate", "plain-1", "other-2", *seeds, "--quiet")
    assert quiet.err == ""
