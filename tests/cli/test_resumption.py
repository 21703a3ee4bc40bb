"""A stopped translation of a file goes on where it was, with equal results.

* after Ctrl-C, SIGTERM, a kill and a full disk, what is finished stays in
  OUTPUT.part, and the same command gives what an undisturbed one gives
* so do the batches of lines that are not all finished, as in a short file
* another command is refused, and says what differs
* what is not of this command, or was changed, is neither used nor lost
* a link that others planted is not followed, and the file keeps its mode
"""

import errno
import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from digit_run import environment
from forked_processes import ForkedProcess

from keras_deepnmt import threads
from keras_deepnmt.commands.options import part_files, resumption
from keras_deepnmt.commands.options.compilation import LazilyCompiled
from keras_deepnmt.commands.options.part_files import PartFiles
from keras_deepnmt.commands.terminal import console
from keras_deepnmt.errors import UserError
from keras_deepnmt.translator import Translator, batch_decoder
from keras_deepnmt.translator.batch_decoder import BatchDecoder
from keras_deepnmt.translator.results import Hypothesis

# Windows of 64 lines.
WORDS = ["--batch-size", "1", "--no-compile", "--num-beams", "2"]
GREEDY = ["--num-beams", "1"]


@pytest.fixture
def lines(tmp_path):
    """The files of 150 sentences: three windows."""
    draw = random.Random(0)
    texts = [
        " ".join(str(draw.randrange(10)) for _ in range(draw.randint(1, 8)))
        for _ in range(150)
    ]
    texts[100] = ""
    (tmp_path / "in").write_text("".join(f"{text}\n" for text in texts))
    marked = [f"<b>{text}</b>" if text else text for text in texts]
    (tmp_path / "marked").write_text("".join(f"{text}\n" for text in marked))
    (tmp_path / "prefixes").write_text(
        "".join(f"{text.split()[-1] if text else ''}\n" for text in texts)
    )
    (tmp_path / "limits").write_text("5\n\n9\n" * 50)
    return tmp_path


@pytest.fixture
def searches(monkeypatch):
    """The texts of each search; `stop_at` is the search that is stopped."""
    found = type("Searches", (list,), {"stop_at": None, "stop": None})()
    search = Translator.translate_nbest

    def translate(self, texts, *more, **given):
        if found.stop_at == len(found):
            raise found.stop
        found.append(list(texts))
        return search(self, texts, *more, **given)

    monkeypatch.setattr(Translator, "translate_nbest", translate)
    return found


@pytest.fixture
def echoes(monkeypatch):
    """As `searches`, but the translations are the texts."""
    found = type("Searches", (list,), {"stop_at": None, "stop": None})()

    def translate(self, texts, *more, **given):
        if found.stop_at == len(found):
            raise found.stop
        found.append(list(texts))
        return [[Hypothesis(text, 0.0, 0.0, ())] for text in texts]

    monkeypatch.setattr(Translator, "translate_nbest", translate)
    return found


@pytest.fixture
def batches(monkeypatch):
    """The numbers of rows of all batches; the search `stop_at` is stopped.

    Searches are real only if `is_real`; others find the ids of the source.
    """
    attributes = {"stop_at": None, "look": None, "is_real": False}
    found = type("Batches", (list,), attributes)()
    search = BatchDecoder.search

    def stop_or_search(self, source_ids, *more, **given):
        if found.stop_at == len(found):
            raise KeyboardInterrupt
        if found.look is not None:
            found.look()
        found.append(len(source_ids))
        if found.is_real:
            return search(self, source_ids, *more, **given)
        zeros = np.zeros([len(source_ids), 1])
        scores = dict.fromkeys(["scores", "log_probs", "truncated"], zeros)
        return {"ids": source_ids[:, None], **scores}

    monkeypatch.setattr(BatchDecoder, "search", stop_or_search)
    return found


def names(folder):
    return {file.name for file in folder.iterdir()}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "more, side",
    [
        (["--input", "in", "--alignments", "links", *GREEDY], "links"),
        (
            ["--input", "in", "--num-hypotheses", "2", "--prefixes"]
            + ["prefixes", "--max-lengths", "limits"],
            None,
        ),
        (["--input", "marked", "--keep-markup", *GREEDY], None),
    ],
)
def test_a_stopped_translation_goes_on_to_the_same_bytes(
    deepnmt, digits, lines, searches, monkeypatch, more, side
):
    monkeypatch.chdir(lines)
    before = names(lines)
    words = ["translate", digits / "run", *WORDS, *more, "--output", "out"]
    assert deepnmt(*words).code == 0
    made = names(lines) - before
    expected = {name: (lines / name).read_bytes() for name in made}
    assert made == {"out", side} - {None}
    for name in made:
        (lines / name).unlink()
    whole = list(searches)

    for finished, stop in ((1, KeyboardInterrupt), (2, OSError(28, "full"))):
        searches.clear()
        searches.stop_at, searches.stop = 1, stop
        done = deepnmt(*words)
        assert done.code == (130 if stop is KeyboardInterrupt else 2)
        number = 64 * finished
        assert f"{number} lines are finished, in out.part" in done.err
        assert names(lines) - before == {
            *(f"{name}.part" for name in made),
            "out.part.json",
        }
        for name in made:
            part = (lines / f"{name}.part").read_bytes()
            assert expected[name].startswith(part) and part.endswith(b"\n")
    searches.clear()
    searches.stop_at = None
    done = deepnmt(*words)
    assert done.code == 0
    assert "Going on after the 128 lines in out.part." in done.err
    assert searches == whole[-1:]
    assert names(lines) - before == made
    for name in made:
        assert (lines / name).read_bytes() == expected[name]


# All 150 lines are one window.
SHORT = ["--batch-size", "8", "--no-compile", "--input", "in", "-o", "out"]


@pytest.mark.thorough(each_commit=True)
@pytest.mark.parametrize(
    "more",
    [
        ["--num-beams", "2", "--num-hypotheses", "2", "--nbest-format"]
        + ["json", "--prefixes", "prefixes", "--max-lengths", "limits"],
        ["--sampling", "true", "--sampling-seed", "3", "--num-beams", "1"],
    ],
    ids=["n-best", "drawn"],
)
def test_a_short_file_goes_on_after_the_batches_that_were_searched(
    deepnmt, digits, lines, batches, monkeypatch, more
):
    monkeypatch.chdir(lines)
    batches.is_real = True
    before = names(lines)
    words = ["translate", digits / "run", *SHORT, *more]
    assert deepnmt(*words).code == 0
    made = names(lines) - before
    expected = {name: (lines / name).read_bytes() for name in made}
    for name in made:
        (lines / name).unlink()
    whole = list(batches)

    kept = 0
    for _ in range(2):  # broken off twice
        batches.clear()
        batches.stop_at = 5
        done = deepnmt(*words)
        assert done.code == 130
        kept += 5
        said = f" {8 * kept} lines are finished, in out.part.json; the same"
        assert said in done.err
        assert names(lines) - before == {"out.part.json"}
    batches.clear()
    batches.stop_at = None
    done = deepnmt(*words)
    assert done.code == 0
    assert "Going on after the 80 lines in out.part.json." in done.err
    assert batches == whole[kept:]
    assert names(lines) - before == made
    for name in made:
        assert (lines / name).read_bytes() == expected[name]


def test_lines_and_batches_are_told_apart(
    deepnmt, digits, lines, batches, monkeypatch
):
    monkeypatch.chdir(lines)
    words = ["translate", digits / "run", *WORDS, "-i", "in", "-o", "out"]
    batches.stop_at = 70
    said = "64 lines are finished, in out.part and 6 more in out.part.json;"
    assert said in deepnmt(*words).err
    batches.stop_at = None
    done = deepnmt(*words)
    assert "after the 64 lines in out.part and 6 of the next." in done.err
    # One of the 150 is empty.
    assert done.code == 0 and len(batches) == 149


@pytest.mark.thorough
@pytest.mark.parametrize("place", ["before", "early", "record", "after"])
def test_a_signal_while_a_window_is_kept_loses_and_repeats_nothing(
    deepnmt, digits, lines, batches, monkeypatch, place
):
    monkeypatch.chdir(lines)
    keep, write = PartFiles.keep, part_files.write_json

    def stop_around_keep(self, number, state):
        if place == "before" and number == 128:
            raise KeyboardInterrupt
        keep(self, number, state)
        if place == "after" and number == 128:
            raise KeyboardInterrupt

    stopped = []

    def stop_while_writing(file, record):
        is_now = record["lines"] == 128 and not stopped
        for here in ("early", "record"):
            if place == here and is_now:
                stopped.append(here)
                raise KeyboardInterrupt
            if here == "early":
                write(file, record)

    words = ["translate", digits / "run", *WORDS, "-i", "in", "-o", "out"]
    with monkeypatch.context() as patch:
        patch.setattr(PartFiles, "keep", stop_around_keep)
        patch.setattr(part_files, "write_json", stop_while_writing)
        done = deepnmt(*words)
        record = json.loads((lines / "out.part.json").read_text())
        number = 64 if place == "before" else 128
        assert done.code == 130 and record["lines"] == number
        assert f"{number} lines are finished, in out.part;" in done.err
    assert deepnmt(*words).code == 0
    once = (lines / "out").read_bytes()
    assert deepnmt(*words).code == 0
    assert (lines / "out").read_bytes() == once and once.count(b"\n") == 150


def test_batches_of_other_lines_are_searched_again(
    deepnmt, digits, lines, batches, monkeypatch
):
    monkeypatch.chdir(lines)
    words = ["translate", digits / "run", *SHORT, *GREEDY]
    batches.stop_at = 5
    assert deepnmt(*words).code == 130
    texts = (lines / "in").read_text().splitlines(keepends=True)
    (lines / "in").write_text("".join(texts[:140]))
    batches.stop_at = None
    assert deepnmt(*words).code == 0
    again = (lines / "out").read_bytes()
    assert deepnmt(*words).code == 0
    assert (lines / "out").read_bytes() == again
    assert again.count(b"\n") == 140


def test_a_killed_process_has_kept_its_batches_once_a_minute(
    deepnmt, digits, lines, batches, monkeypatch
):
    monkeypatch.chdir(lines)
    monkeypatch.setattr(resumption, "_KEEP_EVERY", 0.0)
    seen = []

    def look():
        record = json.loads((lines / "out.part.json").read_text())
        seen.append(record.get("lines_of_state", 0))

    batches.look = look
    words = ["translate", digits / "run", *SHORT, *GREEDY]
    assert deepnmt(*words).code == 0
    assert seen == [8 * number for number in range(len(batches))]
    assert "out.part.json" not in names(lines)


def test_a_long_translation_to_standard_output_ends(
    deepnmt, digits, lines, batches, monkeypatch
):
    monkeypatch.setattr(resumption, "_KEEP_EVERY", 0.0)
    words = ["translate", digits / "run", "--input", lines / "in", *WORDS]
    done = deepnmt(*words, *GREEDY)
    assert done.code == 0, done.err
    assert done.out.count("\n") == 150


def test_batches_of_another_number_of_cores_are_searched_again(
    deepnmt, digits, lines, batches, monkeypatch
):
    monkeypatch.chdir(lines)
    # One after the other, so that the second alone is stopped.
    monkeypatch.setattr(
        batch_decoder, "results_in_order", lambda calls, _: (c() for c in calls)
    )
    for name in ("in", "prefixes"):
        texts = (lines / name).read_text().splitlines(keepends=True)
        (lines / name).write_text("".join(texts[:20]))
    # With prefixes nothing is compiled beforehand.
    words = ["translate", digits / "run", "--compile", "--batch-size", "64"]
    words += ["--prefixes", "prefixes", *GREEDY, "-i", "in", "-o", "out"]
    monkeypatch.setattr(threads, "_share", 2)
    batches.stop_at = 1
    assert "16 lines are finished" in deepnmt(*words).err
    monkeypatch.setattr(threads, "_share", 1)
    assert deepnmt(*words).code == 130
    batches.stop_at = None
    done = deepnmt(*words)
    assert done.code == 0, done.err
    assert "begun with the number of cores: 2, not 1" in done.err
    assert (lines / "out").read_text().count("\n") == 20
    assert len(batches) == 2


def test_a_file_that_the_shell_has_opened_is_added_to(
    deepnmt, digits, lines, echoes
):
    before = names(lines)
    with open(lines / "in", "a") as opened:
        output = f"/dev/fd/{opened.fileno()}"
        words = ["translate", digits / "run", "-o", output, "--no-compile"]
        done = deepnmt(*words, "--input", lines / "limits")
    assert done.code == 0, done.err
    assert names(lines) == before
    text = (lines / "in").read_text()
    assert text.count("\n") == 300
    assert text.endswith((lines / "limits").read_text())


def test_a_damaged_batch_is_refused_in_one_line(
    deepnmt, refused, digits, lines, batches, monkeypatch
):
    monkeypatch.chdir(lines)
    words = ["translate", digits / "run", *SHORT, *GREEDY]
    batches.stop_at = 2
    assert deepnmt(*words).code == 130
    file = lines / "out.part.json"
    record = json.loads(file.read_text())
    (first, second) = record["state"]["next"]["batches"]
    for other in (second.replace('"text"', '"words"'), "[" * 10_000, "{}x"):
        record["state"]["next"]["batches"] = [first, other]
        file.write_text(json.dumps(record))
        assert "out.part.json: " in refused(*words)


def test_a_full_disk_is_named_with_the_file(refused, digits, lines, echoes):
    echoes.stop_at, echoes.stop = 0, OSError(errno.ENOSPC, "full")
    out = lines / "out"
    line = refused("translate", digits / "run", "-i", lines / "in", "-o", out)
    assert f"{out}: No space left on device. {out} was not written." in line
    assert "Free some space" in line


def test_a_first_batch_that_is_not_finished_leaves_nothing(
    deepnmt, digits, lines, echoes
):
    (lines / "out").write_text("old\n")
    before = names(lines)
    echoes.stop_at, echoes.stop = 0, KeyboardInterrupt
    words = ["translate", digits / "run", "--input", lines / "in"]
    done = deepnmt(*words, "--output", lines / "out")
    assert done.code == 130
    assert done.err.endswith(f"interrupted. {lines / 'out'} was not written.\n")
    assert names(lines) == before
    assert (lines / "out").read_text() == "old\n"


@pytest.fixture
def stopped(deepnmt, digits, lines, echoes, monkeypatch):
    """A command that was stopped after its first window: its words."""
    monkeypatch.chdir(lines)
    words = ["translate", digits / "run", *WORDS, "-i", "in", "-o", "out"]
    words += ["--prefixes", "prefixes"]
    echoes.stop_at, echoes.stop = 1, KeyboardInterrupt
    assert deepnmt(*words).code == 130
    echoes.clear()
    echoes.stop_at = None
    return words


@pytest.mark.thorough(each_commit=True)
@pytest.mark.parametrize(
    "more, said",
    [
        (["--num-beams", "3"], "--num-beams 2, not 3"),
        (["--length-penalty", "0.5"], "--length-penalty 0.6, not 0.5"),
        (["--batch-size", "2"], "--batch-size 1, not 2"),
        (["--compile"], "--compile false, not true"),
        (["--keep-markup"], "--keep-markup false, not true"),
        (["--alignments", "links"], "--alignments false, not true"),
        (["--mbr", "chrf"], "--mbr left out, not chrf"),
    ],
)
def test_another_command_says_what_differs(refused, lines, stopped, more, said):
    before = {name: (lines / name).read_bytes() for name in names(lines)}
    line = refused(*stopped, *more)
    assert "out.part was begun with " in line
    assert said in line and "--restart" in line
    # Nothing that only follows from it, as --batch-tokens.
    assert line.count(", not ") == 1
    assert before == {name: (lines / name).read_bytes() for name in before}
    assert names(lines) == set(before)


def test_another_model_is_refused(refused, digits, lines, stopped, monkeypatch):
    load = Translator.load.__func__

    def load_other(cls, run, **options):
        # As of a run whose recipe has another default.
        translator = load(cls, run, **{"length_penalty": 1.0, **options})
        weight = translator.model.weights[-1]
        weight.assign(weight + 1e-6)
        return translator

    monkeypatch.setattr(Translator, "load", classmethod(load_other))
    assert "begun with another RUN. Give" in refused(*stopped)


def test_an_ensemble_goes_on_with_the_same_models(
    deepnmt, refused, digits, lines, echoes, monkeypatch
):
    monkeypatch.chdir(lines)
    run = digits / "run"
    words = ["translate", run, run, *WORDS, "-i", "in", "-o", "out"]
    echoes.stop_at, echoes.stop = 1, KeyboardInterrupt
    assert deepnmt(*words).code == 130
    echoes.stop_at = None
    load, loaded = Translator.load.__func__, []

    def load_another_second(cls, run, **options):
        loaded.append(load(cls, run, **options))
        weight = loaded[-1].model.weights[-1]
        weight.assign(weight + 1e-6 * (len(loaded) == 2))
        return loaded[-1]

    with monkeypatch.context() as patch:
        patch.setattr(Translator, "load", classmethod(load_another_second))
        assert "begun with another RUN. Give" in refused(*words)
    assert deepnmt(*words).code == 0
    assert sum(map(len, echoes)) == 150
    assert (lines / "out").read_text() == (lines / "in").read_text()


@pytest.mark.parametrize("name", ["in", "prefixes"])
def test_lines_that_were_changed_are_refused(refused, lines, stopped, name):
    texts = (lines / name).read_text().splitlines(keepends=True)
    texts[63] = "1\n"
    (lines / name).write_text("".join(texts))
    option = "--input" if name == "in" else "--prefixes"
    assert f"{option}: the first 64 lines" in refused(*stopped)


def test_lines_that_were_not_finished_may_change(
    deepnmt, lines, stopped, echoes
):
    """After an error in one of them, for example."""
    texts = (lines / "in").read_text().splitlines(keepends=True)
    texts[64] = "7 7 7\n"
    (lines / "in").write_text("".join(texts))
    assert deepnmt(*stopped).code == 0
    assert (lines / "out").read_text() == "".join(texts)
    assert sum(map(len, echoes)) == 86


def with_a_bad_line(file, place):
    """Writes a line that is not UTF-8 in the place of another; returns all."""
    texts = file.read_bytes().splitlines(keepends=True)
    texts[place] = b"\xff\n"
    file.write_bytes(b"".join(texts))
    return texts


def test_a_line_that_is_not_utf8_keeps_the_lines_before(
    deepnmt, digits, lines, echoes, monkeypatch
):
    monkeypatch.chdir(lines)
    texts = with_a_bad_line(lines / "in", 70)
    words = ["translate", digits / "run", *WORDS, "-i", "in", "-o", "out"]
    done = deepnmt(*words)
    assert done.code == 2 and done.err.count("\n") == 1
    assert "line 71: not UTF-8" in done.err
    assert "64 lines are finished" in done.err
    assert (lines / "out.part").read_bytes() == b"".join(texts[:64])
    done = deepnmt(*words, "--errors", "skip")
    assert done.code == 0 and "line 71: not UTF-8" in done.err
    texts[70] = b"\n"
    assert (lines / "out").read_bytes() == b"".join(texts)


def test_lines_beside_one_that_is_not_utf8_are_searched_once(
    deepnmt, digits, lines, batches, monkeypatch
):
    monkeypatch.chdir(lines)
    texts = with_a_bad_line(lines / "in", 90)
    words = ["translate", digits / "run", "-i", "in", "-o", "out", *GREEDY]
    done = deepnmt(*words, "--batch-size", "1")
    assert done.code == 2 and "in, line 91: not UTF-8" in done.err
    assert "64 lines are finished, in out.part; the same" in done.err
    assert sum(batches) == 64
    done = deepnmt(*words, "--batch-size", "1", "--errors", "replace")
    # An empty line is not searched.
    assert done.code == 0 and sum(batches) == len(texts) - texts.count(b"\n")


def test_other_errors_are_named_where_they_change_finished_lines(
    deepnmt, refused, digits, lines, echoes, monkeypatch
):
    monkeypatch.chdir(lines)
    with_a_bad_line(lines / "in", 10)
    words = ["translate", digits / "run", *WORDS, "-i", "in", "-o", "out"]
    echoes.stop_at, echoes.stop = 1, KeyboardInterrupt
    assert deepnmt(*words, "--errors", "skip").code == 130
    done = deepnmt(*words, "--errors", "replace")
    assert done.code == 2
    assert "--errors replace: out.part was begun with --errors skip" in done.err
    assert "line 11: not UTF-8" in refused(*words)
    echoes.stop_at = None
    assert deepnmt(*words, "--errors", "skip").code == 0


def test_a_restart_begins_again(deepnmt, refused, lines, stopped, echoes):
    assert deepnmt(*stopped, "--num-beams", "3", "--restart").code == 0
    assert sum(map(len, echoes)) == 150
    assert names(lines) == {"in", "marked", "prefixes", "limits", "out"}
    line = refused(*stopped[:-4], "-o", "-", "--restart")
    assert "--restart needs an --input and an --output" in line


@pytest.mark.parametrize(
    "change", [lambda old: old[:-9], lambda old: b"9" + old[1:]]
)
def test_a_part_that_was_changed_is_refused(refused, lines, stopped, change):
    part = lines / "out.part"
    changed = change(part.read_bytes())
    part.write_bytes(changed)
    assert "was changed after it was written" in refused(*stopped)
    assert part.read_bytes() == changed


def test_lines_after_the_last_finished_window_are_written_again(
    deepnmt, lines, stopped
):
    """A killed process leaves some."""
    with open(lines / "out.part", "a") as part:
        part.write("half of a li")
    assert deepnmt(*stopped).code == 0
    assert (lines / "out").read_bytes() == (lines / "in").read_bytes()


def test_a_file_of_somebody_else_stays(refused, digits, lines, echoes):
    (lines / "out.part").write_text("mine\n")
    words = ["translate", digits / "run", "-i", lines / "in", "-o"]
    for more in ([], ["--restart"]):
        line = refused(*words, lines / "out", *more)
        assert "out.part: exists without out.part.json" in line
    (lines / "out.part").unlink()
    for content in ("{}", "not JSON"):
        (lines / "out.part.json").write_text(content)
        assert "out.part.json: not " in refused(*words, lines / "out")
        assert (lines / "out.part.json").read_text() == content
    assert not (lines / "out").exists() and not (lines / "out.part").exists()


def test_a_record_that_was_changed_is_not_gone_on_from(tmp_path):
    files, state = [str(tmp_path / "out")], {"translators": [{"a": 1}]}
    with pytest.raises(RuntimeError), PartFiles(files) as parts:
        assert parts.begin({"input": "a"}, {}, restart=False) is None
        parts.streams[0].write("one\n")
        parts.keep(1, state)
        raise RuntimeError
    record = tmp_path / "out.part.json"
    whole = record.read_text()
    for old, new in (('"lines": 1', '"lines": 0'), ('"a": 1', '"b": 1')):
        assert old in whole
        record.write_text(whole.replace(old, new))
        with (
            pytest.raises(UserError, match="out.part.json: .* damaged.*delete"),
            PartFiles(files) as parts,
        ):
            parts.begin({"input": "a"}, {}, restart=False)
        assert (tmp_path / "out.part").read_text() == "one\n"
    record.write_text(whole)
    with PartFiles(files) as parts:
        assert parts.begin({"input": "a"}, {}, restart=False) == state
    assert (tmp_path / "out").read_text() == "one\n"


def test_the_output_of_a_document_from_a_pipe_is_opened_before_the_work(
    tmp_path,
):
    output = str(tmp_path / "none" / "b.xlf")
    options = SimpleNamespace(
        input=None, output=output, alignments=None, restart=False
    )
    document = object()  # which is neither translated nor written
    files = resumption.Resumption(options, document).open_files()
    with pytest.raises(UserError, match=r"b\.xlf: cannot be written"), files:
        pytest.fail("The work has begun.")


def test_two_commands_do_not_write_one_file(refused, digits, lines):
    words = ["translate", digits / "run", "-i", lines / "in", "-o"]
    with PartFiles([str(lines / "out")]) as parts:
        parts.begin({}, {}, restart=False)
        line = refused(*words, lines / "out")
        assert "another process is writing it" in line
        parts.streams[0].write("mine\n")
    assert (lines / "out").read_text() == "mine\n"
    line = refused(*words, lines / "out", "--alignments", lines / "out")
    assert "named for two results" in line


def test_files_that_were_not_renamed_are_renamed(
    deepnmt, lines, stopped, monkeypatch
):

    def fail(part, file):
        raise KeyboardInterrupt

    failing = SimpleNamespace(**{**vars(os), "replace": fail})
    texts = (lines / "in").read_bytes().splitlines(keepends=True)
    texts[140] = b"\xff\n"
    (lines / "in").write_bytes(b"".join(texts))
    stopped += ["--errors", "skip"]
    with monkeypatch.context() as patch:
        patch.setattr(part_files, "os", failing)
        assert deepnmt(*stopped).code == 130
    texts[140] = b"\n"
    written = b"".join(texts)
    assert (lines / "out.part").read_bytes() == written
    done = deepnmt(*stopped)
    assert done.code == 0 and "in, line 141: not UTF-8" in done.err
    assert (lines / "out").read_bytes() == written
    assert not {"out.part", "out.part.json"} & names(lines)


@pytest.mark.parametrize("renames", [1, 2])
def test_a_kill_between_two_renames_loses_no_result(
    tmp_path, monkeypatch, renames
):
    replace, done = os.replace, []

    def die(part, file):
        if len(done) == renames:
            raise KeyboardInterrupt
        done.append(file)
        replace(part, file)

    def write(paths):
        with PartFiles(paths) as parts:
            parts.begin({}, {}, restart=False)
            for stream in parts.streams:
                stream.write("mine\n")

    paths = [str(tmp_path / name) for name in ("out", "links")]
    dying = SimpleNamespace(**{**vars(os), "replace": die})
    with monkeypatch.context() as patch:
        patch.setattr(part_files, "os", dying)
        # As if the process had ended before it deleted the record.
        patch.setattr(Path, "unlink", lambda path, **_: None)
        if renames < 2:
            with pytest.raises(KeyboardInterrupt):
                write(paths)
        else:
            write(paths)
    write(paths)
    assert names(tmp_path) == {"out", "links"}
    assert (tmp_path / "out").read_text() == "mine\n"
    assert (tmp_path / "links").read_text() == "mine\n"


def test_a_whole_part_that_was_changed_stays(tmp_path):
    def fail(part, file):
        raise RuntimeError

    paths, part = [str(tmp_path / "out")], tmp_path / "out.part"
    with pytest.raises(RuntimeError), PartFiles(paths, fail) as parts:
        parts.begin({}, {}, restart=False)
        parts.streams[0].write("one\n")
    for change in ("corrected by hand\n", "two\n", ""):
        part.write_text(change)
        with (
            pytest.raises(UserError, match="out.part: was changed after it"),
            PartFiles(paths) as parts,
        ):
            parts.begin({}, {}, restart=False)
        assert (part.read_text() if part.exists() else "") == change
    assert names(tmp_path) == {"out.part.json"}
    part.write_text("one\n")
    with PartFiles(paths) as parts:
        parts.begin({}, {}, restart=False)
    assert (tmp_path / "out").read_text() == "one\n"


def test_a_link_in_the_place_of_the_part_is_not_followed(tmp_path):
    (tmp_path / "own").write_text("")
    (tmp_path / "out.part").symlink_to(tmp_path / "own")
    with (
        pytest.raises(UserError, match="out.part: is a link"),
        PartFiles([str(tmp_path / "out")]),
    ):
        pytest.fail("It was followed.")
    assert (tmp_path / "own").read_text() == ""
    assert names(tmp_path) == {"own", "out.part"}


def test_a_file_for_one_reader_stays_so_when_it_is_written_again(tmp_path):
    (tmp_path / "out").touch(0o600)
    with PartFiles([str(tmp_path / "out")]) as parts:
        parts.begin({}, {}, restart=False)
        assert (tmp_path / "out.part").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("other", [70, 140])
def test_warnings_name_the_lines_of_both_commands(
    deepnmt, digits, lines, echoes, monkeypatch, other
):
    """Also of a window that was read, and is read again."""
    monkeypatch.chdir(lines)
    texts = (lines / "in").read_bytes().splitlines(keepends=True)
    texts[3] = texts[other] = b"\xff\n"
    (lines / "in").write_bytes(b"".join(texts))
    words = ["translate", digits / "run", *WORDS, "-i", "in", "-o", "out"]
    words += ["--errors", "skip"]
    echoes.stop_at, echoes.stop = 1, KeyboardInterrupt
    assert ": not UTF-8" in deepnmt(*words).err
    echoes.stop_at = None
    assert f"lines 4 and {other + 1}: not UTF-8" in deepnmt(*words).err


def test_a_translator_goes_on_as_the_one_before(digits):
    """With the same programs, whose rounding differs."""
    first, second = (
        LazilyCompiled(Translator.load(digits / "run"), None) for _ in "12"
    )
    first.choose(["1 2 3"])
    assert first.choose(["1 2 3"] * 200) is first.compiled
    state = {
        "num_sentences": [[32, 8, 999]],
        "shapes": [[32, 8, "name"]],
        "scored": [[32, 8, 16, "scoring"]],
    }
    first.compiled.search_state = state
    second.state = json.loads(json.dumps(first.state))
    assert second.compiled.search_state == state
    for translators in (first, second):
        chosen = translators.choose(["1 2 3"])
        assert chosen is translators.compiled
        assert chosen.compilation_padding == 2_048


def test_a_translator_goes_on_as_that_of_another_backend(digits):
    """JAX has no plain graphs, and so always one that is compiled."""
    searched = {
        "num_sentences": [[32, 8, 999]],
        "shapes": [[32, 8, "name"]],
        "scored": [[32, 8, 16, "scoring"]],
    }
    for choices in ((None, True), (True, None)):
        before, after = (
            LazilyCompiled(Translator.load(digits / "run"), compiled)
            for compiled in choices
        )
        before.choose(["1 2 3"])
        before.compiled.search_state = searched
        after.state = json.loads(json.dumps(before.state))
        assert after.choose(["1 2 3"]) is after.compiled
        assert after.compiled.search_state == searched


def test_a_log_has_a_line_a_minute(deepnmt, digits, lines, echoes, monkeypatch):
    monkeypatch.chdir(lines)
    now = [0.0]

    def translate(self, texts, number, on_progress, **given):
        now[0] += 40.0
        on_progress(len(texts))
        return [[Hypothesis(text, 0.0, 0.0, ())] for text in texts]

    monkeypatch.setattr(Translator, "translate_nbest", translate)
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    words = ["translate", digits / "run", *WORDS, "-i", "in", "-o", "out"]
    done = deepnmt(*words)
    assert done.err == "deepnmt: 128 of 150 (85%) lines, 1.6/s, 0:00:14 left\n"
    assert deepnmt(*words, "--quiet").err == ""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGKILL, -9),
        (signal.SIGTERM, 143),
        # As SIGTERM, but for the code.
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow),
    ],
)
def test_a_process_that_ends_keeps_what_is_finished(
    digits, lines, tmp_path, number, code
):
    text = (lines / "in").read_text()
    (lines / "in").write_text(text * 5)
    words = [
        *("-m", "keras_deepnmt", "translate", digits / "run", "-q"),
        *(*WORDS, *GREEDY, "--input", "in", "--output"),
    ]

    def start(name):
        return ForkedProcess(
            [*words, name],
            cwd=lines,
            env=environment(),
            stderr=subprocess.PIPE,
        )

    whole = start("whole")
    assert whole.communicate()[1] == "" and whole.returncode == 0
    process = start("out")
    end = time.monotonic() + 200
    part = lines / "out.part"
    while not (part.exists() and part.read_text().count("\n") > 200):
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(number)
    error = process.communicate()[1]
    assert process.returncode == code
    assert not (lines / "out").exists()
    record = json.loads((lines / "out.part.json").read_text())
    assert record["lines"] >= 192 and record["lines"] % 64 == 0
    if number != signal.SIGKILL:
        assert error.count("\n") == 1
        assert f"{record['lines']:,} lines are finished" in error
    resumed = start("out")
    assert resumed.communicate()[1] == "" and resumed.returncode == 0
    assert (lines / "out").read_bytes() == (lines / "whole").read_bytes()
