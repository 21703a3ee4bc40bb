"""What must be true of an imported Marian model: its logits are those of the
equations, its ids those of its own vocabulary, a part that does not fit is
named, and nothing is left behind."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from exchange_checks import cut, refused
from marian_folder import (
    ENGLISH,
    GERMAN,
    TAGS,
    load,
    logits,
    write_folder,
)
from safetensors.numpy import load_file, save_file

from keras_deepnmt import Translator, UserError
from keras_deepnmt.cli import main
from keras_deepnmt.data import Tokenizer
from keras_deepnmt.exchange import import_model, load_marian

PAGE = Path(__file__).parents[2] / "docs" / "exchange.md"
LINES = [
    *GERMAN[:4],
    *ENGLISH[:4],
    "ein HUND, Ärger und Öl",
    "日本 und zwei Hunde",
    "",
    "  zwei   Hunde\t",
    "</s> ein <unk> Hund",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("marian") / "opus"
    write_folder(folder)
    return folder


@pytest.fixture(scope="module")
def preset(folder):
    return import_model(folder, folder.parent / "preset")


def names_of(folder, file="vocab.json"):
    """The pieces of a vocabulary file, by its ids."""
    table = json.loads((folder / file).read_text())
    return sorted(table, key=table.get)


def order_of(names):
    """For each id of the package, that of the file."""
    last = len(names) - 1
    return [last, 1, last, 0, *range(2, last)]


@pytest.mark.parametrize(
    ("shared", "activation", "tied"),
    [(True, "swish", True), (False, "relu", True), (False, "swish", False)],
)
def test_the_logits_are_those_of_the_equations(
    tmp_path, shared, activation, tied
):
    folder = tmp_path / "model"
    tensors = write_folder(folder, shared, activation, tied)
    model = load_marian(folder).build()
    size = len(names_of(folder))
    source, target = np.array([7, 5, 9, 0]), np.array([size - 1, 8, 6, 1, 4])
    order = order_of(names_of(folder))
    ours = {theirs: number for number, theirs in enumerate(order) if number}
    scores = model(
        {
            # Padding changes nothing.
            "source_ids": np.array([[*(ours[i] for i in source), 0, 0]]),
            "target_ids": np.array([[2, *(ours[i] for i in target[1:])]]),
        }
    )
    found = np.asarray(scores, "float64")[0]
    expected = logits(tensors, activation, source, target)
    # The softmax is over the same tokens: padding, the begin, has no part in
    # it, and is the last one there.
    sums = [np.log(np.exp(x).sum(-1)) for x in (found, expected[:, :-1])]
    np.testing.assert_allclose(*sums, rtol=1e-6)
    order[2] = 0  # compared already
    found[:, 2] = expected[:, 0]
    np.testing.assert_allclose(
        found[:, 1:], expected[:, order[1:]], rtol=1e-5, atol=1e-5
    )


def change_json(file, **changes):
    content = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(content | changes))


@pytest.mark.parametrize(
    ("version", "search", "expected"),
    [
        (None, None, True),
        ("4.31.0", None, True),
        ("4.32.0.dev0", None, False),
        ("4.57.6", {"renormalize_logits": True}, True),
        ("4.30.2", {"renormalize_logits": False}, False),
        ("4.57.6", {"transformers_version": "4.29.2"}, True),
        ("4.57.6", {"renormalize_logits": True, "bad_words_ids": []}, False),
    ],
)
def test_padding_is_left_out_of_probabilities_where_transformers_does(
    copy, version, search, expected
):
    if version is not None:
        change_json(copy / "config.json", transformers_version=version)
    if search is not None:
        change_json(copy / "generation_config.json", **search)
    weights = load_marian(copy).weights
    padding = load_file(copy / "model.safetensors")["final_logits_bias"][0, -1]
    found = weights["output_bias/bias"][:3]
    assert found[0] == -100
    # The begin token has the row of the padding.
    assert found[2] == (-100 if expected else padding)
    # One of its own keeps its logit.
    change_json(copy / "config.json", decoder_start_token_id=2)
    biases = load_marian(copy).weights["output_bias/bias"]
    assert biases[[0, 2]].min() > -100


@pytest.mark.parametrize("renormalizes", [True, False])
def test_log_probabilities_of_a_search_are_those_of_transformers(
    copy, renormalizes
):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    size = len(names_of(copy))
    change_json(
        copy / "generation_config.json",
        renormalize_logits=renormalizes,
        bad_words_ids=[[size - 1]],
        num_beams=1,
        pad_token_id=size - 1,
        decoder_start_token_id=size - 1,
        eos_token_id=0,
    )
    source = [7, 5, 9, 0]
    theirs = transformers.MarianMTModel.from_pretrained(copy).eval()
    outputs = theirs.generate(
        input_ids=torch.tensor([source]),
        max_new_tokens=4,
        output_scores=True,
        output_logits=True,
        return_dict_in_generate=True,
    )
    expected = torch.stack(outputs.scores, dim=1)[0].numpy()
    if not renormalizes:  # greedy search keeps the logits then
        scores = torch.stack(outputs.logits, dim=1)[0].log_softmax(-1)
        expected = scores.numpy()
    order = order_of(names_of(copy))
    ours = {theirs: number for number, theirs in enumerate(order) if number}
    target = outputs.sequences[0, :-1].tolist()
    found = load_marian(copy).build()(
        {
            "source_ids": np.array([[ours[i] for i in source]]),
            "target_ids": np.array([[2, *(ours[i] for i in target[1:])]]),
        }
    )
    found = tf.nn.log_softmax(np.asarray(found)[0]).numpy()
    real = [1, *range(3, len(order))]
    np.testing.assert_allclose(
        found[:, real], expected[:, np.array(order)[real]], atol=1e-5
    )


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@pytest.mark.parametrize("side", ["source", "target"])
def test_ids_are_those_of_the_pieces_in_the_vocabulary(tmp_path, side, kind):
    folder = tmp_path / "model"
    write_folder(folder, kind=kind)
    imported = load_marian(folder)
    file = tmp_path / "one.model"
    file.write_bytes(getattr(imported, f"{side}_proto"))
    tokenizer = Tokenizer(file)
    names = names_of(folder)
    order = order_of(names)
    assert tokenizer.vocabulary_size == len(order)
    known = {name: number for number, name in enumerate(names)}
    original = load(folder, side)
    rows = tokenizer.encode(LINES)
    in_graph = tokenizer.in_graph_tokenizer().tokenize(tf.constant(LINES))
    unknown = compared = 0
    for line, row, other in zip(LINES, rows, in_graph.to_list(), strict=True):
        pieces = original.encode(line, out_type=str)
        expected = [known.get(piece, 1) for piece in pieces]
        assert row.tolist() == other
        # Several unknown characters in a row are one token there.
        if any(
            len(piece.strip("▁")) > 1 and original.piece_to_id(piece) == 0
            for piece in pieces
        ):
            continue
        compared += 1
        assert [order[i] for i in row] == expected, line
        unknown += expected.count(1)
    assert unknown > 0
    assert compared >= 7
    # Pieces that only the other side has are joined as their text.
    theirs = load(folder, "target" if side == "source" else "source")
    pieces = theirs.encode(
        (ENGLISH if side == "source" else GERMAN)[0], out_type=str
    )
    ids = [order.index(known[piece]) for piece in pieces]
    assert tokenizer.decode([ids]) == [theirs.decode_pieces(pieces)]


@pytest.mark.thorough(each_commit=True)
def test_a_tag_is_one_token_without_a_space(preset, folder):
    tokenizer = Tokenizer(preset / "tokenizer" / "source.model")
    assert tokenizer.user_defined_symbols == TAGS
    order = order_of(names_of(folder))
    (plain,), (tagged,) = (
        tokenizer.encode([text]) for text in (GERMAN[0], f">>eng<< {GERMAN[0]}")
    )
    assert order[tagged[0]] == 2
    np.testing.assert_array_equal(tagged[1:], plain)
    translator = Translator.load(preset, compiled=False, tag=">>eng<<")
    assert len(translator.translate(GERMAN[:2])) == 2


@pytest.mark.thorough
def test_the_folder_translates_scores_and_is_fine_tuned_as_others(
    preset, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    for name, texts in (("a.de", GERMAN), ("a.en", ENGLISH)):
        (tmp_path / name).write_text("\n".join(texts) + "\n")
    files = ["--source", "a.de", "--target", "a.en"]
    assert main(["score", str(preset), *files]) == 0
    assert len(capsys.readouterr().out.splitlines()) >= 20
    translator = Translator.load(preset)
    assert translator.options.num_beams == 4
    assert translator.options.length_offset == 0.0
    (tmp_path / "mine.yaml").write_text(
        "name: mine\ndata:\n  train:\n  - {source: a.de, target: a.en}\n"
        "training: {steps: 1, batch_tokens: 60, validate_every: 1,"
        " jit_compile: false}\n"
    )
    command = ["train", "mine.yaml", "--from-preset", str(preset), "--quiet"]
    assert main(command) == 0, capsys.readouterr().err


@pytest.mark.thorough
def test_the_page_fine_tunes_a_model(folder, tmp_path, monkeypatch, capsys):
    """The section "Fine-tune it" as it stands, with one update."""
    monkeypatch.chdir(tmp_path)
    section = PAGE.read_text(encoding="utf-8").split("## Fine-tune it\n")[1]
    section = section.split("\n## ")[0]
    blocks = dict(re.findall(r"```(yaml|bash)\n(.*?)```", section, re.DOTALL))
    recipe = blocks["yaml"].replace(
        "steps: 2000", "steps: 1\n  jit_compile: false"
    )
    (tmp_path / "mine.yaml").write_text(recipe)
    for split in ("train", "valid", "test"):
        for code, texts in (("de", GERMAN), ("en", ENGLISH)):
            (tmp_path / f"{split}.{code}").write_text("\n".join(texts) + "\n")
    assert main(["import", str(folder), "presets/opus-mt-de-en"]) == 0
    for line in blocks["bash"].splitlines():
        assert main(shlex.split(line)[1:]) == 0, capsys.readouterr().err
    done = capsys.readouterr().out
    assert "runs/mine" in done and "presets/opus-mt-de-en" in done


def test_the_command_recognizes_the_format(folder, tmp_path, capsys):
    output = tmp_path / "preset"
    assert main(["import", str(folder), str(output)]) == 0
    assert capsys.readouterr().out == f"{output}\n"
    assert main(["import", str(folder), str(output)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_other_tokenizer_files_may_be_given(folder, tmp_path, capsys):
    other = tmp_path / "other.model"
    output = tmp_path / "preset"
    words = ["import", str(folder), str(output)]
    words += ["--source-tokenizer", str(other)]
    assert main(words) == 2
    assert "other.model: no such file" in capsys.readouterr().err
    other.write_bytes((folder / "target.spm").read_bytes())
    imported = load_marian(folder, source_tokenizer=other)
    assert imported.source_proto == imported.target_proto
    assert load_marian(folder).source_proto != imported.source_proto


def change_config(folder, **changes):
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def test_options_of_the_search_come_along(copy):
    options = {"no_repeat_ngram_size": 3, "min_new_tokens": 5}
    change_config(copy, **options, early_stopping="never", num_beams=None)
    found = load_marian(copy).decoding
    assert found["no_repeat_ngram_size"] == 3 and found["min_length"] == 5
    assert found["patience"] == 0.0 and found["num_beams"] == 1
    change_config(copy, early_stopping=True)
    assert load_marian(copy).decoding["patience"] == 1.0
    # That of Transformers is neither.
    change_config(copy, early_stopping=False)
    assert "patience" not in load_marian(copy).decoding
    # It counts the begin, and gives way to the other option.
    change_config(copy, min_length=9)
    assert load_marian(copy).decoding["min_length"] == 5
    change_config(copy, min_new_tokens=None)
    assert load_marian(copy).decoding["min_length"] == 8
    # The limits of length of a folder that this package wrote.
    change_json(copy / "export.json", length_ratio=1.5, extra_tokens=7)
    found = load_marian(copy).decoding
    assert found["max_length_ratio"] == 1.5 and found["max_extra_tokens"] == 7


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (None, None)),
        # The begin counts there.
        ({"max_length": 61}, (0.0, 60)),
        ({"max_length": 61, "max_new_tokens": 7}, (0.0, 7)),
        # Batches would be small with such a limit for each source.
        ({"max_length": 512}, (3.0, 50)),
    ],
)
def test_limits_of_length_are_those_of_the_folder(copy, options, expected):
    change_config(copy, **options)
    found = load_marian(copy).decoding
    names = ("max_length_ratio", "max_extra_tokens")
    assert tuple(map(found.get, names)) == expected


def test_defaults_of_older_versions_are_no_other_search(copy):
    expected = load_marian(copy).decoding
    change_config(
        copy,
        **{"do_sample": False, "num_beam_groups": 1, "min_length": 0},
        **{"encoder_no_repeat_ngram_size": 0, "forced_bos_token_id": None},
        **{"repetition_penalty": 1.0, "suppress_tokens": [], "top_k": 50},
        **{"sequence_bias": None, "forced_eos_token_id": 0},
    )
    assert load_marian(copy).decoding == expected


@pytest.mark.parametrize(
    ("key", "value", "neutral"),
    [
        ("length_penalty", -1.0, "a finite number of at least 0"),
        ("forced_bos_token_id", 0, "null"),
        ("num_beam_groups", 2, "1"),
        ("do_sample", True, "false"),
        ("encoder_no_repeat_ngram_size", 3, "0"),
        ("suppress_tokens", [7], "null"),
        ("begin_suppress_tokens", [7], "null"),
        ("sequence_bias", [[[7], -9.0]], "null"),
    ],
)
def test_a_search_that_this_package_lacks_is_refused(copy, key, value, neutral):
    change_json(copy / "generation_config.json", **{key: value})
    message = re.escape(f"`{key}` must be {neutral}, since others cannot be")
    with pytest.raises(UserError, match=message):
        load_marian(copy)


def change_tensors(folder, change):
    file = folder / "model.safetensors"
    tensors = load_file(file)
    change(tensors)
    save_file(tensors, file)


FC1 = "model.encoder.layers.1.fc1.weight"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda f: change_config(f, activation_function="gelu_new"),
            "`activation_function` .* swish.*Received: gelu_new",
        ),
        (
            lambda f: change_config(f, normalize_before=True),
            "`normalize_before` must be False",
        ),
        (
            lambda f: change_config(f, scale_embedding=False),
            "`scale_embedding`",
        ),
        (
            lambda f: change_config(f, decoder_ffn_dim=9),
            "`decoder_ffn_dim` must be equal. Received: 12 and 9",
        ),
        (lambda f: change_config(f, d_model="8"), "`d_model` .* int"),
        (lambda f: change_config(f, d_model=0), "`d_model` .* at least 1"),
        (
            lambda f: change_config(f, max_position_embeddings="512"),
            "`max_position_embeddings` .* integer.*'512'",
        ),
        (
            lambda f: change_config(f, length_penalty="x"),
            "`length_penalty` must be a finite number .*Received: 'x'",
        ),
        (
            lambda f: change_config(f, num_beams="4"),
            "`num_beams` must be an integer .*'4'",
        ),
        (
            lambda f: change_config(f, repetition_penalty=1.3),
            "`repetition_penalty` must be 1.*Received: 1.3",
        ),
        (
            lambda f: change_config(f, bad_words_ids=[[5, 7]]),
            r"`bad_words_ids` .*\[5, 7\]",
        ),
        (
            lambda f: change_config(f, decoder_start_token_id=0),
            "`decoder_start_token_id` .*</s>",
        ),
        (
            lambda f: change_config(f, vocab_size=10),
            "vocab.json: must have the 10 pieces",
        ),
        (
            lambda f: change_tensors(f, lambda t: t.pop(FC1)),
            f"lack {FC1}",
        ),
        (
            lambda f: change_tensors(f, lambda t: t.update(other=t[FC1])),
            r"such as other \(12, 8\)",
        ),
        (
            lambda f: change_config(f, encoder_layers=1),
            "tensors that no part .*layers.1",
        ),
        (
            lambda f: change_tensors(f, lambda t: t.update({FC1: t[FC1].T})),
            r"encoder_block_2/feed_forward/intermediate/kernel .*\(8, 12\)",
        ),
        (lambda f: cut(f / "model.safetensors", 1000), "cannot be read"),
        (lambda f: cut(f / "model.safetensors", 0), "cannot be read"),
        (lambda f: cut(f / "source.spm", 0), "source.spm: not a Sentence"),
        (lambda f: cut(f / "target.spm", 200), "target.spm: not a Sentence"),
        (lambda f: cut(f / "vocab.json", 20), "vocab.json"),
        (lambda f: number_by_text(f / "vocab.json"), "vocab.json: .*integer"),
        (lambda f: (f / "target.spm").unlink(), "target.spm: cannot be read"),
        (lambda f: (f / "model.safetensors").unlink(), "has no weights"),
        (lambda f: (f / "config.json").unlink(), "of no format"),
        (
            lambda f: change_config(f, model_type="bart"),
            r"of no format .*`model_type` of config.json is 'bart'",
        ),
    ],
)
def test_what_does_not_fit_is_named_and_nothing_is_written(
    copy, tmp_path, spoil, message
):
    spoil(copy)
    refused(copy, tmp_path, message)


def test_an_empty_file_is_named(tmp_path):
    (tmp_path / "model").touch()
    with pytest.raises(UserError, match="model: .*the file is empty"):
        import_model(tmp_path / "model", tmp_path / "output")


def number_by_text(file):
    table = json.loads(file.read_text())
    file.write_text(json.dumps({p: str(i) for p, i in table.items()}))


def test_an_unknown_format_is_refused_with_the_nearest(folder, tmp_path):
    message = re.escape('Did you mean "marian-hf"?')
    with pytest.raises(UserError, match=message):
        import_model(folder, tmp_path / "output", "marian")
