"""What must be true of the branches of hybrid self-attention.

* shares of gates sum to 1, in their proportion, at real tokens
* a model without a branch is the one whose fusion leaves it out
* a figure leaves out only what leaves another branch
"""

from types import SimpleNamespace

import keras
import numpy as np
import pytest
from keras import ops

from keras_deepnmt.analysis import (
    branch_names,
    gate_shares,
    record,
    without_branch,
)
from keras_deepnmt.analysis.hybrid_self_attention import branch_figures
from keras_deepnmt.layers import HybridSelfAttention
from keras_deepnmt.masks import relative_positions
from keras_deepnmt.models import Transformer

B, S, D, N = 2, 6, 16, 2


def test_shares_are_those_of_the_mean_gates_at_real_tokens():
    gates = {
        "global": np.full((1, 3, 2), 0.2),
        "forward": np.array([[[0.6, 0.6], [0.6, 0.6], [0.0, 0.0]]]),
    }
    shares = gate_shares(gates, [[True, True, False]])
    assert shares == pytest.approx({"global": 0.25, "forward": 0.75})
    assert gate_shares(gates) == pytest.approx(
        {"global": 1 / 3, "forward": 2 / 3}
    )
    with pytest.raises(ValueError, match="`gates` must have at least one"):
        gate_shares({})


def make(fusion, **options):
    keras.utils.set_random_seed(9)
    attention = HybridSelfAttention(
        N, window=[1, 3], fusion=fusion, gate_reduction=4, **options
    )
    model = Transformer(
        *(19, 19, D, 24, N, 2, 1), encoder_self_attention=attention
    )
    for variable in model.trainable_variables:
        # Biases and gates that are not at their initial values.
        variable.assign_add(keras.random.normal(variable.shape, stddev=0.1))
    return model


def ids():
    generator = np.random.default_rng(0)
    return {
        "source_ids": generator.integers(4, 19, (B, S)),
        "target_ids": generator.integers(4, 19, (B, 3)),
    }


FUSIONS, BRANCHES = (
    ("sum", "concat", "gated_sum"),
    ("backward", "local_3", "global"),
)


@pytest.mark.parametrize(
    ("fusion", "branch"),
    [
        # Each fusion and each branch in every run.
        pytest.param(
            fusion,
            branch,
            marks=() if place == other else pytest.mark.thorough,
        )
        for place, fusion in enumerate(FUSIONS)
        for other, branch in enumerate(BRANCHES)
    ],
)
def test_the_fusion_leaves_the_branch_out(fusion, branch):
    model = make(fusion)
    other = without_branch(model, branch)
    attention = model.encoder_blocks[0].attention
    smaller = other.encoder_blocks[0].attention
    kept = [name for name in attention.branch_names if name != branch]
    assert list(smaller.branch_names) == kept
    x = keras.random.normal((B, S, D), seed=1)
    queries, keys, values = (
        attention._project(getattr(attention, f"{name}_projection"), x)
        for name in ("query", "key", "value")
    )
    masks = attention._make_mask(None, False, relative_positions(S))
    logits = attention._compute_logits(queries, keys)
    contexts = {
        name: attention._apply_weights(attention._softmax(logits, mask), values)
        for name, mask in zip(attention.branch_names, masks, strict=True)
    }
    if fusion == "sum":
        context = sum(contexts[name] for name in kept)
    elif fusion == "concat":
        joined = [
            contexts[name] * (name != branch) for name in attention.branch_names
        ]
        context = attention.fusion_projection(ops.concatenate(joined, axis=-1))
    else:
        gates = record(model, "encoder_block_1/attention/gate_*")
        assert len(gates(ids())) == len(kept) + 1
        context = sum(
            ops.sigmoid(excite(ops.relu(squeeze(contexts[name]))))
            * contexts[name]
            for name, squeeze, excite in zip(
                attention.branch_names,
                attention.squeezes,
                attention.excites,
                strict=True,
            )
            if name != branch
        )
    np.testing.assert_allclose(
        smaller(x), attention.output_projection(context), atol=1e-5
    )


def test_names_are_those_of_the_layer():
    model = make("sum")
    attention = model.encoder_blocks[0].attention
    assert branch_names(model) == {
        "encoder": list(attention.branch_names),
        "decoder": [],
    }


def test_everything_else_keeps_its_weights():
    model = make("gated_sum")
    other = without_branch(model, "forward")
    paths = {variable.path: variable for variable in model.weights}
    for variable in other.weights:
        np.testing.assert_array_equal(variable, paths[variable.path])
    gone = len(model.weights) - len(other.weights)
    assert gone == 2 * 2  # two kernels of a gate in each of two blocks
    assert np.isfinite(ops.convert_to_numpy(other(ids()))).all()


@pytest.mark.thorough
@pytest.mark.parametrize("branch", ["nosuch", "local", "local_2", "global_1"])
def test_an_unknown_branch_is_refused(branch):
    with pytest.raises(ValueError, match="`branch` must be a branch"):
        without_branch(make("sum"), branch)
    with pytest.raises(ValueError, match="for 0 such slots"):
        without_branch(Transformer(19, 19, D, 24, N, 1, 1), "global")


def test_the_only_branch_stays():
    with pytest.raises(ValueError, match="must leave another branch"):
        without_branch(make("sum", branches=["global"]), "global")


def test_a_figure_leaves_out_what_leaves_another_branch_on_both_sides():
    encoder, decoder = (
        HybridSelfAttention(N, branches=branches)
        for branches in (["global", "forward"], ["forward"])
    )
    model = Transformer(
        *(19, 19, D, 24, N, 1, 1),
        encoder_self_attention=encoder,
        decoder_self_attention=decoder,
    )
    kept, bleu = [], {"whole": 9, "without": 7}

    def translate_by(smaller):
        kept.append(branch_names(smaller))
        return "without"

    run = SimpleNamespace(
        name="run",
        model=model,
        names=[],
        sources=["a"],
        translations="whole",
        translate_by=translate_by,
        bleu=lambda text: SimpleNamespace(value=bleu[text]),
    )
    (figure,) = branch_figures(run)
    assert kept == [{"encoder": ["forward"], "decoder": ["forward"]}]
    assert (figure.names, figure.series) == (["global"], {"run": [-2]})
