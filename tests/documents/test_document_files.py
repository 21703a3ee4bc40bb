"""A document that a translator has read is whole, whatever the model writes."""

import gzip
import re
from collections import Counter
from types import SimpleNamespace
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import pytest
from random_translators import PAIRS

from benchmarks.quality.measuring.marked_segments import make_segments
from keras_deepnmt import Translator
from keras_deepnmt.data.directions import Directions
from keras_deepnmt.data.kept_items import find_kept_items
from keras_deepnmt.documents import (
    TranslatedDocument,
    files,
    translate_document,
)
from keras_deepnmt.errors import UserError

SEGMENTS = make_segments(PAIRS, seed=11)
# Other tags are text, as of HTML that a program has extracted.
_OWN = re.compile(r'&lt;(/?g(?: id="\d+")?|x id="\d+"/)&gt;')
NAME = "{urn:oasis:names:tc:xliff:document:1.2}"


def xliff(texts):
    units = "".join(
        f'<trans-unit id="{number}"><source>{text}</source></trans-unit>\n'
        for number, text in enumerate(texts)
    )
    return (
        f'<xliff xmlns="{NAME[1:-1]}" version="1.2"><file original="a" '
        'source-language="de" target-language="en" datatype="x"><body>\n'
        f"{units}</body></file></xliff>"
    )


def items_of(element):
    """What must survive: the inline elements, and the items in the text."""
    text = "".join(element.itertext())
    found = Counter(item.text for item in find_kept_items(text))
    found.update(
        (inner.tag, *inner.attrib.items())
        for inner in element.iter()
        if inner is not element
    )
    return found


@pytest.mark.thorough
def test_500_segments_have_their_markup_placeholders_and_addresses(
    tmp_path, plain
):
    texts = [_OWN.sub(r"<\1>", escape(one.source)) for one in SEGMENTS]
    (tmp_path / "a.xlf").write_text(xliff(texts))
    counts = []
    done = translate_document(
        plain, tmp_path / "a.xlf", tmp_path / "b.xlf", on_progress=counts.append
    )
    assert done == TranslatedDocument(500) and sum(counts) >= 500
    root = ElementTree.parse(tmp_path / "b.xlf").getroot()
    totals = Counter()
    for unit in root.iter(f"{NAME}trans-unit"):
        source, target = (unit.find(f"{NAME}{s}") for s in ("source", "target"))
        assert target.get("state") == "translated"
        # A text without any may get them, as plain text may.
        if items_of(source):
            assert items_of(source) == items_of(target)
        assert len(source.findall(".//*")) == len(target.findall(".//*"))
        totals.update(type(key).__name__ for key in items_of(source).elements())
    assert totals["str"] > 1000 and totals["tuple"] > 100


@pytest.mark.thorough
@pytest.mark.parametrize("keep_markup", [True, False])
def test_a_table_keeps_markup_if_that_is_asked_for(
    tmp_path, plain, keep_markup
):
    lines = ["de", *(segment.source for segment in SEGMENTS[:60])]
    (tmp_path / "a.tsv").write_text("\n".join(lines))
    translate_document(
        *(plain, tmp_path / "a.tsv", tmp_path / "b.tsv"),
        source_column="de",
        keep_markup=keep_markup,
    )
    rows = [
        line.split("\t")
        for line in (tmp_path / "b.tsv").read_text().split("\n")
    ]
    assert rows[0] == ["de", "translation"]
    assert [row[0] for row in rows] == lines
    are_kept = [
        Counter(item.text for item in find_kept_items(source))
        == Counter(item.text for item in find_kept_items(target))
        for source, target in rows[1:]
    ]
    assert all(are_kept) == keep_markup


@pytest.mark.thorough(each_commit=True)
def test_the_trained_model_translates_a_document(tmp_path):
    translator = Translator.from_preset(
        "transformer_tiny.demo_de_en", compiled=False
    )
    path = tmp_path / "a.xlf.gz"
    path.write_bytes(
        gzip.compress(xliff(["Ein <g id='1'>Hund</g> schläft."]).encode())
    )
    translate_document(translator, path, path)  # in its place
    content = gzip.decompress(path.read_bytes()).decode()
    assert (
        "<target state=\"translated\">A <g id='1'>dog</g> sleeps.</target>"
    ) in content


def test_a_wrong_document_leaves_nothing_behind(tmp_path, plain):
    (tmp_path / "a.xlf").write_text(xliff(["eins", "zwei"])[:-30])
    with pytest.raises(UserError, match="a.xlf, line 3: not well-formed"):
        translate_document(plain, tmp_path / "a.xlf", tmp_path / "b.xlf")
    assert [file.name for file in tmp_path.iterdir()] == ["a.xlf"]


def test_an_output_that_cannot_be_written_is_refused_before_the_work(tmp_path):
    (tmp_path / "a.xlf").write_text(xliff(["eins"]))
    (tmp_path / "folder").mkdir()
    translator = None  # which nothing asks to translate
    for output, reason in (
        (tmp_path / "folder", "folder: cannot be written (is a folder)"),
        (tmp_path / "none" / "b.xlf", "b.xlf: cannot be written (no folder"),
    ):
        with pytest.raises(UserError, match=re.escape(reason)):
            translate_document(translator, tmp_path / "a.xlf", output)


@pytest.mark.parametrize(
    ("tags", "own", "expected"),
    [
        (["<2de>", "<2fr>"], None, "fr"),
        (["<2de>", "<2fr>"], "<2fr>", None),
        # A model of one language may have another code for it.
        (["<2de>"], None, None),
    ],
)
def test_a_target_language_is_its_tag(
    tmp_path, monkeypatch, tags, own, expected
):
    asked = []

    def translate(translator, texts, target_language=None, **options):
        asked.append(target_language)
        return texts

    monkeypatch.setattr(files, "translate_segments", translate)
    languages = [
        {"source": "en", "target": tag[2:4], "tag": tag} for tag in tags
    ]
    translator = SimpleNamespace(
        tag=own, directions=Directions(languages), batch_size=1
    )
    (tmp_path / "a.tmx").write_text(
        '<tmx version="1.4"><header srclang="en"/><body><tu>'
        '<tuv xml:lang="en"><seg>a dog</seg></tuv></tu></body></tmx>'
    )
    translate_document(
        *(translator, tmp_path / "a.tmx", tmp_path / "b.tmx"),
        target_language="fr",
    )
    assert asked == [expected]
    assert 'xml:lang="fr"' in (tmp_path / "b.tmx").read_text()
