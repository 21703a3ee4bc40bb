"""What must be true of `prepare`.

The counts are right, the same input gives the same bytes, nothing is ever
half-done, and a mistake gets one clear line.
"""

import dataclasses
import gzip
import itertools
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from forked_processes import ForkedProcess
from toy_corpus import (
    SIDES,
    contents,
    decoded,
    names_beside,
    prepare,
    toy_pairs,
    write_pairs,
)

from keras_deepnmt.data.corpora import CorpusOptions
from keras_deepnmt.data.manifest import describe_manifest, row_weights
from keras_deepnmt.data.pair_store import PairStore
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.data.tokenizers import Tokenizer
from keras_deepnmt.errors import UserError


def test_the_folder_holds_all_pairs_in_order(tmp_path, options):
    output = tmp_path / "out"
    manifest = prepare(options, output)
    pairs = toy_pairs(318)
    assert decoded(output, "train") == pairs[:300]
    assert decoded(output, "valid") == pairs[300:311]
    assert decoded(output, "test") == pairs[311:]
    assert manifest == json.loads((output / "manifest.json").read_text())
    assert set(manifest) >= {"format", "joint", "tokenizer", "options"}
    assert manifest["joint"] and manifest["format"] == 1
    for split, rows in (("train", 300), ("valid", 11), ("test", 7)):
        lengths = PairStore(output, split).lengths
        summary = manifest["splits"][split]
        assert summary["pairs"] == rows == len(lengths)
        tokens = summary["source_tokens"], summary["target_tokens"]
        assert tokens == tuple(lengths.sum(axis=0, dtype=int) - rows)
    assert "300 of 300 pairs" in describe_manifest(manifest)


def test_every_filter_counts_what_it_leaves_out(tmp_path):
    lines = [
        ("a dog", "ein Hund"),  # kept
        ("a cat", "eine Katze"),  # kept
        ("a  dog ", "ein\u00a0Hund"),  # duplicate, once normalized
        ("", "eine Katze"),  # empty
        ("a bird", " \t "),  # empty
        ("Berlin Mitte", "Berlin Mitte"),  # identical
        ("a", "eine Katze"),  # too short
        ("a b c d e f", "a b c d e"),  # too long
        ("one two three four five", "eins zwei"),  # ratio
        ("a dog", "der Hund"),  # kept: same source only
        ("ﬁne words", "feine Worte"),  # kept
        ("a cat", "eine Katze"),  # duplicate
    ]
    train = write_pairs(tmp_path, "train", lines)
    options = PrepareOptions(
        train=[train],
        vocabulary_size=41,
        min_length=2,
        max_length=5,
        max_ratio=2.0,
    )
    manifest = prepare(options, tmp_path / "out")
    assert manifest["filters"] == {
        "train": {
            "read": 12,
            "empty": 2,
            "identical": 1,
            "length": 2,
            "ratio": 1,
            "duplicate": 2,
            "held_out": 0,
            "kept": 4,
        }
    }
    assert decoded(tmp_path / "out", "train") == [
        ("a dog", "ein Hund"),
        ("a cat", "eine Katze"),
        ("a dog", "der Hund"),
        ("fine words", "feine Worte"),
    ]
    loose = dataclasses.replace(
        options, drop_duplicates=False, drop_identical=False
    )
    counts = prepare(loose, tmp_path / "loose")["filters"]["train"]
    assert counts["duplicate"] == counts["identical"] == 0
    assert counts["kept"] == 7


def test_held_out_pairs_are_kept_as_they_are(tmp_path, options):
    lines = [
        ("Berlin  is ﬁne", "Berlin  is ﬁne"),
        ("Berlin  is ﬁne", "Berlin  is ﬁne"),
        ("", "leer"),
        ("x " * 300, "y\u2028z"),
    ]
    valid = write_pairs(tmp_path, "raw", lines)
    options = dataclasses.replace(options, valid=valid, max_length=5)
    options = dataclasses.replace(options, min_length=1, max_length=250)
    manifest = prepare(options, tmp_path / "out")
    counts = manifest["filters"]["valid"]
    assert counts["read"] == 4 and counts["empty"] == 1 and counts["kept"] == 3
    kept = [lines[0], lines[1], lines[3]]
    for side, name in enumerate(("source", "target")):
        raw = (tmp_path / "out" / f"valid.{name}.txt").read_bytes()
        assert raw == "".join(p[side] + "\n" for p in kept).encode()


CHINESE = [("Das ist", "这是"), ("Wir sahen gestern", "我们昨天看到了")]
CHINESE += [("einen alten Hund", "一只老狗"), ("unser Nachbar", "我们的邻居")]


def chinese_pairs(number):
    """Distinct pairs of German and Chinese; Chinese has no spaces."""
    chosen = itertools.islice(itertools.product(CHINESE, repeat=5), number)
    return [
        tuple(
            blank.join(phrase[side] for phrase in line)
            for blank, side in [
                (" ", 0),
                ("，", 1),
            ]
        )
        for line in chosen
    ]


@pytest.mark.parametrize("languages", [{}, {"target_language": "zh"}])
def test_good_pairs_of_a_script_without_spaces_are_kept(
    tmp_path, caplog, languages
):
    train = write_pairs(tmp_path, "train", chinese_pairs(500))
    options = PrepareOptions(train=[train], vocabulary_size=97, **languages)
    counts = prepare(options, tmp_path / "out")["filters"]["train"]
    assert counts["kept"] == counts["read"] == 500
    assert not caplog.messages


def test_a_filter_that_takes_over_a_third_warns_with_examples(tmp_path, caplog):
    pairs = chinese_pairs(500)
    train = write_pairs(tmp_path, "train", [*pairs, *toy_pairs(900)])
    options = PrepareOptions(
        train=[train, write_pairs(tmp_path, "toy", toy_pairs(500, seed=4))],
        vocabulary_size=97,
        # As a recipe that extends another one may have by mistake.
        target_language="de",
    )
    counts = prepare(options, tmp_path / "out")["filters"]["train"]
    assert counts["ratio"] == 500
    (warning,) = caplog.messages
    assert warning.startswith(
        f"{tmp_path / 'out'}: {tmp_path / 'train.en'}: `ratio` leaves out 500 "
        f"of 1,400 pairs, such as line 1: {pairs[0][0]} | {pairs[0][1]} (10 "
        "and 1 words); line 2: "
    )
    assert "; line 3: " in warning and "line 4" not in warning
    assert "Loosen it by `max_ratio` (--max-ratio), now 9." in warning
    assert "`target_language` (--target-language) is de" in warning


@pytest.mark.parametrize(
    ("lines", "changes", "said"),
    [
        ([("", "leer")], {}, "`empty` leaves out 9 of 18 pairs"),
        ([("gleich",) * 2], {}, "--drop-identical false"),
        (toy_pairs(1), {}, "--drop-duplicates false"),
        (
            [("x y " * 6, "x " * 4)],
            {"max_length": 11},
            "(--max-length), now 11",
        ),
        ([("w " * 40, "v " * 39)], {"max_tokens": 38}, "(40 and 39 pieces)"),
    ],
)
def test_each_filter_names_the_option_that_loosens_it(
    tmp_path, caplog, lines, changes, said
):
    changes = {
        "vocabulary_size": 80,
        "drop_duplicates": "dupl" in said,
    } | changes
    train = [*toy_pairs(9), *lines * 9]
    options = PrepareOptions(
        train=[write_pairs(tmp_path, "train", train)], **changes
    )
    prepare(options, tmp_path / "out")
    (warning,) = caplog.messages
    assert said in warning


def test_what_took_all_pairs_is_shown(tmp_path, caplog):
    train = write_pairs(tmp_path, "train", [("a", "b " * 12)] * 5)
    with pytest.raises(UserError, match="No train pair is left of 5"):
        prepare(PrepareOptions(train=[train]), tmp_path / "out")
    assert "line 1: a | b b b" in caplog.text and "line 3" in caplog.text


def test_filters_are_named_where_too_few_pairs_are_left_to_hold_out(
    tmp_path, caplog
):
    pairs = [*toy_pairs(2), *[("a", "b " * 12)] * 5]
    train = write_pairs(tmp_path, "train", pairs)
    options = PrepareOptions(train=[train], valid_pairs=2)
    with pytest.raises(UserError, match="must hold more pairs"):
        prepare(options, tmp_path / "out")
    assert "`ratio` leaves out 5 of 7 pairs" in caplog.text


def test_sides_longer_in_pieces_than_allowed_are_left_out(tmp_path, options):
    long = ("zzzz " * 40, "qqqq " * 40)
    train = write_pairs(tmp_path, "long", [*toy_pairs(50), long])
    options = dataclasses.replace(options, train=[train], max_tokens=39)
    manifest = prepare(options, tmp_path / "out")
    counts = manifest["filters"]["train"]
    assert counts["length"] == 1 and counts["kept"] == 50
    assert manifest["splits"]["train"]["pairs"] == 50
    assert manifest["corpora"][-1]["pairs"] == 50


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
@pytest.mark.parametrize("joint", [True, False])
def test_the_same_input_gives_the_same_bytes(
    tmp_path, options, joint, model_type
):
    options = dataclasses.replace(
        options, joint=joint, model_type=model_type, vocabulary_size=53
    )
    prepare(options, tmp_path / "a")
    prepare(options, tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    source, target = (
        Tokenizer(tmp_path / "a" / "tokenizer" / f"{s}.model") for s in SIDES
    )
    assert source.has_pieces_of(target) is joint


def test_gzipped_files_give_the_same_as_plain_ones(tmp_path, options):
    prepare(options, tmp_path / "plain")
    write_pairs(tmp_path, "train", toy_pairs(318)[:300], gzip.compress)
    prepare(options, tmp_path / "gz")
    assert contents(tmp_path / "plain") == contents(tmp_path / "gz")


def pipe(folder, name, content):
    """Makes a pipe with some content; another thread writes it once."""
    path = folder / name
    if not path.exists():
        os.mkfifo(path)
    threading.Thread(target=path.write_bytes, args=(content,)).start()
    return str(path)


def test_text_can_come_from_pipes(tmp_path, options):
    def prepare_pipes(change=lambda text: text):
        train = CorpusOptions(
            *(
                pipe(tmp_path, f"{side}.pipe", change(Path(path).read_bytes()))
                for side, path in zip(
                    SIDES,
                    (options.train[0].source, options.train[0].target),
                    strict=True,
                )
            )
        )
        piped = dataclasses.replace(options, train=[train])
        return prepare(piped, tmp_path / "piped")

    temporary = set(Path(tempfile.gettempdir()).glob("deepnmt-pipe-*"))
    manifest = prepare_pipes(gzip.compress)
    prepare(options, tmp_path / "out")
    out, piped = contents(tmp_path / "out"), contents(tmp_path / "piped")
    assert manifest.pop("corpora")[-1]["source"].endswith("source.pipe")
    for name in out.keys() - {"manifest.json"}:
        assert out[name] == piped[name]
    assert prepare_pipes(gzip.compress)["splits"] == manifest["splits"]
    with pytest.raises(UserError, match="another train corpus"):
        prepare_pipes(lambda text: text.replace(b"dog", b"hog"))
    assert temporary == set(Path(tempfile.gettempdir()).glob("deepnmt-pipe-*"))


def test_several_corpora_keep_their_rows_and_weights(tmp_path, options):
    pairs = toy_pairs(50, seed=11)
    second = write_pairs(tmp_path, "second", [*toy_pairs(318)[:5], *pairs])
    second = dataclasses.replace(second, name="extra", weight=2.5)
    third = write_pairs(tmp_path, "third", toy_pairs(318)[:5])
    options = dataclasses.replace(
        options, train=[options.train[0], second, third]
    )
    manifest = prepare(options, tmp_path / "out")
    train = [c for c in manifest["corpora"] if c["split"] == "train"]
    assert [c["name"] for c in train] == ["train", "extra", "third"]
    assert [c["rows"] for c in train] == [[0, 295], [295, 350], [350, 350]]
    assert [c["lines"] for c in train] == [300, 55, 5]
    expected = np.repeat([1.0, 2.5], [295, 55])
    np.testing.assert_array_equal(row_weights(manifest), expected)
    assert manifest["filters"]["train"]["duplicate"] == 10


def test_leaked_pairs_are_counted_and_warned_about(tmp_path, options, caplog):
    pairs = toy_pairs(318)
    valid = [*pairs[300:305], pairs[7], pairs[7], (pairs[8][0], "anders")]
    test = [*pairs[311:], pairs[300], (pairs[301][0], "anders"), pairs[9]]
    options = dataclasses.replace(
        options,
        valid=write_pairs(tmp_path, "valid", valid),
        test=write_pairs(tmp_path, "test", test),
    )
    with caplog.at_level(logging.WARNING):
        manifest = prepare(options, tmp_path / "out")
    assert manifest["leakage"] == {
        "train_valid": 2,
        "train_valid_source": 3,
        "train_test": 1,
        "train_test_source": 1,
        "valid_test": 1,
        "valid_test_source": 2,
    }
    assert "3 of 8 valid sources are in train too, 2 of them" in caplog.text


def test_pairs_can_be_held_out_of_the_training_text(tmp_path, options):
    options = dataclasses.replace(
        options, valid=None, test=None, valid_pairs=23, test_pairs=17
    )
    manifest = prepare(options, tmp_path / "out")
    parts = [decoded(tmp_path / "out", s) for s in ("train", "valid", "test")]
    assert [len(part) for part in parts] == [260, 23, 17]
    everything = toy_pairs(318)[:300]
    assert sorted(sum(parts, [])) == sorted(everything)
    assert parts[0] == [p for p in everything if p in set(parts[0])]
    assert manifest["filters"]["train"]["held_out"] == 40
    assert set(manifest["leakage"].values()) == {0}
    raw = (tmp_path / "out" / "test.target.txt").read_text().split("\n")[:-1]
    assert raw == [pair[1] for pair in parts[2]]
    other = dataclasses.replace(options, seed=1)
    prepare(other, tmp_path / "other")
    assert decoded(tmp_path / "other", "test") != parts[2]
    too_many = dataclasses.replace(options, valid_pairs=290)
    with pytest.raises(UserError, match="more pairs than are held out"):
        prepare(too_many, tmp_path / "none")


def test_existing_tokenizers_are_used(tmp_path, options):
    prepare(dataclasses.replace(options, joint=False), tmp_path / "first")
    models = [tmp_path / "first" / "tokenizer" / f"{s}.model" for s in SIDES]
    given = dataclasses.replace(
        options,
        joint=False,
        tokenizer_source=str(models[0]),
        tokenizer_target=str(models[1]),
        vocabulary_size=77,
    )
    manifest = prepare(given, tmp_path / "second")
    assert manifest["source_vocabulary_size"] == 97
    for side, model in zip(SIDES, models, strict=True):
        copy = tmp_path / "second" / "tokenizer" / f"{side}.model"
        assert copy.read_bytes() == model.read_bytes()
    assert prepare(given, tmp_path / "second") == manifest


def test_a_second_run_finds_everything_prepared(tmp_path, options):
    first = prepare(options, tmp_path / "out")
    times = {p: p.stat().st_mtime_ns for p in (tmp_path / "out").iterdir()}
    assert prepare(options, tmp_path / "out") == first
    assert times == {
        p: p.stat().st_mtime_ns for p in (tmp_path / "out").iterdir()
    }


@pytest.mark.parametrize("reader", ["prepare", "train"])
def test_a_folder_set_aside_by_a_killed_process_is_put_back(
    tmp_path, options, reader
):
    first = prepare(options, tmp_path / "out")
    working = tmp_path / ".out.0123456789abcdef.partial"
    working.mkdir()
    os.rename(tmp_path / "out", working / "out.replaced")
    if reader == "prepare":
        assert prepare(options, tmp_path / "out") == first
    else:
        assert PreparedData(tmp_path / "out").manifest == first
    assert names_beside(tmp_path / "out") == {"out"}


def test_one_changed_byte_is_noticed(tmp_path, options):
    prepare(options, tmp_path / "out")
    before = contents(tmp_path / "out")
    path = Path(options.valid.target)
    path.write_bytes(path.read_bytes().replace(b"der", b"dem", 1))
    with pytest.raises(UserError, match="another valid corpus than .*valid.en"):
        prepare(options, tmp_path / "out")
    assert contents(tmp_path / "out") == before
    prepare(options, tmp_path / "out", overwrite=True)
    assert contents(tmp_path / "out") != before
    assert names_beside(tmp_path / "out") == {"out"}


def test_other_options_are_noticed(tmp_path, options):
    prepare(options, tmp_path / "out")
    other = dataclasses.replace(options, vocabulary_size=83)
    with pytest.raises(UserError, match="with vocabulary_size=97, not 83"):
        prepare(other, tmp_path / "out")
    other = dataclasses.replace(options, test=None)
    with pytest.raises(UserError, match="from other corpora"):
        prepare(other, tmp_path / "out")


def test_other_names_of_the_same_corpora_are_noticed(tmp_path):
    pairs = toy_pairs(60)
    news = write_pairs(tmp_path, "x", pairs[:30])
    web = write_pairs(tmp_path, "y", pairs[30:])

    def prepare_named(*names):
        train = [
            dataclasses.replace(corpus, name=name)
            for corpus, name in zip((news, web), names, strict=True)
        ]
        options = PrepareOptions(train=train, vocabulary_size=70)
        return prepare(options, tmp_path / "out")

    first = prepare_named("news", "web")
    assert prepare_named("news", "web") == first
    with pytest.raises(UserError, match="with name=news for .*x.en, not web"):
        prepare_named("web", "news")
    # Without a name it is that of the file.
    with pytest.raises(UserError, match="with name=web for .*y.en, not y"):
        prepare_named("news", None)


def test_a_damaged_folder_is_noticed(tmp_path, options):
    prepare(options, tmp_path / "out")
    shard = next((tmp_path / "out").glob("train-*"))
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(UserError, match="train-00000-of-00001.* was changed"):
        prepare(options, tmp_path / "out")


def test_folders_with_other_files_are_left_alone(tmp_path, options):
    output = tmp_path / "out"
    output.mkdir()
    (output / "thesis.txt").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(UserError, match="holds other files"):
            prepare(options, output, overwrite=overwrite)
    assert contents(output) == {"thesis.txt": b"mine"}
    with pytest.raises(UserError, match="is a file"):
        prepare(options, output / "thesis.txt")
    (output / "thesis.txt").unlink()
    prepare(options, output)  # an empty folder is as good as none


MISTAKES = {
    "lengths": (
        b"a\nb\nc\n",
        b"a\nb\n",
        "train.en with 3 and .*train.de with 2",
    ),
    "encoding": (b"a\nb\n", b"a\n\xfcber\n", "train.de, line 2: not UTF-8"),
    "empty": (b"", b"a\n", "train.en: the file is empty"),
    "blank": (b"\n\n", b"\n\n", "No train pair is left of 2 in .*2 empty"),
    "vocabulary": (
        b"a b\nc d\n",
        b"e f\ng h\n",
        "train.en, .*largest possible",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_get_one_line_and_leave_nothing(tmp_path, options, mistake):
    source, target, message = MISTAKES[mistake]
    Path(options.train[0].source).write_bytes(source)
    Path(options.train[0].target).write_bytes(target)
    with pytest.raises(UserError, match=message) as caught:
        prepare(options, tmp_path / "out")
    assert "\n" not in str(caught.value)
    assert names_beside(tmp_path / "out") == set()


def test_a_missing_file_is_noticed_before_anything_is_written(
    tmp_path, options
):
    corpus = CorpusOptions(str(tmp_path / "trian.en"), options.train[0].target)
    options = dataclasses.replace(options, train=[corpus])
    with pytest.raises(UserError, match="trian.en: no such file. Did you mean"):
        prepare(options, tmp_path / "below" / "out")
    assert not (tmp_path / "below").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train": []}, "at least one corpus"),
        ({"valid_pairs": 5}, "not both"),
        ({"model_type": "word"}, "model_type"),
        ({"max_ratio": 0.5}, "max_ratio"),
        ({"vocabulary_size": 4}, "vocabulary_size"),
        ({"min_length": 9, "max_length": 5}, "min_length"),
        ({"max_tokens": 65_535}, "max_tokens"),
        ({"character_coverage": 0.979}, r"must be .* in \[0.98, 1\]. Received"),
        ({"tokenizer_target": "m"}, "tokenizer_source"),
        ({"joint": False, "tokenizer_source": "m"}, "both tokenizers or none"),
    ],
)
def test_contradicting_options_are_refused(options, change, message):
    with pytest.raises(UserError, match=message):
        dataclasses.replace(options, **change)


SCRIPT = """
import sys
from keras_deepnmt.data.corpora import CorpusOptions
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.data.preparation.prepare_corpus import prepare_corpus
from keras_deepnmt.data.preparation.options import PrepareOptions

options = PrepareOptions(
    train=[CorpusOptions(sys.argv[1], sys.argv[2])], vocabulary_size=97
)
prepare_corpus(options, sys.argv[3], progress=False)
"""


def start(options, output):
    corpus = options.train[0]
    return ForkedProcess(
        ["-c", SCRIPT, corpus.source, corpus.target, output],
        stderr=subprocess.PIPE,
    )


def wait_for(process, folder, pattern):
    for _ in range(6000):
        if list(folder.glob(pattern)):
            return
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.005)
    raise AssertionError(f"{pattern} never came")


@pytest.fixture
def large(tmp_path, options):
    train = [write_pairs(tmp_path, "large", toy_pairs(40_000))]
    return dataclasses.replace(options, train=train, valid=None, test=None)


@pytest.mark.thorough(each_commit=True)
@pytest.mark.parametrize(
    "moment",
    [
        "spool/train.source",
        "tokenizer/*.model",
        ".train-*.unfinished",
    ],
)
def test_a_killed_run_leaves_nothing_that_looks_finished(
    tmp_path, options, large, moment
):
    output = tmp_path / "out"
    with start(large, output) as process:
        wait_for(process, tmp_path, f".out.*.partial/out/{moment}")
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not output.exists()
    assert not list(tmp_path.glob(".out.*.partial/out/manifest.json"))
    # Few pairs, since this run is not killed.
    prepare(options, output)
    assert names_beside(output) == {"out"}
    assert len(PairStore(output, "train")) == 300


@pytest.mark.thorough
@pytest.mark.parametrize(
    "moment", ["spool/train.source", ".train-*.unfinished"]
)
def test_an_interrupted_run_removes_what_it_wrote(tmp_path, large, moment):
    with start(large, tmp_path / "out") as process:
        wait_for(process, tmp_path, f".out.*.partial/out/{moment}")
        process.send_signal(signal.SIGINT)
        errors = process.communicate()[1]
    assert process.returncode == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert names_beside(tmp_path / "out") == set()


@pytest.mark.thorough
def test_two_runs_into_one_folder_do_not_meet(tmp_path, large):
    output = tmp_path / "out"
    with start(large, output) as process:
        wait_for(process, tmp_path, ".out.*.partial/out/spool/train.source")
        with pytest.raises(UserError, match="another process is writing it"):
            prepare(large, output)
        process.communicate()
    assert process.returncode == 0
    assert len(PairStore(output, "train")) == 40_000


@pytest.mark.thorough
@pytest.mark.parametrize("megabytes", [1, 4])
def test_a_full_disk_gets_one_line_and_is_left_empty(
    tmp_path, large, megabytes
):
    # A disk of its own, which needs the right to mount one.
    disk = tmp_path / "disk"
    disk.mkdir()
    script = (
        f'mount -t tmpfs -o size={megabytes}m none "$1" || exit 77\n'
        '"$2" -c "$3" "$4" "$5" "$1/out"; ls -A "$1" | sed "s/^/left: /" >&2'
    )
    corpus = large.train[0]
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, "sh", disk, sys.executable]
        + [SCRIPT, corpus.source, corpus.target],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
    )
    if done.returncode in (1, 77) and "keras_deepnmt" not in done.stderr:
        pytest.skip(f"No small disk could be mounted: {done.stderr}")
    last = done.stderr.rstrip().splitlines()[-1]
    assert "keras_deepnmt.errors.UserError" in last
    assert "ree some" in last and "left: " not in done.stderr


NEW_EXTENSIONS = """
import sys
from keras_deepnmt.data import CorpusOptions, PrepareOptions, prepare_corpus
before = set(sys.modules)
corpus = CorpusOptions(*sys.argv[1:])
options = PrepareOptions(train=[corpus], vocabulary_size=60, valid_pairs=2)
prepare_corpus(options, "out", progress=False)
files = {name: str(getattr(module, "__file__", ""))
         for name, module in sys.modules.items()}
print(sorted(name for name in set(files) - before
             if files[name].endswith(".so")))
"""


@pytest.mark.thorough
def test_no_extension_is_imported_while_a_folder_is_written(tmp_path):
    # Ctrl-C that arrives while one of Cython's is imported is lost.
    corpus = write_pairs(tmp_path, "train", toy_pairs(200))
    done = subprocess.run(
        [sys.executable, "-c", NEW_EXTENSIONS, corpus.source, corpus.target],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "[]\n", done.stderr


DAMAGED = {
    "lacks corpora.0.sha256": lambda it: it["corpora"][0].pop("sha256"),
    "`corpora.0.weight` must be a number. Received: '2'": (
        lambda it: it["corpora"][0].update(weight="2")
    ),
    "`corpora.0` must be an object with keys. Received: 'train'": (
        lambda it: it.update(corpora=["train"])
    ),
    "lacks splits": lambda it: it.pop("splits"),
}


def test_a_damaged_manifest_is_not_read(tmp_path):
    corpus = write_pairs(tmp_path, "text", toy_pairs(31)[:60])
    options = PrepareOptions(train=[corpus], vocabulary_size=97)
    folder = tmp_path / "prepared"
    prepare(options, folder)
    file = folder / "manifest.json"
    undamaged = file.read_text()
    for message, change in DAMAGED.items():
        change(manifest := json.loads(undamaged))
        file.write_text(json.dumps(manifest))
        with pytest.raises(UserError, match=f"manifest.json: {message}"):
            prepare(options, folder)
    assert "corpora" in prepare(options, folder, overwrite=True)
