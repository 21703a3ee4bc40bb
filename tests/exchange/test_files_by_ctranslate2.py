"""`translate-files` has CTranslate2 translate, from a folder of an export.

It writes what CTranslate2 gives, and refuses what CTranslate2 cannot do.
"""

import json
import os
import shutil

import pytest
from digit_run import deepnmt_process
from here_pool import work_here

from keras_deepnmt.cli import main
from keras_deepnmt.data.demo import demo_pairs
from keras_deepnmt.exchange.ctranslate2_program import Model

TEXTS = [pair.source for pair in demo_pairs(40)]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current folder, whose results this process computes."""
    monkeypatch.chdir(tmp_path)
    work_here(monkeypatch)
    return tmp_path


def words(folder, *more):
    given = ["translate-files", folder, "--input", "lines", "--output", "out"]
    return [str(word) for word in (*given, *more)]


def write(lines):
    with open("lines", "wb") as file:
        file.writelines(line + b"\n" for line in lines)


def read(name="lines"):
    with open(f"out/{name}", encoding="utf-8") as file:
        return file.read().split("\n")[:-1]


@pytest.mark.thorough(each_commit=True)
def test_golden_sentences_are_translated_as_recorded(here, ctranslate2_demo):
    with open(ctranslate2_demo / "export.json", encoding="utf-8") as file:
        golden = json.load(file)["golden"]
    rows = [
        row
        for row in zip(golden["sources"], golden["texts"], strict=True)
        if not {"\n", "\r"} & set(row[0] + row[1])
    ]
    assert len(rows) > 10
    write([source.encode() for source, _ in rows])
    # They are of greedy search; the folder's own search has more beams.
    assert main(words(ctranslate2_demo, "--num-beams", "1")) == 0
    assert read() == [text for _, text in rows]


@pytest.mark.thorough(each_commit=True)
def test_a_table_has_what_its_own_program_finds(here, ctranslate2_demo, capfd):
    # Of a model that reads few tokens.
    folder = here / "short"
    shutil.copytree(ctranslate2_demo, folder)
    content = json.loads((folder / "export.json").read_text())
    content["max_source_length"] = 20
    (folder / "export.json").write_text(json.dumps(content))
    long = "Hund " * 30
    write([*(t.encode() for t in TEXTS), b"", b"f\xfcr", long.encode()])
    more = ["--format", "tsv", "--num-hypotheses", "2", "--score"]
    assert main(words(folder, *more, "--length-penalty", "0.3")) == 0
    errors = capfd.readouterr().err
    assert "not UTF-8; an empty line" in errors
    assert "longer than 19 tokens, the model's position range" in errors
    nbest = Model(folder).translate_nbest(
        [*TEXTS, "", "", long], 2, length_penalty=0.3
    )
    rows = [line.split("\t") for line in read("lines.tsv")[1:]]
    for row, found in zip(rows, nbest, strict=True):
        for number, one in enumerate(found):
            assert row[1 + 2 * number] == one["text"]
            assert float(row[2 + 2 * number]) == pytest.approx(
                one["score"], abs=1e-5
            )


@pytest.mark.thorough(each_commit=True)
@pytest.mark.parametrize(
    "given",
    [
        "--sampling true",
        "--num-groups 2",
        "--coverage-penalty 0.2",
        "--patience 0",
        "--batch-tokens 100",
        "--tag <2de>",
        "--checkpoint best",
        "--no-compile",
    ],
)
def test_what_it_lacks_is_refused_by_name(here, ctranslate2_demo, capfd, given):
    write([b"Ein Hund"])
    assert main(words(ctranslate2_demo, *given.split())) == 2
    errors = capfd.readouterr().err
    name = given.split()[0].replace("--no-", "--")
    assert f"`{name}`" in errors and "folder for CTranslate2" in errors
    assert errors.count("\n") == 1 and not os.path.exists("out")


@pytest.mark.thorough
def test_other_options_and_engines_are_refused(here, ctranslate2_demo, capfd):
    write([b"Ein Hund"])
    assert main(words(ctranslate2_demo, "--allow-unknown", "false")) == 0
    assert main(words(ctranslate2_demo)) == 2
    errors = capfd.readouterr().err
    assert "made with --allow-unknown false, not true" in errors
    (here / "export.json").write_text(json.dumps({"format": "onnx"}))
    assert main(words(here)) == 2
    errors = capfd.readouterr().err
    assert "is a folder for ONNX Runtime, which translates no files" in errors


@pytest.mark.thorough
def test_rays_workers_write_the_same(here, ctranslate2_demo, tmp_path):
    pytest.importorskip("ray")
    write([text.encode() for text in TEXTS])
    assert main(words(ctranslate2_demo, "--block-lines", "16")) == 0
    expected = read()
    given = words(ctranslate2_demo, "--block-lines", "16", "--workers", "2")
    given[given.index("out")] = "by_ray"
    done = deepnmt_process(*given, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    with open("by_ray/lines", encoding="utf-8") as file:
        assert file.read().split("\n")[:-1] == expected
