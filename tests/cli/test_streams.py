"""Results come while the input is read, and one bad line does not end it.

* the first results come after one batch; windows of input grow up to a limit
* a line that is not UTF-8 stops the command, is replaced or is skipped, as
  chosen
* `score` marks a pair that has no score, and goes on
* warnings name lines
* a file given by `--output` is written as a whole or not at all
"""

import gzip
import os
import threading

import numpy as np
import pytest

from keras_deepnmt.commands import translate
from keras_deepnmt.commands.options.output_file import open_output
from keras_deepnmt.commands.terminal.input_lines import (
    read_windows,
    stream_lines,
    windows_of,
)
from keras_deepnmt.commands.terminal.input_pairs import read_pairs
from keras_deepnmt.commands.terminal.line_warnings import describe_lines
from keras_deepnmt.errors import UserError
from keras_deepnmt.translator import Translator
from keras_deepnmt.translator.results import Hypothesis
from keras_deepnmt.xla import tuned

GREEDY = ["--num-beams", "1"]


def echo(self, texts, *more, **given):
    """In the place of a search, whose result does not matter."""
    return [[Hypothesis(text, 0.0, 0.0, ())] for text in texts]


@pytest.fixture
def short_run(digits, monkeypatch):
    """The trained run, whose translator takes sources of 8 tokens at most."""
    load = Translator.load.__func__

    def load_short(cls, run, **options):
        return load(cls, run, max_source_length=9, **options)

    monkeypatch.setattr(Translator, "load", classmethod(load_short))
    return digits / "run"


def test_windows_begin_with_one_batch_and_grow():
    sizes = [len(window) for window in windows_of(range(400), 8)]
    assert sizes == [8, 16, 32, 64, 128, 128, 24]


def test_a_file_is_read_in_large_windows(tmp_path):
    (tmp_path / "in").write_text("1\r\n" * 120 + "2")
    with open(tmp_path / "in") as file:
        windows = list(stream_lines(file.fileno(), 1))
    by_name = list(read_windows(str(tmp_path / "in"), 1))
    assert [len(window) for window in windows] == [64, 57]
    assert windows == by_name
    assert sum(windows, []) == [b"1"] * 120 + [b"2"]


def test_a_pipe_is_read_in_windows_that_grow():
    reader, writer = os.pipe()
    os.write(writer, b"1\n" * 60 + b"2")
    os.close(writer)
    windows = list(stream_lines(reader, 8))
    os.close(reader)
    assert [len(window) for window in windows] == [8, 16, 32, 5]


def test_lines_of_an_open_pipe_come_at_once():
    reader, writer = os.pipe()
    windows = stream_lines(reader, 8)
    for _ in range(3):
        os.write(writer, b"a\nb\nhalf")
        assert next(windows)[-1] == b"b"
    os.write(writer, b"1\n" * 20)
    # A typed line does not make the next windows larger.
    assert len(next(windows)) == 8
    os.close(writer)
    assert len(sum(windows, [])) == 12
    os.close(reader)


def test_the_first_translations_of_a_pipe_come_after_one_batch(
    deepnmt, digits, tmp_path, monkeypatch
):
    sizes = []

    def translate(self, texts, *more, **given):
        sizes.append(len(texts))
        return echo(self, texts)

    monkeypatch.setattr(Translator, "translate_nbest", translate)
    os.mkfifo(tmp_path / "in")
    writer = threading.Thread(
        target=(tmp_path / "in").write_text, args=["1 2 3\n" * 200]
    )
    writer.start()
    done = deepnmt("translate", digits / "run", stdin=tmp_path / "in")
    writer.join()
    assert done.out == "1 2 3\n" * 200
    assert sizes == [32, 64, 104]


@pytest.mark.parametrize(
    "errors, second, said",
    [
        ("replace", "�", "replaced by U+FFFD"),
        ("skip", "", "an empty line was written instead"),
    ],
)
def test_lines_that_are_not_utf8_need_not_end_it(
    deepnmt, digits, tmp_path, monkeypatch, errors, second, said
):
    monkeypatch.setattr(Translator, "translate_nbest", echo)
    (tmp_path / "in").write_bytes(b"1 2\n\xff\n3 4\n")
    done = deepnmt(
        *("translate", digits / "run", "--errors", errors),
        *("--input", tmp_path / "in"),
    )
    assert (done.code, done.out) == (0, f"1 2\n{second}\n3 4\n")
    place = f"{tmp_path / 'in'}, line 2: not UTF-8"
    assert done.err.startswith(f"deepnmt: warning: {place}")
    assert said in done.err and done.err.count("\n") == 1


def test_a_strict_stop_names_the_line_and_the_way_on(refused, digits, tmp_path):
    (tmp_path / "in").write_bytes(b"\xff\n")
    line = refused("translate", digits / "run", "-i", tmp_path / "in")
    assert "line 1: not UTF-8" in line and "`--errors skip`" in line


def test_files_in_and_out(deepnmt, digits, tmp_path):
    with gzip.open(tmp_path / "in.gz", "wt") as file:
        file.write("1 2 3 4\n5 6 7\n")
    words = ["-q", *GREEDY, "-i", tmp_path / "in.gz", "-o", tmp_path / "out"]
    done = deepnmt("translate", digits / "run", *words)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert (tmp_path / "out").read_text() == "4 3 2 1\n7 6 5\n"


@pytest.mark.parametrize("name, other", [("empty", "empty"), ("empty.gz", "-")])
def test_empty_files_have_empty_results(
    deepnmt, digits, tmp_path, monkeypatch, name, other
):
    monkeypatch.chdir(tmp_path)
    content = gzip.compress(b"") if name == "empty.gz" else b""
    (tmp_path / name).write_bytes(content)
    words = ["translate", digits / "run", "-i", name, "--num-beams", "2"]
    for option in ("--prefixes", "--constraints", "--max-lengths"):
        words += [option, name]
    done = deepnmt(*words)
    assert (done.code, done.out, done.err) == (0, "", "")
    done = deepnmt("score", digits / "run", "--source", other, "--target", name)
    header = "line\tposition\ttoken\tlog_prob\n"
    assert (done.code, done.out, done.err) == (0, header, "")


def test_an_empty_side_of_pairs_is_refused(refused, digits, tmp_path):
    (tmp_path / "empty").touch()
    (tmp_path / "full").write_text("1 2\n")
    sides = ["--source", tmp_path / "full", "--target", tmp_path / "empty"]
    assert "empty: the file is empty" in refused(
        "score", digits / "run", *sides
    )


def test_nothing_is_taken_from_a_pipe_to_see_if_it_is_empty(
    deepnmt, digits, tmp_path, monkeypatch
):
    monkeypatch.setattr(Translator, "translate_nbest", echo)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(
        target=pipe.write_text, args=["1 2\n"], daemon=True
    )
    writer.start()
    done = deepnmt("translate", digits / "run", "--input", pipe)
    assert (done.code, done.out) == (0, "1 2\n")
    writer.join()


def test_a_file_has_its_warnings_at_the_end_also_in_a_terminal(
    deepnmt, digits, tmp_path, monkeypatch
):
    monkeypatch.setattr(Translator, "translate_nbest", echo)
    monkeypatch.setattr(translate, "is_typed", lambda: True)
    texts = [b"1 2\n"] * 130
    texts[1] = texts[100] = b"\xff\n"
    (tmp_path / "in").write_bytes(b"".join(texts))
    words = ["--errors", "skip", "--batch-size", "1", "--no-compile"]
    done = deepnmt(
        "translate", digits / "run", *words, "--input", tmp_path / "in"
    )
    assert done.code == 0 and done.err.count("\n") == 1, done.err
    assert "lines 2 and 101: not UTF-8" in done.err


@pytest.mark.thorough
def test_an_output_file_is_whole_or_as_it_was(
    refused, deepnmt, digits, tmp_path, monkeypatch
):
    out = tmp_path / "out"
    out.write_text("old\n")
    (tmp_path / "in").write_bytes(b"1 2 3\n\xff\n")
    words = ["translate", digits / "run", *GREEDY, "-o", out]
    refused(*words, stdin=tmp_path / "in")
    assert out.read_text() == "old\n"

    def interrupt(self, texts, *more, **given):
        raise KeyboardInterrupt

    monkeypatch.setattr(Translator, "translate_nbest", interrupt)
    (tmp_path / "in").write_text("1 2 3\n")
    done = deepnmt(*words, stdin=tmp_path / "in")
    assert done.code == 130
    assert done.err.endswith(
        f"error: interrupted. {out} was not written. Of an input given by "
        "--input FILE, what is finished is kept.\n"
    )
    assert out.read_text() == "old\n"
    assert {file.name for file in tmp_path.iterdir()} == {"in", "out"}
    words[-1] = tmp_path / "nowhere" / "out"
    assert "no folder" in refused(*words)
    words[-1] = tmp_path
    assert "is a folder" in refused(*words)


def test_a_pipe_as_output_is_written_to_at_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    with open_output(str(pipe)) as output:
        output.write("1\n")
    reader.join()
    assert read == ["1\n"] and pipe.is_fifo()


@pytest.mark.thorough
def test_lines_that_are_cut_are_named(deepnmt, short_run, tmp_path):
    lines = ["1 2 3"] * 20
    for number in (3, 17):
        lines[number - 1] = "1 2 3 4 5 6 7 8 9"
    (tmp_path / "in").write_text("\n".join(lines))
    (tmp_path / "pairs").write_text("\n".join(f"{x}\t1 2" for x in lines))
    words = ["--no-compile", "--batch-size", "8"]
    done = deepnmt(
        "translate", short_run, *GREEDY, *words, stdin=tmp_path / "in"
    )
    assert done.out.count("\n") == 20
    assert done.err == (
        "deepnmt: warning: standard input, lines 3 and 17: longer than 8 "
        "tokens, the model's position range; the rest was not translated.\n"
    )
    done = deepnmt(
        "score", short_run, "--totals", *words, stdin=tmp_path / "pairs"
    )
    assert done.out.count("\n") == 21
    assert "lines 3 and 17: the source is longer than 8 tokens" in done.err


def test_translations_that_are_cut_are_named(deepnmt, digits, tmp_path):
    lines = ["1 2 3", "1 2 3 4 5 6 7 8", "4 5 6"]
    (tmp_path / "in").write_text("\n".join(lines))
    done = deepnmt(
        *("translate", digits / "run", *GREEDY, "--no-compile"),
        *("--max-length-ratio", "0.1", "--max-extra-tokens", "5"),
        stdin=tmp_path / "in",
    )
    first, second, third = done.out.splitlines()
    assert (first, third) == ("3 2 1", "6 5 4")
    assert "8 7 6 5 4 3 2 1".startswith(second) and len(second) < 15
    assert done.err == (
        "deepnmt: warning: standard input, line 2: the translation was cut at "
        "the maximum length, which `--max-length-ratio` and "
        "`--max-extra-tokens` change.\n"
    )


@pytest.mark.parametrize(
    "numbers, count, name",
    [
        ([4], 1, "line 4"),
        ([4, 5, 9], 3, "lines 4, 5 and 9"),
        ([4, 5], 14, "lines 4, 5 and 12 more"),
    ],
)
def test_many_lines_are_named_by_the_first(numbers, count, name):
    assert describe_lines(numbers, count) == name


@pytest.mark.thorough
def test_a_bad_pair_is_marked_and_the_others_are_scored(
    deepnmt, digits, tmp_path
):
    good = b"1 2 3\t3 2 1"
    wrong = {
        2: b"1 2 3 without a tab",
        4: b"1 2 3\t\xff",
        5: b"1 2 3\t" + b"1 " * 1200,
    }
    lines = [wrong.get(number, good) for number in range(1, 7)]
    (tmp_path / "pairs").write_bytes(b"\n".join(lines))
    words = ["score", digits / "run", "--no-compile", "--batch-size", "2"]
    done = deepnmt(*words, "--totals", stdin=tmp_path / "pairs")
    assert done.code == 0
    heading, *rows = [line.split("\t") for line in done.out.splitlines()]
    assert heading == ["line", "tokens", "log_prob"]
    assert [int(row[0]) for row in rows] == [1, 2, 3, 4, 5, 6]
    totals = np.array([float(row[2]) for row in rows])
    assert np.isnan(totals[[1, 3, 4]]).all()
    assert np.ptp(totals[[0, 2, 5]]) < 1e-4
    assert [int(row[1]) for row in rows] == [4, 0, 4, 0, 0, 4]
    for said in ("line 2: not a source, a tab", "line 4: not UTF-8"):
        assert said in done.err
    assert "line 5: the target is longer than 1023 tokens" in done.err
    done = deepnmt(*words, stdin=tmp_path / "pairs")
    assert done.out.splitlines()[1].startswith("1\t1\t")
    marked = [line for line in done.out.splitlines() if "nan" in line]
    assert marked == ["2\t0\t\tnan", "4\t0\t\tnan", "5\t0\t\tnan"]


@pytest.mark.thorough
def test_one_side_of_the_pairs_from_standard_input(
    deepnmt, refused, digits, tmp_path
):
    (tmp_path / "source").write_text("1 2 3\n4 5 6\n")
    (tmp_path / "target").write_text("3 2 1\n6 5 4\n")
    words = ["score", digits / "run", "--no-compile", "--source"]
    expected = deepnmt(
        *words, tmp_path / "source", "--target", tmp_path / "target"
    )
    assert expected.out.count("\n") > 4
    for side in ("source", "target"):
        files = {s: tmp_path / s for s in ("source", "target")} | {side: "-"}
        given = [*words, files["source"], "--target", files["target"]]
        assert deepnmt(*given, stdin=tmp_path / side).out == expected.out
    assert "only one of" in refused(*words, "-", "--target", "-")
    assert "needs --target" in refused(*words, "x")


@pytest.mark.parametrize("lines, said", [(1, "more lines"), (3, "with more")])
def test_sides_of_unequal_length_end_after_the_pairs(
    tmp_path, monkeypatch, lines, said
):
    (tmp_path / "source").write_text("1\n2\n")
    (tmp_path / "target").write_text("1\n" * lines)
    read = []
    with open(tmp_path / "target") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        with pytest.raises(UserError, match=f"same number .* {said}"):
            for window in read_pairs(str(tmp_path / "source"), "-", 1):
                read += window
    assert len(read) == min(lines, 2)


@pytest.mark.parametrize(
    "more, expected",
    [
        ([], [False, True]),
        (["--compile"], [True] * 2),
        (["--no-compile"], [False] * 2),
    ],
)
def test_few_tokens_do_not_wait_for_a_compilation(
    deepnmt, digits, tmp_path, monkeypatch, more, expected
):
    used = []

    def translate(self, texts, *more, **given):
        used.append(self.compiled)
        return echo(self, texts)

    monkeypatch.setattr(Translator, "translate_nbest", translate)
    # Five tokens a line, and windows of 64 and 6 lines.
    monkeypatch.setattr(tuned, "FEW_TOKENS", 330)
    (tmp_path / "in").write_text("1 2 3 4 5\n" * 70)
    words = ["translate", digits / "run", "--batch-size", "1"]
    assert deepnmt(*words, *more, stdin=tmp_path / "in").code == 0
    assert used == expected


def test_texts_of_long_inputs_are_padded_less(
    deepnmt, digits, tmp_path, monkeypatch
):
    padding = []

    def translate(self, texts, *more, **given):
        padding.append(self.compilation_padding)
        return echo(self, texts)

    monkeypatch.setattr(Translator, "translate_nbest", translate)
    # Windows of 64, 64 and 2 lines.
    (tmp_path / "in").write_text("1 2 3 4 5\n" * 130)
    words = ["translate", digits / "run", "--batch-size", "1", "--compile"]
    assert deepnmt(*words, stdin=tmp_path / "in").code == 0
    assert padding == [16_384, 2_048, 2_048]


def test_a_folder_of_another_kind_is_named(refused, digits, tmp_path):
    line = refused("translate", digits / "prepared")
    assert "is a folder of prepared data" in line and "train" in line
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").touch()
    assert "is an exported model" in refused("translate", tmp_path)
    assert "is a folder of prepared data" in refused(
        "score", digits / "prepared", "--checkpoint", "latest"
    )
    line = refused("translate", digits / "run", "--checkpoint", "newest")
    assert "--checkpoint: expected latest, best or" in line
