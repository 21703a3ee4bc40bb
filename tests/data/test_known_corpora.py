"""What must be true of corpora known by name.

They are found in a folder, fetched or written by the package; what they hold
is verified. A broken download is continued, a bad address leaves nothing.
"""

import gzip
import hashlib

import pytest

from keras_deepnmt.data.corpora import CorpusOptions
from keras_deepnmt.data.known_corpora import finding
from keras_deepnmt.data.known_corpora.registry import NAMED_CORPORA
from keras_deepnmt.data.known_corpora.sources import (
    BuiltFile,
    NamedCorpus,
    NamedFile,
)
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.data.preparation.prepare_corpus import prepare_corpus
from keras_deepnmt.errors import UserError

SOURCE = "".join(f"a small dog number {n}\n" for n in range(200)).encode()
TARGET = "".join(f"ein kleiner Hund Nummer {n}\n" for n in range(200)).encode()
PAGES = {
    "train.en.gz": gzip.compress(SOURCE),
    "train.de": TARGET,
    "half.de": TARGET,
}


@pytest.fixture
def server(serve):
    return serve(PAGES)


def named_file(server, page, content):
    digest = hashlib.sha256(content).hexdigest()
    return NamedFile(f"{server.address}/{page}", digest, (f"toy/{page}",))


def files_below(folder):
    return sorted(p.name for p in folder.rglob("*") if p.is_file())


@pytest.mark.parametrize(
    ("page", "content"), [("train.en.gz", SOURCE), ("train.de", TARGET)]
)
def test_a_file_is_fetched_once_and_verified(
    server, tmp_path, capsys, page, content
):
    file = named_file(server, page, content)
    for _ in range(2):
        path = finding.fetch_file(file, tmp_path)
    assert server.requests == [page]
    assert path == tmp_path / "keras_deepnmt" / "toy" / page
    assert path.read_bytes() == PAGES[page]
    assert files_below(tmp_path) == [page]
    assert capsys.readouterr().out == ""  # stdout is for results


def test_other_content_is_refused_and_both_hashes_named(server, tmp_path):
    file = named_file(server, "train.de", b"something else")
    expected = hashlib.sha256(b"something else").hexdigest()
    received = hashlib.sha256(TARGET).hexdigest()
    with pytest.raises(UserError, match=f"{expected}. Received: {received}"):
        finding.fetch_file(file, tmp_path, progress=False)
    assert files_below(tmp_path) == []


def test_a_changed_cached_file_is_refused_and_left_alone(server, tmp_path):
    file = named_file(server, "train.de", TARGET)
    path = finding.fetch_file(file, tmp_path, progress=False)
    path.write_bytes(TARGET[:-1])
    with pytest.raises(UserError, match="Delete it to have it fetched again"):
        finding.fetch_file(file, tmp_path, progress=False)
    assert path.read_bytes() == TARGET[:-1]


def test_a_failed_fetch_leaves_nothing(server, tmp_path):
    file = named_file(server, "missing.de", TARGET)
    with pytest.raises(UserError, match="missing.de could not be fetched"):
        finding.fetch_file(file, tmp_path, progress=False)
    assert files_below(tmp_path) == []


@pytest.mark.parametrize("continues", [True, False])
def test_a_broken_download_is_continued(server, tmp_path, continues):
    server.continues = continues
    file = named_file(server, "half.de", TARGET)
    half = len(TARGET) // 2
    with pytest.raises(UserError, match=f"after {half:,} of {len(TARGET):,}"):
        finding.fetch_file(file, tmp_path, progress=False)
    assert files_below(tmp_path) == [".half.de.part"]
    path = finding.fetch_file(file, tmp_path, progress=False)
    assert path.read_bytes() == TARGET
    assert server.starts == [0, half if continues else 0]
    assert files_below(tmp_path) == ["half.de"]


@pytest.mark.parametrize("left", [TARGET, TARGET + b"x", b"other"])
def test_what_cannot_be_continued_is_fetched_again(server, tmp_path, left):
    file = named_file(server, "train.de", TARGET)
    part = tmp_path / "keras_deepnmt" / "toy" / ".train.de.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(left)
    if left == b"other":  # of another file: both together are refused
        with pytest.raises(UserError, match="was not kept"):
            finding.fetch_file(file, tmp_path, progress=False)
    path = finding.fetch_file(file, tmp_path, progress=False)
    assert path.read_bytes() == TARGET


def test_a_server_that_is_not_there_is_reported(server, tmp_path):
    file = named_file(server, "train.de", TARGET)
    server.shutdown()
    server.server_close()
    with pytest.raises(UserError, match="could not be fetched"):
        finding.fetch_file(file, tmp_path, progress=False)


def test_a_named_corpus_is_fetched_and_prepared(server, tmp_path, monkeypatch):
    sides = (
        named_file(server, "train.en.gz", SOURCE),
        named_file(server, "train.de", TARGET),
    )
    toy = NamedCorpus("toy_en_de", {"train": sides})
    monkeypatch.setitem(NAMED_CORPORA, "toy_en_de", toy)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "home"))
    options = PrepareOptions(
        train=[CorpusOptions(name="toy_de_en")], vocabulary_size=50
    )
    manifest = prepare_corpus(options, tmp_path / "out", progress=False)
    (corpus,) = manifest["corpora"]
    assert corpus["sha256"] == {
        "source": hashlib.sha256(TARGET).hexdigest(),
        "target": hashlib.sha256(SOURCE).hexdigest(),
    }
    assert corpus["pairs"] == 200


def test_a_data_dir_is_used_before_the_network(server, tmp_path, monkeypatch):
    sides = (
        named_file(server, "train.en.gz", SOURCE),
        named_file(server, "train.de", TARGET),
    )
    toy = NamedCorpus("toy_en_de", {"test": sides})
    monkeypatch.setitem(NAMED_CORPORA, "toy_en_de", toy)
    options = CorpusOptions(name="toy_en_de", weight=2.0)
    with pytest.raises(UserError, match="toy/train.en.gz: no such file"):
        finding.find_corpus_files(options, "train", tmp_path)
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "train.en.gz").write_bytes(SOURCE)
    (tmp_path / "toy" / "train.de.gz").write_bytes(PAGES["train.en.gz"])
    with pytest.raises(UserError, match="train.de.gz: .* was left as it is."):
        finding.find_corpus_files(options, "train", tmp_path)
    (tmp_path / "toy" / "train.de").write_bytes(TARGET)
    files = finding.find_corpus_files(options, "train", tmp_path)
    assert files.weight == 2.0 and files.target == tmp_path / "toy" / "train.de"
    assert server.requests == []


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(UserError, match='Did you mean "multi30k_de_en"'):
        finding.find_named_corpus("multi30k_deen")


def test_a_corpus_can_be_named_the_other_way_round():
    there = finding.find_named_corpus("newstest2014_en_de").splits
    back = finding.find_named_corpus("newstest2014_de_en").splits
    assert back["test"] == there["test"][::-1]


@pytest.mark.parametrize(
    "name",
    [
        "multi30k_en_de",
        "multi30k_tok_en_de",
        "newstest2013_en_de",
        "newstest2014_de_en",
        "iwslt14_47k_de_en",
        "scitldr",
        "tatoeba_en_de",
        "ua_gec",
    ],
)
def test_the_real_corpora_hold_what_the_registry_says(corpora_dir, name):
    for split in finding.find_named_corpus(name).splits:
        files = finding.find_corpus_files(
            CorpusOptions(name=name), split, corpora_dir
        )
        assert files.name == name


def test_corrections_are_cut_out_of_the_files_of_jfleg(
    corpora_dir, tmp_path, monkeypatch
):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    folder = corpora_dir / "jfleg"

    def lines(name):
        return (folder / name).read_bytes().splitlines()

    expected = {
        "train": (
            lines("dev.src")[:654] * 4,
            [line for n in range(4) for line in lines(f"dev.ref{n}")[:654]],
        ),
        "valid": (lines("dev.src")[654:], lines("dev.ref0")[654:]),
        "test": (lines("test.src"), lines("test.ref0")),
    }
    for split, sides in expected.items():
        files = finding.find_corpus_files(
            CorpusOptions(name="jfleg"), split, corpora_dir
        )
        found = files.source.read_bytes(), files.target.read_bytes()
        assert tuple(text.splitlines() for text in found) == sides


def test_only_translation_corpora_have_another_direction():
    for name in ("scitldr", "jfleg", "ua_gec"):
        assert finding.find_named_corpus(name).name == name
    with pytest.raises(UserError, match="No corpus is known as gec_ua"):
        finding.find_named_corpus("gec_ua")


def test_the_demo_corpus_is_written_and_has_the_known_hashes(tmp_path):
    options = CorpusOptions(name="demo_de_en")
    for split, lines in (("train", 40_000), ("valid", 500), ("test", 500)):
        files = finding.find_corpus_files(options, split, None, tmp_path)
        assert files.source.read_bytes().count(b"\n") == lines
    # A folder of other corpora does not need to have it.
    again = finding.find_corpus_files(options, "test", tmp_path, tmp_path)
    assert again == files


def test_a_part_that_a_corpus_lacks_is_refused():
    options = CorpusOptions(name="iwslt14_47k_de_en")
    with pytest.raises(UserError, match="no part for `test`, only for train"):
        finding.find_corpus_files(options, "test")


def test_training_text_is_no_test_set():
    with pytest.raises(UserError, match="has no part for `test`, only for"):
        finding.find_corpus_files(CorpusOptions(name="setimes_tr_en"), "test")


def test_a_corpus_without_an_address_needs_a_folder(tmp_path):
    options = CorpusOptions(name="iwslt14_47k_de_en")
    with pytest.raises(UserError, match="no public address. .*--data-dir"):
        finding.find_corpus_files(options, "train", None, tmp_path)


def test_every_known_corpus_says_where_it_comes_from():
    for name, corpus in NAMED_CORPORA.items():
        assert name == corpus.name and corpus.notes
        for archive in corpus.archives():
            assert archive.address.startswith("http")
            if archive.digest is not None:
                kind, value = archive.digest.split(":")
                assert len(value) == 2 * hashlib.new(kind).digest_size
        for source, target in corpus.splits.values():
            if isinstance(source, BuiltFile):
                members = list(zip(source.members, target.members, strict=True))
                assert all(a.lines == b.lines for a, b in members)
                # A plain file has one side only.
                assert all(a.archive == b.archive for a, b in members if a.path)
                assert source.local_name != target.local_name
