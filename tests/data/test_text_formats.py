"""What must be true of files that are no plain text.

A format that is recognized is named, with what to do, and so are the formats
that are read; text is never taken for another format.
"""

import dataclasses
import gzip
import json
import lzma
import shutil

import pytest
from toy_corpus import names_beside, prepare, toy_pairs, write_pairs

from keras_deepnmt.data.corpora import CorpusOptions, LineReader
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.data.text_formats import refuse_other_formats
from keras_deepnmt.errors import UserError

TMX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<!-- a memory of <xliff> files -->
<tmx version="1.4"><header/><body>
<tu><tuv xml:lang="de"><seg>ein Hund</seg></tuv></tu></body></tmx>
"""
XLIFF = """<?xml version='1.0'?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file original="a.txt"><body/></file></xliff>
"""
JSON_LINES = "".join(
    json.dumps({"translation": {"de": "ein Hund", "en": f"a dog {n}"}}) + "\n"
    for n in range(5)
)
OTHERS = {
    "tmx": (TMX, "a TMX file"),
    "tmx without declaration": ("\n<tmx version='1.4'>\n", "a TMX file"),
    "document type": ('<!DOCTYPE tmx SYSTEM "a">\n<tmx>', "a TMX file"),
    "xliff": (XLIFF, "an XLIFF file"),
    "xliff with a prefix": (
        "<?xml version='1.0'?><x:xliff xmlns:x='urn:x'/>",
        "an XLIFF file",
    ),
    "xml": ("<?xml version='1.0'?>\n<text><s>a</s></text>", "an XML file"),
    "jsonl": (JSON_LINES, "a JSON Lines file"),
    "one line of json": ('{"de": "ein Hund", "en": "a dog"}', "a JSON Lines"),
    "json": ('[\n  {"de": "ein Hund", "en": "a dog"}]', "a JSON file"),
}
TEXTS = {
    "tags": "<b>bold</b> words\n<i>other</i> words\n",
    "placeholder": "<xliff_1> is a placeholder\nso is <tmx_2>\n",
    "a name": "<tmx>ed in the second line only\n".join(["{x} is\n", ""]),
    "braces": "{name} sleeps\n{name} sings\n",
    "list": "[1] Miller, 2017\n[2] Smith, 2019\n",
    "only one line of json": '{"a": 1}\na dog\n',
    "less": "< 5 %\n<?> unclear\n",
}


def sides(folder, *contents, name="text"):
    readers = []
    for number, content in enumerate(contents):
        path = folder / f"{name}.{number}"
        path.write_bytes(content)
        readers.append(LineReader(path))
    return readers


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["raw", "gz"])
@pytest.mark.parametrize("mark", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("other", OTHERS)
def test_other_formats_are_recognized_and_named(
    tmp_path, other, mark, compress
):
    text, kind = OTHERS[other]
    content = compress(text.encode(mark))
    with pytest.raises(UserError, match=f"text.0: is {kind}") as caught:
        refuse_other_formats(sides(tmp_path, content, content))
    assert "Preparing data" in str(caught.value)
    assert "`--file`" in str(caught.value)


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["raw", "gz"])
@pytest.mark.parametrize("text", TEXTS)
def test_text_is_not_taken_for_another_format(tmp_path, text, compress):
    content = compress(TEXTS[text].encode())
    refuse_other_formats(sides(tmp_path, content, content))


def test_sentences_of_one_side_may_be_json(tmp_path):
    commands = b'{"intent": "play"}\n{"intent": "stop"}\n'
    refuse_other_formats(sides(tmp_path, b"play it\nstop\n", commands))
    path = tmp_path / "data.JSONL.gz"
    path.write_bytes(gzip.compress(commands))
    reader = LineReader(path)
    with pytest.raises(UserError, match="data.JSONL.gz: is a JSON Lines file"):
        refuse_other_formats([*sides(tmp_path, b"play it\nstop\n"), reader])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_other_encodings_with_a_mark_are_named(tmp_path, encoding):
    text = "ein Hund\neine Katze\n"
    given = sides(tmp_path, text.encode(), text.encode(encoding))
    name = encoding.upper()
    with pytest.raises(UserError, match=f"text.1: is text in {name}, but") as e:
        refuse_other_formats(given)
    assert f"iconv -f {name} -t UTF-8" in str(e.value)


def test_damaged_and_short_files_are_left_to_the_reader(tmp_path):
    damaged = gzip.compress(TMX.encode())[:-9]
    refuse_other_formats(sides(tmp_path, damaged[:20], b"\n", b"\xff"))


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_prepare_refuses_them_before_anything_is_written(tmp_path, split):
    good = write_pairs(tmp_path, "train", toy_pairs(30))
    path = tmp_path / "memory.tmx"
    path.write_text(TMX)
    bad = CorpusOptions(str(path), str(path))
    options = PrepareOptions(train=[good], vocabulary_size=60)
    bad = [bad] if split == "train" else bad
    options = dataclasses.replace(options, **{split: bad})
    with pytest.raises(UserError, match="memory.tmx: is a TMX file"):
        prepare(options, tmp_path / "below" / "out")
    assert not (tmp_path / "below").exists()
    assert names_beside(tmp_path / "out") == set()


BINARIES = {
    "lz4": (b"\x04\x22\x4d\x18\x64\x40\xa7\x00", "an LZ4 file"),
    "pdf in xz": (lzma.compress(b"%PDF-1.7\n%\xe2\xe3\n"), "a PDF file"),
    "parquet": (b"PAR1\x15\x04\x15\x80" + bytes(90), "a Parquet file"),
    "pdf": (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n", "a PDF file"),
    "utf-16 without its mark": (
        "ein Hund schläft\n".encode("utf-16-le"),
        "in a format that is not known",
    ),
}


@pytest.mark.parametrize("name", BINARIES)
def test_files_that_are_no_text_are_named_with_the_formats_that_are_read(
    tmp_path, name
):
    content, kind = BINARIES[name]
    with pytest.raises(UserError, match=f"text.0: is {kind}") as caught:
        refuse_other_formats(sides(tmp_path, content, b"a dog\n"))
    assert "plain text in UTF-8 and the same compressed" in str(caught.value)


def test_archives_are_named(tmp_path):
    (tmp_path / "a.txt").write_text("a dog\n")
    shutil.make_archive(tmp_path / "a", "zip", tmp_path, "a.txt")
    shutil.make_archive(tmp_path / "a", "gztar", tmp_path, "a.txt")
    for name, kind in (("a.zip", "a ZIP archive"), ("a.tar.gz", "a tar arch")):
        with pytest.raises(UserError, match=f"{name}: is {kind}"):
            refuse_other_formats([LineReader(tmp_path / name)])


def test_text_that_begins_like_another_file_or_has_a_zero_is_text(tmp_path):
    texts = ["BZh is a name\n", "PAR1 and PK\n", "%PDF-1.7 is a format\n"]
    contents = [text.encode() for text in texts]
    contents.append(b"a dog\n" * 50 + b"\0\n")
    refuse_other_formats(sides(tmp_path, *contents))
    with pytest.raises(UserError, match="is a PDF"):
        refuse_other_formats(sides(tmp_path, b"%PDF-1.7\n%\xe2\xe3\n"))
