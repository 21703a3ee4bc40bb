"""What must be true of an imported model of CTranslate2: it computes what the
engine computes, what it cannot express is named, and nothing is left behind."""

import json
import re
import shutil
import struct

import numpy as np
import pytest
from exchange_checks import cut, refused

from keras_deepnmt import Translator, UserError
from keras_deepnmt.cli import main
from keras_deepnmt.data.demo import demo_pairs
from keras_deepnmt.exchange import import_model, load_ctranslate2

ctranslate2 = pytest.importorskip("ctranslate2")
from ctranslate2_folder import KINDS, LENGTH, write_folder  # noqa: E402
from marian_folder import ENGLISH, GERMAN, load  # noqa: E402

SOURCES = [pair.source for pair in demo_pairs(12)]


@pytest.mark.thorough
def test_our_own_model_comes_back_bit_for_bit(
    demo, ctranslate2_demo, tmp_path, capsys
):
    preset = tmp_path / "preset"
    assert main(["import", str(ctranslate2_demo), str(preset)]) == 0
    assert capsys.readouterr().out == f"{preset}\n"
    again = Translator.load(preset, compiled=False)
    config = again.model.get_config()
    for key, value in config.items():
        if key not in ("name", "dropout"):
            assert value == demo.model.get_config()[key], key
    for one, other in zip(again.model.weights, demo.model.weights, strict=True):
        assert one.path == other.path
        np.testing.assert_array_equal(one, other)
    assert again.options == demo.options
    assert again.translate(SOURCES) == demo.translate(SOURCES)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("folders") / "plain"
    return write_folder(folder, **KINDS["post-norm, shared"])


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_it_computes_what_the_engine_computes(kind, tmp_path):
    folder = write_folder(tmp_path / "model", **KINDS[kind])
    sources, targets = GERMAN[:4], ENGLISH[:4]
    import_model(folder, tmp_path / "preset")
    translator = Translator.load(
        tmp_path / "preset",
        compiled=False,
        num_beams=1,
        max_length_ratio=0.0,
        max_extra_tokens=21,
    )
    engine = ctranslate2.Translator(
        str(folder), device="cpu", compute_type="float32"
    )
    pieces = {
        side: load(folder, side).encode(texts, out_type=str)
        for side, texts in (("source", sources), ("target", targets))
    }
    expected = engine.score_batch(pieces["source"], pieces["target"])
    np.testing.assert_allclose(
        [found.total for found in translator.score(sources, targets)],
        [sum(found.log_probs) for found in expected],
        rtol=1e-6,
        atol=1e-4,
    )
    found = engine.translate_batch(
        pieces["source"], beam_size=1, max_decoding_length=20
    )
    texts = [load(folder, "target").decode(x.hypotheses[0]) for x in found]
    assert len(set(texts)) > 1
    assert translator.translate(sources) == texts


@pytest.mark.parametrize("dtype", ["float16", "int16", "int8"])
def test_fewer_bits_become_float32(plain, dtype, tmp_path):
    folder = write_folder(
        tmp_path / "model", **KINDS["post-norm, shared"], dtype=dtype
    )
    if dtype == "float16":
        found = load_ctranslate2(folder)
    else:
        with pytest.warns(UserWarning, match=f"type {dtype} become float32"):
            found = load_ctranslate2(folder)
    whole = load_ctranslate2(plain)
    assert found.arguments == whole.arguments
    steps = {"float16": 2.0**-11, "int16": 2.0**-11, "int8": 1 / 254}
    most = max(np.abs(value).max() for value in whole.weights.values())
    for path, value in whole.weights.items():
        assert found.weights[path].dtype == np.float32
        difference = np.abs(found.weights[path] - value).max()
        assert difference <= 1.001 * steps[dtype] * most, path
        if path == "encoder_block_1/feed_forward/output/kernel":
            assert difference > 0


def test_a_long_limit_of_the_engine_depends_on_the_source(plain):
    found = load_ctranslate2(plain).decoding
    assert (found["max_length_ratio"], found["max_extra_tokens"]) == (3.0, 50)


def change_config(folder, **changes):
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def change_number(folder, name, form, value):
    """Changes a variable that is one number."""
    file = folder / "model.bin"
    content = bytearray(file.read_bytes())
    key = struct.pack("<H", len(name) + 1) + name.encode() + b"\0"
    # After the name: the number of axes, the type, the number of bytes.
    place = content.index(key) + len(key) + 6
    content[place : place + struct.calcsize(form)] = struct.pack(form, value)
    file.write_bytes(bytes(content))


def rename(folder, name, other):
    file = folder / "model.bin"
    assert len(name) == len(other)
    content = file.read_bytes()
    assert name.encode() in content
    file.write_bytes(content.replace(name.encode(), other.encode()))


def shorten_vocabulary(folder):
    file = folder / "shared_vocabulary.json"
    file.write_text(json.dumps(json.loads(file.read_text())[:-1]))


BAD_INPUTS = {
    "0 bytes": (
        lambda f: cut(f / "model.bin", 0),
        "model.bin: damaged: ends after 0 of at least 4 bytes",
    ),
    "cut": (
        lambda f: cut(f / "model.bin", 3000),
        "model.bin: damaged: ends after 3,000",
    ),
    "more bytes": (
        lambda f: (f / "model.bin").write_bytes(
            (f / "model.bin").read_bytes() + b"\0"
        ),
        "goes on after its last variable",
    ),
    "text": (
        lambda f: (f / "model.bin").write_text("version 3"),
        "binary version 6",
    ),
    "another model": (
        lambda f: rename(f, "TransformerSpec", "WhisperSpecials"),
        "TransformerSpec of revision 7.*Received: WhisperSpecials, 7",
    ),
    "a switch": (
        lambda f: change_number(f, "decoder/alibi", "<b", 1),
        "decoder/alibi cannot be imported. Received: 1",
    ),
    "another activation": (
        lambda f: [
            change_number(f, f"{side}/activation", "<b", 1)
            for side in ("encoder", "decoder")
        ],
        "the activation must be one of.*Received: 1",
    ),
    "sides that differ": (
        lambda f: change_number(f, "encoder/num_heads", "<h", 4),
        "encoder/num_heads and decoder/num_heads must be equal.*4 and 2",
    ),
    "heads that do not divide": (
        lambda f: [
            change_number(f, f"{side}/num_heads", "<h", 3)
            for side in ("encoder", "decoder")
        ],
        "num_heads=3",
    ),
    "a missing variable": (
        lambda f: rename(
            f,
            "decoder/layer_0/ffn/linear_1/bias",
            "decoder/layer_0/ffn/linear_2/bias",
        ),
        r"decoder/layer_0/ffn/linear_2/bias cannot be imp.*shape \(8,\)",
    ),
    "another vocabulary": (
        shorten_vocabulary,
        "shared_vocabulary.json: must have a piece for each",
    ),
    "no vocabulary": (
        lambda f: (f / "shared_vocabulary.json").unlink(),
        "must have source_vocabulary.json or",
    ),
    "no begin token of the source": (
        lambda f: change_config(f, add_source_bos=True, bos_token="<bos>"),
        "must have the piece of `bos_token` in config.json, <bos>",
    ),
    "the begin is given by users": (
        lambda f: change_config(f, decoder_start_token=None),
        "`decoder_start_token` must be of type str.*Received: None",
    ),
    "another begin": (
        lambda f: change_config(f, decoder_start_token="<bos>"),
        "`decoder_start_token` must be a piece.*Received: <bos>",
    ),
    "no end": (
        lambda f: change_config(f, eos_token="<end>"),
        "must have the piece of `eos_token` in config.json, <end>",
    ),
    "a key of other models": (
        lambda f: change_config(f, quantization_type=1),
        "`quantization_type` cannot be imported. Received: 1",
    ),
    "no tokenizer": (
        lambda f: (f / "source.spm").unlink(),
        "source.spm: no such file.*--source-tokenizer",
    ),
    "a damaged tokenizer": (
        lambda f: cut(f / "target.spm", 0),
        "target.spm: not a SentencePiece model",
    ),
    "no configuration": (
        lambda f: (f / "config.json").unlink(),
        "is of no format that can be imported",
    ),
}


@pytest.mark.parametrize("kind", BAD_INPUTS)
def test_what_does_not_fit_is_named_and_nothing_is_written(
    plain, tmp_path, kind
):
    copy = shutil.copytree(plain, tmp_path / "copy")
    spoil, message = BAD_INPUTS[kind]
    spoil(copy)
    refused(copy, tmp_path, message)


def test_the_tokenizers_may_stand_elsewhere(plain, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in plain.glob("*.[!s]*"):
        (copy / file.name).write_bytes(file.read_bytes())
    with pytest.raises(UserError, match=re.escape("--source-tokenizer")):
        load_ctranslate2(copy)
    files = [plain / f"{side}.spm" for side in ("source", "target")]
    found = load_ctranslate2(copy, *files)
    assert found.source_proto == load_ctranslate2(plain).source_proto
    assert found.arguments["max_length"] == LENGTH
