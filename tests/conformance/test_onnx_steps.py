"""A step in ONNX Runtime equals a step here: every cache, beams that move."""

import catalog
import numpy as np
import pytest
import tensorflow as tf
from shared_models import scramble, shared_model

from keras_deepnmt import create_model
from keras_deepnmt.decoding.caches import reorder_cache
from keras_deepnmt.exchange.onnx_graphs import DECODER, ENCODER, write_graphs

NEEDS_ONNX = 'needs pip install "keras_deepnmt[onnx]"'
SIZES = ((3, 7, 2), (1, 2, 1), (2, 9, 3))  # sentences, tokens, hypotheses
STEPS = 4


SMALL = {"hidden_dim": 8, "num_encoder_layers": 2, "num_decoder_layers": 2}
OF_TRANSFORMER = {"intermediate_dim": 8, "num_heads": 2}
# Together they have every kind of cache: of attention to all positions and to
# those of lower blocks, of recurrent layers, convolutions and the output.
COVERING = {
    "everything_tiny": OF_TRANSFORMER,
    "layer_aggregation_hierarchical_attention_tiny": OF_TRANSFORMER,
    "multi_layer_attention_k2_tiny": OF_TRANSFORMER | {"num_decoder_layers": 3},
    "dense_nmt_2_tiny": {},
}


@pytest.mark.thorough
@pytest.mark.parametrize("preset", COVERING)
def test_a_step_equals_a_step_here(preset, tmp_path):
    entry = catalog.ModelEntry("small", preset)
    model = create_model(
        preset, *entry.vocabulary_sizes, **{**SMALL, **COVERING[preset]}
    )
    scramble(model)
    check_steps(model, entry, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("entry", catalog.MODELS, ids=catalog.identify)
def test_a_step_of_every_model(entry, tmp_path):
    check_steps(shared_model(entry.name), entry, tmp_path)


def check_steps(model, entry, folder):
    onnxruntime = pytest.importorskip("onnxruntime", reason=NEEDS_ONNX)
    pytest.importorskip("tf2onnx", reason=NEEDS_ONNX)
    from keras_deepnmt.exchange.onnx_program import run

    graphs = write_graphs(model, folder)
    encoder, decoder = (
        onnxruntime.InferenceSession(
            folder / name, providers=["CPUExecutionProvider"]
        )
        for name in (ENCODER, DECODER)
    )
    assert "?" not in str(graphs)
    random = np.random.default_rng(0)
    for num_sentences, length, num_beams in SIZES:
        source_ids = entry.example(num_sentences, length)[0]["source_ids"]
        scalars = {"num_beams": num_beams, "max_length": STEPS}
        state = run(encoder, source_ids=source_ids, **scalars)
        memory = model.encode(source_ids)
        cache = model.init_cache(memory, STEPS, tf.constant(num_beams))
        shape = (num_sentences, num_beams)
        token_ids = np.full(shape, 2, "int32")
        parents = np.tile(np.arange(num_beams, dtype="int32"), shape[:1] + (1,))
        for step in range(STEPS):
            outputs = run(
                decoder,
                token_ids=token_ids,
                parents=parents,
                position=step,
                **state,
            )
            scores, cache = model.decode(
                token_ids.reshape(-1, 1), memory, cache, tf.constant(step)
            )
            expected = np.asarray(model.log_probs(scores))
            np.testing.assert_allclose(
                outputs.pop("log_probs"),
                expected.reshape(*shape, -1),
                rtol=0,
                atol=1e-5 * max(1.0, np.abs(expected).max()),
            )
            for name, value in outputs.items():
                state[name.removeprefix("next/")] = value
            # As in a search: a beam may be taken twice, another one dropped.
            parents = random.integers(0, num_beams, shape).astype("int32")
            cache |= reorder_cache(cache, tf.constant(parents), step)
            token_ids = random.integers(4, entry.vocabulary_sizes[1], shape)
            token_ids = token_ids.astype("int32")
