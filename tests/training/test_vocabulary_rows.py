"""What must be true of a model whose vocabulary grows.

* the logits of old pieces, for a text of old pieces, are those of before
* a new piece has the mean of its parts: of their logits, and of their rows in
  every embedding
* it is so for every preset; no weight with a vocabulary axis is left out
"""

import numpy as np
import pytest

from keras_deepnmt import create_model
from keras_deepnmt.models import ConvSeq2Seq, Transformer
from keras_deepnmt.training.transfer import weight_path
from keras_deepnmt.training.vocabulary_rows import copy_to_larger_vocabulary
from keras_deepnmt.zoo.registry import get_preset, variants

SMALL = dict(num_encoder_layers=2, num_decoder_layers=2)
WIDTHS = {
    Transformer: dict(hidden_dim=8, intermediate_dim=16, num_heads=2),
    ConvSeq2Seq: dict(hidden_dim=8, growth_dim=5),
}
SOURCE_PARTS = [np.array(ids) for ids in ([4, 5], [1])]
TARGET_PARTS = [np.array(ids) for ids in ([6, 4, 4], [1], [7, 12])]
CASES = {
    "one matrix": ("transformer_tiny", (13, 13), {}),
    "separate, tied output": ("transformer_tiny", (11, 13), {}),
    "separate output": (
        "transformer_tiny",
        (11, 13),
        {"tie_output_embedding": False},
    ),
    "convolutional": ("conv_seq2seq_tiny", (11, 13), {}),
    "contextualized": ("role_interaction_softmax_tiny", (11, 13), {}),
}


def make(name, sizes, overrides):
    widths = WIDTHS[get_preset(name).model]
    return create_model(name, *sizes, **{**SMALL, **widths, **overrides})


def grown(name, sizes, overrides):
    """A model with random weights, and one with a larger vocabulary."""
    parts = (SOURCE_PARTS, TARGET_PARTS)
    if sizes[0] == sizes[1]:
        parts = (TARGET_PARTS, TARGET_PARTS)
    before = make(name, sizes, overrides)
    random = np.random.default_rng(0)
    for weight in before.weights:
        if "int" not in weight.dtype:
            weight.assign(0.3 * random.normal(size=weight.shape))
    larger = [size + len(p) for size, p in zip(sizes, parts, strict=True)]
    after = make(name, larger, overrides)
    return before, after, copy_to_larger_vocabulary(before, after, *parts)


def batch(sizes):
    random = np.random.default_rng(1)
    return {
        "source_ids": random.integers(4, sizes[0], (3, 7)),
        "target_ids": random.integers(4, sizes[1], (3, 5)),
    }


def check_logits(name, sizes, overrides):
    before, after, report = grown(name, sizes, overrides)
    assert report.fresh == report.unused == report.mismatched == {}
    assert sum(report.shared.values()) == after.count_params()
    inputs = batch(sizes)
    expected, received = (np.array(m(inputs)) for m in (before, after))
    size = sizes[1]
    np.testing.assert_allclose(received[..., :size], expected, atol=1e-5)
    for number, ids in enumerate(TARGET_PARTS):
        np.testing.assert_allclose(
            received[..., size + number],
            expected[..., ids].mean(axis=-1),
            atol=1e-5,
        )
    return before, after, report


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_logits_are_those_of_before_and_new_ones_means(case):
    before, after, report = check_logits(*case)
    theirs = {weight_path(before, w): w.numpy() for w in before.weights}
    ours = {weight_path(after, w): w.numpy() for w in after.weights}
    tables = [path for path in report.extended if "embedding" in path]
    assert tables
    for path in tables:
        parts = TARGET_PARTS
        if path.startswith("source_"):
            parts = SOURCE_PARTS
        rows, old = ours[path], theirs[path]
        if "reverse" in path:  # (D, V)
            rows, old = rows.T, old.T
        np.testing.assert_array_equal(rows[: len(old)], old)
        for row, ids in zip(rows[len(old) :], parts, strict=True):
            np.testing.assert_allclose(row, old[ids].mean(axis=0), rtol=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("variant", variants())
def test_every_preset_can_grow(variant):
    name = variants()[variant][0]
    overrides = {}
    if variant == "everything":  # some of its layers read several lower ones
        overrides = {"num_encoder_layers": 3, "num_decoder_layers": 3}
    if "surface_fusion" in variant or variant == "everything":
        _, _, report = grown(name, (11, 13), overrides)
        assert report.fresh == report.mismatched == {}
        # A fusion of outputs gives log-probabilities instead of logits.
        overrides["output_fusion"] = None
    check_logits(name, (11, 13), overrides)


def test_the_report_names_the_new_rows():
    _, _, report = grown(*CASES["separate, tied output"])
    assert report.extended == {
        "source_embedding/embeddings": 2,
        "target_embedding/embeddings": 3,
    }
    assert "source_embedding/embeddings has 2 new rows" in report.describe()


def test_other_shapes_stay_mismatched():
    before, after, _ = grown(*CASES["one matrix"])
    report = copy_to_larger_vocabulary(before, after, [], [np.array([1])])
    assert list(report.mismatched) == ["shared_embedding/embeddings"]
    assert report.extended == {}
