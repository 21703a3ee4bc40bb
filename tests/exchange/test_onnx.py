"""What must be true of a folder for ONNX Runtime: its program translates as
this package does, without this package; what it lacks is refused.
`tests/conformance/test_onnx_steps.py` has the graphs of other models."""

import contextlib
import importlib.util
import io
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from exchange_checks import spread_weights

from keras_deepnmt import Translator, UserError
from keras_deepnmt.cli import main
from keras_deepnmt.commands import export as command
from keras_deepnmt.data.demo import demo_pairs
from keras_deepnmt.data.text_steps import TextStep
from keras_deepnmt.exchange import (
    export_onnx,
    find_engine,
    verify_engine_folder,
)
from keras_deepnmt.models import Ensemble, Transformer

pytestmark = pytest.mark.thorough(each_commit=True)

NEEDS_ONNX = 'needs pip install "keras_deepnmt[onnx]"'
LINES = [pair.source for pair in demo_pairs(6)]
LINES += [
    "",
    "  zwei \t HUNDE ",
    "日本 ﬁel\0",
    "Öl </s> <unk>",
    " ".join(LINES),
]


def make_translator(tokenizers, **arguments):
    """A translator of a small model with weights by chance."""
    sizes = [each.vocabulary_size for each in tokenizers]
    model = Transformer(*sizes, 8, 12, 2, 1, 1, max_length=40, **arguments)
    spread_weights(model)
    return Translator(model, *tokenizers, compiled=False, max_extra_tokens=2)


@pytest.fixture(scope="module")
def small(tokenizers):
    return make_translator(tokenizers)


@pytest.fixture(scope="module")
def exported(small, tmp_path_factory):
    """The folder that the command wrote, and what it printed."""
    pytest.importorskip("onnxruntime", reason=NEEDS_ONNX)
    pytest.importorskip("tf2onnx", reason=NEEDS_ONNX)
    folder = tmp_path_factory.mktemp("onnx") / "small"
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "load_translator", lambda options: small)
        with contextlib.redirect_stderr(printed):
            words = ["export", "a_run", str(folder), "--format", "onnx"]
            assert main(words) == 0
    return folder, printed.getvalue()


@pytest.fixture
def folder(exported):
    return exported[0]


def load(folder):
    """The model of a folder, by the program in it."""
    file = folder / "translate.py"
    spec = importlib.util.spec_from_file_location("onnx_translate", file)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program.Model(folder)


def test_the_command_writes_and_checks_it(exported):
    folder, printed = exported
    assert "17 of 17 golden sentences have the same translation" in printed
    assert "largest difference of a score" in printed
    assert "length_offset" not in printed
    assert find_engine(folder).name == "ONNX Runtime"


@pytest.mark.thorough
def test_its_program_translates_lines(small, folder):
    done = subprocess.run(
        [sys.executable, "-P", str(folder / "translate.py")],
        input="".join(f"{line}\n" for line in LINES),
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    )
    assert done.stdout.split("\n")[:-1] == small.translate(LINES)


@pytest.mark.parametrize(
    "changes",
    [
        {"num_beams": 1},
        {"length_penalty": 2.0, "patience": 1.0, "no_repeat_ngram_size": 2},
        {
            "num_beams": 3,
            "length_penalty": 1.0,
            "length_offset": 0.0,
            "min_length": 5,
            "max_length_ratio": 1.1,
            "max_extra_tokens": 1,
            "allow_unknown": False,
        },
    ],
    ids=["greedy", "patience", "limits"],
)
def test_its_search_is_that_of_this_package(changes, small, folder):
    model = load(folder)
    model.facts["search"] |= changes
    found = model.best(LINES)
    expected = small.replaced(**changes).translate_nbest(LINES, 1)
    assert [text for text, _ in found] == [best.text for (best,) in expected]
    np.testing.assert_allclose(
        [score for _, score in found],
        [best.score for (best,) in expected],
        rtol=1e-5,
        atol=1e-5,
    )
    assert len({text for text, _ in found}) > len(LINES) // 2


def test_it_names_all_tensors_and_their_shapes(folder):
    content = json.loads((folder / "export.json").read_text())
    step = content["graphs"]["decoder_step.onnx"]
    inputs, outputs = step["inputs"], step["outputs"]
    assert inputs["token_ids"] == {"dtype": "int32", "shape": ["B", "K"]}
    assert inputs["position"]["shape"] == []
    key = "history/decoder_block_1/key"
    assert inputs[key]["shape"] == ["B", 8, "m*K"]
    assert outputs[f"next/{key}"]["shape"] == ["B", 8, "(m+1)*K"]
    assert outputs["log_probs"]["shape"] == ["B", "K", 150]
    # What a step reads comes from the encoder, or from the step before.
    given = {"token_ids", "parents", "position"}
    state = content["graphs"]["encoder.onnx"]["outputs"]
    assert set(inputs) - given == set(state)
    assert {n.removeprefix("next/") for n in outputs} - {"log_probs"} <= set(
        state
    )
    # Its keys and values are enough.
    assert "memory/output" not in state


def test_a_damaged_folder_is_named(copy):
    assert verify_engine_folder(copy)["equal"] == 17
    graph = copy / "encoder.onnx"
    whole = graph.read_bytes()
    graph.write_bytes(whole[:-100])
    with pytest.raises(UserError, match=r"encoder.onnx.*[Cc]opy the folder"):
        verify_engine_folder(copy)
    graph.unlink()
    with pytest.raises(UserError, match="encoder.onnx"):
        verify_engine_folder(copy)


@pytest.mark.parametrize("damage", ["other text", "no scores", "fewer texts"])
def test_other_golden_sentences_are_found(damage, copy, capsys):
    file = copy / "export.json"
    content = json.loads(file.read_text())
    golden = content["golden"]
    if damage == "other text":
        golden["texts"][3] += " dog"
        message = "1 of 17 golden sentences"
    else:
        message = "export.json: damaged"
        if damage == "no scores":
            del golden["scores"]
        else:
            golden["texts"].pop()
    file.write_text(json.dumps(content))
    assert main(["verify", str(copy)]) == 2
    assert message in capsys.readouterr().err


# Keras', of each layer without weights.
@pytest.mark.filterwarnings("ignore:Layer .* `quantize`")
def test_what_the_program_lacks_is_refused(small, tokenizers, tmp_path):
    target = tmp_path / "refused"
    with pytest.raises(UserError, match="no `sampling`.*sampling=True"):
        export_onnx(small.replaced(sampling=True), target)
    both = Translator(Ensemble([small.model] * 2), *tokenizers)
    with pytest.raises(UserError, match="takes one model.*Ensemble"):
        export_onnx(both, target)
    quantized = make_translator(tokenizers)
    quantized.model.quantize("int8")
    with pytest.raises(UserError, match="not quantized.*int8"):
        export_onnx(quantized, target)
    assert not list(tmp_path.iterdir())


def test_half_precision_becomes_float32(tokenizers, tmp_path, monkeypatch):
    half = make_translator(tokenizers, dtype="mixed_bfloat16")
    written = []

    def stop(model, folder):
        written.append(model)
        raise UserError("enough")

    monkeypatch.setattr("keras_deepnmt.exchange.onnx_export.write_graphs", stop)
    with pytest.raises(UserError, match="enough"):
        export_onnx(half, tmp_path / "half", LINES[:1])
    assert written[0].compute_dtype == "float32"
    for one, other in zip(written[0].weights, half.model.weights, strict=True):
        np.testing.assert_array_equal(one, other)


def test_other_tokenizers_are_refused_by_name(small, tmp_path, monkeypatch):
    step = TextStep()
    step.name = "a_step"
    monkeypatch.setattr(small.source_tokenizer, "steps", (step,))
    with pytest.raises(UserError, match="step `a_step`, which SentencePiece"):
        export_onnx(small, tmp_path / "refused")


def test_a_model_that_computes_otherwise_is_not_written(
    small, folder, tmp_path, monkeypatch
):
    # As if the conversion had a fault: the graphs are of other weights.
    def copy_graphs(model, into):
        for name in ("encoder.onnx", "decoder_step.onnx"):
            shutil.copy(folder / name, into / name)
        return {}

    monkeypatch.setattr(
        "keras_deepnmt.exchange.onnx_export.write_graphs", copy_graphs
    )
    other = small.replaced()
    before = other.model.get_weights()
    try:
        other.model.set_weights([1.5 * weight for weight in before])
        with pytest.raises(UserError, match="does not compute what this pack"):
            export_onnx(other, tmp_path / "refused", LINES[:2])
    finally:
        other.model.set_weights(before)
    assert not list(tmp_path.iterdir())


def test_the_command_says_what_is_missing(tmp_path, capsys, monkeypatch):
    words = ["export", "transformer_tiny.demo_de_en", str(tmp_path / "x")]
    words += ["--format", "onnx"]
    assert main([*words, "--dtype", "int8"]) == 2
    assert "--dtype must be float32 with --format onnx" in (
        capsys.readouterr().err
    )
    monkeypatch.setattr(command.importlib.util, "find_spec", lambda name: None)
    assert main(words) == 2
    assert "keras_deepnmt[onnx]" in capsys.readouterr().err
