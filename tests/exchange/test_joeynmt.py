"""What must be true of an imported JoeyNMT model: its logits are those of the
equations, its ids those of its vocabularies, and what does not fit is named.

PyTorch is not needed: a stand-in for `torch.load` gives the tensors."""

import io
import sys

import numpy as np
import pytest
import sentencepiece
import yaml
from exchange_checks import refused
from subword_nmt.apply_bpe import BPE
from torch_files import LAYERS, D, F, N, logits, make_tensors
from torch_stand_in import stand_in
from torch_stand_in import tensors as as_tensors

from keras_deepnmt import Translator, UserError
from keras_deepnmt.data import Tokenizer
from keras_deepnmt.exchange import (
    export_ctranslate2,
    export_marian,
    export_onnx,
    import_model,
    load_joeynmt,
)
from keras_deepnmt.serving import export

TEXTS = ["a big dog sees a cat", "two cats see the big dog"]
SPECIAL = ["<unk>", "<pad>", "<s>", "</s>"]
CODES = (
    "#version: 0.2\nt h\nth e</w>\nd o\ndo g</w>\ns e\nse e\nsee s</w>\n"
    "c a\nca t\ncat s</w>\n"
)
NORMS = {
    "encoder": {"norm1": "layer_norm", "norm2": "feed_forward.layer_norm"},
    "decoder": {
        "norm1": "x_layer_norm",
        "norm2": "dec_layer_norm",
        "norm3": "feed_forward.layer_norm",
    },
}
ATTENTIONS = {
    "encoder": {"self_attn": "src_src_att"},
    "decoder": {"self_attn": "trg_trg_att", "multihead_attn": "src_trg_att"},
}


def as_joeynmt(tensors):
    """The tensors of `torch_files`, by the names that JoeyNMT has."""
    names = {
        "source.weight": "src_embed.lut.weight",
        "target.weight": "trg_embed.lut.weight",
        "generator.weight": "decoder.output_layer.weight",
    }
    found = {new: tensors[old] for old, new in names.items()}
    for side, norms in NORMS.items():
        for part in ("weight", "bias"):
            norm = f"transformer.{side}.norm.{part}"
            if norm in tensors:
                found[f"{side}.layer_norm.{part}"] = tensors[norm]
        for number in range(LAYERS):
            old = f"transformer.{side}.layers.{number}"
            new = f"{side}.layers.{number}"
            for part in ("weight", "bias"):
                for one, other in {
                    **norms,
                    "linear1": "feed_forward.pwff_layer.0",
                    "linear2": "feed_forward.pwff_layer.3",
                    **{
                        f"{a}.out_proj": f"{b}.output_layer"
                        for a, b in ATTENTIONS[side].items()
                    },
                }.items():
                    value = tensors[f"{old}.{one}.{part}"]
                    found[f"{new}.{other}.{part}"] = value
                for one, other in ATTENTIONS[side].items():
                    together = tensors[f"{old}.{one}.in_proj_{part}"]
                    for letter, value in zip(
                        "qkv", np.split(together, 3), strict=True
                    ):
                        found[f"{new}.{other}.{letter}_layer.{part}"] = value
        found[f"{side}.pe.pe"] = np.zeros((1, 5000, D), "float32")
    return found


@pytest.fixture
def make_folder(tmp_path, monkeypatch):
    """A function that writes a folder and returns it and the tensors."""

    saved = {}
    monkeypatch.setitem(sys.modules, "torch", stand_in(saved))

    def make(layer_norm="pre", activation="relu", scale=True, level="bpe"):
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
        letters = sorted({*"".join(TEXTS), "▁"} - {" "})
        processor = sentencepiece.SentencePieceProcessor(
            model_file=str(folder / "cut.model")
        )
        cut = processor.encode(TEXTS[0], out_type=str)
        longest = sorted(cut, key=len)[-2:]
        pieces = [*SPECIAL, *letters, *dict.fromkeys(longest)]
        for side in ("src", "trg"):
            (folder / f"{side}_vocab.txt").write_text("\n".join(pieces) + "\n")
        options = {
            "normalize_first": layer_norm == "pre",
            "final_norm": layer_norm == "pre",
            "activation": activation,
            "scale_embeddings": scale,
            "layer_norm_epsilon": 1e-6,
        }
        random, size = np.random.default_rng(0), len(pieces)
        tensors = make_tensors(random, options, False, (size, size))
        tensors["generator.bias"][:] = 0.0  # which JoeyNMT does not have
        saved["model"] = {
            "steps": 7,
            "model_state": as_tensors(as_joeynmt(tensors)),
        }
        (folder / "best.ckpt").write_text("model")
        block = {
            "type": "transformer",
            "num_layers": LAYERS,
            "num_heads": N,
            "hidden_size": D,
            "ff_size": F,
            "layer_norm": layer_norm,
            "activation": activation,
            "embeddings": {"embedding_dim": D, "scale": scale},
        }
        data = {
            "lang": "de",
            "level": level,
            "tokenizer_cfg": {"model_file": "data/cut.model"},
        }
        config = {
            "name": "joey",
            "data": {"src": data, "trg": {**data, "lang": "en"}},
            "testing": {"beam_size": 3, "beam_alpha": 1.0},
            "model": {"encoder": block, "decoder": dict(block)},
        }
        (folder / "config.yaml").write_text(yaml.safe_dump(config))
        return folder, tensors, options

    return make


@pytest.mark.parametrize(
    "options",
    [{}, {"layer_norm": "post", "activation": "gelu", "scale": False}],
    ids=["pre", "post"],
)
def test_the_logits_are_those_of_the_equations(options, make_folder):
    folder, tensors, options = make_folder(**options)
    imported = load_joeynmt(folder)
    model = imported.build()
    source, target = np.array([7, 5, 0, 9, 3]), np.array([2, 8, 6, 0, 4])
    expected = logits(tensors, options, source, target)
    order = [1, 0, *range(2, expected.shape[-1])]  # padding comes first here
    rows = [[order.index(i) for i in row] for row in (source, target)]
    found = model(
        {
            "source_ids": np.array([[*rows[0], 0]]),
            "target_ids": np.array([rows[1]]),
        }
    )
    np.testing.assert_allclose(
        found[0], expected[:, order], rtol=1e-5, atol=1e-5
    )
    assert imported.decoding["num_beams"] == 3


def test_the_limits_of_length_come_along(make_folder):
    folder, *_ = make_folder()

    def limits():
        found = load_joeynmt(folder).decoding
        names = ("min_length", "max_length_ratio", "max_extra_tokens")
        return tuple(found[name] for name in names)

    # JoeyNMT forbids the end at first, and ends after 1.5 times the source.
    assert limits() == (1, 1.5, 0)
    changed("testing", "min_output_length", value=3)(folder)
    changed("testing", "max_output_length", value=40)(folder)
    assert limits() == (3, 0.0, 40)
    changed("testing", "min_output_length", value=0)(folder)
    changed("testing", "max_output_length", value=-1)(folder)
    assert limits() == (0, 1.5, 0)


@pytest.mark.thorough(each_commit=True)
def test_texts_are_cut_into_pieces_of_the_vocabulary_alone(
    make_folder, tmp_path
):
    folder, *_ = make_folder()
    names = (folder / "src_vocab.txt").read_text().splitlines()
    processor = sentencepiece.SentencePieceProcessor(
        model_file=str(folder / "cut.model")
    )
    free = processor.encode(TEXTS, out_type=str)
    assert not {piece for row in free for piece in row} <= set(names)
    preset = import_model(folder, tmp_path / "preset")
    translator = Translator.load(preset, compiled=False)
    tokenizer = translator.source_tokenizer
    for text, row in zip(TEXTS, tokenizer.encode(TEXTS), strict=True):
        pieces = tokenizer.pieces(row)
        assert "".join(pieces) == "▁" + text.replace(" ", "▁")
        assert set(pieces) <= set(names)
        assert len(pieces) < len(text)  # some have several characters
    assert len(translator.translate(TEXTS)) == 2


def use_codes(folder, separator="@@"):
    """Gives a folder codes of subword-nmt and a vocabulary of their pieces."""
    size = len((folder / "src_vocab.txt").read_text().splitlines())
    letters = sorted({*"".join(TEXTS)} - {" "})
    pieces = ["the", "dog", "se@@", *(f"{c}@@" for c in "cate"), "s", "a"]
    pieces = [*SPECIAL, *dict.fromkeys([*pieces, *letters])][:size]
    pieces = [piece.replace("@@", separator) for piece in pieces]
    assert len(pieces) == size
    for side in ("src", "trg"):
        (folder / f"{side}_vocab.txt").write_text("\n".join(pieces) + "\n")
        change(folder, "data", side, "tokenizer_type", value="subword-nmt")
        options = {"codes": "data/joint.codes", "separator": separator}
        change(folder, "data", side, "tokenizer_cfg", value=options)
    (folder / "joint.codes").write_text(CODES)
    return pieces


@pytest.mark.parametrize("separator", ["@@", "■"])
def test_words_are_cut_by_codes_as_joeynmt_does(
    make_folder, tmp_path, separator
):
    folder, *_ = make_folder()
    names = use_codes(folder, separator)
    (tmp_path / "ours.model").write_bytes(load_joeynmt(folder).source_proto)
    tokenizer = Tokenizer(tmp_path / "ours.model")
    assert tokenizer.vocabulary_size == len(names)
    # As `joeynmt.tokenizers.SubwordNMTTokenizer`.
    bpe = BPE(io.StringIO(CODES), -1, separator, {*names} - {*SPECIAL}, None)
    lines = [*TEXTS, "  the\tdog\r", "a\xa0 ßß sees@@ ▁a", "\u2028", ""]
    for line, row in zip(lines, tokenizer.encode(lines), strict=True):
        pieces = bpe.process_line(line).strip().split()
        expected = [names.index(p) if p in names else 0 for p in pieces]
        # Their ids 0 and 1 are unknown and padding.
        assert [1 - i if i < 2 else i for i in row] == expected
    assert bpe.segment("sees") == "se@@ e@@ s".replace("@@", separator)
    decoded = tokenizer.decode([tokenizer.ids_of_pieces(["▁" + names[6]])])
    assert decoded == ["se"]


def test_other_codes_are_used_if_they_are_given(make_folder, tmp_path):
    folder, *_ = make_folder()
    use_codes(folder)
    (tmp_path / "old.codes").write_text("d o\n")  # of version 0.1
    proto = load_joeynmt(folder, tmp_path / "old.codes").source_proto
    (tmp_path / "ours.model").write_bytes(proto)
    (pieces,) = Tokenizer(tmp_path / "ours.model").encode_as_pieces(["dog"])
    assert pieces == ["▁d@@", "▁o@@", "▁g"]  # `do@@` is not in the vocabulary


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("t h\nthe\n", "joint.codes, line 2: must be two pieces.*'the'"),
        ("#version: 0.2\na  b\n", "joint.codes, line 2: must be two pieces"),
        ("#version: 0.3\na b\n", "version of the codes must be 0.1 or 0.2"),
        ("", "joint.codes, line 1: must be two pieces"),
        (b"\xff", "joint.codes: must be codes or a vocabulary.*Byte 0"),
        (None, "joint.codes: cannot be read"),
    ],
)
def test_damaged_codes_are_named(make_folder, tmp_path, content, message):
    folder, *_ = make_folder()
    use_codes(folder)
    file = folder / "joint.codes"
    file.unlink()
    if content is not None:
        data = content if isinstance(content, bytes) else content.encode()
        file.write_bytes(data)
    refused(folder, tmp_path, message)


@pytest.mark.thorough
def test_a_model_with_codes_translates_but_is_not_for_other_engines(
    make_folder, tmp_path
):
    folder, *_ = make_folder()
    use_codes(folder)
    preset = import_model(folder, tmp_path / "preset")
    translator = Translator.load(preset, compiled=False)
    assert len(translator.translate([TEXTS[0], "", "☃"])) == 3
    for other in (export_onnx, export_ctranslate2, export_marian):
        with pytest.raises(UserError, match="step `subword_nmt`.*Serving"):
            other(translator, tmp_path / "output")
    assert not (tmp_path / "output").exists()


# Slow: test_merge_step.py has the graph that cuts words, in every run.
@pytest.mark.slow
def test_a_model_with_codes_is_exported_for_serving(make_folder, tmp_path):
    folder, *_ = make_folder()
    use_codes(folder)
    preset = import_model(folder, tmp_path / "preset")
    # The export is compared with this package before it appears.
    export(Translator.load(preset, compiled=False), tmp_path / "output")
    assert (tmp_path / "output").exists()


def change(folder, *keys, value):
    file = folder / "config.yaml"
    config = yaml.safe_load(file.read_text())
    inner = config
    for key in keys[:-1]:
        inner = inner[key]
    inner.pop(keys[-1], None)
    if value is not None:
        inner[keys[-1]] = value
    file.write_text(yaml.safe_dump(config))


def changed(*keys, value):
    return lambda folder: change(folder, *keys, value=value)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            changed("model", "encoder", "layer_norm", value=None),
            "`model.encoder.layer_norm` must be pre or post.*None. Without",
        ),
        (
            changed("model", "decoder", "layer_norm", value="post"),
            "`model.decoder.layer_norm` must be that of the encoder, pre",
        ),
        (
            changed("model", "encoder", "type", value="recurrent"),
            "`model.encoder.type` must be transformer.*Received: recurrent",
        ),
        (
            changed("model", "decoder", "alpha", value=1.5),
            "`model.decoder.alpha` must be 1.0",
        ),
        (
            changed("model", "encoder", "ff_size", value="12"),
            "`model.encoder.ff_size` must be of type int. Received: 12",
        ),
        (
            changed("model", "encoder", "num_layers", value=1),
            "tensors that no part .*layers.1",
        ),
        (
            changed("testing", "repetition_penalty", value=1.2),
            "`testing.repetition_penalty` must be at most 1.*Received: 1.2",
        ),
        (
            changed("testing", "max_output_length", value=0),
            "`testing.max_output_length` must be at least 1, or -1.*: 0",
        ),
        (
            changed("data", "src", "tokenizer_type", value="words"),
            "`data.src.tokenizer_type` must be sentencepiece or subword-nmt",
        ),
        (
            changed("data", "src", "tokenizer_type", value="subword-nmt"),
            "`data.src.tokenizer_cfg.codes` must be of type str",
        ),
        (
            changed("data", "src", "tokenizer_cfg", "pretokenizer", value="m"),
            "`data.src.tokenizer_cfg.pretokenizer` must be none",
        ),
        (
            changed("data", "trg", "lowercase", value=True),
            "`data.trg.lowercase` must be False",
        ),
        (
            changed("data", "trg", "level", value="word"),
            "`data.trg.level` must be bpe or char",
        ),
        (lambda f: (f / "best.ckpt").unlink(), "best.ckpt: no such file"),
        (lambda f: (f / "best.ckpt").write_bytes(b""), "Ran out of input"),
        (lambda f: (f / "cut.model").write_bytes(b""), "cut.model: not a Sen"),
        (lambda f: (f / "src_vocab.txt").write_text(""), "src_vocab.*is empty"),
        (
            lambda f: (f / "trg_vocab.txt").write_text("a\n"),
            "rows.*Received: 5",
        ),
        (lambda f: (f / "config.yaml").write_text(""), "of no format"),
    ],
)
def test_what_does_not_fit_is_named_and_nothing_is_written(
    make_folder, tmp_path, spoil, message
):
    folder, *_ = make_folder()
    spoil(folder)
    refused(folder, tmp_path, message)
