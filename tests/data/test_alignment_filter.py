"""What must be true of scores of alignments, and of the filter by them.

Misaligned pairs are told from good ones, also rare words do not speak for the
pair that they were learned from; the number of word links is bounded.
"""

import dataclasses

import numpy as np
import pytest
from toy_corpus import contents, decoded, prepare, write_pairs

from keras_deepnmt.data.lexical_table import learn_lexical_table
from keras_deepnmt.data.preparation import alignment_filter
from keras_deepnmt.data.preparation.alignment_filter import AlignmentFilter
from keras_deepnmt.data.preparation.alignment_scores import AlignmentScores
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.data.preparation.spool import ORIGIN, Spool
from keras_deepnmt.errors import UserError


def sentences(number, seed=0, words=60):
    """Pairs of ids in which word `n` is the translation of `n`, reordered."""
    random = np.random.default_rng(seed)
    pairs = []
    for _ in range(number):
        source = random.integers(4, 4 + words, random.integers(3, 9))
        pairs.append((source, random.permutation(source)))
    return pairs


def misalign(pairs, rows):
    """Moves the targets of some rows to the next of them."""
    pairs = list(pairs)
    targets = [pairs[row][1] for row in rows]
    for row, target in zip(rows, targets[1:] + targets[:1], strict=True):
        pairs[row] = pairs[row][0], target
    return pairs


def scores_of(pairs, learned=True):
    sources, targets = zip(*pairs, strict=True)
    scores = AlignmentScores(pairs)
    return scores.score(sources, targets, [learned] * len(pairs))


def test_misaligned_pairs_score_lower_than_good_ones():
    rows = range(5, 400, 20)
    scores = scores_of(misalign(sentences(400), rows))
    bad = np.zeros(400, bool)
    bad[rows] = True
    assert scores[bad].max() < 0 < scores[~bad].min()


def test_a_pair_is_no_evidence_for_itself():
    """Words that occur nowhere else explain nothing, as they would else."""
    pairs = [*sentences(300), ([91, 92, 93], [94, 95, 96])]
    assert scores_of(pairs)[-1] == pytest.approx(np.log(0.1))
    assert scores_of(pairs, learned=False)[-1] > 2


def test_matches_the_equations():
    """The model without the pair's expected counts, in plain loops."""
    pairs = [([4, 5], [6, 7]), ([4], [6]), ([5, 5], [7]), ([4, 4], [6, 7, 7])]

    def gain(pairs, row):
        table = learn_lexical_table(pairs)
        p = {
            key: value
            for *key, value in zip(
                table.source_ids.tolist(),
                table.target_ids.tolist(),
                table.probabilities,
                strict=True,
            )
            for key in [tuple(key)]
            if value >= 1e-4
        }
        counts = {}
        for number, (source, target) in enumerate(pairs):
            if number == row:
                continue
            for word in target:
                total = sum(p.get((s, word), 0) for s in [-1, *source])
                for s in [-1, *source]:
                    share = p.get((s, word), 0) / total
                    counts[s, word] = counts.get((s, word), 0) + share
        totals = {
            s: sum(count for (other, _), count in counts.items() if other == s)
            for s in (-1, 4, 5, 6, 7)
        }
        words = [word for _, target in pairs for word in target]
        source, target = pairs[row]
        logs = []
        for word in target:
            explained = sum(
                counts.get((s, word), 0) / (totals[s] + 1)
                for s in [-1, *source]
            ) / (len(source) + 1)
            frequency = words.count(word) / len(words)
            logs.append(np.log(0.9 * explained / frequency + 0.1))
        return np.mean(logs)

    swapped = [(target, source) for source, target in pairs]
    expected = [
        (gain(pairs, row) + gain(swapped, row)) / 2 for row in range(len(pairs))
    ]
    np.testing.assert_allclose(scores_of(pairs), expected, atol=1e-9)


def test_words_that_the_text_did_not_have_gain_nothing():
    scores = AlignmentScores(sentences(50))
    found = scores.score(
        [[999], [5, 999], [5]], [[998], [998], [5]], [False] * 3
    )
    assert found[0] == found[1] * 0 == 0 and found[2] > 0


def test_pairs_with_too_many_links_are_not_scored():
    scores = AlignmentScores(sentences(50))
    long = [5] * 2001
    assert scores.score([long], [[6] * 2001], [False]).tolist() == [0.0]


class Words:
    """Stands for a tokenizer: the ids are the numbers in the text."""

    def encode(self, texts):
        return [np.array(text.split(), "int32") for text in texts]


def spool_of(folder, pairs):
    with Spool(folder, "train") as spool:
        texts = [tuple(" ".join(map(str, ids)) for ids in p) for p in pairs]
        for start in range(0, len(texts), 1000):
            block = texts[start : start + 1000]
            spool.write(block, np.zeros(len(block), ORIGIN))
    return spool


@pytest.mark.parametrize("max_links", [10**9, 40_000, 9_000])
def test_the_links_that_are_learned_from_are_bounded(
    tmp_path, max_links, monkeypatch
):
    learned = []

    class Learning(AlignmentScores):
        def __init__(self, pairs):
            learned.extend(pairs)
            super().__init__(pairs)

    monkeypatch.setattr(alignment_filter, "AlignmentScores", Learning)
    pairs = sentences(2500)
    spool = spool_of(tmp_path, pairs)
    aligned = AlignmentFilter(spool, (Words(), Words()), 0.0, max_links)
    links = sum((len(s) + 1) * (len(t) + 1) for s, t in learned)
    assert links <= max_links
    assert links > max_links / 4 or aligned.distance == 1
    expected = pairs[:: aligned.distance]
    assert [s.tolist() for s, _ in learned] == [s.tolist() for s, _ in expected]
    rows = np.arange(0, 2500, 7)
    sources, targets = zip(*(pairs[row] for row in rows), strict=True)
    assert not aligned.misaligned(rows, sources, targets).any()
    moved = targets[1:] + targets[:1]
    assert aligned.misaligned(rows, sources, moved).mean() > 0.9


def text_pairs(number, seed=1):
    english = "dog cat bird tree house child table lamp river road".split()
    german = "Hund Katze Vogel Baum Haus Kind Tisch Lampe Fluss Weg".split()
    random = np.random.default_rng(seed)
    pairs = []
    for _ in range(number):
        words = random.permutation(10)[:5]
        pairs.append(
            tuple(
                " ".join(side[w] for w in words) for side in (english, german)
            )
        )
    return pairs


@pytest.fixture
def options(tmp_path):
    pairs = text_pairs(400)
    for row in (17, 230):
        source = "dog cat bird tree house"
        pairs[row] = source, f"Kind Tisch Lampe {'Fluss ' * (row % 5)}Weg"
    return PrepareOptions(
        train=[write_pairs(tmp_path, "train", pairs)],
        valid=write_pairs(tmp_path, "valid", [pairs[17], pairs[5]]),
        vocabulary_size=90,
        drop_duplicates=False,
        min_alignment_score=0.0,
    )


def test_prepare_leaves_them_out_of_the_training_text_only(tmp_path, options):
    file = tmp_path / "rejected.tsv"
    manifest = prepare(options, tmp_path / "out", rejected_file=file)
    counts = manifest["filters"]
    assert counts["train"]["misaligned"] == 2
    assert counts["train"]["kept"] == 398
    assert counts["valid"]["misaligned"] == 0 and counts["valid"]["kept"] == 2
    rows = [line.split("\t") for line in file.read_text().splitlines()[1:]]
    assert [(row[2], row[3]) for row in rows] == [
        ("18", "misaligned"),
        ("231", "misaligned"),
    ]
    assert manifest["corpora"][-1]["pairs"] == 398
    assert len(decoded(tmp_path / "out", "train")) == 398


def test_the_same_text_gives_the_same_bytes(tmp_path, options):
    prepare(options, tmp_path / "a")
    prepare(options, tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_a_corpus_of_wrong_pairs_is_named(tmp_path, options, caplog):
    wrong = [("dog cat bird tree", "Lampe Fluss Weg Tisch")] * 3
    wrong = [write_pairs(tmp_path, "wrong", wrong)]
    options = dataclasses.replace(options, train=[*options.train, *wrong])
    prepare(options, tmp_path / "out")
    assert "corpus wrong" in caplog.text and "3 misaligned" in caplog.text


@pytest.mark.parametrize(
    ("changes", "name", "first"),
    [
        ({"mask_symbols": 4}, "Anna", ""),
        ({"tag_side": "target"}, "", "<2de>"),
    ],
)
def test_the_text_that_is_scored_is_the_one_that_was_learned(
    tmp_path, options, monkeypatch, changes, name, first
):
    """Neither mask symbols nor tags that move to the target come between."""
    learned, scored = [], []

    class Noting(AlignmentScores):
        def __init__(self, pairs):
            learned.extend(pairs)
            super().__init__(pairs)

        def score(self, sources, targets, own):
            pairs = list(zip(sources, targets, strict=True))
            scored.extend(pairs)
            return super().score(*zip(*pairs, strict=True), own)

    monkeypatch.setattr(alignment_filter, "AlignmentScores", Noting)
    pairs = [
        (f"{first} {source} {name}".strip(), f"{target} {name}".strip())
        for source, target in text_pairs(200)
    ]
    train = [
        write_pairs(tmp_path, "train", pairs),
        # It tells which texts begin with a tag.
        dataclasses.replace(
            write_pairs(tmp_path, "tagged", text_pairs(9)), tag=first or None
        ),
    ]
    options = dataclasses.replace(options, train=train, **changes)
    manifest = prepare(options, tmp_path / "out")
    assert manifest["filters"]["train"]["misaligned"] == 0
    assert manifest["splits"]["train"].get("masked_pairs", 99) > 50
    assert len(scored) == len(learned) == 209
    for found, expected in zip(scored, learned, strict=True):
        for side, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(side, other)


def test_the_score_must_be_a_number(options):
    with pytest.raises(UserError, match="min_alignment_score"):
        dataclasses.replace(options, min_alignment_score=float("nan"))
