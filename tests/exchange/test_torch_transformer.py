"""What must be true of an imported model around `torch.nn.Transformer`: its
logits are those of the equations, its ids those of its vocabularies, a part
that does not fit is named, and nothing is left behind."""

import pathlib

import numpy as np
import pytest
import yaml
from exchange_checks import refused
from safetensors.numpy import load_file, save_file
from torch_files import SOURCE, SPECIAL, TARGET, logits, write_model

from keras_deepnmt import Translator, UserError
from keras_deepnmt.cli import main
from keras_deepnmt.data import Tokenizer
from keras_deepnmt.exchange import load_torch_transformer

# For each id of the package that of the files: padding, unknown, begin, end.
FIRST = [1, 0, 2, 3]
POST_NORM = {"weights": "weights.npz"}
PRE_NORM = {
    "normalize_first": True,
    "activation": "gelu",
    "positions": "halves",
    "tied": True,
    "final_norm": False,
    "source_end": False,
}
LEARNED = {
    "positions": "learned",
    "position_tables": ["places", "target_places"],
    "scale_embeddings": False,
}


@pytest.mark.thorough(each_commit=True)
@pytest.mark.parametrize(
    "options", [POST_NORM, PRE_NORM, LEARNED], ids=["post", "pre", "learned"]
)
def test_the_logits_are_those_of_the_equations(options, tmp_path):
    file, tensors = write_model(tmp_path, **options)
    imported = load_torch_transformer(file)
    assert imported.arguments["tie_output_embedding"] == ("tied" in options)
    model = imported.build()
    source, target = np.array([2, 7, 5, 0, 9]), np.array([2, 8, 6, 0, 4])
    if options.get("source_end", True):
        source = np.array([*source, 3])
    expected = logits(tensors, options, source, target)
    ours = {theirs: place for place, theirs in enumerate(FIRST)}
    # The begin token of a source has an id of its own, before all others.
    row = [4, *(ours.get(i, i + 1) for i in source[1:])]
    if row[-1] != 3:
        row.append(3)  # which the encoder does not read
    scores = model(
        {
            "source_ids": np.array([[*row, 0, 0]]),  # padding changes nothing
            "target_ids": np.array([[ours.get(i, i) for i in target]]),
        }
    )
    found = np.asarray(scores)[0]
    order = [*FIRST, *range(4, len(TARGET))]
    np.testing.assert_allclose(found, expected[:, order], rtol=1e-5, atol=1e-5)


def test_a_long_table_in_float32_is_that_of_its_equation(tmp_path):
    file, tensors = write_model(tmp_path, position_tables=["table"])
    # As PyTorch's tutorials compute it: an angle has the rounding of float32.
    rates = np.exp(np.arange(0, 8, 2, "float32") * np.float32(-np.log(1e4) / 8))
    angles = np.arange(50_000, dtype="float32")[:, None] * rates
    table = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    tensors["table"] = table.reshape(-1, 8)
    save_file(tensors, tmp_path / "model.safetensors")
    imported = load_torch_transformer(file)
    assert (
        "SinusoidalPositionEncoding" in imported.arguments["position_encoding"]
    )
    tensors["table"][3, 2] += 1e-4
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(UserError, match="table has other values"):
        load_torch_transformer(file)


@pytest.mark.thorough
def test_characters_are_the_pieces_and_begin_is_read_first(tmp_path):
    file, _ = write_model(tmp_path / "model")
    preset = tmp_path / "preset"
    assert main(["import", str(file), str(preset)]) == 0
    translator = Translator.load(preset, compiled=False)
    texts = ["ab cd", " a  xb ", "<bos>"]
    known = {piece: number for number, piece in enumerate(SOURCE)}
    for text, row in zip(
        texts, translator.source_tokenizer.encode(texts), strict=True
    ):
        begin, *others = row
        assert begin == 4  # another id than that of a target's begin
        ids = [known.get(letter, 0) + 1 for letter in text]
        assert others == [1 if i == 1 else i for i in ids]
    ids = [[TARGET.index(letter) for letter in "ab e"]]
    assert translator.target_tokenizer.decode(ids) == ["ab e"]
    assert len(translator.translate(["ab cd", ""])) == 2


def test_a_sentencepiece_model_cuts_the_text(tmp_path):
    import sentencepiece

    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a big pig", "a bad pig"] * 9),
        model_prefix=str(tmp_path / "cut"),
        vocab_size=13,
        minloglevel=2,
    )
    processor = sentencepiece.SentencePieceProcessor(
        model_file=str(tmp_path / "cut.model")
    )
    side = {"pieces": "source.txt", "sentencepiece": "cut.model", **SPECIAL}
    file, _ = write_model(tmp_path, source=side, source_begin=False)
    names = [*SOURCE[:4], "▁a", "▁", "b", "i", "g", "a", "d"]
    names += [f"unused {n}" for n in range(len(SOURCE) - len(names))]
    (tmp_path / "source.txt").write_text("\n".join(names))
    (tmp_path / "ours.model").write_bytes(
        load_torch_transformer(file).source_proto
    )
    tokenizer = Tokenizer(tmp_path / "ours.model")
    known = {name: number for number, name in enumerate(names)}
    pieces = processor.encode("a bad pig", out_type=str)
    order = [*FIRST, *range(4, len(names))]
    expected = [known.get(piece, 0) for piece in pieces]
    (found,) = tokenizer.encode(["a bad pig"])
    assert [order[i] for i in found] == expected


def change(file, **changes):
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | changes))


def change_tensors(file, changed):
    weights = file.with_name("model.safetensors")
    tensors = load_file(weights)
    changed(tensors)
    save_file(tensors, weights)


def cut(file, name, size):
    file = file.with_name(name)
    file.write_bytes(file.read_bytes()[:size])


LINEAR = "transformer.encoder.layers.1.linear1.weight"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda f: change(f, num_head=2), "`num_head` .*Did you mean"),
        (lambda f: change(f, activation="tanh"), "`activation` .*'tanh'"),
        (lambda f: change(f, positions="rotary"), "`positions` .*'rotary'"),
        (lambda f: change(f, source={"pieces": "source.txt"}), "lacks source"),
        (lambda f: change(f, num_heads=3), "the model: .*3"),
        (lambda f: change(f, position_tables=["source.weight"]), "differ by"),
        (
            lambda f: change(
                f, position_tables=[LINEAR.replace("linear1", "linear2")]
            ),
            "must have 8 columns, as the model. Received: shape .*12",
        ),
        (
            lambda f: change(f, positions="learned"),
            "`position_tables` must name",
        ),
        (lambda f: change(f, weights="other.npz"), "other.npz: no such file"),
        (lambda f: change(f, transformer="net"), "lack net.encoder.layers.0"),
        (lambda f: change(f, final_norm=False), r"decoder.norm.bias \(8,\)"),
        (
            lambda f: change_tensors(f, lambda t: t.pop(LINEAR)),
            f"lack {LINEAR}",
        ),
        (
            lambda f: change_tensors(
                f, lambda t: t.update({LINEAR: t[LINEAR].T})
            ),
            r"encoder_block_2/feed_forward/\w+/kernel .*\(8, 12\)",
        ),
        (lambda f: cut(f, "source.txt", 40), "23 rows.*Received: 1"),
        (lambda f: cut(f, "target.txt", 0), "target.txt: is empty"),
        (lambda f: cut(f, "target.txt", 14), "lacks the piece of `begin`"),
        (lambda f: cut(f, "model.safetensors", 900), "cannot be read"),
        (lambda f: cut(f, "model.safetensors", 0), "cannot be read"),
        (lambda f: cut(f, "model.yaml", 0), "of no format"),
        (lambda f: cut(f, "model.yaml", 19), "model.yaml, line 2: not YAML"),
    ],
)
def test_what_does_not_fit_is_named_and_nothing_is_written(
    tmp_path, spoil, message
):
    file, _ = write_model(tmp_path / "model")
    spoil(file)
    refused(file, tmp_path, message)


def test_a_damaged_npz_is_named(tmp_path):
    file, _ = write_model(tmp_path, weights="weights.npz")
    for size in (5000, 0):
        cut(file, "weights.npz", size)
        with pytest.raises(UserError, match="weights.npz: cannot be read"):
            load_torch_transformer(file)


def test_a_pickle_is_read_without_running_code(tmp_path):
    torch = pytest.importorskip("torch")
    file, tensors = write_model(tmp_path)
    change(file, weights="model.pt", state_dict="model_state_dict")
    weights = tmp_path / "model.pt"

    def save(content):
        torch.save({"model_state_dict": content, "epoch": 3}, weights)

    save({name: torch.tensor(value) for name, value in tensors.items()})
    found = load_torch_transformer(file).weights
    expected = load_torch_transformer(write_model(tmp_path / "other")[0])
    for name, value in expected.weights.items():
        np.testing.assert_array_equal(found[name], value)
    # A class whose objects do nothing when they are made.
    save(pathlib.PurePosixPath("a"))
    with pytest.raises(UserError, match="more than tensors.*PurePosixPath"):
        load_torch_transformer(file)
    save({"source.weight": [1.0]})
    with pytest.raises(UserError, match="'source.weight', of type list"):
        load_torch_transformer(file)
    change(file, state_dict="model")
    with pytest.raises(UserError, match="no key 'model'. .*model_state_dict"):
        load_torch_transformer(file)
    for size in (300, 0):
        cut(file, "model.pt", size)
        with pytest.raises(UserError, match="model.pt: ") as error:
            load_torch_transformer(file)
        assert "\n" not in str(error.value)
