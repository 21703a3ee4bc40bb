"""A translator with the papers' layers in every slot is served as it is."""

import numpy as np
import paper_slots
import pytest
from tiny_translator import all_pairs, make_translator

from keras_deepnmt.models import ConvSeq2Seq, Transformer
from keras_deepnmt.serving import SavedModelClient, exporting
from keras_deepnmt.serving.allowed_ops import check_ops

pytestmark = pytest.mark.thorough


def dense_convolutions():
    """Dense stacks with a summary, and layers in all of their slots."""
    return paper_slots.of_convolutions() | {
        "encoder_connection": "dense",
        "decoder_connection": "dense",
        "attention": "per_layer",
        "summary_length": 2,
    }


@pytest.mark.parametrize(
    ("backbone", "choice"),
    [
        (Transformer, paper_slots.one_choice),
        pytest.param(
            Transformer, paper_slots.another_choice, marks=pytest.mark.slow
        ),
        (ConvSeq2Seq, dense_convolutions),
    ],
)
def test_the_served_translations_are_those_of_the_translator(
    backbone, choice, tmp_path, monkeypatch
):
    architecture = choice() | dict.fromkeys(
        ("num_encoder_layers", "num_decoder_layers"), paper_slots.NUM_LAYERS
    )
    translator = make_translator(
        tmp_path,
        backbone=backbone,
        architecture=architecture,
        num_beams=3,
        compiled=False,
    )
    # Far from uniform distributions, as after training.
    draw = np.random.default_rng(0)
    for weight in translator.model.trainable_variables:
        noise = 0.3 * draw.normal(size=weight.shape)
        weight.assign(np.asarray(weight) + noise)
    # What is verified in the exports of other tests.
    monkeypatch.setattr(exporting, "_run_golden", lambda *rest: [])
    monkeypatch.setattr(exporting, "verify", lambda folder: None)
    folder = exporting.export(translator, tmp_path / "served")
    assert check_ops(folder) > 0
    sources = [source for source, _ in all_pairs()][:7]
    expected = translator.translate(sources)
    assert len(set(expected)) > 1
    assert SavedModelClient(folder).translate(sources) == expected
