"""What must be true of putting tags and placeholders into a translation.

* a pair encloses the words that are linked with those that it enclosed, without
  punctuation that was outside
* pairs stay in each other as in the source, also where words change places
* single tags and placeholders follow what the word before them is linked with
* what stood before the end of the source stands before that of the translation
* white space around them is as in the source
"""

import random
import re

import pytest

from keras_deepnmt.data.kept_items import find_kept_items
from keras_deepnmt.data.marked_text import MarkedText
from keras_deepnmt.data.tag_tree import tag_tree
from keras_deepnmt.documents.placement import (
    AlignedSentence,
    insert_items,
    link_atoms,
    place_tags,
)
from keras_deepnmt.documents.reading import read_part

STRAIGHT = [(n, n) for n in range(9)]


def put(source, translation, links=STRAIGHT, symbols=()):
    """The translation with the items of a source, by links of words."""
    marked = MarkedText.of(source)
    reading = read_part(marked, 0, len(source), symbols)
    atoms = reading.atoms(), reading.target_atoms(translation)
    sentence = AlignedSentence(*atoms, link_atoms(*atoms, links))
    insert_items(source, sentence)
    return place_tags(source, marked.tree, [sentence])


@pytest.mark.parametrize(
    ("source", "translation", "links", "expected"),
    [
        # The span of the linked words, in another order and with a gap.
        (
            "Der <b>Hund</b> da",
            "The dog there",
            STRAIGHT,
            "The <b>dog</b> there",
        ),
        (
            "<b>er hat</b> da",
            "da x hat er",
            [(0, 3), (1, 1)],
            "da <b>x hat er</b>",
        ),
        ("un<b>glaub</b>lich gut", "so good", STRAIGHT, "<b>so</b> good"),
        # Punctuation.
        ("<b>Hund</b>, ja", "dog, yes", STRAIGHT, "<b>dog</b>, yes"),
        ("<b>Hund,</b> ja", "dog, yes", STRAIGHT, "<b>dog,</b> yes"),
        ("<b>Hund</b> ja", "dog, yes", STRAIGHT, "<b>dog</b>, yes"),
        ("(<b>Hund</b>) ja", "(dog) yes", STRAIGHT, "(<b>dog</b>) yes"),
        ("<b>(Hund)</b> ja", "(dog) yes", STRAIGHT, "<b>(dog)</b> yes"),
        ("Hund<b>!</b> ja", "dog! yes", STRAIGHT, "dog<b>!</b> yes"),
        # The whole sentence, whatever the links are.
        ("<b>Ein Hund.</b>", "A big dog.", [(1, 0)], "<b>A big dog.</b>"),
        ("<b>Ein Hund</b>.", "A big dog.", [(1, 0)], "<b>A big dog</b>."),
    ],
)
def test_a_pair_encloses_what_is_linked(source, translation, links, expected):
    assert put(source, translation, links) == expected


@pytest.mark.parametrize(
    ("source", "translation", "links", "expected"),
    [
        ("<b>a <i>b</i></b> c", "x y z", STRAIGHT, "<b>x <i>y</i></b> z"),
        # Neighbours change places.
        ("<b>a</b> <i>b</i>", "y x", [(0, 1), (1, 0)], "<i>y</i> <b>x</b>"),
        # One lies within what the other one is linked with.
        (
            *("<b>a b</b> <i>c</i>", "x y z"),
            *([(0, 0), (1, 2), (2, 1)], "<b>x</b> <i>y</i> z"),
        ),
        # Two pairs around the same word.
        ("<b><i>a</i></b> b", "x y", STRAIGHT, "<b><i>x</i></b> y"),
        # Without links, next to what is linked.
        ("a <b>b</b> c", "x z", [(0, 0), (2, 1)], "x <b></b> z"),
        # These cross: `<i>` has no partner.
        ("<b>a <i>b</b> c</i>", "x y z", STRAIGHT, "<b>x <i>y</b> z</i>"),
    ],
)
def test_pairs_are_nested_as_in_the_source(
    source, translation, links, expected
):
    assert put(source, translation, links) == expected


@pytest.mark.parametrize(
    ("source", "translation", "links", "expected"),
    [
        ("a <br/> b", "x y", STRAIGHT, "x <br/> y"),
        ("a<br/>b", "x y", STRAIGHT, "x<br/>y"),
        ("a <br/>b", "x y", STRAIGHT, "x <br/>y"),
        ("a<br/> b", "x y", STRAIGHT, "x<br/> y"),
        ("<br/>a b", "x y", STRAIGHT, "<br/>x y"),
        ("a b<br/>", "x y", STRAIGHT, "x y<br/>"),
        ("a, <br/> b", "x, y", STRAIGHT, "x, <br/> y"),
        ("a <br/> b", "y x c", [(0, 1), (1, 0)], "y x <br/> c"),
        # It touches the next word.
        ("a <x/>b c", "c a b", [(0, 1), (1, 2), (2, 0)], "c a <x/>b"),
        ("<p>a.</p><p>b.</p>", "x. y.", STRAIGHT, "<p>x.</p> <p>y.</p>"),
        ("我<b>喜</b>狗", "I like it", STRAIGHT, "I <b>like</b> it"),
        ("I <b>like</b> it", "我喜狗", STRAIGHT, "我<b>喜</b>狗"),
        ("a <b></b> b", "x y", STRAIGHT, "x <b></b> y"),
        ("<br/>", "", (), "<br/>"),
        ("<b>a</b>", "", (), "<b></b>"),
    ],
)
def test_white_space_is_as_in_the_source(source, translation, links, expected):
    assert put(source, translation, links) == expected


@pytest.mark.parametrize(
    ("source", "translation", "links", "expected"),
    [
        ("Hallo {name}!", "Hello!", STRAIGHT, "Hello {name}!"),
        ("{name} geht.", "goes.", STRAIGHT, "{name} goes."),
        ("Er {a} ist da", "He is there", STRAIGHT, "He {a} is there"),
        ("Er geht {a}.", "goes He.", [(0, 1), (1, 0)], "goes {a} He."),
        ("Er ({a}) geht", "He goes", STRAIGHT, "He ({a}) goes"),
        ("Er „%s“ geht", "He goes", STRAIGHT, "He „%s“ goes"),
        ("{a}{b} geht", "goes", STRAIGHT, "{a}{b} goes"),
        ("<b>{a}</b> geht", "goes", STRAIGHT, "<b>{a}</b> goes"),
        ("<b>alte {a}</b> da", "old there", STRAIGHT, "<b>old {a}</b> there"),
        ("{n}kg da", "kg there", STRAIGHT, "{n}kg there"),
        ("你好{a}！", "Hello!", [(0, 0), (1, 0)], "Hello {a}!"),
        ("Hello {a}!", "你好！", [(0, 0)], "你{a}好！"),
        ("{a}, {b}", "", (), "{a} {b}"),
        ("Er <b>{a}</b>!", "He!", STRAIGHT, "He <b>{a}</b>!"),
    ],
)
def test_placeholders_follow_the_word_before(
    source, translation, links, expected
):
    assert put(source, translation, links) == expected


SEEN = "Ich habe den Hund {} gesehen."


@pytest.mark.parametrize(
    ("source", "translation", "links", "expected"),
    [
        (SEEN.format("{a}"), "I saw the dog.", [(3, 3)], "I saw the dog {a}."),
        (
            SEEN.format("www.x.de"),
            *("I saw the dog.", [(3, 3)], "I saw the dog www.x.de."),
        ),
        (
            SEEN.format('<img src="a"/>'),
            *("I saw the dog.", [(3, 3)], 'I saw the dog <img src="a"/>.'),
        ),
        ("den Hund<br/>sehen.", "see dogs.", [(1, 1)], "see dogs<br/>."),
        ("den {a} sehen", "see it.", [(0, 1)], "see it {a}."),
        ("Er sieht {a}", "He sees.", STRAIGHT, "He sees {a}."),
        ("den {a} sehen !", "see it !", [(0, 1)], "see it {a} !"),
        # Quotation marks and brackets before the end.
        ("„a“ {a} sehen.", 'see "a".', [(0, 1)], 'see "a" {a}.'),
        ("„a {a} sehen.“", '"see a."', [(0, 1)], '"see a {a}."'),
        ("„a {a} sehen“.", '"see a".', [(0, 1)], '"see a {a}".'),
        ("„a {a} sehen“", '"see a"', [(0, 1)], '"see a {a}"'),
        # What stood after the end of the source.
        ("Er sieht. {a}", "He sees.", STRAIGHT, "He sees. {a}"),
        ("Er sieht. {a} {b}", "He sees.", STRAIGHT, "He sees. {a} {b}"),
        ("Datei:{a}", "File:", STRAIGHT, "File:{a}"),
        ("文件：{a}", "File:", STRAIGHT, "File: {a}"),
        ("Datei: {a}", "文件：", [(0, 0), (0, 1)], "文件：{a}"),
        ("Er sieht<br/>", "He sees.", STRAIGHT, "He sees.<br/>"),
    ],
)
def test_items_stand_on_their_side_of_the_end(
    source, translation, links, expected
):
    assert put(source, translation, links) == expected


@pytest.mark.parametrize("item", ["{a}", "www.x.de", "a.txt", "<br/>"])
def test_any_item_before_the_end_of_a_source_is_before_that_of_a_translation(
    item,
):
    draw = random.Random(5)
    # A line break at the end of a text stays there.
    ends = [".", " !", "...", "." if item == "<br/>" else ""]
    for _ in range(100):
        source = [*draw.choices(["eins", "zwei,", "(drei)", "„vier“"], k=5)]
        source.insert(draw.randrange(6), item)
        target = draw.choices(["one", "two,", "(three)", '"four"'], k=4)
        links = [
            (draw.randrange(5), draw.randrange(4))
            for _ in range(draw.randrange(9))
        ]
        text = put(
            " ".join(source) + draw.choice(ends),
            " ".join(target) + draw.choice([".", "?", " !"]),
            links,
        )
        assert text[-1] in ".?!", text
        # No part of a word or a mark before it.
        assert re.search(rf'(^|[\s("„]){re.escape(item)}', text), text


def test_no_space_is_left_before_punctuation():
    for source in ("Hallo {a}!", "Hallo <b>{a}</b>!", "Hallo ({a})!"):
        reading = read_part(MarkedText.of(source), 0, len(source))
        assert reading.text == "Hallo!"


def test_symbols_become_the_items():
    symbols = ["⟪1⟫", "⟪2⟫"]
    source = "Hallo {a}, <b>{b}</b>!"
    assert put(source, "⟪2⟫, hello (⟪1⟫)!", [], symbols) == (
        "<b>{b}</b>, hello ({a})!"
    )
    # A letter that touches a symbol would change an address.
    source = "Siehe www.x.de dort"
    assert put(source, "See⟪1⟫there", [], symbols) == "See www.x.de there"
    assert put(source, "看⟪1⟫那", [], symbols) == "看www.x.de那"


def test_items_without_a_symbol_are_put_back_by_links():
    source = "{a} und {b} gehen"
    assert put(source, "⟪1⟫ and go", STRAIGHT, ["⟪1⟫"]) == "{a} and {b} go"


def test_any_links_keep_all_items_and_their_nesting():
    draw = random.Random(3)
    parts = ["<b>", "</b>", "<i>", "</i>", "<br/>", "{x}", " ", " ", "a", "b,"]
    words = ["x", "y,", "(z)", "u.", "⟪1⟫", "w"]
    for _ in range(400):
        source = _well_nested("".join(draw.choices(parts, k=12)))
        translation = " ".join(draw.choices(words, k=draw.randrange(7)))
        translation = translation.replace("⟪1⟫", "v")
        links = [
            (draw.randrange(12), draw.randrange(7))
            for _ in range(draw.randrange(9))
        ]
        text = put(source, translation, links)
        assert sorted(_items(text)) == sorted(_items(source)), (source, text)
        assert _pairs(text) == _pairs(source), (source, text)
        # The words stay as they are.
        rest = re.sub(r"<[^>]*>|\{x\}", "", text)
        assert "".join(rest.split()) == "".join(translation.split())


def _well_nested(text):
    """Leaves out tags without a partner."""
    items = find_kept_items(text)
    kept = set()
    pending = list(tag_tree([item for item in items if item.kind == "tag"]))
    while pending:
        node = pending.pop()
        if node.closing is not None or node.opening.text == "<br/>":
            kept.update(
                {node.opening.begin, (node.closing or node.opening).begin}
            )
        pending += node.children
    for item in reversed(items):
        if item.kind == "tag" and item.begin not in kept:
            text = text[: item.begin] + text[item.end :]
    return text


def _items(text):
    return [item.text for item in find_kept_items(text)]


def _pairs(text):
    """Each tag with the pairs that it is in, whatever their order."""
    items = [item for item in find_kept_items(text) if item.kind == "tag"]
    found, stack = [], []
    for item in items:
        if item.text.startswith("</"):
            assert stack.pop() == item.text.replace("/", "")
        else:
            found.append((item.text, *stack))
            if not item.text.endswith("/>"):
                stack.append(item.text)
    assert not stack
    return sorted(found)
