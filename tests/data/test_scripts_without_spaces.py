"""What must be true of scripts without spaces.

* the codes of a language in any notation name its script
* the script of a text is that of most of its words
"""

import pytest

from keras_deepnmt.data.scripts import (
    detect_script,
    is_written_with_spaces,
    script_of_language,
)

CODES = {
    "Chinese": ["zh", "zh-CN", "zh_TW", "zho_Hans", "cmn", "yue", "ZH-Hant"],
    "Japanese": ["ja", "jpn", "ja-JP", "jpn_Jpan"],
    "Korean": ["ko", "kor", "ko-KR", "kor_Hang"],
    "Thai": ["th", "tha", "tha_Thai"],
    "Lao": ["lo", "lao_Laoo"],
    "Khmer": ["km", "khm", "khm_Khmr"],
    "Burmese": ["my", "mya", "bur", "shn_Mymr"],
    "Tibetan": ["bo", "bod_Tibt", "dz"],
    None: ["de", "en-GB", "uk", "sr_Cyrl", "vi", "zh-Latn", "ja_Latn", "arb"],
}
TEXTS = {
    "Chinese": "今天早上，我的老老师在学校后面画了一本旧书，用 iPhone。",
    "Japanese": "私の先生は今朝、学校の裏で古い本の絵を描きました。",
    "Korean": "나는 어제 大韓民國에서 책을 읽었다.",
    "Thai": "เมื่อเช้านี้คุณครูวาดรูป",
    "Lao": "ພາສາລາວ ບໍ່ມີຍະຫວ່າງ",
    "Khmer": "ភាសាខ្មែរ\u200bស្អាត",
    "Burmese": "မြန်မာဘာသာ စကား။",
    "Tibetan": "བོད་སྐད་ཡིན།",
}


@pytest.mark.parametrize(
    ("code", "script"),
    [(code, script) for script, codes in CODES.items() for code in codes],
)
def test_codes_of_languages_name_their_script(code, script):
    assert script_of_language(code) == script
    assert is_written_with_spaces(code) == (script in (None, "Korean"))


@pytest.mark.parametrize("name", [None, "", "Chinese", "chinese", "x", "zh "])
def test_what_is_no_code_tells_nothing_of_spaces(name):
    assert not is_written_with_spaces(name)


@pytest.mark.parametrize(("script", "text"), TEXTS.items())
def test_the_script_of_a_text_is_that_of_most_words(script, text):
    assert detect_script([text]) == script
    few = ["Der Hund heißt auf Chinesisch nicht so, sondern"] * 9
    assert detect_script([*few, text[:9]]) is None
    assert detect_script(iter([few[0], *[text] * 20])) == script


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 2 3",
        "A dog.",
        "Пёс спить.",
        "Ένας σκύλος",
        "कुत्ता सोता है",
        "Tôi đi",
    ],
)
def test_other_texts_have_spaces(text):
    assert detect_script([text]) is None
