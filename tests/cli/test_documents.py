"""`translate --input` takes documents, and writes them with translations.

* the command that was stopped goes on, and gives the same document
* languages and columns are those that are asked for
* what cannot be done is refused in one line, and nothing is left behind
"""

import errno
import gzip
import json
import lzma
import re
import shutil
import subprocess
import sys

import pytest
from digit_run import environment

from keras_deepnmt.commands.options.document import DocumentInput
from keras_deepnmt.data.kept_items import find_kept_items
from keras_deepnmt.translator import Translator
from keras_deepnmt.translator.results import Hypothesis

pytestmark = pytest.mark.thorough(each_commit=True)

XLIFF = """<?xml version="1.0"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2">
<file original="a" source-language="de" target-language="en" datatype="x"><body>
<trans-unit id="0"><source>1 <g id="1">2</g> 3</source></trans-unit>
<trans-unit id="1"><source>4</source><target state="final">5</target>
</trans-unit>{}</body></file></xliff>
"""
UNIT = '\n<trans-unit id="a{0}"><source>{0}</source></trans-unit>'
TMX = """<tmx version="1.4"><header srclang="de"/><body>
<tu><tuv xml:lang="de"><seg>1 2</seg></tuv></tu></body></tmx>"""


@pytest.fixture
def echoes(monkeypatch):
    """Translations are the texts; the search `stop_at` is stopped."""
    found = type("Searches", (list,), {"stop_at": None})()

    def translate(self, texts, *more, **given):
        if found.stop_at == len(found):
            raise KeyboardInterrupt
        found.append(list(texts))
        return [[Hypothesis(text, 0.0, 0.0, ())] for text in texts]

    monkeypatch.setattr(Translator, "translate_nbest", translate)
    return found


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The current folder, with a document of each format."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.xlf").write_text(XLIFF.format(""))
    (tmp_path / "a.tmx").write_text(TMX)
    (tmp_path / "a.tsv").write_text("id\tde\n7\t1 2\n")
    (tmp_path / "a.jsonl").write_text('{"de": "1 2"}\n')
    (tmp_path / "a.txt").write_text("1 2\n")
    return tmp_path


def command(digits, *words):
    return ["translate", digits / "run", "--no-compile", *words]


def test_a_document_is_written_to_standard_output_or_a_file(
    deepnmt, digits, files, echoes
):
    words = command(digits, "--input", "a.xlf")
    done = deepnmt(*words)
    assert done.code == 0, done.err
    assert "a.xlf: 1 texts are translated; left as they are: 1 appr" in done.err
    before, target, after = re.split(
        '(<target state="translated">.*?</target>)', done.out
    )
    assert before + after == XLIFF.format("")
    # Where the model's attention says.
    assert target.count('<g id="1">') == target.count("</g>") == 1
    text = re.sub("<.*?>", "", target)
    assert text.split() == ["1", "2", "3"]
    for name, unpack in (("b.gz", gzip.open), ("b.xz", lzma.open)):
        assert deepnmt(*words, "--output", name).code == 0
        assert unpack(name, "rt").read() == done.out


def test_a_stopped_document_goes_on_to_the_same_bytes(
    deepnmt, digits, files, echoes
):
    units = "".join(UNIT.format(number) for number in range(150))
    (files / "a.xlf").write_text(XLIFF.format(units))
    words = command(digits, "--input", "a.xlf", "--batch-size", "1")
    assert deepnmt(*words, "--output", "whole.xlf").code == 0
    number, echoes.stop_at = len(echoes), len(echoes) + 1
    done = deepnmt(*words, "--output", "b.xlf")
    assert done.code == 130 and "64 lines are finished" in done.err
    assert not (files / "b.xlf").exists()
    echoes.stop_at = None
    assert deepnmt(*words, "--output", "b.xlf").code == 0
    assert len(echoes) == 2 * number
    assert (files / "b.xlf").read_bytes() == (files / "whole.xlf").read_bytes()
    assert not list(files.glob("b.xlf.*"))


@pytest.mark.parametrize("texts", [["7"], ["7", "8", "9"], ["7", "8"]])
def test_a_document_that_was_changed_before_it_was_written_is_refused(
    deepnmt, refused, digits, files, echoes, monkeypatch, texts
):
    def write(texts):
        rows = "".join(f"{text}\n" for text in ["de", *texts])
        (files / "a.tsv").write_text(rows)

    def fail(self, part, file):
        raise OSError(errno.ENOSPC, "full")

    write(["1 2", "3"])
    words = command(digits, "--input", "a.tsv", "--source-column", "de")
    words += ["--output", "b.tsv"]
    with monkeypatch.context() as patch:
        patch.setattr(DocumentInput, "finish", fail)
        assert deepnmt(*words).code != 0
    write(texts)
    error = refused(*words)
    assert "--input: the first 2 lines are not those" in error
    assert "--restart" in error
    write(["1 2", "3"])
    assert deepnmt(*words).code == 0
    lines = (files / "b.tsv").read_text().splitlines()
    assert lines == ["de\ttranslation", "1 2\t1 2", "3\t3"]
    assert len(echoes) == 1


def test_a_checkpoint_of_an_unfinished_run_translates_a_document(
    deepnmt, digits, files, echoes
):
    shutil.copytree(digits / "run", "run")
    (files / "run/run.json").unlink()
    words = ["translate", "run", "--no-compile", "--input", "a.xlf"]
    done = deepnmt(*words, "--checkpoint", "latest")
    assert done.code == 0, done.err
    assert 'state="translated"' in done.out


def test_tables_and_memories_are_translated(deepnmt, digits, files, echoes):
    def printed(*words):
        done = deepnmt(*command(digits, *words, "-q"))
        assert done.code == 0, done.err
        return done.out

    assert printed("--input", "a.tsv", "--source-column", "de") == (
        "id\tde\ttranslation\n7\t1 2\t1 2\n"
    )
    out = printed(
        *("--input", "a.jsonl", "--source-column", "de"),
        *("--target-column", "en"),
    )
    assert json.loads(out) == {"de": "1 2", "en": "1 2"}
    out = printed("--input", "a.tmx", "--target-language", "en")
    assert '<tuv xml:lang="en"><seg>1 2</seg></tuv></tu>' in out
    # The name of a file may say less than the user knows.
    words = ["--input-format", "tsv", "--source-column", "1 2"]
    assert printed("--input", "a.txt", *words) == "1 2\ttranslation\n"
    assert printed("--input", "a.tsv", "--input-format", "text") == (
        "id\tde\n7\t1 2\n"
    )


@pytest.mark.thorough
def test_a_warning_names_the_line_of_the_document(deepnmt, digits, files):
    words = ["--max-length-ratio", "0", "--max-extra-tokens", "1"]
    done = deepnmt(*command(digits, "--input", "a.xlf", *words))
    assert done.code == 0, done.err
    assert "a.xlf, line 4: the translation was cut" in done.err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("a.xlf --target-language fr", "its target language is en, but fr is"),
        ("a.xlf --source-language fr", "its source language is de, but fr is"),
        ("a.tmx", "Give `--target-language CODE`"),
        ("a.tsv", "line 1: has the columns id, de. Name one by `--source-c"),
        ("a.tsv --source-column dee", "no column dee (`--source-column`). Did"),
        ("a.tsv --source-column de --target-column id", "has a column id alr"),
        (
            "a.tsv --source-column de --target-language en",
            "needs a model that knows its lang",
        ),
        ("a.xlf --source-column de", "--source-column cannot be used with a.x"),
        ("a.txt --source-column de", "needs an --input that is TSV or JSON"),
        ("a.txt --replace-targets", "needs an --input that is XLIFF or TMX"),
        ("a.xlf --prefixes a.txt", "--prefixes needs plain text with a sent"),
        ("a.xlf --num-hypotheses 2", "--num-hypotheses must be 1"),
        ("a.xlf --errors skip", "--errors is for plain text"),
        (
            "a.tsv --source-column de --source-language de",
            "needs --split-sentences, or an --in",
        ),
        ("- --input-format tmx", "needs an --input FILE"),
        ("cut.gz --input-format xliff", "the gzip data is damaged"),
        ("empty.xlf", "empty.xlf: the file is empty"),
        ("none.xlf", "none.xlf: no such file"),
    ],
)
def test_what_cannot_be_done_is_refused(refused, digits, files, words, reason):
    packed = gzip.compress(XLIFF.encode() * 20)
    (files / "cut.gz").write_bytes(packed[: len(packed) // 2])
    (files / "empty.xlf").write_bytes(b"")
    before = {file.name for file in files.iterdir()}
    given = command(digits, "--input", *words.split(), "--output", "out")
    assert reason in refused(*given)
    assert {file.name for file in files.iterdir()} == before


@pytest.mark.thorough
def test_the_markup_of_a_document_is_kept_without_an_option(
    deepnmt, digits, files
):
    texts = "1 {name} 2 &lt;b&gt;3&lt;/b&gt; www.a.de"
    (files / "a.xlf").write_text(XLIFF.format(UNIT.format(texts)))
    done = deepnmt(*command(digits, "--input", "a.xlf", "-q"))
    assert done.code == 0, done.err
    target = done.out.split("<target")[-1].split("</target")[0]
    for item in ("{name}", "&lt;b&gt;", "&lt;/b&gt;", "www.a.de"):
        assert target.count(item) == 1
    assert find_kept_items(target)


@pytest.mark.thorough
def test_a_damaged_document_costs_one_line_in_a_new_process(tmp_path):
    # Not a forked one: the backend prints when it is imported first.
    (tmp_path / "a.xliff").touch()
    words = ["translate", "transformer_tiny.demo_de_en", "--input", "a.xliff"]
    done = subprocess.run(
        [sys.executable, "-m", "keras_deepnmt", *words, "-o", "b.xliff"],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        env=environment(),
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "deepnmt translate: error: a.xliff: the file is empty."
    ]
