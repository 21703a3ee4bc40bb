"""What must be true of filters.

Each pair is refused by the first rule it breaks.
"""

import pytest

from keras_deepnmt.data import normalization
from keras_deepnmt.data.preparation.text_filters import (
    PairFilter,
    compared_text,
    hash_text,
)


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("a b", "c d", None),
        ("", "", "empty"),
        ("a", "", "empty"),
        ("a b", "a b", "identical"),
        ("a", "b c", "length"),
        ("a b c d e f", "a b c d e", "length"),
        ("a b c d e", "f g", "ratio"),
        ("a b c d", "f g", None),
    ],
)
def test_a_pair_is_refused_by_the_first_rule_it_breaks(source, target, reason):
    rules = PairFilter(min_length=2, max_length=5, max_ratio=2.0)
    assert rules.reason(source, target) == reason


ENGLISH = "My old teacher painted an old book behind the school, didn't she?"


@pytest.mark.parametrize(
    ("language", "target"),
    [
        ("zh", "我的老老师在学校后面画了一本旧书，不是吗？"),
        ("ja", "私の老先生が学校の裏で古い本の絵を描いたんですよね。"),
        ("th", "คุณครูคนเก่าของฉันวาดภาพหนังสือเก่าหลังโรงเรียนใช่ไหม"),
        ("km", "គ្រូចាស់របស់ខ្ញុំបានគូរសៀវភៅចាស់នៅក្រោយសាលា"),
        ("lo", "ຄູເກົ່າຂອງຂ້ອຍແຕ້ມຮູບປຶ້ມເກົ່າຢູ່ຫຼັງໂຮງຮຽນແມ່ນບໍ່"),
        ("my", "ကျွန်တော့်ဆရာကြီးက ကျောင်းနောက်မှာ စာအုပ်ဟောင်းတစ်အုပ်ကို ပန်းချီဆွဲခဲ့တယ်"),
    ],
)
def test_letters_count_where_a_script_has_no_spaces(language, target):
    for code in (language, None):
        rules = PairFilter(target_language=code)
        assert rules.reason(ENGLISH, target) is None
        assert rules.reason(target, ENGLISH) is None
        assert rules.reason("No.", target) == "ratio"
        assert rules.reason(ENGLISH, target * 20) == "length"
        short = PairFilter(min_length=12, target_language=code)
        assert short.reason(ENGLISH, target) is None


def test_a_language_with_spaces_counts_them_alone():
    rules = PairFilter(source_language="en", target_language="ko")
    assert rules.reason(ENGLISH, "大韓民國政府大韓民國政府") == "ratio"
    assert rules.lengths("a 東京 b", "大韓民國 정부는") == (3, 2)


def test_identical_sides_can_be_kept():
    assert PairFilter(drop_identical=False).reason("a", "a") is None


def test_hashes_tell_sides_apart_and_do_not_change():
    assert hash_text("a", "b c") != hash_text("a b", "c")
    # A fixed value: manifests of other days and machines must agree.
    assert hash_text("ein", "one") == 0xEC5FC5D3584AFBE4


def test_the_rule_of_comparisons_is_made_once_for_all_texts(monkeypatch):
    # It was made for each text, and took nine tenths of `deepnmt prepare`.
    made = []

    make = normalization.sentencepiece.SentencePieceNormalizer

    def count(*arguments, **keywords):
        made.append(arguments)
        return make(*arguments, **keywords)

    monkeypatch.setattr(
        normalization.sentencepiece, "SentencePieceNormalizer", count
    )
    compared_text("ﬁrst")
    made.clear()
    assert compared_text("ﬁne  text") == "fine text"
    assert not made
