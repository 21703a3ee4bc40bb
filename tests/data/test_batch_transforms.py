"""What must be true of word dropout and subword sampling.

* Word dropout makes a share of what is read unknown; begin, end, padding and
  labels stay.
* Subword sampling cuts the same text another way, source and target, and always
  within the batch's shape; what it cannot cut stays as it was stored.
* Both depend on seed and step alone: any step can be reached directly, with
  any number of threads.
"""

import itertools
import random
from collections import Counter

import numpy as np
import pytest
from foreign_tokenizer import foreign_tokenizer
from forked_processes import run_forked

from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.batch_shapes import (
    BatchShape,
    choose_batch_shapes,
)
from keras_deepnmt.data.batches.batch_source import grain_batches
from keras_deepnmt.data.batches.batch_transforms import WordDropout
from keras_deepnmt.data.batches.segmentation import RandomSegmentation
from keras_deepnmt.data.batches.subword_sampling import SubwordSampling
from keras_deepnmt.data.pair_store import PairStore
from keras_deepnmt.data.preparation.shard_writer import ShardWriter
from keras_deepnmt.data.preparation.tokenizer_training import train_tokenizer


def sentences(count, seed):
    draw = random.Random(seed)
    words = ["".join(draw.choices("abcde", k=n % 7 + 2)) for n in range(97)]
    return [" ".join(draw.choices(words, k=n % 13 + 1)) for n in range(count)]


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def tokenizers(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    return tuple(
        train_tokenizer(
            sentences(331, seed), folder / f"{side}.model", 83, request.param
        )
        for side, seed in (("source", 1), ("target", 2))
    )


@pytest.fixture(scope="module")
def store(tokenizers, tmp_path_factory):
    directory = tmp_path_factory.mktemp("prepared")
    source, target = (
        tokenizer.encode(sentences(211, seed))
        for tokenizer, seed in zip(tokenizers, (1, 2), strict=True)
    )
    with ShardWriter(directory, "train") as writer:
        for pair in zip(source, target, strict=True):
            writer.write(*pair)
    return PairStore(directory, "train")


@pytest.fixture(scope="module")
def plan(store):
    return BatchPlan(
        store.lengths, choose_batch_shapes(store.lengths, 307, 3), 7
    )


@pytest.fixture
def sampling(tokenizers):
    # Much chance for either: left-out merges, or a flat distribution.
    alpha = 0.3 if is_bpe(tokenizers) else 0.03
    return SubwordSampling(tokenizers, alpha, seed=5)


def is_bpe(tokenizers):
    return "bpe" in str(tokenizers[0].model_file)


def batch_of(store, plan, step, *transforms):
    return next(
        iter(grain_batches(store, plan, step, 1, transforms=transforms))
    )


def assert_same_batch(batch, expected):
    for name in expected[0]:
        np.testing.assert_array_equal(batch[0][name], expected[0][name])
    np.testing.assert_array_equal(batch[1], expected[1])


def texts(tokenizers, inputs, labels):
    source, target = tokenizers
    return source.decode(inputs["source_ids"]), target.decode(labels)


def test_word_dropout_makes_a_share_unknown_and_nothing_else():
    ids = np.tile(np.array([2, *range(4, 103), 3, 0, 0], "int32"), (53, 1))
    inputs = {"source_ids": ids, "target_ids": ids.copy()}
    found = WordDropout(0.2, seed=3).change_inputs(inputs, step=11)
    for name, new in found.items():
        changed = new != inputs[name]
        assert (new[changed] == 1).all()
        assert not changed[np.isin(ids, (0, 2, 3))].any()
        # Five standard deviations of 5,247 draws.
        share = changed[ids > 3].mean()
        assert abs(share - 0.2) < 0.0277
        assert new.dtype == np.int32
    assert (found["source_ids"] != found["target_ids"]).any()
    again = WordDropout(0.2, seed=3).change_inputs(inputs, step=11)
    np.testing.assert_array_equal(again["source_ids"], found["source_ids"])
    for other in (
        WordDropout(0.2, seed=4).change_inputs(inputs, step=11),
        WordDropout(0.2, seed=3).change_inputs(inputs, step=12),
    ):
        assert (other["source_ids"] != found["source_ids"]).any()


def test_word_dropout_keeps_ids_of_one_side():
    ids = np.tile(np.arange(4, 20), (50, 1))
    inputs = {"source_ids": ids, "target_ids": ids.copy()}
    dropout = WordDropout(0.9, kept={"target_ids": [5, 9]})
    found = dropout.change_inputs(inputs, step=3)
    is_kept = np.isin(ids, [5, 9])
    assert (found["target_ids"] == ids)[is_kept].all()
    assert (found["target_ids"] == 1)[~is_kept].mean() > 0.8
    assert (found["source_ids"] == 1)[is_kept].mean() > 0.7


def test_word_dropout_leaves_the_labels(store, plan):
    inputs, labels = batch_of(store, plan, 2, WordDropout(0.5))
    plain_inputs, plain_labels = batch_of(store, plan, 2)
    np.testing.assert_array_equal(labels, plain_labels)
    for name in inputs:
        assert (inputs[name] != plain_inputs[name]).any()


def test_no_word_dropout_is_the_plain_batch(store, plan):
    batch = batch_of(store, plan, 2, WordDropout(0.0))
    assert_same_batch(batch, batch_of(store, plan, 2))


def test_a_sampled_batch_holds_the_same_texts(
    store, plan, tokenizers, sampling
):
    changed = 0
    for step in range(plan.batches_per_epoch):
        inputs, labels = batch_of(store, plan, step, sampling)
        plain, plain_labels = batch_of(store, plan, step)
        assert texts(tokenizers, inputs, labels) == texts(
            tokenizers, plain, plain_labels
        )
        # What is read is what is written, one place later.
        np.testing.assert_array_equal(
            inputs["target_ids"][:, 1:],
            np.where(labels == 3, 0, labels)[:, :-1],
        )
        assert inputs["source_ids"].shape == plain["source_ids"].shape
        changed += (inputs["source_ids"] != plain["source_ids"]).any()
        changed += (labels != plain_labels).any()
    assert changed > plan.batches_per_epoch


def test_a_sentence_is_cut_anew_in_each_epoch(store, sampling):
    pairs, batch_shape = store.read([12]), BatchShape(1, 101, 103)
    cuts = {
        tuple(sampling.change_pairs(pairs, batch_shape, step)[0][0].tolist())
        for step in range(11)
    }
    assert len(cuts) > 2


def test_bpe_without_dropout_is_what_is_stored(store, plan, tokenizers):
    if not is_bpe(tokenizers):
        pytest.skip("With a unigram model 0 is the uniform distribution.")
    sampling = SubwordSampling(tokenizers, alpha=0.0)
    assert_same_batch(
        batch_of(store, plan, 2, sampling), batch_of(store, plan, 2)
    )


@pytest.mark.parametrize(
    "options",
    [
        {"treat_whitespace_as_suffix": True},
        {"split_by_whitespace": False},
        {"split_by_whitespace": False, "treat_whitespace_as_suffix": True},
        {"user_defined_symbols": ["de", "<2b>"]},
    ],
)
def test_models_with_other_words_are_sampled_too(tmp_path, options):
    texts = [
        f"{text.replace('a b', 'a <2b> b')} ab ba" for text in sentences(211, 1)
    ]
    tokenizer = foreign_tokenizer(
        texts, tmp_path / "m", vocab_size=83, **options
    )
    crosses = not options.get("split_by_whitespace", True)
    assert tokenizer.crosses_spaces is crosses
    rows = tokenizer.encode(texts)
    none, some = (RandomSegmentation(tokenizer, alpha) for alpha in (0.0, 0.3))
    changed = 0
    for seed, row in enumerate(rows):
        np.testing.assert_array_equal(none.draw(row, seed), row)
        drawn = some.draw(row, seed)
        changed += len(drawn) != len(row)
        assert tokenizer.decode([drawn]) == tokenizer.decode([row])
    assert changed > 70


def cuts_of(word, tokenizer, alpha, draws):
    ids = tokenizer.encode([word])[0]
    cut = RandomSegmentation(tokenizer, alpha)
    return Counter(
        " ".join(tokenizer.pieces(cut.draw(ids, seed))) for seed in range(draws)
    )


def test_bpe_leaves_out_a_merge_with_its_probability(tmp_path):
    # One word of two merges: "ab", and the space before it.
    tokenizer = train_tokenizer(["ab"] * 9, tmp_path / "ab.model", 9, "bpe")
    assert tokenizer.pieces(tokenizer.encode(["ab"])[0]) == ["▁ab"]
    found = cuts_of("ab", tokenizer, 0.3, 2003)
    # Two letters are merged first, then these with the third.
    assert abs(found["▁ a b"] / 2003 - 0.3) < 0.052
    assert abs(found["▁ab"] / 2003 - 0.7**2) < 0.056
    assert cuts_of("ab", tokenizer, 1.0, 7) == {"▁ a b": 7}
    assert cuts_of("ab", tokenizer, 0.0, 7) == {"▁ab": 7}


def test_unigram_draws_from_the_smoothed_distribution(tmp_path):
    draw = random.Random(1)
    words = ["".join(draw.choices("abc", k=n % 6 + 1)) for n in range(997)]
    tokenizer = train_tokenizer(words, tmp_path / "u.model", 41, "unigram")
    scores = {
        tokenizer.pieces([n])[0]: tokenizer._processor.get_score(n)
        for n in range(4, tokenizer.vocabulary_size)
    }
    alpha, word = 0.4, "▁abcabc"
    weights = {}
    for ends in itertools.product([True, False], repeat=len(word) - 1):
        pieces = word[0]
        for end, letter in zip(ends, word[1:], strict=True):
            pieces += " " * end + letter
        if all(piece in scores for piece in pieces.split(" ")):
            total = sum(scores[piece] for piece in pieces.split(" "))
            weights[pieces] = np.exp(alpha * total)
    found = cuts_of(word[1:], tokenizer, alpha, 4001)
    assert len(weights) > 3 and found.keys() <= weights.keys()
    for pieces, weight in weights.items():
        p = weight / sum(weights.values())
        # Five standard deviations.
        room = 5 * np.sqrt(p * (1 - p) / 4001) + 1e-3
        assert abs(found[pieces] / 4001 - p) < room


def test_another_process_draws_the_same(tokenizers):
    text = sentences(13, 2)[12]
    cut = RandomSegmentation(tokenizers[1], 0.3)
    here = cut.draw(tokenizers[1].encode([text])[0], 77).tolist()
    program = (
        "import sys; from keras_deepnmt.data.tokenizers import Tokenizer;"
        "from keras_deepnmt.data.batches.segmentation import "
        "RandomSegmentation;"
        "tokenizer = Tokenizer(sys.argv[1]);"
        "cut = RandomSegmentation(tokenizer, 0.3);"
        "print(cut.draw(tokenizer.encode([sys.argv[2]])[0], 77).tolist())"
    )
    command = ["-c", program, tokenizers[1].model_file, text]
    there = run_forked(command)
    assert there.stdout.strip() == str(here)


def test_what_does_not_fit_stays_as_it_was_stored(store, tokenizers):
    pairs = store.read(range(31))
    source, target = store.lengths[:31].max(axis=0).tolist()
    tight, wide = BatchShape(31, source, target), BatchShape(31, 211, 223)
    # Characters alone: the longest sentence fits in no shape made for pieces.
    sampling = SubwordSampling(tokenizers, alpha=0.0, tries=1)
    if is_bpe(tokenizers):
        sampling = SubwordSampling(tokenizers, alpha=1.0, tries=1)
    found = sampling.change_pairs(pairs, tight, step=5)
    free = sampling.change_pairs(pairs, wide, step=5)
    stayed = 0
    for old, new, drawn in zip(pairs, found, free, strict=True):
        for side, length in enumerate((source, target)):
            fits = len(drawn[side]) < length
            expected = drawn[side] if fits else old[side]
            np.testing.assert_array_equal(new[side], expected)
            stayed += not fits
    assert 0 < stayed < 62


def test_a_sentence_is_drawn_again_before_it_stays(store, plan, tokenizers):
    shares = [
        SubwordSampling(tokenizers, 0.1, tries=tries).stored_share(store, plan)
        for tries in (1, 7)
    ]
    assert 0 <= shares[1] < shares[0] < 1


def test_shapes_with_room_let_most_sentences_change(store, tokenizers):
    sampling = SubwordSampling(tokenizers, alpha=0.1)
    room = sampling.roomy_lengths(store)
    assert (room >= store.lengths).all()
    assert (room.max(0) == store.lengths.max(0)).all()
    # No more than is needed: drawn sentences are not twice as long.
    assert room.mean() < 2 * store.lengths.mean()
    shares = []
    for lengths in (store.lengths, room):
        plan = BatchPlan(lengths, choose_batch_shapes(lengths, 307, 3))
        shares.append(sampling.stored_share(store, plan))
    assert shares[1] < 0.5 * shares[0]
    np.testing.assert_array_equal(room, sampling.roomy_lengths(store))


def test_a_sentence_with_an_unknown_word_stays(tokenizers, sampling):
    source = np.array([*tokenizers[0].encode(["abcde abcde"])[0], 1], "int32")
    target = tokenizers[1].encode(sentences(13, 2)[12:])[0]
    pairs = [(source, target)] * 17
    found = sampling.change_pairs(pairs, BatchShape(17, 101, 103), step=5)
    assert all(new is source for new, _ in found)
    assert any(new.tolist() != target.tolist() for _, new in found)


def test_any_step_is_reached_directly_by_any_number_of_threads(
    store, plan, sampling
):
    transforms = [sampling, WordDropout(0.3, seed=5)]
    whole = list(
        grain_batches(store, plan, 0, 17, num_threads=4, transforms=transforms)
    )
    rest = list(
        grain_batches(store, plan, 8, 9, num_threads=1, transforms=transforms)
    )
    for batch, expected in zip(rest, whole[8:], strict=True):
        assert_same_batch(batch, expected)


@pytest.mark.parametrize(
    "make, received",
    [
        (lambda: WordDropout(1.0), "probability=1.0"),
        (lambda: SubwordSampling((), 1.1), "alpha=1.1"),
        (lambda: SubwordSampling((), 0.1, tries=0), "tries=0"),
    ],
)
def test_refuses_what_is_no_option(make, received):
    with pytest.raises(ValueError, match=received):
        make()
