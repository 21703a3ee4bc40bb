"""What must be true of documents that are translated, whatever translates.

* without translations, and in all that translations do not change, a document
  is the same, byte for byte, in each encoding
* all markup of a text is in its translation once, and nested
* what is translated already, approved or not to be translated stays
* a damaged or wrong document is refused in a line that names the place
"""

import io
import json
import random
import re
from collections import Counter
from xml.etree import ElementTree

import pytest

from keras_deepnmt.data.asked_sides import Asked
from keras_deepnmt.data.bilingual_files import contents
from keras_deepnmt.data.bilingual_files.contents import cut_lines, one_line
from keras_deepnmt.data.bilingual_files.document import (
    Document,
    open_bilingual,
)
from keras_deepnmt.data.corpora import LineReader
from keras_deepnmt.data.marked_text import MarkedText
from keras_deepnmt.documents.reading import read_part
from keras_deepnmt.errors import UserError

GERMAN = Asked("de", "en")
COLUMNS = Asked(source_column="de")
OLD, NEW = (
    "urn:oasis:names:tc:xliff:document:1.2",
    ("urn:oasis:names:tc:xliff:document:2.0"),
)
TAG = re.compile(r"</?_+\d+/?>")
LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


def old_xliff(units, languages='source-language="de" target-language="en"'):
    return (
        "<?xml version='1.0'  encoding='ENCODING'?>\r\n<!-- <made> up -->\n"
        f"<xliff xmlns='{OLD}' version=\"1.2\"><file original='a&amp;b.txt' "
        f"{languages} ><body>\n{units}</body></file>\n</xliff>\n"
    )


def new_xliff(units, languages='srcLang="de" trgLang="en"'):
    return (
        "<?xml version='1.0' encoding='ENCODING'?>\n"
        f'<x:xliff xmlns:x="{NEW}" version="2.0" {languages}><x:file id="f">'
        f"\n{units}</x:file></x:xliff>\n"
    )


def tmx(units, source="de"):
    return (
        "<?xml version='1.0' encoding='ENCODING'?>\n"
        '<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">'
        f'<header srclang="{source}"/><body>\n{units}</body></tmx>'
    )


def written(folder, text, name="a", encoding="utf-8"):
    path = folder / name
    path.write_bytes(text.replace("ENCODING", encoding).encode(encoding))
    return path


def translated(path, asked=GERMAN, translate=str.upper, **options):
    document, output = Document(path, asked, **options), io.BytesIO()
    texts = [translate(text.text) for text in document.texts()]
    document.write(iter(texts), output)
    return output.getvalue()


def without_change(path, asked=GERMAN):
    output = io.BytesIO()
    Document(path, asked).write(None, output)
    return output.getvalue()


def made_up_texts(count, seed=3):
    """Texts with markup of each kind, as (XLIFF 1.2, XLIFF 2, TMX)."""
    draw = random.Random(seed)
    words = "Hund Katze läuft &amp; &lt;b&gt; {name} %s 7 www.a.de über".split()
    kinds = [
        ("<g id='%d'>", "<pc id='%d'>", "<hi x='%d'>", "</g>|</pc>|</hi>"),
        (
            "<bpt id='%d'>{\\b</bpt>",
            "<sc id='%d'/>",
            "<bpt i='%d'>&lt;</bpt>",
            "<ept id='%d'>}</ept>|<ec startRef='%d'/>|<ept i='%d'/>",
        ),
        ("<x id='%d'/>", "<ph id='%d'/>", "<ph x='%d'>&lt;br/></ph>", ""),
        (
            "<ph id='%d'>a</ph>",
            "<cp hex='00%02d'/>",
            "<it pos='begin' x='%d'/>",
            "",
        ),
    ]

    def build(depth, number):
        columns = ["", "", ""]
        for _ in range(draw.randint(1, 4)):
            word = draw.choice(words) + draw.choice([" ", " ", "\n  "])
            columns = [column + word for column in columns]
            if depth and draw.random() < 0.5:
                number[0] += 1
                code = number[0]
                *opening, closing = draw.choice(kinds)
                closing = closing.split("|") if closing else [""] * 3
                inside = build(depth - 1, number) if closing[0] else [""] * 3
                for place in range(3):
                    columns[place] += (
                        opening[place] % code + inside[place]
                    ) + closing[place].replace("%d", str(code))
        return columns

    return [build(3, [0]) for _ in range(count)]


def with_prefix(text):
    return re.sub("<(/?)", r"<\1x:", text)


def documents(texts):
    """The texts as documents of three formats, and where their targets are."""
    old = "".join(
        f"<trans-unit id='{n}'>\n  <source>{one}</source></trans-unit>\n"
        for n, (one, _, _) in enumerate(texts)
    )
    new = "".join(
        f"<x:unit id='u{n}'><x:segment><x:source>"
        f"{with_prefix(one)}</x:source>"
        "</x:segment></x:unit>\n"
        for n, (_, one, _) in enumerate(texts)
    )
    memory = "".join(
        f"<tu><tuv xml:lang='de-DE'><seg>{one}</seg></tuv></tu>\n"
        for _, _, one in texts
    )
    return {
        "xliff 1.2": old_xliff(old),
        "xliff 2.0": new_xliff(new),
        "tmx": tmx(memory),
    }


FORMATS = ["xliff 1.2", "xliff 2.0", "tmx"]
MANY = made_up_texts(500)
# Codes that stand between two words, that do not, and what is read of these.
JOINED = {
    ("a<x id='1'/>b", "a<ph id='1'/>b", "a<ph x='1'>&lt;br/></ph>b"): "a b",
    (
        "<g id='1'>a</g><g id='2'>b</g>",
        "<pc id='1'>a</pc><pc id='2'>b</pc>",
        "<hi x='1'>a</hi><hi x='2'>b</hi>",
    ): "a b",
    (
        "a<g id='1'>b</g>c, d",
        "a<pc id='1'>b</pc>c, d",
        "a<bpt i='1'>&lt;b></bpt>b<ept i='1'/>c, d",
    ): "abc, d",
    ("a<x id='1'/>, b", "a<ph id='1'/>, b", "a<ph x='1'/>, b"): "a, b",
    ("a<x id='1'/> b", "a<ph id='1'/> b", "a <ph x='1'/> b"): "a b",
    ("東<x id='1'/>京", "東<ph id='1'/>京", "東<ph x='1'/>京"): "東京",
}


def loses_markup(text, draw):
    """A translator that reverses words, and loses, doubles and moves tags."""
    pieces = TAG.sub(" ", text).split()[::-1]
    tags = TAG.findall(text)
    if draw.random() < 0.5:  # kept, but anywhere
        draw.shuffle(tags)
    elif draw.random() < 0.5:
        tags = [tag for tag in tags for _ in range(draw.randint(0, 2))]
    for tag in tags:
        pieces.insert(draw.randint(0, len(pieces)), tag)
    return " ".join(pieces)


def sides(content):
    """The elements of the sources and targets in a document, in order."""
    root = ElementTree.fromstring(content)
    found = {"source": [], "target": []}
    for element in root.iter():
        name = element.tag.split("}")[-1]
        if name in found:
            found[name].append(element)
        elif name == "tuv":
            side = "target" if element.get(LANGUAGE) == "en" else "source"
            found[side].append(element.find("seg"))
    return found["source"], found["target"]


def markup(element):
    return Counter(
        (inner.tag, *sorted(inner.attrib.items()))
        for inner in element.iter()
        if inner is not element
    )


@pytest.mark.parametrize("name", FORMATS)
def test_no_markup_of_500_segments_is_lost_whatever_translates(tmp_path, name):
    path = written(tmp_path, documents(MANY)[name])
    draw = random.Random(5)
    content = translated(path, translate=lambda t: loses_markup(t, draw))
    sources, targets = sides(content)
    assert len(targets) == len(sources) == 500
    total = sum(markup(source).total() for source in sources)
    assert total > 500
    for source, target in zip(sources, targets, strict=True):
        assert markup(source) == markup(target)
        has_words = bool("".join(source.itertext()).strip())
        assert has_words == bool("".join(target.itertext()).strip())
    # All but the targets is as it was.
    added = re.compile(
        rb"\s*<(x:)?target.*?</(x:)?target>| state=\"translated\""
        rb"|<tuv xml:lang=\"en\">.*?</tuv>",
        re.DOTALL,
    )
    assert added.sub(b"", content) == added.sub(b"", path.read_bytes())


@pytest.mark.parametrize("name", FORMATS)
def test_pairs_have_what_a_translator_reads(tmp_path, name):
    # Items that are text stay in pairs, which `mask_symbols` reads.
    no_item = re.compile(r"&lt;b&gt;|\{name\}|%s|www\.a\.de")
    made_up = [[no_item.sub("Hund", t) for t in texts] for texts in MANY[:200]]
    path = written(tmp_path, documents([*JOINED, *made_up])[name])
    path.write_bytes(translated(path, translate=str))
    asked = Asked("de", "en", replace_targets=True)
    entries = open_bilingual(LineReader(path), asked).entries()
    pairs = open_bilingual(LineReader(path), asked).pairs()
    found = []
    for entry, pair in zip(entries, pairs, strict=True):
        assert pair.source == pair.target
        for text in entry.texts:
            reading = read_part(MarkedText.of(text), 0, len(text))
            assert pair.source == one_line(reading.text)
        found.append(pair.source)
    assert found[: len(JOINED)] == [*JOINED.values()]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("name", FORMATS)
def test_a_document_without_change_is_the_same(tmp_path, name, encoding):
    text = documents(MANY[:40])[name].replace("Hund", "Hünd")
    declared = encoding.removesuffix("-sig")
    path = tmp_path / "a"
    path.write_bytes(text.replace("ENCODING", declared).encode(encoding))
    assert without_change(path) == path.read_bytes()
    content = translated(path, translate=lambda text: f"{text} ž")
    sources, targets = sides(content)
    assert len(sources) == len(targets)
    assert any("ž" in "".join(target.itertext()) for target in targets)
    before, _ = sides(path.read_bytes())
    for one, other in zip(before, sources, strict=True):
        one.tail = other.tail = None
        assert ElementTree.tostring(one) == ElementTree.tostring(other)


UNITS = """
<trans-unit id="1"><source>eins</source></trans-unit>
<trans-unit id="2" approved="yes"><source>zwei</source><target/></trans-unit>
<trans-unit id="3"><source>drei</source><target state="final">3</target>
</trans-unit>
<trans-unit id="4"><source>vier</source><target state="new">4</target>
</trans-unit>
<trans-unit id="5"><source>fünf</source><target>five</target></trans-unit>
<trans-unit id="6"><source>sechs</source><target>sechs</target></trans-unit>
<group translate="no"><trans-unit id="7"><source>sieben</source></trans-unit>
<trans-unit id="8" translate="yes"><source>acht</source></trans-unit></group>
<trans-unit id="9"><source>neun</source><target xml:lang="en"
 state-qualifier="id-match" state="needs-translation"></target><alt-trans>
<source>mehr</source><target>more</target></alt-trans></trans-unit>
<trans-unit id="10"><source> </source></trans-unit>
<trans-unit id="11"><source>-- <x id="1"/></source></trans-unit>
"""


def test_translations_that_are_there_stay_in_xliff_1(tmp_path):
    path = written(tmp_path, old_xliff(UNITS))
    document = Document(path, GERMAN)
    texts = [text.text for text in document.texts()]
    assert texts == ["eins", "vier", "sechs", "acht", "neun"]
    assert document.left == {
        "approved or final": 2,
        "translated already": 1,
        'marked translate="no"': 1,
    }
    content = translated(path).decode()
    assert '<source>eins</source><target state="translated">EINS</' in content
    assert '<target state="translated">VIER</target>' in content
    assert '<target state="translated">SECHS</target>' in content
    assert (
        '<target xml:lang="en" state="translated">NEUN</target><alt' in content
    )
    assert '<target state="translated">-- <x id="1"/></target>' in content
    for line in UNITS.split("\n"):
        if re.search('id="[2357]"|mehr|more|id="10"', line):
            assert line in content
    asked = Asked("de", "en", replace_targets=True)
    texts = [text.text for text in Document(path, asked).texts()]
    assert texts == ["eins", "vier", "fünf", "sechs", "acht", "neun"]


SEGMENTS = """
<x:unit id="1"><x:segment id="s" subState="a:b"><x:source>eins</x:source>
</x:segment><x:ignorable><x:source>. </x:source></x:ignorable>
<x:segment state="reviewed"><x:source>zwei</x:source><x:target>two</x:target>
</x:segment><x:segment state='initial'><x:source>drei</x:source><x:target>x
</x:target></x:segment></x:unit><x:unit id="2" translate="no"><x:segment>
<x:source>vier</x:source></x:segment></x:unit>
"""


def test_translations_that_are_there_stay_in_xliff_2(tmp_path):
    path = written(tmp_path, new_xliff(SEGMENTS))
    assert [t.text for t in Document(path, GERMAN).texts()] == ["eins", "drei"]
    content = translated(path).decode()
    assert '<x:segment id="s" state="translated"><x:source>eins' in content
    assert "eins</x:source><x:target>EINS</x:target>" in content
    assert '<x:segment state="translated"><x:source>drei' in content
    assert "<x:target>DREI</x:target>" in content
    assert '<x:segment state="reviewed"><x:source>zwei</' in content
    assert "vier</x:source></x:segment>" in content


def test_a_missing_target_language_is_added(tmp_path):
    path = written(tmp_path, old_xliff(UNITS, 'source-language="de"'))
    assert b'source-language="de" target-language="en" >' in translated(path)
    path = written(tmp_path, new_xliff(SEGMENTS, 'srcLang="de"'))
    assert b'srcLang="de" trgLang="en">' in translated(path)


def test_marked_segments_are_translated_by_themselves(tmp_path):
    path = written(
        tmp_path,
        old_xliff(
            '<trans-unit id="1"><source>Eins. Zwei.</source><seg-source>'
            '<mrk mtype="seg" mid="1">Eins.</mrk> <mrk mtype="seg" mid="2">'
            'Zwei.</mrk></seg-source><target><mrk mtype="seg" mid="1"/> '
            '<mrk mtype="seg" mid="2"></mrk></target></trans-unit>'
        ),
    )
    texts = [text.text for text in Document(path, GERMAN).texts()]
    assert texts == ["Eins.", "Zwei."]
    assert (
        '<mrk mtype="seg" mid="1">EINS.</mrk> <mrk mtype="seg" mid="2">ZWEI.'
        "</mrk></target>"
    ) in translated(path).decode()


def test_lines_that_are_preserved_are_translated_by_themselves(tmp_path):
    unit = (
        '<trans-unit id="1" xml:space="preserve"><source>  eins\n\n zwei{}'
        "</source></trans-unit>"
    )
    path = written(tmp_path, old_xliff(unit.format("")))
    assert [t.text for t in Document(path, GERMAN).texts()] == ["eins", "zwei"]
    assert b">  EINS\n\n ZWEI</target>" in translated(path)
    path = written(tmp_path, old_xliff(unit.format("<x id='1'/>")))
    (text,) = Document(path, GERMAN).texts()
    assert text.text == "eins<_1/>zwei<_2/>"
    assert b">  EINS\n\n ZWEI<x id='1'/></target>" in translated(path)


def marked(*segments):
    return "".join(
        f'<mrk mtype="seg" mid="{number}">{text}</mrk> '
        for number, text in segments
    )


EMPTY_THIRD = ' <mrk mtype="seg" mid="3"/>'
UNNUMBERED = '<mrk mtype="seg">One. Two.</mrk> <mrk mtype="seg">Three.</mrk>'
ALL = "Eins. Zwei. Drei."
ALL_THREE = ALL, "One. Two. Three."
ONE, TWO, THREE = ("Eins.", "One."), ("Zwei.", "Two."), ("Drei.", "Three.")


@pytest.mark.parametrize(
    ("state", "target", "pairs", "left"),
    [
        ("", marked((1, "One."), (2, ""), (3, "Drei.")), [ONE], 2),
        ("", marked((3, "Three."), (1, "One.")), [ONE, THREE], 1),
        # A copy in such a state is a translation.
        (
            ' state="translated"',
            marked((1, "One."), (2, "<x id='1'/>Two."), (3, "Drei.")),
            [ONE, TWO, ("Drei.", "Drei.")],
            0,
        ),
        ("", marked((1, "One."), (2, "Two.")) + EMPTY_THIRD, [ONE, TWO], 1),
        # What belongs together is not known: the unit is a pair, or none.
        ("", '<mrk mtype="seg">One.</mrk> <mrk mtype="seg"/>', [], 1),
        ("", UNNUMBERED, [ALL_THREE], 0),
        ("", marked((1, "One."), (4, "Two. Three.")), [ALL_THREE], 0),
        ("", "One. Two.", [(ALL, "One. Two.")], 0),
    ],
)
def test_marked_segments_are_pairs_by_themselves(
    tmp_path, state, target, pairs, left
):
    sources = ["Eins.", "<g id='1'>Zwei.</g>", "Drei."]
    unit = (
        f"<trans-unit id='1'><source>{' '.join(sources)}</source><seg-source>"
        f"{marked(*enumerate(sources, 1))}</seg-source>"
        f"<target{state}>{target}</target></trans-unit>"
    )
    path = written(tmp_path, old_xliff(unit))
    file = open_bilingual(LineReader(path), GERMAN)
    assert [pair[1:] for pair in file.pairs()] == pairs
    expected = {"without a translation": left} if left else {}
    assert file.left == expected


def test_segments_without_numbers_are_one_pair(tmp_path):
    sides = [
        " ".join(f'<mrk mtype="seg">{text}</mrk>' for text in texts)
        for texts in (["Ein Hund.", "Eine Katze."], ["A dog.", "A cat."])
    ]
    unit = (
        "<trans-unit id='1'><source>Ein Hund. Eine Katze.</source>"
        f"<seg-source>{sides[0]}</seg-source><target>{sides[1]}</target>"
        "</trans-unit>"
    )
    file = open_bilingual(
        LineReader(written(tmp_path, old_xliff(unit))), GERMAN
    )
    assert [pair[1:] for pair in file.pairs()] == [
        ("Ein Hund. Eine Katze.", "A dog. A cat.")
    ]


def test_codes_beside_spaces_need_no_reading(tmp_path, monkeypatch):
    """It takes several times as long."""
    monkeypatch.setattr(contents.MarkedText, "of", None)
    unit = "<trans-unit id='1'><source>Ein <g id='1'>Hund</g>.</source>"
    unit += "<target>A <g id='1'>dog</g>.</target></trans-unit>"
    file = open_bilingual(
        LineReader(written(tmp_path, old_xliff(unit))), GERMAN
    )
    assert [pair[1:] for pair in file.pairs()] == [("Ein Hund.", "A dog.")]


@pytest.mark.parametrize("end", ["\r\n", "\r"])
@pytest.mark.parametrize("space", ["default", "preserve"])
@pytest.mark.parametrize("name", FORMATS)
def test_new_lines_end_as_those_of_the_file(
    tmp_path, monkeypatch, name, space, end
):
    texts = [["\n  eins\n\n zwei\n"] * 3, ["a\n b<ph id='1' x='1'/>c\n"] * 3]
    text = documents(texts)[name].replace("\r\n", "\n")
    text = re.sub(
        "(<x:source|<source|<seg)>", rf'\1 xml:space="{space}">', text
    )
    text = text.replace("<tuv", "\n  <tuv")
    expected = translated(written(tmp_path, text)).replace(b"\n", end.encode())
    path = written(tmp_path, text.replace("\n", end), "b")
    assert translated(path) == expected
    # Where the file is cut between the two characters of a line end, too.
    monkeypatch.setattr(
        "keras_deepnmt.data.bilingual_files.xml_reader._PIECE", 1
    )
    assert translated(path) == expected


def test_a_text_that_looks_like_our_tags_stays_text(tmp_path):
    unit = "<source>a &lt;_1/&gt; <x id='1'/></source>"
    path = written(
        tmp_path, old_xliff(f"<trans-unit id='1'>{unit}</trans-unit>")
    )
    assert [t.text for t in Document(path, GERMAN).texts()] == [
        "a <_1/> <__1/>"
    ]
    assert b">A &lt;_1/&gt; <x id='1'/></target>" in translated(path)


MEMORY = """<tu tuid="1">
  <tuv xml:lang="DE"><seg>eins</seg></tuv>
  <tuv xml:lang="fr"><seg>un</seg></tuv>
</tu><tu><tuv lang="de-AT"><seg>zwei</seg></tuv><tuv xml:lang="en-GB"><seg>two
</seg></tuv></tu><tu><tuv xml:lang="fr"><seg>trois</seg></tuv></tu>
<tu><tuv xml:lang="de"><seg>vier</seg></tuv><tuv xml:lang="en"><seg/></tuv></tu>
"""


def test_a_memory_gets_a_variant_of_the_target_language(tmp_path):
    path = written(tmp_path, tmx(MEMORY))
    document = Document(path, Asked(target_language="en"))
    assert [text.text for text in document.texts()] == ["eins", "vier"]
    assert document.left == {"translated already": 1, "without de": 1}
    content = translated(path).decode()
    assert (
        '<seg>un</seg></tuv>\n  <tuv xml:lang="en"><seg>EINS</seg></tuv>\n</tu>'
    ) in content
    assert '<tuv xml:lang="en"><seg>VIER</seg></tuv>' in content
    for text in ("two\n</seg></tuv></tu>", "<seg>trois</seg></tuv></tu>"):
        assert text in content


# Its units have one text, both, none of exactly these languages, and a source
# without words.
REGIONS = """<tu><tuv xml:lang="pt-BR"><seg>um</seg></tuv></tu>
<tu><tuv xml:lang="pt-PT"><seg>dois</seg></tuv>
<tuv xml:lang="pt-BR"><seg>três</seg></tuv></tu>
<tu><tuv xml:lang="pt"><seg>quatro</seg></tuv></tu>
<tu><tuv xml:lang="pt-PT"><seg>cinco</seg></tuv></tu>
<tu><tuv xml:lang="pt-BR"><seg/></tuv></tu>
"""


@pytest.mark.parametrize("replace", [False, True])
def test_a_text_is_not_a_translation_of_itself(tmp_path, replace):
    path = written(tmp_path, tmx(REGIONS, "pt-BR"))
    asked = Asked(target_language="pt-PT", replace_targets=replace)
    file = open_bilingual(LineReader(path), asked)
    assert [pair[1:] for pair in file.pairs()] == [("três", "dois")]
    assert file.left == {
        "without pt-PT": 2,
        "without pt-BR": 1,
        "with an empty pt-BR": 1,
    }
    content = translated(path, asked).decode()
    for source in ("um", "três", "quatro"):
        assert f"<seg>{source}</seg>" in content
    added = re.findall('<tuv xml:lang="pt-PT"><seg>(.*)</seg>', content)
    assert added == ["UM", "TRÊS" if replace else "dois", "QUATRO", "cinco"]


@pytest.mark.parametrize(
    "asked", [Asked(target_language="DE"), Asked("en", "en")]
)
def test_a_memory_has_no_translations_into_the_source_language(tmp_path, asked):
    path = written(tmp_path, tmx(MEMORY))
    with pytest.raises(UserError, match=r"line \d+: .* Received: .. for both"):
        list(Document(path, asked).texts())


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_tables_get_a_column(tmp_path, end):
    path = tmp_path / "a.tsv"
    path.write_bytes(f'\ufeffid\tde\n1\t"ein" Hund\n2\t{end}'.encode())
    assert without_change(path, COLUMNS) == path.read_bytes()
    assert translated(path, COLUMNS).decode() == (
        f'\ufeffid\tde\ttranslation\n1\t"ein" Hund\t"EIN" HUND\n2\t\t{end}'
    )
    path = tmp_path / "a.jsonl"
    line = '{"de" : "ein\\nHünd", "more": {"x": 1.50} }'
    path.write_bytes(f"\ufeff{line}\n\n{line}{end}".encode())
    assert without_change(path, COLUMNS) == path.read_bytes()
    new = line[:-2] + ', "en": "EIN\\nHÜND" }'
    asked = Asked(source_column="de", target_column="en")
    assert translated(path, asked).decode() == f"\ufeff{new}\n\n{new}{end}"
    assert json.loads(new)["more"] == {"x": 1.5}


def test_a_translation_with_line_ends_and_tabs_stays_one_cell(tmp_path):
    """As from pieces for bytes."""
    path = tmp_path / "a.tsv"
    path.write_text("de\n1\n2\n")
    found = translated(path, COLUMNS, lambda text: f"{text}\na\tb\rc")
    assert found == b"de\ttranslation\n1\t1 a b c\n2\t2 a b c\n"


def test_texts_of_json_lines_keep_their_line_breaks_and_indentation(tmp_path):
    path = tmp_path / "a.jsonl"
    text = "\n  eins\r\n\r\n\t- zwei \n\u00a0\n drei\t\r\n"
    path.write_text(json.dumps({"de": text}))
    texts = [text.text for text in Document(path, COLUMNS).texts()]
    assert texts == ["eins", "- zwei", "drei"]
    row = json.loads(translated(path, COLUMNS))
    assert row["translation"] == text.upper()


def test_many_spaces_in_a_line_are_read_at_once():
    text = "a" + " " * 30_000 + "b"
    assert list(cut_lines(text)) == [(text, True)]


def test_columns_in_objects_have_names_with_dots(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"translation": {"de": "eins", "en": "one"}}\n')
    asked = Asked(source_column="translation.de", target_column="mine")
    assert [t.text for t in Document(path, asked).texts()] == ["eins"]
    with pytest.raises(UserError, match='mean "translation.de"'):
        list(Document(path, Asked(source_column="translation.dd")).texts())


DEEP = old_xliff("<group>" * 120 + "</group>" * 120)
ENTITY = "<!DOCTYPE xliff [<!ENTITY a 'harmless'>]>"
EXTERNAL = "<!DOCTYPE xliff [<!ENTITY a SYSTEM 'other.txt'>]>"
BAD = {
    "0 bytes": ("", "a: the file is empty"),
    "cut": (
        old_xliff("<trans-unit id='7'><source>eins")[:-30],
        r'a, line 4: not well-formed XML in <trans-unit id="7"> \(unclosed',
    ),
    "another end": (
        old_xliff("<trans-unit id='7'><source>eins</trans-unit>"),
        r'line 4: not well-formed .* <source> of <trans-unit id="7"> \(mism',
    ),
    "version": (
        old_xliff("").replace('"1.2"', '"3.0"'),
        r"line 3: <xliff> must have one of the versions 1.2, 2.0, 2.1. Receiv"
        "ed: 3.0",
    ),
    "no version": (
        old_xliff("").replace('version="1.2"', ""),
        "Received: none",
    ),
    "no language": (old_xliff("", ""), "does not say the source language"),
    "another language": (
        old_xliff("", 'source-language="de" target-language="fr"'),
        "line 3, <file>: its target language is fr, but en is asked for",
    ),
    "two languages": (
        old_xliff("").replace(
            "</xliff>",
            "<file source-language='de' target-language='en-US'/></xliff>",
        ),
        r"line 5, <file>: its target language is en-US, but that of line 3 is "
        "en. Split",
    ),
    "entity": (
        old_xliff("").replace("<xliff", f"{ENTITY}<xliff", 1),
        "has the entity `a`, but only",
    ),
    "external entity": (
        old_xliff("").replace("<xliff", f"{EXTERNAL}<xliff", 1),
        "has the entity `a`, but only",
    ),
    "undeclared entity": (
        tmx("<tu><tuv xml:lang='de'><seg>&nbsp;</seg></tuv></tu>"),
        "line 4: has the entity `nbsp`, but only",
    ),
    "deep": (DEEP, "is in more than 100 other elements"),
    "encoding": (
        "<?xml version='1.0' encoding='utf-9'?><tmx/>",
        "says that its encoding is utf-9",
    ),
    "wrong encoding": (
        "<?xml version='1.0' encoding='utf-16'?><tmx/>",
        "says that its encoding is utf-16",
    ),
    "no source": (
        tmx("<tu><tuv xml:lang='fr'><seg>un</seg></tuv></tu>"),
        "has no text in de. Its languages: fr",
    ),
    "variant": (
        tmx("<tu tuid='3'><tuv><seg>un</seg></tuv></tu>"),
        'line 4: <tuv> of <tu tuid="3"> must have `xml:lang`',
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_wrong_document_is_refused_in_a_line(tmp_path, name):
    text, message = BAD[name]
    path = written(tmp_path, text)
    (tmp_path / "other.txt").write_text("not read")
    with pytest.raises(UserError, match=message) as caught:
        asked = Asked() if name == "no language" else GERMAN
        list(Document(path, asked, "xliff" if not text else None).texts())
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


BAD_TABLES = {
    "a.tsv": [
        ("de\ten\n", Asked(), "line 1: has the columns de, en. Name one by"),
        (
            "source\ten\n",
            Asked(source_column="sorce"),
            r'has no column sorce .* Did you mean "source"\? It has source, en',
        ),
        ("de\n1\t2\n", COLUMNS, "line 2: must have 1 cells.* Received: 2"),
        ("de\ttranslation\n", COLUMNS, "has a column translation already"),
    ],
    "a.jsonl": [
        ('{"de": "a"}\n{"de": 3}\n', COLUMNS, "line 2: `de` must be text. .*3"),
        ('{"de": "a"}\n{"dee": "b"}', COLUMNS, 'line 2: .*Did you mean "dee"'),
        ('{"de": "a"}\n[1]', COLUMNS, "line 2: must be an object with keys"),
        ('{"de": "a"', COLUMNS, "line 1: not valid JSON"),
        ('{"de": "a", "translation": ""}', COLUMNS, "translation already"),
        (
            '{"both": {"de": "a", "en": "b"}}',
            Asked(source_column="both.de", target_column="both.en"),
            "has a column both.en already",
        ),
    ],
}


@pytest.mark.parametrize(
    ("name", "text", "asked", "message"),
    [(name, *row) for name, rows in BAD_TABLES.items() for row in rows],
)
def test_a_wrong_table_is_refused_in_a_line(
    tmp_path, name, text, asked, message
):
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=message) as caught:
        list(Document(tmp_path / name, asked).texts())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "option"),
    [
        *((name, "source_column") for name in ("a.tmx", "a.xlf")),
        *((name, "target_column") for name in ("a.tmx", "a.xlf")),
        *((name, "source_language") for name in ("a.tsv", "a.jsonl")),
        *((name, "target_language") for name in ("a.tsv", "a.jsonl")),
        *((name, "replace_targets") for name in ("a.tsv", "a.jsonl")),
    ],
)
def test_what_is_not_for_a_format_is_refused(tmp_path, name, option):
    (tmp_path / name).write_text("a")
    kind = {"a.xlf": "xliff"}.get(name, name[2:])
    flag = f"--{option.replace('_', '-')}"
    with pytest.raises(
        UserError, match=rf"{flag} cannot be used with .*{name}, .*is {kind}: "
    ):
        Document(tmp_path / name, Asked(**{option: "de"}))


def test_other_numbers_of_translations_are_refused(tmp_path):
    path = written(tmp_path, old_xliff(UNITS))
    for count, word in ((2, "fewer"), (9, "more")):
        with pytest.raises(UserError, match=f"are {word} transl.* --restart"):
            Document(path, GERMAN).write(iter(["a"] * count), io.BytesIO())


def test_an_entry_must_fit_into_memory(tmp_path, monkeypatch):
    where = "keras_deepnmt.data.bilingual_files.xml_reader._MOST_BYTES"
    monkeypatch.setattr(where, 100_000)
    text = "<trans-unit id='{}'><source>{}</source></trans-unit>"
    units = "".join(text.format(n, "Hund " * 5000) for n in range(20))
    path = written(tmp_path, old_xliff(units))
    assert len(list(Document(path, GERMAN).texts())) == 20
    path = written(tmp_path, old_xliff(text.format(1, "Hund " * 50_000)))
    with pytest.raises(UserError, match="has more than 100,000 bytes"):
        list(Document(path, GERMAN).texts())


def test_another_program_reads_the_translations(tmp_path):
    pytest.importorskip("translate.storage", reason="needs translate-toolkit")
    from translate.storage.tmx import tmxfile
    from translate.storage.xliff import Xliff1File
    from translate.storage.xliff2 import Xliff2File

    readers = [Xliff1File, Xliff2File, tmxfile]
    for name, reader in zip(FORMATS, readers, strict=True):
        path = written(tmp_path, documents(MANY[:50])[name])
        content = translated(path, translate=lambda text: f"{text} Ende")
        units = reader.parsestring(content).units
        assert len(units) == 50
        assert sum("Ende" in str(unit.target) for unit in units) > 40
