"""What must be true of scoring large batches.

* no tensor of all scores `(B, T, V)` is kept
* a batch computed in parts has the scores of its rows alone
"""

import keras
import numpy as np
import paper_slots
import pytest
from tensor_sizes import largest_tensor
from toy_model import ToyModel, eagerly

from keras_deepnmt.decoding import compile_for, score_targets
from keras_deepnmt.models import ConvSeq2Seq, Transformer
from keras_deepnmt.xla import tuned

ROWS, LENGTH, VOCABULARY = 37, 96, 211
ON_TENSORFLOW = keras.backend.backend() == "tensorflow"


@pytest.fixture(scope="module")
def model():
    return ToyModel(vocabulary_size=VOCABULARY, source_vocabulary_size=29)


def batch(rows, length=LENGTH):
    generator = np.random.default_rng(0)
    source_ids = generator.integers(4, 29, (rows, 7)).astype("int32")
    labels = generator.integers(4, VOCABULARY, (rows, length)).astype("int32")
    ends = generator.integers(1, length, rows)
    for row, end in enumerate(ends):
        labels[row, end] = 3
        labels[row, end + 1 :] = 0
    begin = np.full((rows, 1), 2, "int32")
    inputs = np.where(labels == 3, 0, labels)[:, :-1]
    return source_ids, np.concatenate([begin, inputs], 1), labels


def test_no_tensor_has_the_scores_of_all_positions(model):
    # 32 rows of 96 in three parts would have 11 rows, 1,056 positions.
    for rows in (ROWS, 32):
        arrays = batch(rows)
        size = largest_tensor(lambda *ids: score_targets(model, *ids), *arrays)
        assert size <= 1024 * VOCABULARY
    one_row = batch(1, 1100)
    size = largest_tensor(lambda *ids: score_targets(model, *ids), *one_row)
    assert size >= 1100 * VOCABULARY


@pytest.mark.thorough
@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("rows, length", [(ROWS, LENGTH), (3, 1030)])
def test_parts_have_the_scores_of_single_rows(model, rows, length, jit_compile):
    arrays = batch(rows, length)
    score = compile_for(model, score_targets, jit_compile)
    found = score(*arrays)
    assert found.shape == (rows, length)
    for row in (0, 1, rows - 1):
        end = int((arrays[2][row] != 0).sum())
        alone = score(
            arrays[0][row : row + 1],
            *(array[row : row + 1, :64] for array in arrays[1:]),
        )[0]
        shown = min(end, 64)
        np.testing.assert_allclose(
            found[row, :shown], alone[:shown], 1e-5, 1e-5
        )
        assert not found[row, end:].any()


# `test_jax.py` runs this file on JAX, where no such graph is made.
@pytest.mark.thorough
@pytest.mark.skipif(not ON_TENSORFLOW, reason="Only TensorFlow exports.")
def test_a_graph_of_open_shapes_gives_the_same(model):
    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec((None, None), "int32")] * 3)
    def graph(*arrays):
        return score_targets(model, *arrays)

    for rows, length in ((ROWS, LENGTH), (2, 5), (1, 1030)):
        arrays = batch(rows, length)
        expected = compile_for(model, score_targets, False)(*arrays)
        np.testing.assert_allclose(graph(*arrays), expected, 1e-5, 1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "backbone, choice",
    [
        *(
            (Transformer, choice)
            for choice in (paper_slots.one_choice, paper_slots.another_choice)
        ),
        (ConvSeq2Seq, paper_slots.of_convolutions),
    ],
)
def test_parts_of_every_model_have_the_scores_of_the_whole(
    backbone, choice, monkeypatch
):
    layers = dict.fromkeys(
        ("num_encoder_layers", "num_decoder_layers"), paper_slots.NUM_LAYERS
    )
    sizes = {"intermediate_dim": 12, "num_heads": paper_slots.NUM_HEADS}
    model = backbone(
        29,
        VOCABULARY,
        hidden_dim=8,
        **(sizes if backbone is Transformer else {}),
        **layers,
        **choice(),
    )
    arrays = batch(5, 6)
    whole = eagerly(score_targets, model, *arrays)
    monkeypatch.setattr(tuned, "SCORED_POSITIONS", 12)
    parts = compile_for(model, score_targets, False)(*arrays)
    np.testing.assert_allclose(parts, whole, 1e-5, 1e-5)
