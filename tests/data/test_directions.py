"""What must be true of corpora in both directions, and of their sampling.

* a reversed corpus is the same corpus with its sides and languages swapped
* what is held out in one direction is not trained in the other
* filters have the languages of the direction
* a temperature decides how often each corpus is drawn, the same after a resume
"""

import dataclasses
import re

import numpy as np
import pytest
from toy_corpus import decoded, prepare, toy_pairs, write_pairs

from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.batch_shapes import BatchShape
from keras_deepnmt.data.corpora import CorpusOptions
from keras_deepnmt.data.directions import Directions
from keras_deepnmt.data.manifest import (
    corpus_weights,
    describe_manifest,
    row_weights,
)
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError

PAIRS = toy_pairs(140)
SWAPPED = [pair[::-1] for pair in PAIRS]


def both(folder, name, pairs, **changes):
    """A corpus in both directions, each with its tag."""
    corpus = write_pairs(folder, name, pairs)
    return [
        dataclasses.replace(corpus, tag="<2de>", **changes),
        dataclasses.replace(corpus, tag="<2en>", reversed=True, **changes),
    ]


def options(train, **changes):
    values = {
        "vocabulary_size": 97,
        "source_language": "en",
        "target_language": "de",
        **changes,
    }
    return PrepareOptions(train=train, **values)


def with_tag(pairs, tag):
    return [(f"{tag} {source}", target) for source, target in pairs]


def test_a_reversed_corpus_has_its_sides_swapped(tmp_path):
    folder = tmp_path / "out"
    manifest = prepare(
        options(
            both(tmp_path, "train", PAIRS[:100]),
            valid=both(tmp_path, "valid", PAIRS[100:110]),
            test=write_pairs(tmp_path, "test", PAIRS[110:113]),
        ),
        folder,
    )
    for split, rows in (("train", slice(100)), ("valid", slice(100, 110))):
        expected = with_tag(PAIRS[rows], "<2de>")
        expected += with_tag(SWAPPED[rows], "<2en>")
        assert decoded(folder, split) == expected
    texts = PreparedData(folder).texts("valid")
    assert list(zip(*texts, strict=True)) == expected
    entries = {
        (entry["split"], entry["tag"]): (entry["direction"], entry["rows"])
        for entry in manifest["corpora"]
    }
    assert entries == {
        ("train", "<2de>"): (["en", "de"], [0, 100]),
        ("train", "<2en>"): (["de", "en"], [100, 200]),
        ("valid", "<2de>"): (["en", "de"], [0, 10]),
        ("valid", "<2en>"): (["de", "en"], [10, 20]),
        ("test", None): (["en", "de"], [0, 3]),
    }


def test_one_file_can_be_reversed(tmp_path):
    file = tmp_path / "both.tsv"
    lines = [f"{number}\t{s}\t{t}\n" for number, (s, t) in enumerate(PAIRS)]
    file.write_text("n\ten\tde\n" + "".join(lines))
    corpus = CorpusOptions(
        file=str(file), source_column="en", target_column="de", reversed=True
    )
    folder = tmp_path / "out"
    manifest = prepare(options([corpus]), folder)
    assert decoded(folder, "train") == SWAPPED
    forwards = dataclasses.replace(corpus, reversed=False)
    hashes = manifest["corpora"][0]["sha256"]
    other = prepare(options([forwards]), tmp_path / "other")["corpora"][0]
    assert other["sha256"] == {
        "source": hashes["target"],
        "target": hashes["source"],
    }


def test_drawn_pairs_are_held_out_in_both_directions(tmp_path):
    folder = tmp_path / "out"
    manifest = prepare(
        options(both(tmp_path, "train", PAIRS), valid_pairs=20), folder
    )

    def plain(split):
        return {
            frozenset((source.split(" ", 1)[1], target))
            for source, target in decoded(folder, split)
        }

    assert len(decoded(folder, "valid")) == 20
    assert not plain("valid") & plain("train")
    assert len(plain("valid") | plain("train")) == len(PAIRS)
    counts = manifest["filters"]["train"]
    assert counts["kept"] == 2 * len(PAIRS) - counts["held_out"]
    assert counts["held_out"] == 2 * len(plain("valid"))


def test_drawn_sentences_in_context_are_held_out_in_both_directions(tmp_path):
    """The other direction has them in the context of its own language."""
    pairs = list(dict.fromkeys(PAIRS))
    folder = tmp_path / "out"
    corpora = both(tmp_path, "train", pairs)
    prepare(options(corpora, valid_pairs=20, context=1), folder)

    def sentences(split):
        return {
            frozenset((re.split("<2..> |<sep> ", source)[-1], target))
            for source, target in decoded(folder, split)
        }

    assert len(decoded(folder, "valid")) == 20
    assert not sentences("valid") & sentences("train")
    assert len(sentences("valid") | sentences("train")) == len(pairs)


def test_filters_have_the_languages_of_the_direction(tmp_path):
    # Of Chinese letters are counted, of German words.
    pairs = [("我看见一只大狗", "ich sehe einen Hund"), *PAIRS]
    corpora = both(tmp_path, "train", pairs, source_language="zh")
    both_kept = options(corpora, max_ratio=1.8, min_length=2)
    found = [both_kept.pair_filter(c.direction(("en", "de"))) for c in corpora]
    assert found[0].lengths(*pairs[0]) == (7, 4)
    assert found[1].lengths(*pairs[0][::-1]) == (4, 7)


def test_a_folder_of_other_directions_is_refused(tmp_path):
    folder = tmp_path / "out"
    corpora = both(tmp_path, "train", PAIRS)
    prepare(options(corpora), folder)
    prepare(options(corpora), folder)
    turned = [dataclasses.replace(c, reversed=False) for c in corpora]
    with pytest.raises(UserError, match="prepared already, but with tag"):
        prepare(options(turned), folder)
    french = [dataclasses.replace(c, target_language="fr") for c in corpora]
    with pytest.raises(UserError, match=r"\['en', 'de'\] for .*'fr'\]"):
        prepare(options(french), folder)


def test_the_directions_of_a_model_choose_its_tag(tmp_path):
    data = options(both(tmp_path, "train", PAIRS))
    directions = Directions(data.directions())
    assert directions.targets == ("de", "en")
    assert directions.tag_of("en") == "<2en>"
    with pytest.raises(UserError, match="to write: de, en. Received: fr"):
        directions.tag_of("fr")
    single = Directions([{"source": "en", "target": "de", "tag": None}])
    assert single.tag_of("de") is None

    def of_tags(*tags):
        return Directions(
            {"source": "en", "target": "de", "tag": tag} for tag in tags
        )

    # That of tagged back-translations is not for other texts.
    assert of_tags("<bt>", None).tag_of("de") is None
    with pytest.raises(UserError, match="has several: <a>, <b>. Give"):
        of_tags("<a>", "<b>").tag_of("de")
    with pytest.raises(UserError, match="knows its languages"):
        Directions().tag_of("de")


def entries(*sizes, weights=None):
    ends = np.cumsum(sizes).tolist()
    return [
        {"split": "train", "rows": [end - size, end], "weight": weight}
        for size, end, weight in zip(
            sizes, ends, weights or [1.0] * len(sizes), strict=True
        )
    ]


@pytest.mark.parametrize("temperature", [1.0, 1.5, 5.0, 1e9])
def test_corpora_are_drawn_by_temperature(temperature):
    sizes, given = np.array([8000, 400, 27]), np.array([1.0, 3.0, 1.0])
    manifest = {
        "corpora": entries(*sizes.tolist(), weights=given.tolist()),
        "options": {"temperature": temperature},
    }
    drawn = np.array(corpus_weights(manifest)) * sizes
    expected = given * sizes ** (1 / temperature)
    np.testing.assert_allclose(drawn / drawn.sum(), expected / expected.sum())
    # An epoch is as long as without.
    np.testing.assert_allclose(drawn.sum(), (given * sizes).sum())


def test_a_resumed_run_draws_the_same_pairs(tmp_path):
    train = [
        write_pairs(tmp_path, name, pairs)
        for name, pairs in (("large", PAIRS[:120]), ("small", PAIRS[120:]))
    ]
    manifest = prepare(options(train, temperature=4.0), tmp_path / "out")
    assert "training corpus small: 39.0% of the pairs" in (
        describe_manifest(manifest)
    )

    def plan():
        weights = row_weights(manifest)
        return BatchPlan(
            np.full((140, 2), 4), [BatchShape(7, 4, 4)], 3, weights
        )

    whole = plan()
    epoch = [whole.batch(s)[1] for s in range(whole.batches_per_epoch)]
    counts = np.bincount(np.concatenate(epoch), minlength=140)
    assert counts.sum() == 140 and abs(counts[120:].sum() - 0.39 * 140) < 1.1
    for step in (37, 2, 1003):  # another process, from any update on
        np.testing.assert_array_equal(
            plan().batch(step)[1], whole.batch(step)[1]
        )
