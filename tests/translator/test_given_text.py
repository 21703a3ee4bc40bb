"""What must be true of given text with characters that the vocabulary lacks.

* a translation has it exactly if it says so, and as often as it was given
* each unknown token stands for one text, and as many phrases as possible have
  a place
* the search looks for no more occurrences than the phrases need
* what nobody gave stays unknown, and what was given stays as it is
"""

import itertools
import random

import keras
import numpy as np
import pytest
from foreign_tokenizer import foreign_tokenizer
from toy_model import ToyModel

from keras_deepnmt import Translator, create_model
from keras_deepnmt.analysis import replace_unknown, word_alignments
from keras_deepnmt.evaluation import minimum_bayes_risk
from keras_deepnmt.reranking import Reranker
from keras_deepnmt.translator import Hypothesis, join_translators
from keras_deepnmt.translator.given_text import (
    GivenTokens,
    find_given,
    given_tokens,
    rows_to_find,
    text_with_given,
)
from keras_deepnmt.translator.missed_phrases import why_missed

LETTERS = "ab"
UNKNOWN = "ŁŻ"
SOURCES = ["ab a", "b", "a b ab"]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    """One piece for each letter, so that a text has one segmentation."""
    file = tmp_path_factory.mktemp("tokenizer") / "letters.model"
    texts = ["ab a b ba"] * 9
    return foreign_tokenizer(texts, file, model_type="char", vocab_size=7)


def make_translator(tokenizer, seed=0, **options):
    size = tokenizer.vocabulary_size
    model = ToyModel(size, size, max_length=40, seed=seed, scale=1.0)
    options = {"num_beams": 6, "max_extra_tokens": 12, **options}
    return Translator(model, tokenizer, tokenizer, compiled=False, **options)


@pytest.fixture(scope="module")
def translator(tokenizer):
    return make_translator(tokenizer)


def words(draw, most=2):
    letters = draw.choices(LETTERS + UNKNOWN, k=draw.randint(1, 3))
    number = draw.randint(1, most)
    return " ".join("".join(letters) for _ in range(number))


def draw_given(draw):
    """A beginning and phrases, some of which are alike or equal."""
    prefix = draw.choice(["", words(draw), "Ł", "aŻ b"])
    phrases = [words(draw) for _ in range(draw.randint(0, 2))]
    phrases += draw.sample(["Ł", "Ż", "Ł", "aŁ", "aŻ", "b"], draw.randint(0, 2))
    return prefix, phrases


def count(pieces, part):
    """How often pieces have others; occurrences may overlap."""
    starts = range(len(pieces) - len(part) + 1)
    return sum(pieces[s : s + len(part)] == part for s in starts)


def read_again(tokenizer, text):
    """The pieces of a text; unknown tokens have no space of their own."""
    (pieces,) = tokenizer.encode_as_pieces([text.replace(" ⁇ ", "⁇")])
    return pieces


def has_all(tokenizer, text, prefix, phrases):
    """Whether a text has what was given, as its tokenizer reads both."""
    pieces = read_again(tokenizer, text)
    begun, *parts = tokenizer.encode_as_pieces([prefix, *phrases])
    return pieces[: len(begun)] == begun and all(
        count(pieces, part) >= parts.count(part) for part in parts
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_groups": 2},
        {"allow_unknown": False},
        {"no_repeat_ngram_size": 3},
    ],
    ids=str,
)
def test_met_means_that_the_text_has_it(tokenizer, options):
    translator = make_translator(tokenizer, **options)
    draw = random.Random(3)
    given = [draw_given(draw) for _ in range(60)]
    prefixes, constraints = zip(*given, strict=True)
    sources = [SOURCES[n % 3] for n in range(len(given))]
    seen = []
    for (prefix, phrases), found in zip(
        given,
        translator.translate_nbest(
            sources, 6, prefixes=prefixes, constraints=constraints
        ),
        strict=True,
    ):
        for hypothesis in found:
            text = hypothesis.text
            is_met = has_all(tokenizer, text, prefix, phrases)
            ids = hypothesis.ids[:-1]
            (again,) = tokenizer.encode([text.replace(" ⁇ ", "⁇")])
            if again.tolist() == list(ids):
                assert hypothesis.constraints_met == is_met, hypothesis
                seen.append(is_met)
            else:  # such as two spaces, which are read as one
                assert is_met or not hypothesis.constraints_met, hypothesis
        met = [hypothesis.constraints_met for hypothesis in found]
        assert met == sorted(met, reverse=True)
    assert sum(seen) > (60 if translator.allow_unknown else 10)
    assert not all(seen)


def alike(draw):
    """Tokens of a translation and phrases that compete for its places."""
    ids = [draw.choice([1, 1, 4, 5]) for _ in range(draw.randint(1, 6))]
    phrases = []
    for _ in range(draw.randint(1, 4)):
        start = draw.randrange(len(ids))
        part = ids[start : start + draw.randint(1, 3)]
        pieces = [draw.choice(UNKNOWN) if n == 1 else str(n) for n in part]
        phrases.append(GivenTokens(part, pieces))
    return ids, phrases


def most_with_places(ids, prefix, phrases):
    """The largest number of phrases that can stand in a translation."""
    options = [
        [
            None,
            *(
                s
                for s in range(len(ids))
                if ids[s : s + len(phrase.ids)] == list(phrase.ids)
            ),
        ]
        for phrase in phrases
    ]
    most = 0
    for chosen in itertools.product(*options):
        taken = [
            (phrase, place)
            for phrase, place in zip(phrases, chosen, strict=True)
            if place is not None
        ]
        keys = [(*p.ids, *p.pieces, place) for p, place in taken]
        texts = dict(enumerate(prefix.pieces))
        is_allowed = len(set(keys)) == len(keys)
        for phrase, place in taken:
            for position, piece in enumerate(phrase.pieces, place):
                if ids[position] == 1:
                    is_allowed &= texts.setdefault(position, piece) == piece
        if is_allowed:
            most = max(most, len(taken))
    return most


def test_as_many_phrases_as_possible_have_a_place():
    draw = random.Random(0)
    complete = 0
    for _ in range(600):
        ids, phrases = alike(draw)
        begun = ids[: draw.randint(0, 2)]
        pieces = [draw.choice(UNKNOWN) if n == 1 else str(n) for n in begun]
        prefix = GivenTokens(begun, pieces)
        found = find_given([*ids, 3], prefix, phrases)
        most = most_with_places(ids, prefix, phrases)
        assert len(phrases) - len(found.missed) == most
        if not found.missed:
            complete += 1
            rows = rows_to_find(prefix, phrases)
            assert all(count(ids, row) >= rows.count(row) for row in rows)
    assert 100 < complete < 500


def test_many_phrases_that_compete_take_no_long_time():
    phrases = [GivenTokens([1], [chr(0x400 + n)]) for n in range(40)]
    found = find_given([1] * 39, GivenTokens(), phrases)
    assert len(found.missed) == 1


@pytest.mark.thorough
def test_the_given_characters_are_in_the_text(translator):
    assert translator.translate("ab", prefixes="Łódź ab").startswith("Łódź ab")
    best, *_ = translator.translate_nbest(
        "ab", 6, constraints=["aŁ", "aŻ", "aŁ"]
    )
    assert best.constraints_met
    parts = best.text.split(" ")
    assert sum(part.startswith("aŁ") for part in parts) == 2
    assert any(part.startswith("aŻ") for part in parts)
    # Two places with the ids of the prefix, which has other characters.
    best, *_ = translator.translate_nbest(
        "ab", 6, prefixes="Ł", constraints=["Ż"]
    )
    assert best.constraints_met
    assert best.text.startswith("Ł") and " Ż" in best.text


def test_a_string_beside_a_list_is_refused(translator):
    for texts in (["ab"], ["ab", "ab"]):
        for name in ("prefixes", "constraints"):
            with pytest.raises(TypeError, match=f"`{name}` must hold sent"):
                translator.translate(texts, **{name: "ab"})
    assert translator.translate("ab", prefixes="ab").startswith("ab")


def test_a_misspelt_requirement_is_named(translator):
    message = r"{}\(\) got an unexpected keyword argument 'prefix'"
    with pytest.raises(TypeError, match=message.format("translate")):
        translator.translate("ab", prefix="ab")
    with pytest.raises(TypeError, match=message.format("translate_nbest")):
        translator.translate_nbest("ab", 1, prefix="ab")


def test_names_of_special_tokens_are_text_as_well(translator):
    for text in ("</s>", "<unk>", "<s>"):
        found = translator.translate("ab", prefixes=f"{text} b")
        # Of `<unk>` nothing is a letter of the vocabulary.
        assert found.startswith(f"{text} b")


def test_unknown_tokens_of_nobody_stay_unknown(tokenizer):
    ids = tokenizer.encode(["aŁ Ł"])[0].tolist()
    (phrase,) = given_tokens(tokenizer, ["Ł"])
    found = find_given(ids, GivenTokens(), [phrase])
    text = text_with_given(tokenizer, ids, found.pieces.items())
    assert text == "a ⁇  Ł"
    assert text_with_given(tokenizer, [*ids, 3], ()) == "a ⁇   ⁇ "


@pytest.mark.thorough
def test_forbidden_unknown_tokens_are_in_a_prefix_alone(tokenizer):
    translator = make_translator(tokenizer, allow_unknown=False)
    (best,) = translator.translate_nbest("ab", 1, prefixes="Łab")
    assert best.text.startswith("Łab") and best.constraints_met
    given = {"constraints": ["aŁ", "b"]}
    (best,) = translator.translate_nbest("ab", 1, **given)
    assert not best.constraints_met and "⁇" not in best.text
    assert why_missed(translator, "ab", best, **given) == "unknown"


@pytest.mark.parametrize(
    ("source", "given", "options", "reason"),
    [
        ("", {"constraints": ["a"]}, {}, "empty"),
        ("ab", {"constraints": ["ab " * 9]}, {}, "room"),
        ("ab", {"constraints": ["ab"], "max_lengths": 3}, {}, "room"),
        ("ab", {"constraints": ["a"], "prefixes": "b " * 18}, {}, "room"),
        ("ab", {"constraints": ["aŁ"]}, {"allow_unknown": False}, "unknown"),
        ("ab", {"constraints": ["a a"], "prefixes": "b"}, {}, "contradiction"),
        ("ab", {"constraints": ["b"]}, {"allow_unknown": False}, None),
    ],
)
def test_the_reason_of_a_missing_phrase_is_told(
    tokenizer, source, given, options, reason
):
    translator = make_translator(tokenizer, **options)
    ids = tokenizer.encode(["b" if source else ""])[0].tolist()
    found = Hypothesis("b", -1.0, -1.0, (*ids, 3))
    assert why_missed(translator, source, found, **given) == reason


def test_an_empty_sentence_does_not_begin_with_a_prefix(translator):
    (best,) = translator.translate_nbest("", 1, prefixes="a")
    assert best.text == "" and not best.constraints_met
    (best,) = translator.translate_nbest("", 1, prefixes=" ")
    assert best.constraints_met


@pytest.mark.thorough
def test_everything_that_chooses_translations_keeps_the_text(tokenizer):
    translator = make_translator(tokenizer)
    sources, given = ["ab", "b a"], {"prefixes": ["Ł a", "Żb"]}
    drawn = translator.replaced(sampling=True, num_beams=4)
    joined = join_translators([translator, make_translator(tokenizer, seed=1)])
    greedy = translator.replaced(num_beams=1)
    for each in (translator, drawn, joined, greedy):
        nbest = each.translate_nbest(sources, 4, **given)
        reranked = Reranker(each, forward=[translator]).rerank(sources, nbest)
        for found, prefix in zip(
            [*nbest, *reranked], given["prefixes"] * 2, strict=True
        ):
            texts = [hypothesis.text for hypothesis in found]
            assert all(text.startswith(prefix) for text in texts)
            if len(texts) > 1:
                assert minimum_bayes_risk(texts) < len(texts)


@pytest.mark.thorough
def test_byte_pieces_leave_nothing_unknown(tmp_path):
    tokenizer = foreign_tokenizer(
        ["ab a b ba"] * 9,
        tmp_path / "bytes.model",
        model_type="unigram",
        vocab_size=266,
        byte_fallback=True,
        hard_vocab_limit=False,
    )
    (given,) = given_tokens(tokenizer, ["aŁ"])
    assert not given.has_unknown
    translator = make_translator(tokenizer, max_extra_tokens=20)
    best, *_ = translator.translate_nbest(
        "ab", 6, prefixes="Ł", constraints=["aŁ"]
    )
    assert best.constraints_met
    assert best.text.startswith("Ł") and "aŁ" in best.text


@pytest.mark.thorough
def test_marks_of_spaces_may_end_words(tmp_path):
    tokenizer = foreign_tokenizer(
        ["ab a b ba"] * 9,
        tmp_path / "suffix.model",
        model_type="unigram",
        vocab_size=12,
        treat_whitespace_as_suffix=True,
        hard_vocab_limit=False,
    )
    translator = make_translator(tokenizer)
    assert translator.translate("ab", prefixes="Ł ab").startswith("Ł ab")
    given = {"prefixes": "b", "constraints": ["Łód"]}
    best, *_ = translator.translate_nbest("ab", 6, **given)
    assert best.constraints_met and "Łód" in best.text


@pytest.mark.parametrize("vocab_size", [10])
def test_a_whole_word_may_be_unknown(tmp_path, vocab_size):
    tokenizer = foreign_tokenizer(
        ["ab a b ba"] * 9,
        tmp_path / "words.model",
        model_type="word",
        vocab_size=vocab_size,
        hard_vocab_limit=False,
    )
    (given,) = given_tokens(tokenizer, ["Łódź a"])
    ids = [*tokenizer.encode(["a"])[0].tolist(), *given.ids]
    found = find_given(ids, GivenTokens(), [given])
    text = text_with_given(tokenizer, ids, found.pieces.items())
    assert text == "a Łódź a"
    found = find_given(given.ids, given, [])
    text = text_with_given(tokenizer, given.ids, found.pieces.items())
    assert text == "Łódź a"


def test_given_characters_are_not_replaced(tmp_path, monkeypatch):
    tokenizer = foreign_tokenizer(
        ["the dog lives in Berlin"] * 9, tmp_path / "m", vocab_size=40
    )
    size = tokenizer.vocabulary_size
    keras.utils.set_random_seed(1)
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    model = create_model("transformer_tiny", size, size, **layers)
    translator = Translator(model, tokenizer, tokenizer, compiled=False)

    def fake(model, name):
        def recorded(inputs):
            rows, length = inputs["target_ids"].shape
            width = inputs["source_ids"].shape[1]
            weights = np.zeros((rows, 1, length, width))
            weights[..., 0] = 1.0  # all tokens are aligned with the first word
            return {name: weights}

        return recorded

    monkeypatch.setattr(word_alignments, "record", fake)

    def replaced(ids, given, table=None):
        text = text_with_given(tokenizer, ids, given)
        changed = Hypothesis(text, 0.0, 0.0, (*ids, 3), given=given)
        return replace_unknown(translator, ["Berlin"], [changed], table)[0].text

    (prefix,) = given_tokens(tokenizer, ["Łódź dog"])
    given = tuple(enumerate(prefix.pieces))
    assert replaced(prefix.ids, given) == "Łódź dog"
    # An unknown token after it, in the same word.
    assert replaced([*prefix.ids, 1], given) == "Łódź dogBerlin"
    assert replaced([*prefix.ids, 1], given, {"Berlin": "x"}) == "Łódź dogx"
    # The same tokens that nobody gave.
    assert replaced([*prefix.ids, 1], ()) == "Berlin Berlin"
