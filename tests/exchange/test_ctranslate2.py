"""What must be true of a folder for CTranslate2: the engine computes what this
package does, without this package; what it cannot compute is refused."""

import json
import subprocess
import sys

import keras
import numpy as np
import pytest
from exchange_checks import spread_weights
from foreign_tokenizer import foreign_tokenizer

from keras_deepnmt import Translator, UserError
from keras_deepnmt.cli import main
from keras_deepnmt.data.demo import demo_pairs
from keras_deepnmt.exchange import (
    engine_folders,
    export_ctranslate2,
    find_engine,
    verify_engine_folder,
)
from keras_deepnmt.exchange.ctranslate2_cost import (
    TypeCost,
    compare_with_float32,
)
from keras_deepnmt.exchange.ctranslate2_program import Model
from keras_deepnmt.exchange.engine_folders import ENGINES
from keras_deepnmt.exchange.plain_transformer import check_plain
from keras_deepnmt.models import Transformer

pytestmark = pytest.mark.thorough(each_commit=True)

pytest.importorskip("ctranslate2")
DEMO = "transformer_tiny.demo_de_en"
SOURCES = [pair.source for pair in demo_pairs(12)]


@pytest.fixture(scope="module")
def folder(ctranslate2_demo):
    return ctranslate2_demo


def translate(folder, texts):
    """Runs the folder's own program, without the folder of this package."""
    done = subprocess.run(
        [sys.executable, "-P", str(folder / "translate.py")],
        input="".join(f"{text}\n" for text in texts),
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    )
    return done.stdout.split("\n")[:-1]


def test_its_program_translates_as_this_package(demo, folder):
    texts = [SOURCES[0], "", *SOURCES[1:], "ein\tHund ﬁel"]
    assert translate(folder, texts) == demo.translate(texts)


def test_no_translation_is_longer_than_the_positions(demo, folder):
    content = json.loads((folder / "export.json").read_text())
    longest = demo.model.max_length
    assert content["max_target_length"] == longest
    program = Model(folder)
    # The limit of the source asks for more positions than there are, and the
    # translation may not end before.
    options = {"extra_tokens": 9 * longest, "min_decoding_length": longest}
    [[found]] = program.translate_nbest(SOURCES[:1], 1, **options)
    assert found["truncated"]


@pytest.mark.thorough
def test_a_quarter_of_the_space_with_8_bits(demo, folder, tmp_path):
    found = export_ctranslate2(demo, tmp_path / "int8", "int8", SOURCES)
    # Near ties of a trained model are few.
    assert found["equal"] >= 0.8 * found["sentences"]
    sizes = [
        (each / "model.bin").stat().st_size
        for each in (tmp_path / "int8", folder)
    ]
    assert sizes[0] < 0.4 * sizes[1]
    assert verify_engine_folder(tmp_path / "int8")["largest_difference"] < 1e-4


@pytest.mark.thorough
@pytest.mark.parametrize(
    "arguments",
    [
        {
            "normalize_first": True,
            "tie_output_embedding": False,
            "encode_end": False,
        },
        {"activation": "gelu", "output_bias": True, "key_bias": True},
    ],
    ids=["pre_norm", "biases"],
)
def test_models_of_other_kinds(arguments, tokenizers, tmp_path):
    sizes = [each.vocabulary_size for each in tokenizers]
    model = Transformer(*sizes, 16, 24, 2, 2, 1, **arguments)
    spread_weights(model)
    translator = Translator(model, *tokenizers, compiled=False)
    found = export_ctranslate2(translator, tmp_path / "other", sources=SOURCES)
    assert found["equal"] == found["sentences"]


def test_pieces_may_end_words(tokenizers, tmp_path):
    texts = [pair.target for pair in demo_pairs(40)]
    suffix = foreign_tokenizer(
        *(texts, tmp_path / "suffix"),
        vocab_size=60,
        treat_whitespace_as_suffix=True,
    )
    sizes = tokenizers[0].vocabulary_size, suffix.vocabulary_size
    model = Transformer(*sizes, 8, 8, 2, 1, 1, output_bias=True)
    # So that translations are of words.
    bias = np.zeros(sizes[1], "float32")
    words = [p.endswith("▁") for p in suffix.pieces(range(sizes[1]))]
    bias[words] = 9.0
    model.output_bias.bias.assign(bias)
    translator = Translator(model, tokenizers[0], suffix, compiled=False)
    found = export_ctranslate2(
        translator, tmp_path / "folder", sources=SOURCES[:3]
    )
    assert found["equal"] == 3


def test_a_changed_file_is_found(copy):
    assert verify_engine_folder(copy)["sentences"] == 17
    with open(copy / "source.spm", "ab") as file:
        file.write(b"x")
    with pytest.raises(UserError, match="source.spm: damaged|source.spm"):
        verify_engine_folder(copy)


def test_other_outputs_than_recorded_are_found(copy):
    content = json.loads((copy / "export.json").read_text())
    content["golden"]["texts"][3] += " dog"
    (copy / "export.json").write_text(json.dumps(content))
    with pytest.raises(UserError, match="1 of 17 golden sentences"):
        verify_engine_folder(copy)


def test_log_probabilities_that_are_no_numbers_are_found(folder, monkeypatch):
    golden = json.loads((folder / "export.json").read_text())["golden"]
    numbers = list(golden["log_probs"])
    numbers[3] = float("nan")
    monkeypatch.setattr(
        engine_folders, "_run", lambda *_: golden | {"log_probs": numbers}
    )
    with pytest.raises(UserError, match="largest difference .* is nan"):
        verify_engine_folder(folder)


@pytest.mark.parametrize(
    ("slots", "named"),
    [
        ({"encoder_fusion": "FineGrainedLayerAttention"}, "`encoder_fusion`"),
        ({"output_fusion": "SurfaceFusion"}, "SurfaceFusion in `output_fus"),
        ({"residual_connection": "DeepNorm"}, "DeepNorm in `residual_conn"),
        ({"position_encoding": None}, "`position_encoding` is None"),
        (
            {"position_encoding": "RotaryPositionEmbedding"},
            "added to the embeddings. Received: RotaryPositionEmbedding",
        ),
        ({"final_norm": True}, "final_norm=True"),
    ],
)
def test_what_it_cannot_compute_is_refused(slots, named, tokenizers, tmp_path):
    sizes = [each.vocabulary_size for each in tokenizers]
    model = Transformer(*sizes, 8, 8, 2, 1, 1, **slots)
    translator = Translator(model, *tokenizers, compiled=False)
    with pytest.raises(UserError, match=f"only plain Transformers.*{named}"):
        export_ctranslate2(translator, tmp_path / "refused")
    assert not list(tmp_path.iterdir())


def test_quantized_weights_are_refused():
    model = Transformer(11, 13, 8, 8, 2, 1, 1)
    model.target_embedding.quantize("int8")
    with pytest.raises(UserError, match="not quantized. Received: int8 weigh"):
        check_plain(model, "CTranslate2")


@keras.saving.register_keras_serializable("test_ctranslate2")
def squared(x):
    return keras.ops.square(keras.ops.relu(x))


@pytest.mark.parametrize("activation", ["elu", squared])
def test_activations_that_it_lacks_are_refused(
    activation, tokenizers, tmp_path
):
    sizes = [each.vocabulary_size for each in tokenizers]
    model = Transformer(*sizes, 8, 8, 2, 1, 1, activation=activation)
    translator = Translator(model, *tokenizers, compiled=False)
    with pytest.raises(UserError, match="`activation` must be one of relu, ge"):
        export_ctranslate2(translator, tmp_path / "refused")
    assert not list(tmp_path.iterdir())


def test_layers_that_do_nothing_in_translation_are_no_obstacle():
    sizes = (11, 13, 8, 8, 2, 1, 1)
    model = Transformer(*sizes, layer_drop=0.1, layer_diversity=1.0)
    check_plain(model, "CTranslate2")


def test_search_options_that_its_program_lacks_are_refused(demo, tmp_path):
    sampled = demo.replaced(sampling=True)
    with pytest.raises(UserError, match="no `sampling`.*sampling=True"):
        export_ctranslate2(sampled, tmp_path / "refused")
    with pytest.raises(UserError, match="must be one of float32.*int4"):
        export_ctranslate2(demo, tmp_path / "refused", "int4")


@pytest.mark.thorough
def test_the_commands_write_and_verify_it(tmp_path, capsys):
    target = tmp_path / "demo"
    words = ["export", DEMO, str(target), "--format", "ctranslate2"]
    assert main(words) == 0
    done = capsys.readouterr()
    assert done.out.strip() == str(target)
    assert "17 of 17 golden sentences" in done.err
    assert "another one may win" in done.err
    assert find_engine(target).name == "CTranslate2"
    assert main(["verify", str(target)]) == 0
    assert "only CTranslate2 and SentencePiece" in capsys.readouterr().out
    assert main(words) == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.thorough
def test_fewer_bits_print_what_they_cost_and_gain(demo, folder, tmp_path):
    pairs = demo_pairs(12)
    references = [pair.target for pair in pairs]
    cost = compare_with_float32(demo, folder, SOURCES, references)
    # Both are float32 here: the same BLEU, whatever the speed.
    assert cost.bleu == cost.float32_bleu > 50
    assert cost.speed > 0 < cost.float32_speed
    text = TypeCost(500, 89.04, 89.67, 800.0, 400.0).describe("int8")
    assert "89.04 with int8 and 89.67 with float32 (-0.63)" in text
    assert "800 sentences per second, 2.00 times as many" in text


def test_an_export_with_fewer_bits_says_what_it_lacks(
    tmp_path, capsys, monkeypatch
):
    found = {"equal": 9, "sentences": 17, "largest_difference": 0.1}
    monkeypatch.setattr(
        "keras_deepnmt.exchange.export_ctranslate2",
        lambda *_: found | {"is_checked": True},
    )
    monkeypatch.setattr(
        "keras_deepnmt.exchange.find_engine", lambda _: ENGINES["ctranslate2"]
    )
    words = ["export", DEMO, str(tmp_path / "int8"), "--format", "ctranslate2"]
    assert main([*words, "--dtype", "int8"]) == 0
    assert "the test set of" in capsys.readouterr().err
