"""What must be true of words, where a script has spaces and where it has none.

* without letters of such scripts, words stand between white space
* each letter of such a script is a word, its marks included
* places, words and their number agree for random text
"""

import random

import pytest

from keras_deepnmt.data.word_units import (
    split_words,
    word_counter,
    word_spans,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" ein  kleiner\u3000Hund ,", ["ein", "kleiner", "Hund", ","]),
        ("col·lecció “naïve” Việt", ["col·lecció", "“naïve”", "Việt"]),
        ("나는 책을", ["나는", "책을"]),
        ("我用 iPhone14，是吗？", [*"我用", "iPhone14，", *"是吗？"]),
        ("𠀀𠀁〇々", [*"𠀀𠀁〇々"]),
        ("カーテンが", [*"カーテンが"]),
        ("か\u3099ｶﾞ", ["か\u3099", "ｶ", "ﾞ"]),
        ("ที่นี่ ๑๒", ["ที่", "นี่", "๑๒"]),
        ("ខ្មែរ\u200bស្អាត", ["ខ្", "មែ", "រ", "ស្", "អា", "ត"]),
        ("မြန်မာ။", ["မြ", "န်", "မာ", "။"]),
        ("葛\U000e0100城", ["葛\U000e0100", "城"]),
    ],
)
def test_words_of_a_text(text, words):
    assert split_words(text) == words
    assert [text[first:end] for first, end in word_spans(text)] == words
    assert word_counter()(text) == len(words)


@pytest.mark.parametrize("code", ["de", "ko", "sr_Latn", "uk-UA"])
def test_languages_with_spaces_count_them_alone(code):
    assert word_counter(code)("大韓民國 정부는 中文") == 3
    for other in (None, "zh", "ja-JP", "Korean"):
        assert word_counter(other)("大韓民國 정부는 中文") == 7


def test_places_and_words_of_random_text_agree():
    draw = random.Random(1)
    ranges = [(1, 0x250), (0x300, 0x370), (0xE00, 0x1200), (0x1780, 0x17F0)]
    ranges += [(0x1FF0, 0x2070), (0x2E80, 0xD7FF), (0x1F900, 0x20010)]
    for _ in range(2_000):
        parts = [draw.choice(ranges) for _ in range(draw.randrange(1, 9))]
        text = "".join(
            chr(draw.randrange(*part)) * draw.randrange(1, 3)
            for part in parts * 2
        )
        words = split_words(text)
        assert [text[first:end] for first, end in word_spans(text)] == words
        apart = "".join(text.split())
        assert "".join(words) in (apart, apart.replace("\u200b", ""))
