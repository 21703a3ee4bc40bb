"""The recipes of the papers' corpora find all their text on a server.

The server is on this machine and has small archives with the members that the
registry names; addresses and hashes are those of the copies.
"""

import dataclasses
import gzip
import hashlib
import io
import tarfile

import pytest

from keras_deepnmt.data.known_corpora.finding import find_named_corpus
from keras_deepnmt.data.known_corpora.registry import NAMED_CORPORA
from keras_deepnmt.data.known_corpora.sources import Archive, BuiltFile
from keras_deepnmt.data.preparation.prepare_corpus import prepare_corpus
from keras_deepnmt.recipes import load_recipe

NUM_SENTENCES = 60


def sentences(path, language):
    """Other sentences for each file, the same number on both sides."""
    stem = sum(path.replace(f".{language}", "").encode()) % 1000
    stem = stem if "src" not in path and "ref" not in path else 7
    words = "a small dog number" if language == "en" else "ein Hund Nummer"
    return [f"{words} {stem} {n}" for n in range(NUM_SENTENCES)]


def content(member, language):
    lines = sentences(member.path, language)
    if member.form == "sgm":
        segments = (f'<seg id="1"> {line} </seg>' for line in lines)
        lines = ["<doc>", *segments, "</doc>"]
    if member.form == "talks":
        lines = ["<url>http://talks</url>", *lines]
    return "\n".join(lines) + "\n"


def memory(member):
    pairs = zip(
        *(sentences("memory", language) for language in member.languages),
        strict=True,
    )
    units = "".join(
        "<tu>"
        + "".join(
            f'<tuv xml:lang="{language}"><seg>{text}</seg></tuv>'
            for language, text in zip(member.languages, pair, strict=True)
        )
        + "</tu>"
        for pair in pairs
    )
    return gzip.compress(f"<tmx><body>{units}</body></tmx>".encode())


def tar(files):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return packed.getvalue()


class Copy:
    """A copy of a known corpus, whose files are small and on a server."""

    def __init__(self, corpus, pages, address):
        self.pages, self.address = pages, address
        self.files = {}
        for side in range(2):
            language = corpus.name.split("_")[-2:][side]
            for sides in corpus.splits.values():
                for member in getattr(sides[side], "members", ()):
                    self._add(member, language)
        self.archives = {a: self._archive(a) for a in self.files}
        self.corpus = dataclasses.replace(
            corpus,
            splits={
                split: tuple(map(self._file, sides, ("1", "2"), [split] * 2))
                for split, sides in corpus.splits.items()
            },
        )

    def _add(self, member, language):
        files = self.files.setdefault(member.archive, {})
        if member.form == "tmx":
            files[member.path] = memory(member)
        else:
            files[member.path] = content(member, language)

    def _archive(self, archive):
        files = self.files[archive]
        page = files[""] if "" in files else tar(files)
        self.pages[archive.name] = page
        digest = archive.digest and archive.digest.split(":")[0]
        if digest:
            digest = f"{digest}:{hashlib.new(digest, page).hexdigest()}"
        return Archive(f"{self.address}/{archive.name}", digest, archive.name)

    def _file(self, file, side, split):
        if isinstance(file, BuiltFile):
            members = (
                dataclasses.replace(m, archive=self.archives[m.archive])
                for m in file.members
            )
            return dataclasses.replace(file, members=tuple(members))
        page = "\n".join(sentences(split, "en" if side == "1" else "de"))
        name = f"{split}.{side}"
        self.pages[name] = page.encode()
        return dataclasses.replace(
            file,
            address=f"{self.address}/{name}",
            sha256=hashlib.sha256(page.encode()).hexdigest(),
        )


@pytest.mark.parametrize(
    ("recipe", "corpora", "num_train"),
    [
        # Both sides of each corpus; 7 of the pairs are held out.
        ("transformer_small.iwslt14_de_en", ["iwslt14_de_en"], 60 - 7),
        (
            "conv_seq2seq_4l.iwslt14_tr_en",
            ["iwslt14_tr_en", "setimes_tr_en"],
            120,
        ),
        ("transformer_base.wmt14_en_de", ["wmt14_en_de"], 180),
        ("transformer_base.wmt15_en_de", ["wmt15_en_de"], 180),
    ],
)
def test_the_corpora_of_a_recipe_are_downloaded_and_prepared(
    serve, tmp_path, monkeypatch, recipe, corpora, num_train
):
    server = serve({})
    for name in corpora:
        corpus = find_named_corpus(name)
        copy = Copy(corpus, server.pages, server.address)
        monkeypatch.setitem(NAMED_CORPORA, name, copy.corpus)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "home"))
    data = load_recipe(recipe).data
    data = dataclasses.replace(
        data,
        vocabulary_size=50,
        valid_pairs=min(data.valid_pairs, 7),
        max_ratio=9.0,
    )
    manifest = prepare_corpus(data, tmp_path / "prepared", progress=False)
    assert manifest["splits"]["train"]["pairs"] == num_train
    num_test = manifest["splits"]["test"]["pairs"]
    assert num_test and num_test % NUM_SENTENCES == 0
    assert set(server.requests) == set(server.pages)  # all, and once
    assert len(server.requests) == len(server.pages)
