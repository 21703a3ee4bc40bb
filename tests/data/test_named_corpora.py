"""What must be true of corpora known by name.

They are found in a folder or fetched, what they hold is verified, and neither
a bad address nor a broken connection leaves anything behind.
"""

import gzip
import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from keras_deepnmt.data import named_corpora
from keras_deepnmt.data.corpora import CorpusOptions
from keras_deepnmt.data.corpus_registry import (
    NAMED_CORPORA,
    NamedCorpus,
    NamedFile,
)
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.data.preparation.prepare_corpus import prepare_corpus
from keras_deepnmt.errors import UserError

SOURCE = "".join(f"a small dog number {n}\n" for n in range(200)).encode()
TARGET = "".join(f"ein kleiner Hund Nummer {n}\n" for n in range(200)).encode()
PAGES = {
    "/train.en.gz": gzip.compress(SOURCE),
    "/train.de": TARGET,
    "/half.de": TARGET,
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests.append(self.path)
        page = PAGES.get(self.path)
        if page is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        # A connection that breaks in the middle.
        self.wfile.write(
            page[: len(page) // 2] if "half" in self.path else page
        )

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.requests = []
        server.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


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
        path = named_corpora.fetch_file(file, tmp_path)
    assert server.requests == [f"/{page}"]
    assert path == tmp_path / "keras_deepnmt" / "toy" / page
    assert path.read_bytes() == PAGES[f"/{page}"]
    assert files_below(tmp_path) == [page]
    assert capsys.readouterr().out == ""  # stdout is for results


def test_other_content_is_refused_and_both_hashes_named(server, tmp_path):
    file = named_file(server, "train.de", b"something else")
    expected = hashlib.sha256(b"something else").hexdigest()
    received = hashlib.sha256(TARGET).hexdigest()
    with pytest.raises(UserError, match=f"{expected}. Received: {received}"):
        named_corpora.fetch_file(file, tmp_path, progress=False)
    assert files_below(tmp_path) == []


def test_a_changed_cached_file_is_refused_and_left_alone(server, tmp_path):
    file = named_file(server, "train.de", TARGET)
    path = named_corpora.fetch_file(file, tmp_path, progress=False)
    path.write_bytes(TARGET[:-1])
    with pytest.raises(UserError, match="Delete it to have it fetched again"):
        named_corpora.fetch_file(file, tmp_path, progress=False)
    assert path.read_bytes() == TARGET[:-1]


@pytest.mark.parametrize("page", ["missing.de", "half.de"])
def test_a_failed_fetch_leaves_nothing(server, tmp_path, page):
    file = named_file(server, page, TARGET)
    with pytest.raises(UserError, match=f"{page} could not be fetched"):
        named_corpora.fetch_file(file, tmp_path, progress=False)
    assert files_below(tmp_path) == []


def test_a_server_that_is_not_there_is_reported(server, tmp_path):
    file = named_file(server, "train.de", TARGET)
    server.shutdown()
    server.server_close()
    with pytest.raises(UserError, match="could not be fetched"):
        named_corpora.fetch_file(file, tmp_path, progress=False)


def test_an_interrupted_fetch_leaves_nothing(server, tmp_path, monkeypatch):
    def interrupt(*arguments):
        path = arguments[1]
        path.write_bytes(TARGET[:100])
        raise KeyboardInterrupt

    monkeypatch.setattr(named_corpora, "_get_file", interrupt)
    file = named_file(server, "train.de", TARGET)
    with pytest.raises(KeyboardInterrupt):
        named_corpora.fetch_file(file, tmp_path)
    assert files_below(tmp_path) == []


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
        named_corpora.find_corpus_files(options, "train", tmp_path)
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "train.en.gz").write_bytes(SOURCE)
    (tmp_path / "toy" / "train.de.gz").write_bytes(PAGES["/train.en.gz"])
    with pytest.raises(UserError, match="train.de.gz: .* was left as it is."):
        named_corpora.find_corpus_files(options, "train", tmp_path)
    (tmp_path / "toy" / "train.de").write_bytes(TARGET)
    files = named_corpora.find_corpus_files(options, "train", tmp_path)
    assert files.weight == 2.0 and files.target == tmp_path / "toy" / "train.de"
    assert server.requests == []


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(UserError, match="Did you mean multi30k_de_en"):
        named_corpora.find_named_corpus("multi30k_deen")


def test_a_corpus_can_be_named_the_other_way_round():
    there = named_corpora.find_named_corpus("newstest2014_en_de").splits
    back = named_corpora.find_named_corpus("newstest2014_de_en").splits
    assert back["test"] == there["test"][::-1]


@pytest.mark.parametrize(
    "name",
    [
        "multi30k_en_de",
        "multi30k_tok_en_de",
        "newstest2013_en_de",
        "newstest2014_de_en",
    ],
)
def test_the_real_corpora_hold_what_the_registry_says(corpora_dir, name):
    splits = ("train", "valid", "test") if "multi30k" in name else ("test",)
    for split in splits:
        files = named_corpora.find_corpus_files(
            CorpusOptions(name=name), split, corpora_dir
        )
        assert files.name == name
