"""Many files are translated, line for line, and a stopped command goes on.

Here the worker is this process; `test_translate_files_by_ray.py` has others.

* a file for each file, of the same name and compression, a line for each line
* lines with faults are counted and listed; a damaged file is named at the end
* tables are read by `prepare`
* what is finished stays as it is, and the rest goes on where it was stopped
* other options, changed files and other folders are refused
"""

import json
import os
import sys
from pathlib import Path

import pytest
from here_pool import work_here
from shard_files import OPTIONS, contents, read_lines, write_shards

from keras_deepnmt.bulk.ray_session import ray_session
from keras_deepnmt.commands import translate_files
from keras_deepnmt.commands.shards.files import find_shards, read_blocks
from keras_deepnmt.errors import UserError
from keras_deepnmt.translator import Translator


@pytest.fixture
def here(tmp_path, monkeypatch, digits):
    """The current folder, with files to translate, and words of commands."""
    monkeypatch.chdir(tmp_path)
    work_here(monkeypatch)
    write_shards(tmp_path)
    return [
        *("translate-files", digits / "run", "--input", "mono/*"),
        *("--output", "out", *OPTIONS),
    ]


@pytest.fixture
def searches(monkeypatch):
    """The texts of each search; the search `stop_at` is stopped."""
    found = type("Searches", (list,), {"stop_at": None})()
    search = Translator.translate_nbest

    def translate(self, texts, *more, **given):
        if found.stop_at == len(found):
            raise KeyboardInterrupt
        found.append(list(texts))
        return search(self, texts, *more, **given)

    monkeypatch.setattr(Translator, "translate_nbest", translate)
    return found


@pytest.mark.thorough(each_commit=True)
def test_each_line_has_one_in_a_file_of_the_same_name(deepnmt, here, digits):
    done = deepnmt(*here)
    assert done.code == 0 and done.out == "out\n", done.err
    found = contents(Path("out"))
    sizes = {"a.gz": 70, "b": 40, "c": 0, "d.gz": 33}
    assert {name: len(lines) for name, lines in found.items()} == sizes
    words = ["translate", digits / "run", "--no-compile", "--num-beams", "1"]
    for name in ("a.gz", "d.gz"):
        assert deepnmt(*words, "--input", f"mono/{name}").out.split("\n") == [
            *found[name],
            "",
        ]
    assert found["b"][3] == found["b"][5] == ""
    assert "1 line of 1 file: not UTF-8; an empty line was written" in done.err
    report = json.loads(Path("out/reports/b.json").read_text())
    (fault,) = report["faults"].values()
    assert fault == {"lines": 1, "first": [4]}
    # Nothing to do: Ray is not started.
    os.remove("mono/c"), os.remove("out/c")
    done = deepnmt(*here)
    assert done.code == 0 and "3 of 3 files are finished." in done.err


@pytest.mark.thorough
def test_a_stopped_command_goes_on_after_what_was_kept(
    deepnmt, here, searches, monkeypatch
):
    monkeypatch.setattr(translate_files, "_KEEP_EVERY", -1)
    assert deepnmt(*here).code == 0
    whole = contents(Path("out"))
    number = len(searches)
    os.rename("out", "before")
    searches.clear()
    stops = 0
    while True:
        finished = [*searches]
        searches.stop_at = len(searches) + 2
        done = deepnmt(*here)
        if done.code == 0:
            break
        stops += 1
        assert done.code == 130 and "the same command goes on." in done.err
        assert len(searches) == len(finished) + 2
    assert stops >= 3 and len(searches) == number
    assert contents(Path("out")) == whole


def test_the_time_left_is_estimated_before_a_file_is_read(here):
    file = Path("mono/a.gz")
    found = [block.position for block in read_blocks(file, 16)]
    assert found == sorted(set(found)) and found[-1] == file.stat().st_size
    assert found[0] == pytest.approx(found[-1] * 16 / 70, rel=0.2)


@pytest.mark.thorough
def test_a_table_is_a_corpus_for_prepare(deepnmt, here):
    here[3] = "mono/[ab]*"
    more = ["--format", "tsv", "--score", "--num-hypotheses", "2"]
    here[here.index("--num-beams") + 1] = "3"
    assert deepnmt(*here, *more).code == 0
    out = Path("out")
    tables = contents(out)
    numbers = {name: len(lines) for name, lines in tables.items()}
    assert numbers == {"a.tsv.gz": 71, "b.tsv": 41}
    rows = [line.split("\t") for line in tables["b.tsv"]]
    assert rows[0] == [
        *("text", "translation", "score", "translation_2", "score_2")
    ]
    assert {len(row) for row in rows} == {5}
    assert rows[4][:2] == ["", ""] and rows[8][0] == "3 1 2 4"
    assert float(rows[1][2]) >= float(rows[1][4])
    done = deepnmt(
        *("prepare", "--file", "out/a.tsv.gz", "out/b.tsv", "--valid-pairs"),
        *("5", "--source-column", "translation", "--target-column", "text"),
        *("--vocabulary-size", "20", "--output", "prepared"),
    )
    assert done.code == 0, done.err
    manifest = json.loads(Path("prepared/manifest.json").read_text())
    assert manifest["filters"]["train"]["read"] == 110


@pytest.mark.thorough
def test_a_damaged_file_is_named_and_the_others_are_finished(deepnmt, here):
    content = Path("mono/a.gz").read_bytes()
    Path("mono/a.gz").write_bytes(content[: len(content) // 2])
    done = deepnmt(*here)
    assert done.code == 2
    assert "mono/a.gz, line" in done.err and "data is damaged" in done.err
    assert not os.path.exists("out/a.gz") and len(read_lines_of("d.gz")) == 33
    Path("mono/a.gz").write_bytes(content)
    assert deepnmt(*here).code == 0
    assert len(read_lines_of("a.gz")) == 70


@pytest.mark.thorough
def test_a_file_without_a_whole_line_is_named_each_time(deepnmt, here):
    content = Path("mono/a.gz").read_bytes()
    Path("mono/a.gz").write_bytes(content[:16])
    here[3] = "mono/[ac]*"
    for _ in range(2):
        done = deepnmt(*here, "--format", "tsv")
        assert done.code == 2
        assert "mono/a.gz, line 1: the gzip data is damaged" in done.err
        assert not list(Path("out").glob("*.part*"))
        assert contents(Path("out")) == {"c.tsv": ["text\ttranslation"]}


def read_lines_of(name):
    return read_lines(Path("out", name))


@pytest.mark.thorough
def test_results_are_not_mixed_with_others(deepnmt, refused, here):
    here[3] = "mono/b"
    assert deepnmt(*here).code == 0
    assert (
        "out: has translations made with --num-beams 1, not 2. Give the same "
        "options, or choose another folder"
    ) in refused(*here[:-3], "2", *here[-2:])
    size = os.path.getsize("mono/b")
    with open("mono/b", "a") as file:
        file.write("1 2\n")
    assert f"had {size} when out/b was finished" in refused(*here)
    os.remove("out/reports/b.json")
    assert "was not written by this command" in refused(*here)
    os.remove("out/translate-files.json")
    assert "no translate-files.json" in refused(*here)


@pytest.mark.parametrize(
    "changes, message",
    [
        (["--score"], "`--score` needs `--format tsv`"),
        (["--num-beams", "2", "--num-hypotheses", "2"], "needs `--format tsv`"),
        (["--input", "none/*.gz"], "no file is found by none/*.gz"),
        (["--input", "mono/a.gz", "other/a.gz"], "would both be out/a.gz"),
        (["--input", "other/a.tsv"], "is a document by its name"),
        (["--output", "mono"], "is in the folder of `--output`"),
    ],
)
def test_a_mistake_is_told_before_anything_starts(
    refused, here, changes, message
):
    os.mkdir("other")
    for name in ("a.gz", "a.tsv"):
        os.link("mono/b", f"other/{name}")
    assert message in refused(*here, *changes)


def test_the_name_of_a_file_is_no_pattern(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a[1]", "a*", "a?", "a1", "a12"):
        Path(name).write_text("1\n")

    def names(*patterns):
        return [str(s.source) for s in find_shards(patterns, Path("o"), "text")]

    assert names("a[1]", "a*") == ["a*", "a[1]"]
    assert names("a?") == ["a?"]
    assert names("a[12]", "a??") == ["a1", "a12"]


@pytest.mark.parametrize(
    ("names", "format", "message"),
    [
        (["translate-files.json"], "text", "has its own record."),
        (["reports"], "text", "has its reports."),
        (["a.part", "a"], "text", "has what is not finished of a."),
        (["a", "a.part.json"], "text", "has what is not finished of a."),
        (["a.gz", "a.tsv.gz.part"], "text", None),
        (["a", "a.part"], "tsv", None),  # a.tsv and a.part.tsv
        (["reports", "translate-files.json"], "tsv", None),
        (["a.part", "b"], "text", None),
    ],
)
def test_a_result_has_not_the_name_of_another_file(
    tmp_path, monkeypatch, names, format, message
):
    monkeypatch.chdir(tmp_path)
    for name in names:
        Path(name).write_text("1\n")
    if message is None:
        assert len(find_shards(names, Path("out"), format)) == len(names)
        return
    with pytest.raises(UserError, match=f"{message} Rename the input"):
        find_shards(names, Path("out"), format)


@pytest.mark.parametrize(
    "changes, message",
    [
        (["--tag", "<2xx>"], "must be a user-defined symbol"),
        (["--target-language", "xx"], "Received: xx"),
    ],
)
def test_a_tag_that_was_not_learned_leaves_the_folder_free(
    refused, here, changes, message
):
    assert message in refused(*here, *changes)
    assert not os.path.exists("out/translate-files.json")


def test_ray_is_needed_only_here(refused, here, monkeypatch):
    monkeypatch.setattr(translate_files, "ray_session", ray_session)
    monkeypatch.setitem(sys.modules, "ray", None)
    message = refused(*here)
    assert "needs the package ray" in message
    assert 'pip install "keras_deepnmt[ray]"' in message
