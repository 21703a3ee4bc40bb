"""What must be true of a folder for MarianMT: this package reads from it the
model that was written, and the same ids; what MarianMT cannot compute is
refused. `benchmarks/exchange/marian_hf_export.py` compares with Transformers
itself."""

import json
import re
import runpy
import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest
from exchange_checks import spread_weights

from keras_deepnmt import Translator, UserError
from keras_deepnmt.cli import main
from keras_deepnmt.data import Tokenizer
from keras_deepnmt.data.demo import demo_pairs
from keras_deepnmt.exchange import (
    export_marian,
    find_engine,
    load_marian,
    marian_hf_export,
    verify_engine_folder,
)
from keras_deepnmt.exchange.engine_folders import Engine
from keras_deepnmt.models import Transformer

pytestmark = pytest.mark.thorough(each_commit=True)

LINES = [pair.source for pair in demo_pairs(8)]
LINES += ["", "  zwei \t HUNDE ", "日本 ﬁel", "Öl </s> <unk>"]


def make_translator(tokenizers, shared=False, **arguments):
    """A translator of a small model with weights by chance."""
    if shared:
        tokenizers = [tokenizers[0], tokenizers[0]]
    sizes = [each.vocabulary_size for each in tokenizers]
    model = Transformer(
        *(*sizes, 8, 12, 2, 2, 1),
        **{"max_length": 24, "share_embeddings": shared, **arguments},
    )
    spread_weights(model)
    return Translator(model, *tokenizers, compiled=False, max_extra_tokens=2)


@pytest.fixture
def without_transformers(monkeypatch):
    monkeypatch.setattr(Engine, "is_installed", False)


@pytest.fixture(scope="module")
def separate(tokenizers, tmp_path_factory):
    translator = make_translator(tokenizers)
    folder = tmp_path_factory.mktemp("marian") / "separate"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "is_installed", False)
        found = export_marian(translator, folder, LINES[:2])
    assert not found["is_checked"]
    return translator, folder


def check_read_again(translator, folder, tmp_path):
    imported = load_marian(folder)
    model = imported.build()
    expected = {w.path: w.numpy() for w in translator.model.weights}
    for weight in model.weights:
        value = expected.pop(weight.path, np.zeros_like(weight.numpy()))
        np.testing.assert_array_equal(weight.numpy(), value, weight.path)
    assert not expected
    ids = {
        "source_ids": np.array([[9, 5, 7, 3, 0]]),
        "target_ids": np.array([[2, 8, 6, 5, 4]]),
    }
    np.testing.assert_allclose(
        np.asarray(model(ids)),
        np.asarray(translator.model(ids)),
        rtol=1e-5,
        atol=1e-5,
    )
    for side in ("source", "target"):
        file = tmp_path / f"{side}.model"
        file.write_bytes(getattr(imported, f"{side}_proto"))
        original = getattr(translator, f"{side}_tokenizer")
        pairs = zip(
            Tokenizer(file).encode(LINES), original.encode(LINES), strict=True
        )
        for one, other in pairs:
            assert one.tolist() == other.tolist()
    return imported


@pytest.mark.thorough
def test_the_same_model_is_read_again(separate, tmp_path):
    translator, folder = separate
    imported = check_read_again(translator, folder, tmp_path)
    assert imported.arguments["layer_norm_epsilon"] == 1e-6
    assert imported.decoding["num_beams"] == translator.num_beams
    for name in ("max_length_ratio", "max_extra_tokens"):
        expected = getattr(translator.options, name)
        assert imported.decoding[name] == expected
    assert (folder / "target_vocab.json").exists()
    assert find_engine(folder).name == "MarianMT"


@pytest.mark.thorough
@pytest.mark.parametrize(
    "arguments",
    [
        {"shared": True, "activation": "silu", "output_bias": True},
        {"shared": True, "tie_output_embedding": False},
        {"tie_output_embedding": False, "key_bias": True, "activation": "gelu"},
        {
            "position_encoding": {
                "LearnedPositionEmbedding": {
                    "max_length": 24,
                    "add_to_inputs": True,
                }
            },
            "share_position_encoding": False,
            "layer_norm_epsilon": 1e-5,
        },
    ],
    ids=["joint", "joint_untied", "untied", "learned_positions"],
)
def test_models_of_other_kinds(
    arguments, tokenizers, tmp_path, without_transformers
):
    translator = make_translator(tokenizers, **arguments)
    folder = tmp_path / "folder"
    export_marian(translator, folder, LINES[:1])
    check_read_again(translator, folder, tmp_path)
    is_joint = not (folder / "target_vocab.json").exists()
    assert is_joint == arguments.get("shared", False)


def test_its_program_writes_texts_as_this_package_does(separate, monkeypatch):
    translator, folder = separate
    for name in ("torch", "transformers"):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    program = runpy.run_path(folder / "translate.py")
    texts = ["a dog", "a 日本 dog", "日 the", "the 日"]
    rows = translator.target_tokenizer.encode(texts)
    expected = translator.target_tokenizer.decode(rows)
    assert all("⁇" in text for text in expected[1:])
    model = program["Model"](folder)
    assert [model.text([*row, 3, 0, 0]) for row in rows] == expected


def test_it_says_what_transformers_reads(separate):
    translator, folder = separate
    config = json.loads((folder / "config.json").read_text())
    search = json.loads((folder / "generation_config.json").read_text())
    # Transformers reads it in the encoding of the system.
    table = json.loads((folder / "vocab.json").read_bytes().decode("ascii"))
    # Transformers' own defaults are other ids.
    for content in (config, search):
        assert content["pad_token_id"] == table["<pad>"] == 0
        assert content["eos_token_id"] == table["</s>"] == 3
        assert content["forced_eos_token_id"] == 3
        assert content["decoder_start_token_id"] == table["<s>"] == 2
    # It makes both embeddings with the size of the source's.
    others = json.loads((folder / "target_vocab.json").read_text())
    assert len(table) == len(others) == config["decoder_vocab_size"] == 200
    assert search["bad_words_ids"] == [[0], [2]]
    tokenizer = json.loads((folder / "tokenizer_config.json").read_text())
    # Without it a translation would begin with <s>.
    assert tokenizer["bos_token"] == "<s>"
    assert not tokenizer["clean_up_tokenization_spaces"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"normalize_first": True}, "`normalize_first` must be False, since"),
        ({"activation": "elu"}, "`activation` must be one of .*silu.*: elu"),
        ({"embedding_scale": 3.0}, "`embedding_scale` must be None.*: 3.0"),
        ({"output_fusion": "SurfaceFusion"}, "SurfaceFusion in `output_fus"),
    ],
)
def test_what_it_cannot_compute_is_refused(
    arguments, message, tokenizers, tmp_path
):
    translator = make_translator(tokenizers, **arguments)
    with pytest.raises(UserError, match=message):
        export_marian(translator, tmp_path / "refused")
    assert not list(tmp_path.iterdir())


def test_every_weight_is_compared(monkeypatch):
    model = Transformer(9, 9, 8, 8, 2, 1, 1, share_embeddings=True)
    written = {weight.path: weight.numpy() for weight in model.weights}
    read = SimpleNamespace(weights=dict(written))
    monkeypatch.setattr(marian_hf_export, "load_marian", lambda folder: read)

    def check():
        marian_hf_export._check_weights(model, None, "folder")

    check()
    # Sides with vocabularies of their own have two embeddings.
    rows = read.weights.pop("shared_embedding/embeddings")
    for side in ("source", "target"):
        read.weights[f"{side}_embedding/embeddings"] = rows
    check()
    message = "embedding/embeddings is not read again as it was written"
    for side in ("source", "target"):
        original = dict(read.weights)
        read.weights[f"{side}_embedding/embeddings"] = rows + 1.0
        with pytest.raises(UserError, match=message):
            check()
        read.weights = original
    path = "encoder_block_1/attention/query/kernel"
    del read.weights[path]
    with pytest.raises(UserError, match=f"{path} is not read again"):
        check()


def test_a_search_that_it_lacks_is_refused(separate, tmp_path):
    translator, folder = separate
    with pytest.raises(UserError, match="patience=2"):
        export_marian(translator.replaced(patience=2.0), tmp_path / "refused")
    with pytest.raises(UserError, match="exists already"):
        export_marian(translator, folder)


@pytest.mark.thorough
def test_a_changed_file_and_missing_packages_are_named(
    separate, tmp_path, without_transformers
):
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in separate[1].iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    needed = re.escape("pip install keras_deepnmt[marian-hf]")
    with pytest.raises(UserError, match=f"PyTorch and Sent.*{needed}"):
        verify_engine_folder(copy)
    (copy / "vocab.json").write_text("{}")
    with pytest.raises(UserError, match="vocab.json"):
        verify_engine_folder(copy)


def test_the_command_says_why_a_model_is_refused(tmp_path, capsys):
    words = ["export", "transformer_tiny.demo_de_en", str(tmp_path / "x")]
    words += ["--format", "marian-hf"]
    assert main([*words, "--dtype", "int8"]) == 2
    assert (
        "--dtype must be float32 with --format mar" in capsys.readouterr().err
    )
    assert main(words) == 2
    assert "MarianMT cannot compute this model" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
