"""What must be true of reading corpora.

Lines are the lines of the file, whatever the file looks like; a mistake in a
file is reported with its file and line.
"""

import bz2
import gzip
import hashlib
import lzma
import sys

import pytest

from keras_deepnmt.data.corpora import (
    CorpusOptions,
    LineReader,
    aligned_lines,
    decode_line,
)
from keras_deepnmt.errors import UserError
from keras_deepnmt.limits import Limits, used_limits


def written(path, content):
    path.write_bytes(content)
    return path


PACKERS = ["gzip", "bzip2", "xz", "Zstandard"]


def packed(compression, content):
    if compression == "Zstandard":
        zstd = pytest.importorskip(
            "backports.zstd", reason="needs the extra [zstd]"
        )
        # With a checksum, as the program `zstd` writes it.
        options = {zstd.CompressionParameter.checksum_flag: 1}
        return zstd.compress(content, options=options)
    compress = {
        "gzip": gzip.compress,
        "bzip2": bz2.compress,
        "xz": lzma.compress,
        "plain": bytes,
    }
    return compress[compression](content)


@pytest.mark.parametrize(
    "content",
    [
        b"a\nb\n\nc\n",
        b"a\nb\n\nc",
        b"a\r\nb\r\n\r\nc\r\n",
        b"\xef\xbb\xbfa\nb\n\nc",
    ],
    ids=["plain", "no last line feed", "carriage returns", "byte order mark"],
)
@pytest.mark.parametrize("compress", ["plain", *PACKERS])
def test_lines_and_hash_do_not_depend_on_the_wrapping(
    tmp_path, content, compress
):
    reader = LineReader(written(tmp_path / "text", packed(compress, content)))
    assert reader.head(2) == content[:2]
    assert list(reader) == [b"a", b"b", b"", b"c"]
    assert reader.lines == 4
    assert reader.sha256 == hashlib.sha256(content).hexdigest()


def test_only_a_line_feed_ends_a_line(tmp_path):
    content = "a\u2028b\x85c\x0bd\re\n".encode()
    assert len(list(LineReader(written(tmp_path / "t", content)))) == 1


def test_lines_longer_than_a_chunk_survive(tmp_path):
    lines = [b"x" * 3_000_000, b"y", b"z" * 1_500_000]
    reader = LineReader(written(tmp_path / "t", b"\n".join(lines)))
    assert list(reader) == lines


def test_refuses_a_file_without_line_feeds(tmp_path):
    path = written(tmp_path / "t", b"a\n" + b"x" * (1 << 25))
    with pytest.raises(UserError, match="t, line 2: longer than 16777216"):
        list(LineReader(path))


@pytest.mark.parametrize("compress", ["plain", *PACKERS])
def test_refuses_an_empty_file(tmp_path, compress):
    path = written(tmp_path / "train.de", packed(compress, b""))
    with pytest.raises(UserError, match="train.de: the file is empty"):
        list(LineReader(path))


def test_a_missing_file_suggests_the_nearest_name(tmp_path):
    written(tmp_path / "train.de", b"a\n")
    with pytest.raises(
        UserError, match="trian.de: no such file. Did you mean "
    ):
        LineReader(tmp_path / "trian.de")
    with pytest.raises(UserError, match="there is no folder"):
        LineReader(tmp_path / "nowhere" / "train.de")
    with pytest.raises(UserError, match="is a folder"):
        LineReader(tmp_path)


@pytest.mark.parametrize("compress", PACKERS)
def test_damaged_data_is_reported_with_its_line(tmp_path, compress):
    data = packed(compress, b"".join(b"%d\n" % i for i in range(100_000)))
    path, middle = tmp_path / "t", len(data) // 2
    changed = data[:middle] + b"?" + data[middle + 1 :]
    for content in (data[:middle], data[:-1], changed):
        written(path, content)
        message = rf"t, line \d+: the {compress} data is damaged"
        with pytest.raises(UserError, match=message):
            list(LineReader(path))


def test_a_missing_package_is_named_when_the_file_is_opened(
    tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    monkeypatch.delattr("backports.zstd", raising=False)
    path = written(tmp_path / "t.zst", b"\x28\xb5\x2f\xfd more")
    with pytest.raises(UserError, match=r"t.zst: .*keras_deepnmt\[zstd\]"):
        LineReader(path)


def test_a_gzip_file_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    file = tmp_path / "t.gz"
    file.write_bytes(gzip.compress(b"a line\n" * 400_000))
    with used_limits(Limits(max_unpacked_gb=0.002)):
        with pytest.raises(
            UserError, match="t.gz: must unpack to at most 0.00"
        ):
            list(LineReader(file))
    monkeypatch.setattr("keras_deepnmt.limits._FREE_BYTES", 1000)
    with pytest.raises(
        UserError, match="100 times its size.*unpack it yoursel"
    ):
        list(LineReader(file))
    with used_limits(Limits(max_expansion=2000)):
        assert len(list(LineReader(file))) == 400_000


def test_invalid_text_is_reported_with_file_line_and_byte(tmp_path):
    line = "für".encode("latin-1")
    with pytest.raises(UserError, match="a.de, line 7: not UTF-8 .byte 2 of"):
        decode_line(line, "a.de", 7)


@pytest.mark.parametrize("longer", [0, 1])
def test_sides_of_different_length_are_reported_with_both_counts(
    tmp_path, longer
):
    counts = [3, 3]
    counts[longer] = 5
    readers = [
        LineReader(written(tmp_path / name, b"x\n" * count))
        for name, count in zip(("s.en", "t.de"), counts, strict=True)
    ]
    message = f"s.en with {counts[0]} and .*t.de with {counts[1]} lines"
    with pytest.raises(UserError, match=message):
        list(aligned_lines(*readers))


@pytest.mark.parametrize(
    "arguments",
    [{}, {"source": "a"}, {"target": "a"}, {"name": "a", "weight": 0.0}],
)
def test_refuses_half_a_corpus(arguments):
    with pytest.raises(UserError):
        CorpusOptions(**arguments)
