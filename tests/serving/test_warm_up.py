"""A server that loads an export finds requests of every signature, which run
on it, in a file that TensorFlow Serving reads."""

import json

import numpy as np
import pytest
import tensorflow as tf

from keras_deepnmt.serving.exporting import export
from keras_deepnmt.serving.serving_graph import ServingGraph
from keras_deepnmt.serving.verification import EXPORT_FILE
from keras_deepnmt.serving.warm_up import (
    WARM_UP_FILE,
    read_warm_up,
    write_warm_up,
)

# Made by tensorflow-serving-api 2.21.0: `SerializeToString(deterministic=True)`
# of the `PredictionLog` with these inputs.
RECORD = bytes.fromhex(
    "3291010a8e010a170a0464656d6f1a0f7472616e736c6174655f676976656e121e0a0b"
    "636f6e73747261696e7473120f080712081202080112020801420178121c0a0e6c656e"
    "6774685f70656e616c7479120a080112002a049a99193f12190a0e6e756d5f6879706f"
    "7468657365731207080312003a0102121a0a0474657874121208071204120208014208"
    "65696e2048756e64"
)
INPUTS = {
    "text": np.array([b"ein Hund"], object),
    "num_hypotheses": np.int32(2),
    "constraints": np.array([[b"x"]], object),
    "length_penalty": np.float32(0.6),
}


def test_a_record_is_that_of_the_package_with_the_messages(tmp_path):
    write_warm_up(tmp_path, "demo", [("translate_given", INPUTS)])
    file = tmp_path / "assets.extra" / "tf_serving_warmup_requests"
    (record,) = tf.data.TFRecordDataset(str(file)).as_numpy_iterator()
    assert record == RECORD
    ((signature, inputs),) = read_warm_up(tmp_path)
    assert signature == "translate_given"
    assert inputs.keys() == INPUTS.keys()
    for name, value in INPUTS.items():
        assert inputs[name].dtype == value.dtype
        np.testing.assert_array_equal(inputs[name], value)


@pytest.mark.thorough
def test_the_loaded_export_runs_them_in_the_shapes_of_real_requests(
    version_dir, loaded, translator
):
    requests = read_warm_up(version_dir)
    sizes = {}
    for signature, inputs in requests:
        function = loaded.signatures[signature]
        # Each input is given: a server prepares one program for them.
        assert inputs.keys() == function.structured_input_signature[1].keys()
        outputs = function(**{k: tf.constant(v) for k, v in inputs.items()})
        texts = inputs.get("text", inputs.get("source")).tolist()
        assert all(texts)
        sizes.setdefault(signature, []).append(len(texts))
        if signature == "serving_default":
            expected = translator.translate([text.decode() for text in texts])
            found = [text.decode() for text in outputs["text"].numpy()]
            assert found == expected
    assert sizes == {name: [1, 1, 16] for name in loaded.signatures}
    hashes = json.loads((version_dir / EXPORT_FILE).read_text())["sha256"]
    assert WARM_UP_FILE.as_posix() in hashes


@pytest.mark.thorough
def test_bfloat16_stores_rounded_weights_and_computes_in_float32(translator):
    graph = ServingGraph(translator, "bfloat16", num_beams=1)
    assert {x.dtype for x in graph.module().model_weights} == {tf.bfloat16}
    weights = translator.model.get_weights()
    inputs = {"source": ["der Hund sieht ."], "target": ["the dog ."]}

    def score():
        found = graph.signatures["score"](
            **{name: tf.constant(x) for name, x in inputs.items()}
        )
        return float(found["log_prob"][0])

    rounded = [tf.cast(tf.cast(w, "bfloat16"), w.dtype) for w in weights]
    exact = translator.score(*inputs.values())[0].total
    received = score()
    try:
        translator.model.set_weights(rounded)
        expected = translator.score(*inputs.values())[0].total
    finally:
        translator.model.set_weights(weights)
    assert received == pytest.approx(expected, rel=1e-5)
    assert received != pytest.approx(exact, rel=1e-5)


@pytest.mark.thorough
def test_an_export_in_bfloat16_takes_half_the_space(
    translator, version_dir, tmp_path
):
    half = export(translator, tmp_path / "half", dtype="bfloat16")
    sizes = [
        sum(file.stat().st_size for file in (folder / "variables").iterdir())
        for folder in (half, version_dir)
    ]
    assert sizes[0] < 0.6 * sizes[1]
    assert json.loads((half / EXPORT_FILE).read_text())["dtype"] == "bfloat16"
