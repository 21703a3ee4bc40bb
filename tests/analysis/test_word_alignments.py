"""What must be true of word alignments from attention.

* a decoder that is made to attend to known positions gives these alignments
* tokens of one word count as the word
* in scripts without spaces each letter is a word
* empty texts and other orders of the batch change nothing
"""

import keras
import numpy as np
import pytest

from keras_deepnmt import Translator, create_model
from keras_deepnmt.analysis import (
    align_words,
    cross_attention_names,
    recorded_names,
)
from keras_deepnmt.analysis import word_alignments as module
from keras_deepnmt.data import train_tokenizer
from keras_deepnmt.translator import join_translators


class Pieces:
    """A tokenizer whose text is its pieces: `▁a b` is the word `ab`."""

    vocabulary_size = 40
    sha256 = "pieces"

    def encode(self, texts):
        return [
            [
                4 + "▁a ▁b c ▁d e f".split().index(piece)
                for piece in text.split()
            ]
            for text in texts
        ]

    def token_words(self, text, start=0):
        starts = [piece.startswith("▁") for piece in text.split()]
        return [(number - 1,) for number in np.cumsum(starts).tolist()]


@pytest.fixture
def translator():
    keras.utils.set_random_seed(1)
    model = create_model("transformer_tiny", 40, 40)
    return Translator(model, Pieces(), Pieces(), compiled=False, batch_size=2)


def attend(monkeypatch, position_of):
    """Makes the recorded attention choose `position_of(target position)`."""

    def fake(model, name):
        def recorded(inputs):
            rows, length = inputs["target_ids"].shape
            width = inputs["source_ids"].shape[1]
            weights = np.full((rows, 2, length, width), 0.1)
            for t in range(length):
                weights[:, :, t, position_of(t)] = 0.9
            return {name: weights}

        return recorded

    monkeypatch.setattr(module, "record", fake)


def test_words_are_aligned_as_their_tokens_attend(translator, monkeypatch):
    attend(monkeypatch, lambda t: [2, 0, 1, 1][t] if t < 4 else 0)
    # Source words a | bc, target words de | a | b.
    found = align_words(translator, ["▁a ▁b c"], ["▁d e ▁a ▁b"])
    # Tokens 2, 0, 1, 1 of the source are in the words 1, 0, 1, 1.
    assert found == [[(0, 0), (1, 0), (1, 1), (1, 2)]]


def test_each_side_has_its_own_limit(translator, monkeypatch):
    attend(monkeypatch, lambda t: 0)
    short = translator.replaced(max_source_length=2)
    # More target tokens than the source may have; and the other way round.
    found = align_words(short, ["▁a", "▁a ▁b"], ["▁d ▁a ▁b", "▁d"])
    assert found == [[(0, 0), (0, 1), (0, 2)], []]
    monkeypatch.setattr(translator.model, "max_length", 3)
    found = align_words(short, ["▁a", "▁a"], ["▁d ▁a", "▁d ▁a ▁b"])
    assert found == [[(0, 0), (0, 1)], []]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "line, words",
    [
        ("Der Vater´s Hund ¨ schläft.", 5),  # NFKC makes spaces of these marks
        ("Der\tVater\u2003s\x85 Hund", 4),
        ("Der \u00ad \u200b Hund", 4),  # two words of nothing
    ],
)
def test_words_are_those_of_the_line_as_it_is_given(
    monkeypatch, tmp_path, line, words
):
    texts = ["Der Vater´s Hund ¨ schläft."] * 9
    tokenizer = train_tokenizer(texts, tmp_path / "m", 40)
    model = create_model("transformer_tiny", 40, 40)
    translator = Translator(model, tokenizer, tokenizer, compiled=False)
    attend(monkeypatch, lambda t: t)  # a copy
    assert len(line.split()) == words
    invisible = {
        number
        for number, word in enumerate(line.split())
        if not word.strip("\u00ad\u200b")
    }
    found = align_words(translator, [line], [line])
    visible = [n for n in range(words) if n not in invisible]
    assert found == [[(n, n) for n in visible]]


def test_letters_are_words_in_scripts_without_spaces(monkeypatch, tmp_path):
    pieces = ["我用", "iO", "S书", "，"]
    tokenizer = train_tokenizer(
        ["我 O b c d e f"] * 9, tmp_path / "m", 18, user_defined_symbols=pieces
    )
    line = "我用\u3000 iOS书，"
    (ids,) = tokenizer.encode([line])
    assert tokenizer.pieces(ids) == ["▁", "我用", "▁", "iO", "S书", "，"]
    model = create_model("transformer_tiny", 40, 18)
    translator = Translator(model, Pieces(), tokenizer, compiled=False)
    attend(monkeypatch, lambda t: [0, 1, 2, 2, 0, 1][t] if t < 6 else 0)
    # Source words: a | bc. Target words: 我 | 用 | iOS | 书 | ，
    found = align_words(translator, ["▁a ▁b c"], [line])
    assert found == [
        [(0, 0), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (1, 4)],
    ]


def test_the_end_is_never_aligned(translator, monkeypatch):
    attend(monkeypatch, lambda t: 1)  # the end of a source of one token
    assert align_words(translator, ["▁a"], ["▁a ▁b"]) == [[(0, 0), (0, 1)]]


@pytest.mark.thorough
def test_a_pair_does_not_depend_on_the_others(translator):
    sources = ["▁a ▁b c", "", "▁d e f ▁a", "▁a", "▁b c ▁d"]
    targets = ["▁d e ▁a", "▁a", "▁a ▁b", "", "▁b"]
    together = align_words(translator, sources, targets)
    assert together[1] == together[3] == []
    for place, pair in enumerate(zip(sources, targets, strict=True)):
        alone = align_words(translator, *([text] for text in pair))
        assert alone == [together[place]]
    for links, target in zip(together, targets, strict=True):
        # Each word of the target is aligned, if its source has words.
        words = {t for _, t in links}
        assert words == set(range(target.count("▁"))) or not links


@pytest.mark.parametrize("preset", ["transformer_tiny", "conv_seq2seq_tiny"])
def test_models_name_their_attention_block_by_block(preset):
    model = create_model(preset, 11, 11)
    names = cross_attention_names(recorded_names(model))
    blocks = [name.split("/")[0] for name in names]
    assert blocks == [f"decoder_block_{n + 1}" for n in range(len(blocks))]
    assert len(blocks) > 1


@pytest.mark.thorough
@pytest.mark.parametrize("blocks, default", [(1, 1), (2, 2), (3, 2), (4, 3)])
def test_the_default_is_the_last_but_one_or_the_last_of_two(
    blocks, default, monkeypatch
):
    model = create_model("transformer_tiny", 40, 40, num_decoder_layers=blocks)
    translator = Translator(model, Pieces(), Pieces(), compiled=False)
    names = []

    def recorded(model, name):
        names.append(name)

    monkeypatch.setattr(module, "record", recorded)
    align_words(translator, [""], [""])
    assert names == [f"decoder_block_{default}/cross_attention/weights"]


def test_wrong_arguments_are_refused(translator):
    with pytest.raises(ValueError, match="the same length"):
        align_words(translator, ["▁a"], [])
    with pytest.raises(ValueError, match="1 to 4. Received: layer=5"):
        align_words(translator, ["▁a"], ["▁a"], layer=5)


@pytest.mark.thorough
def test_the_attention_of_an_ensemble_is_the_weighted_mean(
    translator, monkeypatch
):
    other = translator.replaced(model=create_model("transformer_tiny", 40, 40))
    # The first model prefers position 0 by 0.2, the other one 1 by 0.6.
    preferred = {
        id(translator.model): [0.5, 0.3, 0.2],
        id(other.model): [0.1, 0.7, 0.2],
    }

    def fake(model, name):
        def recorded(inputs):
            rows, length = inputs["target_ids"].shape
            weights = np.zeros((rows, 2, length, inputs["source_ids"].shape[1]))
            weights[..., :3] = preferred[id(model)]
            return {name: weights}

        return recorded

    monkeypatch.setattr(module, "record", fake)
    for weights, position in (((1, 1), 1), ((4, 1), 0), ((2.9, 1), 1)):
        together = join_translators([translator, other], weights)
        found = align_words(together, ["▁a ▁b ▁d"], ["▁a"])
        assert found == [[(position, 0)]], weights
