"""What must be true of an imported model of Marian: its logits are those of the
equations of Marian, its ids those of its vocabularies, an option that it cannot
have is named, and nothing is left behind."""

import dataclasses
import json
import re
from functools import partial

import numpy as np
import pytest
import sentencepiece
import yaml
from exchange_checks import cut, refused
from marian_folder import ENGLISH, GERMAN, LAYERS, D, F, N, draw_tensors, logits

from keras_deepnmt import Translator, UserError
from keras_deepnmt.cli import main
from keras_deepnmt.data import Tokenizer
from keras_deepnmt.exchange import import_model, load_marian_npz
from keras_deepnmt.exchange.marian_vocabulary import read_marian_vocabulary

PARTS = {
    "self_attn": "self",
    "encoder_attn": "context",
}
# The waves of Marian itself; other toolkits have others for its models.
EXPONENTS = np.arange(D // 2) / (D // 2 - 1)


def write_folder(
    folder,
    tied="all",
    activation="swish",
    pre_norm=False,
    top=False,
    output="Wt",
    vocabulary="spm",
    decoder="self-attention",
    aan_width=F,
    **options,
):
    """Writes a model; returns its weights in Hugging Face's layout, but what
    is in place of self-attention in the decoder."""
    folder.mkdir()
    models = write_tokenizers(folder, tied in ("all", "src"))
    sizes = [len(model) for model in models]
    # Its last token is the begin, a vector of zeros.
    tensors = draw_tensors(
        np.random.default_rng(0),
        max(sizes) + 1,
        tied == "all",
        tied in ("all", "target"),
    )
    if tied == "src":
        name = "model.{}.embed_tokens.weight"
        tensors[name.format("encoder")] = tensors[name.format("decoder")]
    if top:
        for side in ("encoder", "decoder"):
            name = f"model.{side}.layer_norm"
            tensors[f"{name}.weight"] = np.linspace(0.5, 2, D, dtype="float32")
            tensors[f"{name}.bias"] = np.linspace(-1, 1, D, dtype="float32")
    if decoder != "self-attention":
        replace_self_attention(tensors, decoder, aan_width)
    config = {
        "type": "transformer",
        "dim-vocabs": sizes,
        "dim-emb": D,
        "enc-depth": LAYERS,
        "dec-depth": LAYERS,
        "transformer-heads": N,
        "transformer-dim-ffn": F,
        "transformer-ffn-activation": activation,
        "transformer-decoder-autoreg": decoder,
        "dec-cell": "ssru" if decoder == "rnn" else "gru",
        "transformer-preprocess": "n" if pre_norm else "",
        "transformer-postprocess": "da" if pre_norm else "dan",
        "transformer-postprocess-top": "n" if top else "",
        "tied-embeddings": tied == "target",
        "tied-embeddings-all": tied == "all",
        "tied-embeddings-src": tied in ("all", "src"),
        "version": "v1.12.0",
    } | options
    text = yaml.safe_dump(config).encode() + b"\0"
    arrays = renamed(tensors, sizes, tied, pre_norm, output, decoder)
    arrays["special:model.yml"] = np.frombuffer(text, "int8")
    np.savez(folder / "model.npz", **arrays)
    if vocabulary == "yml":
        pieces = [models[0].id_to_piece(i) for i in range(sizes[0])]
        lines = [f"{json.dumps(p)}: {i}" for i, p in enumerate(pieces)]
        lines[-1] = f"'>>deu<<': {sizes[0] - 1}"
        (folder / "model.vocab.yml").write_text("\n".join(lines) + "\n")
    return tensors


def write_tokenizers(folder, shared):
    texts = {"source": GERMAN, "target": ENGLISH}
    if shared:
        texts = {"vocab": GERMAN + ENGLISH}
    models = []
    for name, lines in texts.items():
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_prefix=str(folder / name),
            vocab_size=60 if shared else 38,
            eos_id=0,
            unk_id=1,
            bos_id=-1,
            hard_vocab_limit=False,
            minloglevel=2,
        )
        (folder / f"{name}.vocab").unlink()
        file = (folder / f"{name}.model").rename(folder / f"{name}.spm")
        models.append(
            sentencepiece.SentencePieceProcessor(model_file=str(file))
        )
    return [models[0], models[-1]]


def replace_self_attention(tensors, decoder, width):
    """Draws the weights of another layer, by their names in Marian."""
    for name in list(tensors):
        if name.startswith("model.decoder") and ".self_attn." in name:
            del tensors[name]
    random = np.random.default_rng(1)
    parts = {"W": (D, D), "Wf": (D, D), "bf": (1, D)}
    if decoder == "average-attention":
        parts = {"W1": (D, width), "b1": (1, width)}
        if width != D:  # else there is no second matrix
            parts |= {"W2": (width, D), "b2": (1, D)}
        for gate in "if":
            parts |= {f"W{gate}": (D, D), f"b{gate}": (1, D)}
    for number in range(1, LAYERS + 1):
        for part, shape in parts.items():
            name = f"decoder_l{number}_{SHORT[decoder]}_{part}"
            value = random.normal(0.0, 0.5, shape).astype("float32")
            tensors[name] = value


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def average_attention(tensors, number, x, slope=1.0):
    """Marian's layer: x_t and y_t, which averages x_1 ... x_t, each times a
    gate that it determines itself."""
    t = {
        part: tensors[f"decoder_l{number}_aan_{part}"]
        for part in ("W1", "b1", "Wi", "bi", "Wf", "bf")
    }
    y = np.cumsum(x, axis=0) / np.arange(1, len(x) + 1)[:, None]
    y = y @ t["W1"] + t["b1"]
    y = y * sigmoid(slope * y)
    name = f"decoder_l{number}_aan_W2"
    if name in tensors:
        y = y @ tensors[name] + tensors[f"decoder_l{number}_aan_b2"]
    gates = sigmoid(x @ t["Wi"] + t["bi"]), sigmoid(y @ t["Wf"] + t["bf"])
    return gates[0] * x + gates[1] * y


def ssru(tensors, number, x):
    """Marian's recurrent unit, one position after the other."""
    w, w_f, b_f = (
        tensors[f"decoder_l{number}_rnn_{part}"] for part in ("W", "Wf", "bf")
    )
    state, outputs = np.zeros(D), []
    for one in x:
        forget = sigmoid(one @ w_f + b_f[0])
        state = forget * state + (1.0 - forget) * (one @ w)
        outputs.append(np.maximum(state, 0.0))
    return np.stack(outputs)


SHORT = {"average-attention": "aan", "rnn": "rnn"}
DECODER_LAYERS = {"average-attention": average_attention, "rnn": ssru}


def renamed(tensors, sizes, tied, pre_norm, output, decoder):
    """The tensors by the names of Marian, without the begin token."""
    found = {}
    suffix = "_pre" if pre_norm else ""
    for name, value in tensors.items():
        words = name.split(".")
        side = words[1] if len(words) > 1 else ""
        is_bias = words[-1] == "bias"
        if name == "model.shared.weight":
            found["Wemb"] = value[:-1]
        elif name == "lm_head.weight":
            rows = value[: sizes[1]]
            found[f"decoder_ff_logit_out_{output}"] = (
                rows if output == "Wt" else rows.T
            )
        elif name == "final_logits_bias":
            found["decoder_ff_logit_out_b"] = value[:, : sizes[1]]
        elif name.startswith("decoder_l"):
            found[name] = value
        elif words[2] == "embed_tokens":
            size = sizes[side == "decoder"]
            found["Wemb" if tied == "src" else f"{side}_Wemb"] = value[:size]
        elif words[2] == "layer_norm":
            part = "bias" if is_bias else "scale"
            found[f"{side}_top_ln_{part}"] = value[None]
        elif words[4] in ("fc1", "fc2"):
            layer = f"{side}_l{int(words[3]) + 1}_ffn"
            part = f"{'b' if is_bias else 'W'}{words[4][-1]}"
            found[f"{layer}_{part}"] = value[None] if is_bias else value.T
        elif words[4].endswith("layer_norm"):
            kind = words[4].removesuffix("_layer_norm")
            layer = f"{side}_l{int(words[3]) + 1}"
            if kind == "self_attn" and side == "decoder" and decoder in SHORT:
                layer += f"_{SHORT[decoder]}" + ("" if pre_norm else "_ffn")
            else:
                layer += f"_{PARTS[kind]}_Wo" if kind in PARTS else "_ffn_ffn"
            part = "bias" if is_bias else "scale"
            found[f"{layer}_ln_{part}{suffix}"] = value[None]
        else:
            layer = f"{side}_l{int(words[3]) + 1}_{PARTS[words[4]]}"
            part = ("b" if is_bias else "W") + words[5][0]
            found[f"{layer}_{part}"] = value[None] if is_bias else value.T
    return found


def check_logits(tmp_path, options):
    """Compares an imported model with the equations."""
    tensors = write_folder(tmp_path / "marian", **options)
    imported = load_marian_npz(tmp_path / "marian" / "model.npz")
    # As a preset's file has them.
    arguments = json.loads(json.dumps(imported.arguments))
    model = dataclasses.replace(imported, arguments=arguments).build()
    sizes = [
        imported.arguments[f"{side}_vocabulary_size"] - 2
        for side in ("source", "target")
    ]
    source, target = np.array([7, 1, 9, 0]), np.array([8, 6, 1, 4])
    # Here the ids are those of padding, <unk>, begin, </s>, and the others.
    ours = np.array([3, 1, *range(4, max(sizes) + 2)])
    found = model(
        {
            "source_ids": np.array([[*ours[source], 0]]),
            "target_ids": np.array([[2, *ours[target]]]),
        }
    )
    begin = len(tensors["final_logits_bias"][0]) - 1
    activation = options.get("activation", "swish")
    if activation == "gelu" and "version" not in options:
        activation = "sigmoid gelu"
    layer = DECODER_LAYERS.get(options.get("decoder"))
    if options.get("transformer-aan-activation") == "gelu":
        layer = partial(layer, slope=1.702)
    expected = logits(
        tensors,
        activation,
        source,
        np.array([begin, *target]),
        EXPONENTS,
        1e-6,
        options.get("pre_norm", False),
        layer,
    )[:, : sizes[1]]
    found = np.asarray(found, "float64")[0]
    np.testing.assert_allclose(
        found[:, ours[: sizes[1]]], expected, rtol=1e-5, atol=1e-5
    )
    # Tokens that Marian does not have take no part in the softmax.
    sums = [np.log(np.exp(x).sum(-1)) for x in (found, expected)]
    np.testing.assert_allclose(*sums, rtol=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tied": "target", "activation": "relu"},
        {"tied": "src", "output": "W", "activation": "gelu"},
        {"activation": "gelu", "version": "v1.12.3 d225c24 2023-03-01"},
        {"tied": "none", "pre_norm": True, "top": True},
        {"top": True},
        {"decoder": "rnn", "pre_norm": True, "top": True},
    ],
    ids=[
        *("all tied", "target", "source", "exact gelu"),
        *("pre-norm", "norm at the top", "pre-norm SSRU"),
    ],
)
def test_logits_are_those_of_the_equations(options, tmp_path):
    check_logits(tmp_path, options)


@pytest.mark.parametrize(
    ("decoder", "aan_width", "activation"),
    [
        ("rnn", F, "swish"),
        ("average-attention", F, "gelu"),
        pytest.param(
            "average-attention", D, "swish", marks=pytest.mark.thorough
        ),
    ],
)
def test_layers_in_place_of_self_attention_are_those_of_marian(
    decoder, aan_width, activation, tmp_path
):
    options = {"decoder": decoder, "aan_width": aan_width}
    options["transformer-aan-activation"] = activation
    check_logits(tmp_path, options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("marian") / "marian"
    write_folder(folder)
    return folder


@pytest.mark.thorough
def test_the_command_recognizes_a_folder_and_its_search_options(
    copy, tmp_path, capsys
):
    # A model that was moved: only the names of the files are right.
    (copy / "model.npz.decoder.yml").write_text(
        "beam-size: 6\nnormalize: 0.6\nvocabs:\n"
        "- elsewhere/vocab.spm\n- elsewhere/vocab.spm\n"
    )
    preset = tmp_path / "preset"
    assert main(["import", str(copy), str(preset)]) == 0
    assert capsys.readouterr().out == f"{preset}\n"
    translator = Translator.load(preset, compiled=False)
    options = translator.options
    assert (options.num_beams, options.length_penalty) == (6, 0.6)
    assert options.length_offset == 0.0
    assert not options.allow_unknown
    translator = translator.replaced(num_beams=2, max_extra_tokens=3)
    assert len(translator.translate(GERMAN[:2])) == 2


def ids_and_pieces(imported, tmp_path, text):
    file = tmp_path / "one.model"
    file.write_bytes(imported.source_proto)
    tokenizer = Tokenizer(file)
    (row,) = tokenizer.encode([text])
    return row.tolist(), tokenizer.pieces(row)


def test_a_list_of_pieces_has_the_ids_of_the_sentencepiece_model(tmp_path):
    folder = tmp_path / "marian"
    write_folder(folder, vocabulary="yml")
    spm = (folder / "vocab.spm").rename(tmp_path / "moved.spm")
    with pytest.raises(UserError, match="yml: does not cut.*source.spm beside"):
        load_marian_npz(folder)
    by_list = load_marian_npz(folder, spm, spm)
    (folder / "model.vocab.yml").unlink()
    with pytest.raises(UserError, match="source vocabulary was not found"):
        load_marian_npz(folder)
    by_model = load_marian_npz(folder, spm, spm)
    text = "ein kleiner Hund, 日本"
    found = ids_and_pieces(by_list, tmp_path, text)
    assert found == ids_and_pieces(by_model, tmp_path, text)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(spm))
    expected = pieces.encode(text, out_type=str)
    assert len(found[0]) == len(expected)
    (ids, _) = ids_and_pieces(by_list, tmp_path, f">>deu<< {text}")
    assert ids == [len(pieces) + 1, *found[0]]
    for path, weight in by_model.weights.items():
        np.testing.assert_array_equal(weight, by_list.weights[path])


def test_a_list_of_pieces_may_have_all_spellings_of_yaml(tmp_path):
    file = tmp_path / "model.vocab.yml"
    pieces = ["</s>", "<unk>", "no", "7", "it's", '"', "a: b", "\x85", "▁ü"]
    lines = [
        *("</s>: 0", "<unk>: 1", "no: 2", "7: 3", "'it''s': 4"),
        *(r'"\"": 5', "? 'a: b'", ": 6", r'"\x85": 7', r'"▁\u00fc": 8'),
    ]
    file.write_text("\n".join(lines) + "\n")
    assert read_marian_vocabulary(file, 9).names == pieces
    # Those after the last row of the embedding have no weights.
    assert read_marian_vocabulary(file, 7).names == pieces[:7]
    for text, message in (
        ("a: 0\nb: 2\n", "ids from 0 on"),
        ("</s>: 0\n</s>: 1\n", "line 2: must be a piece and its id"),
        ('</s>: 0\n"a: 1\n', "line 2"),
        ("</s>: 0\na: 1\n", "must have the piece <unk>"),
        ("", "ids from 0 on"),
    ):
        file.write_text(text)
        with pytest.raises(UserError, match=message):
            read_marian_vocabulary(file, 9)


def test_a_vocabulary_that_is_named_and_missing_may_be_given(copy, tmp_path):
    (copy / "decoder.yml").write_text("vocabs: [/a/b.spm, /a/b.spm]")
    message = (
        r"Put b.spm beside it, or give it by --source-tokenizer. "
        rf"Looked for: /a/b.spm, {re.escape(str(copy / 'b.spm'))}$"
    )
    with pytest.raises(UserError, match=message):
        load_marian_npz(copy)
    spm = copy / "vocab.spm"
    given = load_marian_npz(copy, spm, spm)
    spm.rename(copy / "b.spm")
    assert load_marian_npz(copy).source_proto == given.source_proto
    # A SentencePiece model does not have the ids of a list.
    (copy / "decoder.yml").write_text("vocabs: [b.yml, b.yml]")
    with pytest.raises(UserError, match="Put b.yml beside it. Looked for"):
        load_marian_npz(copy, copy / "b.spm", copy / "b.spm")


def test_a_translation_may_be_as_long_as_marian_says(copy):
    names = ("max_length_ratio", "max_extra_tokens")
    decoding = load_marian_npz(copy).decoding
    assert [decoding[name] for name in names] == [3.0, 0]
    (copy / "decoder.yml").write_text("max-length-factor: 2")
    decoding = load_marian_npz(copy).decoding
    assert [decoding[name] for name in names] == [2.0, 0]


def test_several_lists_of_pieces_must_be_named(tmp_path):
    folder = tmp_path / "marian"
    write_folder(folder, vocabulary="yml")
    (folder / "vocab.spm").rename(folder / "source.spm")
    (folder / "target.spm").write_bytes((folder / "source.spm").read_bytes())
    one = (folder / "model.vocab.yml").rename(folder / "a.vocab.yml")
    (folder / "b.vocab.yml").write_bytes(one.read_bytes())
    message = r"`vocabs: \[SOURCE, TARGET\]` to .*Received: a.vocab.yml, b.voc"
    with pytest.raises(UserError, match=message):
        load_marian_npz(folder)
    text = "vocabs: [a.vocab.yml, b.vocab.yml]"
    (folder / "decoder.yml").write_text(text)
    assert load_marian_npz(folder).source_proto


def change(folder, **options):
    """Changes or removes options of the model, or its tensors, by name."""
    file = folder / "model.npz"
    with np.load(file) as opened:
        arrays = dict(opened)
    text = arrays["special:model.yml"].tobytes().rstrip(b"\0")
    config = yaml.safe_load(text)
    for key, value in options.items():
        if key in arrays or isinstance(value, np.ndarray):
            arrays[key] = value
        elif value is None:
            del config[key]
        else:
            config[key] = value
    text = yaml.safe_dump(config).encode() + b"\0"
    arrays["special:model.yml"] = np.frombuffer(text, "int8")
    arrays = {key: value for key, value in arrays.items() if value is not None}
    np.savez(file, **arrays)


BAD_OPTIONS = {
    "type": "s2s",
    "transformer-decoder-autoreg": "convolution",
    "transformer-preprocess": "n",
    "transformer-postprocess": "dhn",
    "transformer-postprocess-emb": "nd",
    "transformer-postprocess-top": "a",
    "transformer-ffn-activation": "tanh",
    "transformer-ffn-depth": 3,
    "transformer-decoder-ffn-depth": 1,
    "transformer-no-projection": True,
    "transformer-tied-layers": [1, 1],
    "transformer-train-position-embeddings": True,
    "enc-depth": 0,
    "input-types": ["sequence", "class"],
}
BAD_INPUTS = {
    **{
        f"{key}={value}": (
            lambda f, key=key, value=value: change(f, **{key: value}),
            f"{key}.*{re.escape(str(value))}",
        )
        for key, value in BAD_OPTIONS.items()
    },
    **{
        f"{kind} and {key}={value}": (
            lambda f, kind=kind, key=key, value=value: change(
                f,
                **{"transformer-decoder-autoreg": kind, "dec-cell": "ssru"}
                | {key: value},
            ),
            f"`{key}` must be.*Received: {value}",
        )
        for kind, key, value in (
            ("rnn", "dec-cell", "gru"),
            ("rnn", "transformer-rnn-projection", True),
            ("rnn", "layer-normalization", True),
            ("average-attention", "transformer-aan-depth", 3),
            ("average-attention", "transformer-aan-nogate", True),
            ("average-attention", "transformer-aan-activation", "tanh"),
        )
    },
    "an unnamed cell": (
        lambda f: change(
            f, **{"transformer-decoder-autoreg": "rnn", "dec-cell": None}
        ),
        "`dec-cell` must be ssru.*Received: gru",
    ),
    # Its gates read the input of the block without the norm.
    "pre-norm average attention": (
        lambda f: change(
            f,
            **{
                "transformer-decoder-autoreg": "average-attention",
                "transformer-preprocess": "n",
                "transformer-postprocess": "da",
            },
        ),
        "`transformer-preprocess` must be '' with average-attention.*: n",
    ),
    "self-attention where there is a recurrent unit": (
        lambda f: change(
            f, **{"transformer-decoder-autoreg": "rnn", "dec-cell": "ssru"}
        ),
        "lack decoder_l1_rnn_Wf",
    ),
    # Its keys and values had no norm.
    "pre-norm before 1.10": (
        lambda f: change(
            f,
            **{
                "transformer-preprocess": "n",
                "transformer-postprocess": "da",
                "transformer-postprocess-top": None,
                "version": "v1.9.0",
            },
        ),
        "Marian 1.10 or later.*v1.9.0",
    ),
    "gelu of an unknown version": (
        lambda f: change(
            f, **{"transformer-ffn-activation": "gelu", "version": None}
        ),
        "`version` must be that of Marian.*Received: None",
    ),
    "fewer layers": (
        lambda f: change(f, **{"dec-depth": 1}),
        "tensors that no part of the model uses, such as decoder_l2_context",
    ),
    "more layers": (
        lambda f: change(f, **{"enc-depth": 3}),
        "lack encoder_l3_self_Wq",
    ),
    "not tied": (
        lambda f: change(f, **{"tied-embeddings-all": False}),
        "lack decoder_ff_logit_out_Wt",
    ),
    "another shape": (
        lambda f: change(f, encoder_l1_self_Wq=np.zeros((D, D + 1), "float32")),
        r"encoder_block_1/attention/query/kernel.*\(8, 9\)",
    ),
    "another vocabulary": (
        lambda f: change(f, Wemb=np.zeros((5, D), "float32")),
        r"vocab.spm: must have a piece for each of the 5 rows",
    ),
    "no vocabulary": (
        lambda f: (f / "vocab.spm").unlink(),
        "its source vocabulary was not found",
    ),
    "a damaged vocabulary": (
        lambda f: cut(f / "vocab.spm", 100),
        "vocab.spm: not a SentencePiece model",
    ),
    "no length": (
        lambda f: (f / "decoder.yml").write_text("max-length-factor: 0"),
        "decoder.yml: `max-length-factor` must be above 0. Received: 0",
    ),
    "a word penalty": (
        lambda f: (f / "decoder.yml").write_text("word-penalty: 0.5"),
        "decoder.yml: `word-penalty` must be 0.*Received: 0.5",
    ),
}


@pytest.mark.parametrize("kind", BAD_INPUTS)
def test_what_does_not_fit_is_named_and_nothing_is_written(
    copy, tmp_path, kind
):
    spoil, message = BAD_INPUTS[kind]
    spoil(copy)
    refused(copy, tmp_path, message)


@pytest.mark.parametrize("size", [0, 100, 5000])
def test_a_damaged_file_is_named(copy, tmp_path, size):
    cut(copy / "model.npz", size)
    with pytest.raises(UserError, match="model.npz: cannot be read"):
        import_model(copy / "model.npz", tmp_path / "output")
    with pytest.raises(UserError, match="is of no format"):
        import_model(copy, tmp_path / "output")
    np.savez(copy / "model.npz", Wemb=np.zeros((3, D)))
    with pytest.raises(UserError, match="lacks special:model.yml"):
        import_model(copy / "model.npz", tmp_path / "output")
