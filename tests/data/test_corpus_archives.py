"""What must be true of corpora that are built from archives.

* a text is made of members, in their order, each read as its format demands
* an archive is verified; without a published hash the first one is read to
  its end, and recorded
* an archive that unpacks to too much, is encrypted, or too large to download
  is refused in one line
* no path in an archive is one on the disk
* an archive that was downloaded by hand is used
"""

import bz2
import gzip
import hashlib
import io
import logging
import lzma
import random
import tarfile
import zipfile

import pytest

from keras_deepnmt.data.corpora import CorpusOptions
from keras_deepnmt.data.known_corpora import finding
from keras_deepnmt.data.known_corpora.archives import (
    build_text,
    verify_archive,
)
from keras_deepnmt.data.known_corpora.registry import NAMED_CORPORA
from keras_deepnmt.data.known_corpora.sources import (
    Archive,
    BuiltFile,
    Member,
    NamedCorpus,
)
from keras_deepnmt.errors import UserError
from keras_deepnmt.limits import Limits, used_limits

TALKS = """\
<url>http://talks/1</url>
<keywords>talks, text</keywords>
<title>A title</title>
<description>TED Talk: of {n} &amp; more</description>
 One <b> line.
<reviewer href="x">Nobody</reviewer>
Another line.
"""
TEST_SET = """\
<?xml version="1.0"?><mteval><refset><doc>
<title>Not a sentence</title>
<seg id="1"> Ich &amp; du
 zusammen. </seg> <seg id="2">\u00a0Zwei.</seg>
</doc></refset></mteval>
"""
MEMORY = """\
<?xml version="1.0"?><tmx version="1.4"><header/><body>
<tu><tuv xml:lang="en"><seg>A dog &amp; a cat</seg></tuv>
<tuv xml:lang="tr"><seg>Bir
köpek</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>Alone</seg></tuv></tu>
<tu><tuv xml:lang="tr"><seg>İki</seg></tuv>
<tuv xml:lang="en"><seg>Two</seg></tuv></tu>
</body></tmx>
"""


def tar(files):
    """A compressed archive as bytes; without content a file is a link."""
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            if content is None:
                info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
                archive.addfile(info)
                continue
            info.size = len(content.encode())
            archive.addfile(info, io.BytesIO(content.encode()))
    return memory.getvalue()


def packed_zip(files, method=zipfile.ZIP_STORED):
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return memory.getvalue()


PAGES = {
    "talks.tgz": tar(
        {
            "./x/train.en": TALKS,
            "x/test.de.xml": TEST_SET,
            "x/last": "a\nb",
            "x/link": None,
            "../out": "outside\n",
        }
    ),
    "talks.zip": packed_zip({"x/last": "c\r\n"}),
    "memory.tmx.gz": gzip.compress(MEMORY.encode()),
    "five.txt": b"one\ntwo\nthree\nfour\nfive\n",
    "text.gz": gzip.compress(b"no memory"),
    "login.tgz": b"<html>Log in</html>",
    "broken.tgz": tar({"x": "text" * 999})[:-40],
}


@pytest.fixture
def server(serve):
    return serve(dict(PAGES))


def built(server, *parts, page="talks.tgz", digest=None):
    archive = Archive(f"{server.address}/{page}", digest)
    members = (Member(archive, *part) for part in parts)
    return BuiltFile("toy/text", tuple(members))


def lines_of(file, cache):
    path = finding.fetch_file(file, cache, progress=False)
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def files_below(folder):
    return sorted(p.name for p in folder.rglob("*") if p.is_file())


def test_a_text_is_built_from_members_of_an_archive(server, tmp_path):
    file = built(
        server, ("x/train.en", "talks"), ("x/test.de.xml", "sgm"), ("x/last",)
    )
    for _ in range(2):
        assert lines_of(file, tmp_path) == [
            "A title",
            "TED Talk: of {n} &amp; more",
            "One <b> line.",
            "Another line.",
            "Ich & du zusammen.",
            "\u00a0Zwei.",
            "a",
            "b",
        ]
    assert server.requests == ["talks.tgz"]  # once, for all members
    file = built(server, ("x/last",), page="talks.zip")
    assert lines_of(file, tmp_path / "other") == ["c"]


def test_lines_of_a_plain_file_are_chosen_by_their_numbers(server, tmp_path):
    digest = f"sha256:{hashlib.sha256(PAGES['five.txt']).hexdigest()}"
    archive = Archive(f"{server.address}/five.txt", digest, "toy/five.txt")
    members = (Member(archive, lines=(3, 5)), Member(archive, lines=(0, 1)))
    file = BuiltFile("toy/text", members)
    assert lines_of(file, tmp_path) == ["four", "five", "one"]
    assert server.requests == ["five.txt"]


def test_a_translation_memory_gives_the_pairs_with_both_sides(server, tmp_path):
    for language, other, expected in (
        ("en", "tr", ["A dog & a cat", "Two"]),
        ("tr", "en", ["Bir köpek", "İki"]),
    ):
        archive = Archive(f"{server.address}/memory.tmx.gz")
        member = Member(archive, "", "tmx", (language, other))
        file = BuiltFile(f"toy/memory.{language}", (member,))
        assert lines_of(file, tmp_path) == expected
    assert server.requests == ["memory.tmx.gz"]


@pytest.mark.parametrize(
    ("part", "page", "message"),
    [
        (("x/link",), "talks.tgz", "talks.tgz: has no file x/link. It holds"),
        (("x/nowhere",), "talks.zip", "talks.zip: has no file x/nowhere"),
        (("x",), "broken.tgz", "broken.tgz: the file is damaged"),
        (("", "tmx", ("en", "tr")), "text.gz", "the file is damaged"),
    ],
)
def test_a_wrong_archive_is_refused(server, tmp_path, part, page, message):
    with pytest.raises(UserError, match=message):
        lines_of(built(server, part, page=page), tmp_path)
    assert "text" not in files_below(tmp_path)


def test_no_path_of_an_archive_is_written(server, tmp_path):
    file = built(server, ("../out",))
    assert lines_of(file, tmp_path / "cache") == ["outside"]
    written = ["talks.tgz", "talks.tgz.sha256", "text", "text.sha256"]
    assert files_below(tmp_path) == written


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_no_flipped_bit_of_an_archive_changes_a_text(tmp_path, pack):
    words = random.Random(7).choices(["one", "two", "three", "four"], k=400)
    whole = pack(gzip.decompress(tar({"x": "\n".join(words)})))
    archive = tmp_path / "words.tar"
    archive.write_bytes(whole)
    verify_archive(archive)
    member = BuiltFile("text", (Member(Archive(str(archive)), "x"),))
    for place in random.Random(3).sample(range(8 * len(whole)), 60):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        archive.write_bytes(damaged)
        try:
            verify_archive(archive)
            build_text(member, {archive.name: archive}, tmp_path / "text")
        except UserError as error:
            assert str(error).startswith(str(archive))
            assert "\n" not in str(error)
        else:  # in the header: the name or the time of the packed file
            assert (tmp_path / "text").read_text().split() == words


def test_a_flipped_bit_in_a_zip_member_is_found(server, tmp_path):
    page = bytearray(PAGES["talks.zip"])
    page[page.index(b"c\r\n")] ^= 1
    server.pages["talks.zip"] = bytes(page)
    with pytest.raises(UserError, match="wrong checksum of x/last|Bad CRC"):
        lines_of(built(server, ("x/last",), page="talks.zip"), tmp_path)
    assert "text" not in files_below(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [((8, 1), "x/last is encrypted"), ((10, 99), "a method .* .number 99")],
)
def test_a_zip_that_cannot_be_read_is_refused_in_one_line(
    server, tmp_path, change, message
):
    # In the list of members: the flags, or the method.
    place, value = change
    page = bytearray(PAGES["talks.zip"])
    page[page.index(b"PK\x01\x02") + place] = value
    server.pages["talks.zip"] = bytes(page)
    with pytest.raises(UserError, match=message) as info:
        lines_of(built(server, ("x/last",), page="talks.zip"), tmp_path)
    assert "\n" not in str(info.value)


@pytest.mark.parametrize(
    ("page", "part"),
    [("many.tgz", "x"), ("many.zip", "x"), ("many.gz", "")],
)
def test_an_archive_that_unpacks_to_too_much_is_refused(
    server, tmp_path, monkeypatch, page, part
):
    text = "a line\n" * 30_000
    server.pages |= {
        "many.tgz": tar({"x": text}),
        "many.zip": packed_zip({"x": text}, zipfile.ZIP_DEFLATED),
        "many.gz": gzip.compress(text.encode()),
    }
    file = built(server, (part,), page=page)
    with used_limits(Limits(max_unpacked_gb=0.0002)):
        with pytest.raises(UserError, match="--max-unpacked-gb"):
            lines_of(file, tmp_path)
    monkeypatch.setattr("keras_deepnmt.limits._FREE_BYTES", 1000)
    with pytest.raises(UserError, match=f"{page}: must unpack to at most 100 "):
        lines_of(file, tmp_path)
    with used_limits(Limits(max_expansion=2000)):
        assert len(lines_of(file, tmp_path)) == 30_000


@pytest.mark.parametrize("tells", [True, False])
def test_a_download_that_is_too_large_is_refused_and_not_kept(
    server, tmp_path, tells
):
    server.tells_length = tells
    file = built(server, ("x/last",))
    with used_limits(Limits(max_download_gb=1e-7)):
        with pytest.raises(UserError, match="at most 1e-07 GB.*--max-download"):
            lines_of(file, tmp_path)
    assert files_below(tmp_path) == []


@pytest.mark.parametrize("kind", ["sha256", "md5"])
def test_an_archive_is_verified(server, tmp_path, kind):
    right = hashlib.new(kind, PAGES["talks.tgz"]).hexdigest()
    wrong = built(server, ("x/last",), digest=f"{kind}:{'0' * len(right)}")
    message = f"{kind.upper()} 0+. Received: {right}"
    with pytest.raises(UserError, match=message):
        lines_of(wrong, tmp_path)
    assert files_below(tmp_path) == []
    file = built(server, ("x/last",), digest=f"{kind}:{right}")
    assert lines_of(file, tmp_path) == ["a", "b"]


def test_without_a_published_hash_the_first_is_recorded(
    server, tmp_path, caplog
):
    file = built(server, ("x/last",))
    with caplog.at_level(logging.WARNING):
        path = finding.fetch_file(file, tmp_path, progress=False)
    archive = tmp_path / "keras_deepnmt" / "archives" / "talks.tgz"
    digest = hashlib.sha256(PAGES["talks.tgz"]).hexdigest()
    record = archive.with_name("talks.tgz.sha256")
    assert record.read_text() == f"{digest}  talks.tgz\n"
    assert digest in caplog.text and str(record) in caplog.text
    archive.write_bytes(PAGES["broken.tgz"])
    path.unlink()
    with pytest.raises(UserError, match=f"must have SHA256 {digest}"):
        lines_of(file, tmp_path)


def test_a_page_instead_of_an_archive_is_not_kept(server, tmp_path):
    file = built(server, ("x/last",), page="login.tgz")
    with pytest.raises(UserError, match="sent no archive.*login.tgz and give"):
        lines_of(file, tmp_path)
    assert files_below(tmp_path) == []


def test_a_changed_text_is_refused(server, tmp_path):
    file = built(server, ("x/last",))
    path = finding.fetch_file(file, tmp_path, progress=False)
    path.write_text("other")
    with pytest.raises(UserError, match="Delete it and text.sha256 to have"):
        lines_of(file, tmp_path)


def test_an_archive_is_taken_from_a_folder(server, tmp_path, monkeypatch):
    file = built(server, ("x/last",))
    toy = NamedCorpus("toy_en_de", {"test": (file, file)})
    monkeypatch.setitem(NAMED_CORPORA, "toy_en_de", toy)
    options, folder = CorpusOptions(name="toy_en_de"), tmp_path / "mine"
    folder.mkdir()
    with pytest.raises(UserError, match="text: no such file or of talks.tgz"):
        finding.find_corpus_files(options, "test", folder, tmp_path)
    (folder / "talks.tgz").write_bytes(PAGES["talks.tgz"])
    found = finding.find_corpus_files(options, "test", folder, tmp_path)
    assert found.source.read_text() == "a\nb\n"
    (folder / "toy").mkdir()
    (folder / "toy" / "text").write_text("mine\n")
    found = finding.find_corpus_files(options, "test", folder, tmp_path)
    assert found.source == folder / "toy" / "text"
    assert server.requests == []
