"""What must be true of imported models of OpenNMT-py and eole: their logits are
those of the equations, and what does not fit is named."""

import argparse
import io
import json
import sys

import numpy as np
import pytest
import sentencepiece
from exchange_checks import refused
from safetensors.numpy import save_file
from subword_nmt.apply_bpe import BPE
from torch_files import LAYERS, D, F, N, logits, make_tensors
from torch_stand_in import stand_in
from torch_stand_in import tensors as as_tensors

from keras_deepnmt import Translator
from keras_deepnmt.data import Tokenizer
from keras_deepnmt.errors import UserError
from keras_deepnmt.exchange import import_model, load_eole, load_opennmt_py

TEXTS = ["a big dog sees a cat", "two cats see the big dog"]
SPECIAL = ["<unk>", "<blank>", "<s>", "</s>"]
CODES = "t h\nth e</w>\nd o\ndo g\ndog </w>\ns e\nse e\nsee s\nb i\n"
# Lines with spaces that are no U+0020, also at the ends.
LINES = [*TEXTS, "  the dog\t", "\u3000dog\xa0dog", "sees dogs@@ ▁a ☃☃", ""]
EQUATIONS = {"normalize_first": True, "activation": "relu"}
# Names of `torch_files`, and those of both toolkits.
OPENNMT = {
    "source": "encoder.embeddings.make_embedding.emb_luts.0",
    "target": "decoder.embeddings.make_embedding.emb_luts.0",
    "stacks": {
        "encoder": "encoder.transformer",
        "decoder": "decoder.transformer_layers",
    },
    "linear": ("feed_forward.w_1", "feed_forward.w_2"),
    "norms": {
        "encoder": ("layer_norm", "feed_forward.layer_norm"),
        "decoder": (
            "layer_norm_1",
            "layer_norm_2",
            "feed_forward.layer_norm",
        ),
    },
}
EOLE = {
    "source": "src_emb.embeddings",
    "target": "tgt_emb.embeddings",
    "stacks": {
        side: f"{side}.transformer_layers" for side in ("encoder", "decoder")
    },
    "linear": ("mlp.gate_up_proj", "mlp.down_proj"),
    "norms": {
        "encoder": ("input_layernorm", "post_attention_layernorm"),
        "decoder": (
            "input_layernorm",
            "precontext_layernorm",
            "post_attention_layernorm",
        ),
    },
}


def renamed(tensors, names):
    """The tensors by a toolkit's names; attention has no biases there."""
    found = {
        f"{names['source']}.weight": tensors["source.weight"],
        f"{names['target']}.weight": tensors["target.weight"],
        "generator.weight": tensors["generator.weight"],
        "generator.bias": tensors["generator.bias"],
    }
    for side, stack in names["stacks"].items():
        for part in ("weight", "bias"):
            found[f"{side}.layer_norm.{part}"] = tensors[
                f"transformer.{side}.norm.{part}"
            ]
        for number in range(LAYERS):
            old = f"transformer.{side}.layers.{number}"
            new = f"{stack}.{number}"
            layers = dict(
                zip(("linear1", "linear2"), names["linear"], strict=True)
            )
            for place, norm in enumerate(names["norms"][side], start=1):
                layers[f"norm{place}"] = norm
            for one, other in layers.items():
                for part in ("weight", "bias"):
                    value = tensors[f"{old}.{one}.{part}"]
                    found[f"{new}.{other}.{part}"] = value
            for one, other in (
                ("self_attn", "self_attn"),
                ("multihead_attn", "context_attn"),
            ):
                if f"{old}.{one}.in_proj_weight" not in tensors:
                    continue
                parts = np.split(tensors[f"{old}.{one}.in_proj_weight"], 3)
                for part, value in zip(
                    ("query", "keys", "values"), parts, strict=True
                ):
                    found[f"{new}.{other}.linear_{part}.weight"] = value
                value = tensors[f"{old}.{one}.out_proj.weight"]
                found[f"{new}.{other}.final_linear.weight"] = value
    return found


@pytest.fixture
def made(tmp_path):
    """A folder with a SentencePiece model, its vocabulary, and tensors."""
    folder = tmp_path / "model"
    folder.mkdir()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS * 9),
        model_prefix=str(tmp_path / "cut"),
        vocab_size=20,
        minloglevel=2,
    )
    (tmp_path / "cut.vocab").unlink()
    (tmp_path / "cut.model").rename(folder / "cut.model")
    processor = sentencepiece.SentencePieceProcessor(
        model_file=str(folder / "cut.model")
    )
    pieces = [processor.id_to_piece(number) for number in range(3, 20)]
    names = [*SPECIAL, *pieces]
    sizes = len(names), len(names)
    tensors = make_tensors(np.random.default_rng(0), EQUATIONS, False, sizes)
    for name, value in tensors.items():
        if name.endswith(("in_proj_bias", "out_proj.bias")):
            value[:] = 0.0
    return folder, names, tensors


@pytest.fixture
def opennmt(made, monkeypatch):
    folder, names, tensors = made
    arrays = as_tensors(renamed(tensors, OPENNMT))
    generator = {
        name: arrays.pop(f"generator.{name}") for name in ("weight", "bias")
    }
    options = argparse.Namespace(
        transforms=["sentencepiece", "filtertoolong"],
        src_subword_model="data/cut.model",
        tgt_subword_model="data/cut.model",
        heads=N,
        transformer_ff=F,
        enc_layers=LAYERS,
        dec_layers=LAYERS,
        dropout=[0.1],
        attention_dropout=[0.1],
        norm_eps=1e-5,
        add_qkvbias=False,
        add_ffnbias=True,
    )
    saved = {
        "model": {
            "vocab": {"src": names, "tgt": names, "decoder_start_token": "<s>"},
            "model": arrays,
            "generator": generator,
            "opt": options,
        }
    }
    monkeypatch.setitem(sys.modules, "torch", stand_in(saved))
    (folder / "step_7.pt").write_text("model")
    return folder / "step_7.pt", saved["model"]


@pytest.fixture
def eole(made):
    folder, names, tensors = made
    save_file(renamed(tensors, EOLE), folder / "model.00.safetensors")
    vocabulary = {"src": names, "tgt": names, "decoder_start_token": "<s>"}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    config = {
        "transforms": ["sentencepiece"],
        "training": {"dropout": [0.2], "dropout_steps": [0]},
        "transforms_configs": {
            "sentencepiece": {
                "src_subword_model": "${MODEL_PATH}/cut.model",
                "tgt_subword_model": "${MODEL_PATH}/cut.model",
            }
        },
        "model": {
            "architecture": "transformer",
            "hidden_size": D,
            "heads": N,
            "transformer_ff": F,
            "layers": LAYERS,
            "embeddings": {"position_encoding_type": "SinusoidalInterleaved"},
        },
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def check_logits(imported, tensors):
    model = imported.build()
    source, target = np.array([7, 5, 0, 9]), np.array([2, 8, 6, 0, 4])
    expected = logits(tensors, EQUATIONS, source, target)
    order = [1, 0, *range(2, expected.shape[-1])]  # padding comes first here
    rows = [[order.index(i) for i in row] for row in (source, target)]
    found = model(
        {
            "source_ids": np.array([[*rows[0], 3, 0]]),  # the end is not read
            "target_ids": np.array([rows[1]]),
        }
    )
    np.testing.assert_allclose(
        found[0], expected[:, order], rtol=1e-5, atol=1e-5
    )


def use_codes(folder, names):
    """Writes codes and a vocabulary; the names become pieces of the codes."""
    (folder / "joint.codes").write_text(CODES)
    counts = {"the": 9, "dog": 5, "do@@": 3, "g": 3, "se@@": 9, "e@@": 9}
    (folder / "joint.vocab").write_text(
        "".join(f"{piece} {count}\n" for piece, count in counts.items())
    )
    letters = [f"{c}@@" for c in "bsdga"]
    pieces = dict.fromkeys([*counts, *letters, *"saox\xa0", "\u3000@@"])
    assert len(pieces) == len(names) - len(SPECIAL)
    names[len(SPECIAL) :] = pieces


def ids_by_subword_nmt(lines, names, stripped, vocabulary=None):
    """As OpenNMT-py's and eole's transform `bpe`."""
    bpe = BPE(io.StringIO(CODES), vocab=vocabulary)
    rows = (bpe.segment_tokens(x.strip(stripped).split(" ")) for x in lines)
    known = {name: i for i, name in enumerate(names)}
    return [[known.get(p, 0) for p in row] for row in rows]


def ids_of(proto, lines, folder):
    """The ids of an imported tokenizer; their 0 and 1 are unknown, padding."""
    (folder / "ours.model").write_bytes(proto)
    rows = Tokenizer(folder / "ours.model").encode(lines)
    return [[1 - i if i < 2 else i for i in row.tolist()] for row in rows]


@pytest.mark.parametrize("threshold", [0, 5])
def test_words_are_cut_by_codes_as_opennmt_py_does(
    opennmt, made, tmp_path, threshold
):
    (file, saved), (folder, names, _) = opennmt, made
    use_codes(folder, names)
    vars(saved["opt"]).update(
        transforms=["bpe", "filtertoolong"],
        src_subword_model="data/joint.codes",
        tgt_subword_model="data/joint.codes",
        src_subword_vocab="data/joint.vocab",
        src_vocab_threshold=threshold,
    )
    imported = load_opennmt_py(file)
    frequent = {"the", "dog", "se@@", "e@@"} if threshold else None
    for proto, vocabulary in (
        (imported.source_proto, frequent),
        (imported.target_proto, None),
    ):
        found = ids_of(proto, LINES, tmp_path)
        assert found == ids_by_subword_nmt(LINES, names, None, vocabulary)
    assert len({i for row in found for i in row}) > 7


def test_words_are_cut_by_codes_as_eole_does(eole, made, tmp_path):
    folder, names, _ = made
    use_codes(folder, names)
    vocabulary = {"src": names, "tgt": names, "decoder_start_token": "<s>"}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    config = json.loads((eole / "config.json").read_text())
    name = "${MODEL_PATH}/joint.codes"
    config["transforms"] = ["bpe"]
    config["transforms_configs"] = {"bpe": {"src_subword_model": name}}
    config["share_vocab"] = True
    (eole / "config.json").write_text(json.dumps(config))
    imported = load_eole(eole)
    found = ids_of(imported.source_proto, LINES, tmp_path)
    # It strips bytes, so a wide space at an end stays.
    assert found == ids_by_subword_nmt(LINES, names, " \t\n\r\v\f")
    assert imported.target_proto == imported.source_proto


def test_files_that_are_given_leave_no_transform_of_eole_out(eole):
    file = eole / "config.json"
    config = json.loads(file.read_text())
    names = ["uppercase", "prefix", "onmt_tokenize"]
    file.write_text(json.dumps(config | {"transforms": names}))
    given = [eole / "cut.model"] * 2
    with pytest.raises(UserError, match="must be.*: uppercase, prefix, onmt_"):
        load_eole(eole, *given)
    # They say it all where the model names no transform.
    for names in (["filtertoolong"], []):
        file.write_text(json.dumps(config | {"transforms": names}))
        assert load_eole(eole, *given).target_proto
    with pytest.raises(UserError, match="`transforms` must be .*: none"):
        load_eole(eole, given[0])


@pytest.mark.thorough
def test_opennmt_py_is_imported(opennmt, made, tmp_path):
    file, _ = opennmt
    check_logits(load_opennmt_py(file), made[2])
    preset = import_model(file, tmp_path / "preset")
    translator = Translator.load(preset, compiled=False)
    assert len(translator.translate([TEXTS[0], ""])) == 2


def test_eole_is_imported(eole, made, tmp_path):
    imported = load_eole(eole)
    check_logits(imported, made[2])
    assert imported.arguments["dropout"] == 0.2
    assert imported.arguments["attention_dropout"] == 0.1  # eole's default
    (tmp_path / "ours.model").write_bytes(imported.source_proto)
    tokenizer = Tokenizer(tmp_path / "ours.model")
    processor = sentencepiece.SentencePieceProcessor(
        model_file=str(eole / "cut.model")
    )
    for text, row in zip(TEXTS, tokenizer.encode(TEXTS), strict=True):
        assert tokenizer.pieces(row) == processor.encode(text, out_type=str)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"position_encoding_type": "Rotary"}, "`position_encoding_type` must"),
        ({"max_relative_positions": -1}, "`max_relative_positions` must be 0"),
        ({"layer_norm": "rms"}, "`layer_norm` must be standard"),
        ({"heads": 0}, "`heads` must be an integer, at least 1"),
        ({"transforms": ["onmt_tokenize"]}, "sentencepiece.*onmt_tokenize"),
        ({"transforms": ["bpe", "sentencepiece"]}, "must be sentencepiece or"),
        ({"transforms": ["bpe"]}, "cut.model: must be codes or a vocabulary"),
        (
            {
                "transforms": ["bpe"],
                "src_subword_vocab": "cut.model",
                "src_vocab_threshold": 1,
            },
            "cut.model: must be codes or a vocabulary",
        ),
        (
            {"src_subword_vocab": "cut.model", "src_vocab_threshold": 1},
            "`src_vocab_threshold` must be 0",
        ),
        ({"src_subword_model": ""}, "--source-tokenizer"),
        ({"src_subword_model": "other.model"}, "other.model: cannot be read"),
        ({"add_qkvbias": True}, "lack encoder.*linear_query.bias"),
        ({"dec_layers": 1}, "tensors that no part .*layers.1"),
    ],
)
def test_what_opennmt_py_has_and_this_package_lacks_is_named(
    opennmt, tmp_path, options, message
):
    file, saved = opennmt
    vars(saved["opt"]).update(options)
    refused(file, tmp_path, message)


@pytest.mark.parametrize("key", ["model", "vocab", "opt"])
def test_another_checkpoint_is_no_one_of_opennmt_py(opennmt, tmp_path, key):
    file, saved = opennmt
    del saved[key]
    refused(file, tmp_path, f"have the key '{key}'")


def test_an_empty_checkpoint_is_named(opennmt, tmp_path):
    file, _ = opennmt
    file.write_bytes(b"")
    refused(file, tmp_path, "step_7.pt: cannot be read")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "rnn"}, "`model.architecture` must be transformer"),
        ({"norm_eps": "small"}, "the model: "),
        ({"encoder": {"layer_norm": "rms"}}, "`model.encoder.layer_norm` must"),
        ({"decoder": {"heads": 4}}, "`model.decoder.heads` must be that of"),
        (
            {"embeddings": {"position_encoding_type": "Rotary"}},
            "`model.embeddings.position_encoding_type` must be Sinusoidal",
        ),
        # Then eole adds no positions.
        (
            {"embeddings": {"position_encoding_type": None}},
            "`model.embeddings.position_encoding_type` must be.*: None",
        ),
        # It has no weights that would tell.
        ({"value_norm": True}, "`model.encoder.value_norm` must be False"),
        ({"encoder": "rnn"}, "`model.encoder` must be an object with keys"),
        ({"embeddings": [1]}, "`model.embeddings` must be an object with"),
        ({"layers": 1}, "tensors that no part .*layers.1"),
        ({"layers": 3}, "lack encoder.transformer_layers.2"),
    ],
)
def test_what_eole_has_and_this_package_lacks_is_named(
    eole, tmp_path, changes, message
):
    file = eole / "config.json"
    config = json.loads(file.read_text())
    config["model"] |= changes
    file.write_text(json.dumps(config))
    refused(eole, tmp_path, message)


def test_a_restricted_sentencepiece_model_of_eole_is_named(eole, tmp_path):
    file = eole / "config.json"
    config = json.loads(file.read_text())
    config["transforms_configs"]["sentencepiece"] |= {
        "src_subword_vocab": "cut.vocab",
        "src_vocab_threshold": 50,
    }
    file.write_text(json.dumps(config))
    refused(eole, tmp_path, "`src_vocab_threshold` must be 0.*Received: 50")


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        ("model.00.safetensors", 500, "model.00.safetensors: cannot be read"),
        ("model.00.safetensors", 0, "model.00.safetensors: cannot be read"),
        ("vocab.json", 0, "vocab.json: not valid JSON"),
        ("vocab.json", 100, "vocab.json: not valid JSON"),
        ("cut.model", 0, "cut.model: not a SentencePiece model"),
    ],
)
def test_a_damaged_file_of_eole_is_named(eole, tmp_path, name, size, message):
    file = eole / name
    file.write_bytes(file.read_bytes()[:size])
    refused(eole, tmp_path, message)
