"""What must be true of pairs that are changed before they are read.

* each modifier changes its share of the pairs of each epoch, others in others
* the text is changed, the tag and other symbols are not
* the batch of an update is the same in whatever order batches are read
* changed pairs fit their batches
"""

import dataclasses
import random

import numpy as np
import pytest
from foreign_tokenizer import imported_tokenizer
from toy_corpus import prepare, toy_pairs, write_pairs

from keras_deepnmt.data.batches.batch_shapes import choose_batch_shapes
from keras_deepnmt.data.batches.batch_source import BatchSource
from keras_deepnmt.data.batches.modified_pairs import (
    Modification,
    ModifiedPairs,
    in_capitals,
    in_title_case,
    with_typos,
)
from keras_deepnmt.data.batches.staged_plan import StagedPlan
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.data.preparation.tokenizer_training import train_tokenizer
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.data.terms import TERM_MARKS

PAIRS = toy_pairs(120)
TAGS = ("<2de>", "<2xx>")
SHARES = {"merge": 0.2, "typos": 0.1, "upper_case": 0.25}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("modified")
    train = [
        dataclasses.replace(write_pairs(folder, name, pairs), tag=tag)
        for name, pairs, tag in (
            ("first", PAIRS[:80], TAGS[0]),
            ("second", PAIRS[80:], TAGS[1]),
        )
    ]
    options = PrepareOptions(
        train=train,
        vocabulary_size=160,
        # All capitals but one.
        required_chars="ABCDEFGHIJKLMNOQRSTUVWXYZÄÖÜ",
    )
    prepare(options, folder / "out")
    return PreparedData(folder / "out")


@pytest.fixture(scope="module")
def tokenizers(data):
    return data.source_tokenizer, data.target_tokenizer


@pytest.fixture(scope="module")
def pairs(data, tokenizers):
    return ModifiedPairs(
        data.store("train"), tokenizers, list(SHARES), [80, 120], 99, TAGS
    )


@pytest.fixture(scope="module")
def plan(pairs):
    weights = [pairs.weights(None, SHARES), pairs.weights(None, {})]
    shapes = choose_batch_shapes(pairs.lengths, 256, 3, 1, weights[0])
    return StagedPlan(pairs.lengths, shapes, 3, weights, [0, 1000])


def read(pairs, plan, step):
    """The texts of a batch, as the model reads them."""
    transforms = [Modification(pairs, plan, seed=3)]
    inputs, _ = BatchSource(pairs, plan, transforms=transforms)[step]
    return inputs


def test_each_epoch_has_other_changed_pairs(pairs, plan):
    epochs = []
    for epoch in range(2):
        number = plan.batches_in_epoch(0)
        steps = range(epoch * number, (epoch + 1) * number)
        rows = np.concatenate([plan.batch(step)[1] for step in steps])
        variants, rows = np.divmod(rows, 120)
        assert len(rows) == 120
        for number, share in enumerate(SHARES.values(), start=1):
            assert abs((variants == number).sum() - share * 120) <= 3
        epochs.append(set(rows[variants > 0].tolist()))
    assert epochs[0] != epochs[1]
    # In another stage nothing is changed.
    assert plan.batch(1000)[1].max() < 120


def test_batches_do_not_depend_on_those_before(data, tokenizers, pairs, plan):
    again = ModifiedPairs(
        data.store("train"), tokenizers, list(SHARES), [80, 120], 99, TAGS
    )
    np.testing.assert_array_equal(again.lengths, pairs.lengths)
    steps = list(range(2 * plan.batches_in_epoch(0)))
    expected = [read(pairs, plan, step) for step in steps]
    random.Random(1).shuffle(steps)
    for step in steps:
        for name, ids in read(again, plan, step).items():
            np.testing.assert_array_equal(ids, expected[step][name])


def test_modifiers_change_the_text_after_the_tag(data, tokenizers, pairs):
    (pair,) = pairs.read([5])
    draw = random.Random(3).random

    def texts(changed):
        return tuple(
            tokenizer.decode([ids])[0]
            for tokenizer, ids in zip(tokenizers, changed, strict=True)
        )

    plain = (f"<2de> {PAIRS[5][0]}", PAIRS[5][1])
    assert texts(pair) == texts(pairs.change(5, pair, draw)) == plain
    typos = texts(pairs.change(5 + 2 * 120, pair, draw))
    assert typos[0].startswith("<2de> ") and typos[1] == plain[1]
    assert typos[0] != plain[0] and len(typos[0]) == len(plain[0])
    merged = texts(pairs.read([5 + 120])[0])
    assert merged == tuple(
        f"{one} {two}" for one, two in zip(plain, PAIRS[6], strict=True)
    )
    # Not with a pair of another corpus.
    assert texts(pairs.read([79 + 120])[0])[1] == PAIRS[79][1]


def merged_texts(folder, given, **changes):
    """Texts of pairs that are each merged with the next."""
    options = PrepareOptions(
        train=[write_pairs(folder, "train", given)],
        vocabulary_size=130,
        **changes,
    )
    prepare(options, folder / "out")
    data = PreparedData(folder / "out")
    tokenizers = data.source_tokenizer, data.target_tokenizer
    store = data.store("train")
    size = len(store)
    pairs = ModifiedPairs(store, tokenizers, ["merge"], [size], 99, [])
    sides = zip(*pairs.read(range(size, 2 * size)), strict=True)
    return list(
        zip(
            *(t.decode(s) for t, s in zip(tokenizers, sides, strict=True)),
            strict=True,
        )
    )


def test_symbols_that_are_no_tags_stay_in_merged_pairs(tmp_path):
    given = [(f"• {source}", f"• {target}") for source, target in PAIRS]
    found = merged_texts(tmp_path, given, user_defined_symbols=["•"])
    assert found[0] == tuple(
        f"{a} {b}" for a, b in zip(*given[:2], strict=True)
    )


class Rows:
    """A store of pairs that are given as texts."""

    def __init__(self, tokenizers, pairs):
        self.pairs = [
            tuple(
                t.encode([text])[0]
                for t, text in zip(tokenizers, pair, strict=True)
            )
            for pair in pairs
        ]
        self.lengths = np.array(
            [[1 + len(ids) for ids in pair] for pair in self.pairs]
        )

    def __len__(self):
        return len(self.pairs)

    def read(self, rows):
        return [self.pairs[row] for row in rows]


@pytest.fixture(scope="module")
def tagged(tmp_path_factory):
    """Tokenizers with symbols, of this package and of imported models."""
    folder = tmp_path_factory.mktemp("tagged")
    texts = [text for pair in PAIRS for text in pair]
    symbols = ["<2de>", "<2fr>", "<b>", "</b>", "⟪1⟫", *TERM_MARKS]
    plain = train_tokenizer(
        texts, folder / "plain", 150, user_defined_symbols=symbols
    )
    tags = [">>deu<<", ">>fra<<"]
    return {
        "plain": plain,
        "imported": imported_tokenizer(plain, folder / "imported", tags),
        "begin": imported_tokenizer(plain, folder / "begin", tags, "<bos>"),
    }


@pytest.mark.parametrize(
    ("kind", "source", "other", "merged"),
    [
        ("plain", "the dog", "a cat", "the dog a cat"),
        ("plain", "<2de> the dog", "<2de> a cat", "<2de> the dog a cat"),
        ("plain", "<2de> the dog", "<2fr> a cat", None),
        ("plain", "<2de> the dog", "a cat", None),
        ("plain", "the dog", "<2de> a cat", None),
        ("plain", "<2de> the dog", "<2de>", None),
        (
            "plain",
            "<2de> <2fr> the dog",
            "<2de> <2fr> a cat",
            "<2de> <2fr> the dog a cat",
        ),
        ("plain", "<2de> <2fr> the dog", "<2de> a cat", None),
        (
            "plain",
            "<b> the </b> dog",
            "<b> a </b> cat",
            "<b> the </b> dog <b> a </b> cat",
        ),
        ("plain", "⟪1⟫ the dog", "a cat", "⟪1⟫ the dog a cat"),
        (
            "plain",
            "<term> the <is> der </term> dog",
            "<term> a <is> ein </term> cat",
            "<term> the <is> der </term> dog <term> a <is> ein </term> cat",
        ),
        (
            "imported",
            ">>deu<< the dog",
            ">>deu<< a cat",
            ">>deu<< the dog a cat",
        ),
        ("imported", ">>deu<< the dog", ">>fra<< a cat", None),
        ("begin", "the dog", "a cat", "the dog a cat"),
        ("begin", ">>deu<< the dog", ">>deu<< a cat", ">>deu<< the dog a cat"),
    ],
)
@pytest.mark.parametrize("side", [0, 1])
def test_merged_pairs_have_the_tokens_of_their_text(
    tagged, kind, source, other, merged, side
):
    """A second tag or begin token is none, on either side."""
    tokenizers = [tagged["plain"], tagged["plain"]]
    tokenizers[side] = tagged[kind]
    rows = [("der Hund", "der Hund"), ("ein Apfel", "ein Apfel")]
    given = [
        tuple(text if number == side else row[number] for number in (0, 1))
        for text, row in zip((source, other), rows, strict=True)
    ]
    store = Rows(tokenizers, given)
    pairs = ModifiedPairs(store, tokenizers, ["merge"], [2], 99, [])
    expected = given[0]
    if merged is not None:
        expected = ["der Hund ein Apfel"] * 2
        expected[side] = merged
    (found,) = pairs.read([2])
    for tokenizer, ids, text in zip(tokenizers, found, expected, strict=True):
        assert tokenizer.decode([ids]) == [text]
        np.testing.assert_array_equal(ids, tokenizer.encode([text])[0])
        assert 1 not in ids


def test_a_symbol_of_both_sides_is_no_tag(tagged):
    """A placeholder may have another place in the translation."""
    tokenizers = [tagged["plain"]] * 2
    given = [
        ("<2fr> the dog", "der Hund <2fr>"),
        ("<2fr> a cat", "ein Apfel <2fr>"),
    ]
    store = Rows(tokenizers, given)
    pairs = ModifiedPairs(store, tokenizers, ["merge"], [2], 99, [])
    (found,) = pairs.read([2])
    texts = [tokenizers[0].decode([ids])[0] for ids in found]
    assert texts == [" ".join(side) for side in zip(*given, strict=True)]


def test_merging_changes_the_case_of_no_sentence(tmp_path):
    given = [
        tuple(text.upper() for text in pair) if row % 3 == 0 else pair
        for row, pair in enumerate(PAIRS)
    ]
    found = merged_texts(tmp_path, given, case="factored", case_examples=0.0)
    # A symbol for all that follows would be for the next sentence, too.
    assert found[::3] == given[::3]
    for row in (1, 2):
        expected = zip(given[row], given[row + 1], strict=True)
        assert found[row] == tuple(map(" ".join, expected))


def test_no_pair_is_merged_with_its_own_copy_in_capitals(tmp_path):
    """Such examples of case stand after their pair."""
    options = {"case": "factored", "case_examples": 0.3}
    found = merged_texts(tmp_path, PAIRS, **options)
    sources = [source for source, _ in found]
    assert any(source == source.upper() for source in sources)
    assert sum(source.count(" no. ") == 2 for source in sources) > 40
    for source in sources:
        words = source.casefold().split()
        half = len(words) // 2
        assert words[:half] != words[half:]


def test_a_pair_stays_where_the_vocabulary_lacks_its_capitals(
    tokenizers, pairs
):
    number = 0
    for row, plain in enumerate(pairs.read(range(80))):
        changed = pairs.change(row + 3 * 120, plain, None)
        source, target = PAIRS[row]
        if "p" in source + target:
            assert changed is plain
            continue
        number += 1
        for tokenizer, ids, text in zip(
            tokenizers, changed, (f"<2de> {source}", target), strict=True
        ):
            upper = text.upper().replace("<2DE>", "<2de>")
            assert tokenizer.decode([ids]) == [upper]
    assert 0 < number < 80


def test_changed_pairs_have_room(pairs, plan):
    """Most of them are read as changed."""
    changed = same = 0
    for step in range(plan.batches_in_epoch(0)):
        shape, rows = plan.batch(step)
        before = pairs.read(rows)
        after = Modification(pairs, plan, 3).change_pairs(before, shape, step)
        for row, old, new in zip(rows, before, after, strict=True):
            if row // 120 == 2:
                is_same = old[0].tolist() == new[0].tolist()
                changed, same = changed + (not is_same), same + is_same
    assert changed >= 0.7 * (changed + same) > 0


@pytest.mark.parametrize("modifier", ["upper_case", "title_case"])
def test_pairs_that_stay_as_they_are_have_room(tmp_path, modifier):
    """With symbols for capitals a changed pair may be the shorter one."""

    def every_second(text):
        words = text.split()
        words[1::2] = map(str.title, words[1::2])
        return " ".join(words)

    given = [
        tuple(map(str.lower if row % 25 == 0 else every_second, pair))
        for row, pair in enumerate(PAIRS)
    ]
    options = PrepareOptions(
        train=[write_pairs(tmp_path, "train", given)],
        vocabulary_size=130,
        case="factored",
        case_examples=0.0,
    )
    prepare(options, tmp_path / "out")
    data = PreparedData(tmp_path / "out")
    store = data.store("train")
    tokenizers = data.source_tokenizer, data.target_tokenizer
    pairs = ModifiedPairs(store, tokenizers, [modifier], [120], 99, [])
    assert (pairs.lengths[120:] >= store.lengths).all()
    weights = [pairs.weights(None, {modifier: 0.3})]
    shapes = choose_batch_shapes(pairs.lengths, 256, 3, 1, weights[0])
    plan = StagedPlan(pairs.lengths, shapes, 3, weights, [0])
    for step in range(plan.batches_in_epoch(0)):
        read(pairs, plan, step)


def test_texts_are_changed_word_by_word():
    symbols = ["<x>"]
    text = "der kleine <x>Hund schläft ß"
    assert in_capitals(text, None, symbols) == "DER KLEINE <x>Hund SCHLÄFT SS"
    assert in_title_case(text, None, symbols) == (
        "Der Kleine <x>Hund Schläft Ss"
    )
    found = {
        with_typos(text, random.Random(n).random, symbols) for n in range(60)
    }
    assert len(found) > 9
    assert all(one.startswith("der ") and "<x>Hund" in one for one in found)
    assert with_typos("ab <x>y", random.Random(1).random, symbols) == "ab <x>y"
