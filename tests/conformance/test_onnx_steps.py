"""A step in ONNX Runtime equals a step here: every cache, beams that move."""

import catalog
import numpy as np
import pytest
import tensorflow as tf
from shared_models import shared_model

from keras_deepnmt.decoding.caches import reorder_cache
from keras_deepnmt.exchange.onnx_graphs import DECODER, ENCODER, write_graphs

NEEDS_ONNX = 'needs pip install "keras_deepnmt[onnx]"'
# Together they have every kind of cache.
COVERING = (
    "toys in every slot",
    "every slot",
    "every slot, other layers, pre-norm, no positions",
    "dense, summaries, other widths, every slot",
)
SIZES = ((3, 7, 2), (1, 2, 1), (2, 9, 3))  # sentences, tokens, hypotheses
STEPS = 4


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(
            entry,
            id=entry.name,
            marks=pytest.mark.thorough
            if entry.name in COVERING
            else pytest.mark.slow,
        )
        for entry in catalog.MODELS
    ],
)
def test_a_step_equals_a_step_here(entry, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime", reason=NEEDS_ONNX)
    pytest.importorskip("tf2onnx", reason=NEEDS_ONNX)
    from keras_deepnmt.exchange.onnx_program import run

    model = shared_model(entry.name)
    graphs = write_graphs(model, tmp_path)
    encoder, decoder = (
        onnxruntime.InferenceSession(
            tmp_path / name, providers=["CPUExecutionProvider"]
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
