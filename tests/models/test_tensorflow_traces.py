"""What must be true of traced functions that are kept for the next process.

* a kept function computes what tracing it again would, with the weights that
  the model has, and nothing is traced for it
* what tracing reads is another entry when it changes: the code, the versions,
  the model's configuration, the shapes, the options
* nothing is kept of code that may change unnoticed
* a damaged entry, or a disk that is full, costs only the tracing
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_deepnmt
from keras_deepnmt.decoding import SearchOptions, compile_for
from keras_deepnmt.decoding.search_by_options import search
from keras_deepnmt.models.compilation import tensorflow_traces
from keras_deepnmt.models.compilation.tensorflow_programs import (
    CompiledProgram,
)

OPTIONS = SearchOptions(num_beams=2)
SOURCES = np.array([[4, 5, 6, 3], [7, 8, 3, 0]], "int32")


@pytest.fixture
def folder(tmp_path):
    tensorflow_traces.keep_traces(tmp_path / "traces")
    yield tmp_path / "traces"
    tensorflow_traces.keep_traces(None)


@pytest.fixture
def traced(monkeypatch):
    """The number of programs traced so far, in a list."""
    numbers = [0]
    trace = CompiledProgram.__call__

    def count(self, *args):
        numbers[0] += 1
        return trace(self, *args)

    monkeypatch.setattr(CompiledProgram, "__call__", count)
    return numbers


def make(preset="transformer_tiny", **overrides):
    sizes = dict(hidden_dim=8, num_encoder_layers=1, num_decoder_layers=1)
    if not preset.startswith("conv"):
        sizes |= dict(intermediate_dim=8, num_heads=2)
    keras.utils.set_random_seed(1)
    # The paths of variables count the models of a process.
    keras.backend.clear_session()
    return keras_deepnmt.create_model(preset, 11, 13, **(sizes | overrides))


def translate(model, sources=SOURCES, options=OPTIONS, jit_compile=True):
    function = compile_for(model, search, jit_compile)
    return function(sources, options=options, max_length=8)


def entries(folder):
    return {file.name for file in folder.glob("*")}


@pytest.mark.parametrize(
    "preset",
    ["transformer_tiny", "conv_seq2seq_tiny", "role_interaction_softmax_tiny"],
)
def test_what_is_kept_translates_with_the_weights_of_the_model(
    folder, traced, preset
):
    model = make(preset)
    first = translate(model)
    assert traced == [1] and len(entries(folder)) == 1
    again = translate(model)
    # The same model in another process, trained since.
    other = make(preset)
    kernel = other.weights[0]
    kernel.assign(-2.0 * keras.ops.convert_to_numpy(kernel))
    later = translate(other)
    assert traced == [1] and len(entries(folder)) == 1
    plain = translate(other, jit_compile=False)
    assert first.keys() == again.keys() == later.keys()
    for name in first:
        np.testing.assert_array_equal(first[name], again[name])
        np.testing.assert_allclose(later[name], plain[name], rtol=1e-4)
    assert not np.allclose(first["log_probs"], later["log_probs"])


@pytest.mark.parametrize(
    "change",
    [
        dict(model=dict(normalize_first=True)),
        dict(model=dict(num_heads=4)),
        dict(sources=np.pad(SOURCES, [(0, 0), (0, 1)])),
        dict(options=SearchOptions(num_beams=2, coverage_penalty=0.1)),
    ],
    ids=["config", "heads", "shape", "options"],
)
def test_what_tracing_reads_makes_another_entry(folder, traced, change):
    translate(make())
    model = make(**change.pop("model", {}))
    translate(model, **change)
    assert traced == [2] and len(entries(folder)) == 2


@pytest.mark.parametrize("name", ["_code_sha256", "_versions"])
def test_other_code_or_versions_make_another_entry(
    folder, traced, monkeypatch, name
):
    translate(make())
    monkeypatch.setattr(tensorflow_traces, name, lambda: "another")
    translate(make())
    assert traced == [2] and len(entries(folder)) == 2


def test_other_values_of_tensors_need_no_other_entry(folder, traced):
    translate(make())
    translate(make(), options=SearchOptions(num_beams=2, length_penalty=0.1))
    assert traced == [1] and len(entries(folder)) == 1


def test_nothing_is_kept_of_a_users_layer(folder, traced):
    @keras.saving.register_keras_serializable("tests")
    class OwnAttention(keras_deepnmt.layers.HybridSelfAttention):
        """Of code that changes without another version of the package."""

    for _ in range(2):
        translate(make(encoder_self_attention=OwnAttention(2)))
    assert traced == [2] and not entries(folder)


def test_nothing_is_kept_of_a_function_within_another(folder, traced):
    number = 3

    def times(model, x):
        return x * number

    for number in (3, 4):
        np.testing.assert_array_equal(
            compile_for(make(), times)(SOURCES), SOURCES * number
        )
    assert traced == [2] and not entries(folder)


def test_nothing_is_kept_of_what_captures_more_than_variables(folder, traced):
    model = make()
    encode, table = model.encode, tf.constant([0.5])

    def encode_with_table(source_ids):
        return keras.tree.map_structure(
            lambda x: x + table if x.dtype == table.dtype else x,
            encode(source_ids),
        )

    model.encode = encode_with_table
    translate(model)
    assert traced == [1] and not entries(folder)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-20],
        lambda content: content.replace(b"captured", b"capture!"),
        lambda content: b"",
    ],
    ids=["cut", "changed", "empty"],
)
def test_a_damaged_entry_is_made_again(folder, traced, damage):
    first = translate(make())
    [file] = folder.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    again = translate(make())
    assert traced == [2] and file.read_bytes() == whole
    np.testing.assert_array_equal(first["ids"], again["ids"])


def test_a_folder_that_cannot_be_written_is_no_error(folder, traced):
    folder.write_text("a file in its place")
    translate(make())
    translate(make())
    assert traced == [2] and folder.is_file()


def test_without_a_folder_nothing_is_kept(tmp_path, traced):
    translate(make())
    translate(make())
    assert traced == [2]
