"""Compares models exported for ONNX Runtime with this package.

    python benchmarks/exchange/onnx_models.py

A trained model of the package, and presets with random weights, are exported by
`--format onnx`. `translate.py` of the folder translates sentences of the
embedded corpus' test set in a process of its own, and so does this package. A
row for each model is appended to `results/onnx_models.csv`.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_row, provenance

RESULTS = Path(__file__).parent / "results" / "onnx_models.csv"
TRAINED = "transformer_tiny.demo_de_en"
# Together they have every kind of cache.
PRESETS = (
    "everything_tiny",
    "layer_aggregation_hierarchical_attention_tiny",
    "multi_layer_attention_k2_tiny",
    "role_interaction_softmax_cnn_tiny",
    "dense_nmt_2_tiny",
)
# The test set is this part of the embedded corpus' known files.
CORPUS = "demo_de_en"


def main(arguments: list[str] | None = None) -> None:
    """Measures each model and appends its row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", default=[TRAINED, *PRESETS])
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--random-sentences", type=int, default=60)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    from keras_deepnmt.commands.terminal.quiet_import import import_backend

    import_backend()
    from keras_deepnmt import Translator
    from keras_deepnmt.data.corpora import CorpusOptions
    from keras_deepnmt.data.known_corpora.finding import find_corpus_files

    origin = provenance("tensorflow", "keras", "tf2onnx", "onnxruntime")
    files = find_corpus_files(CorpusOptions(name=CORPUS), "test", None)
    lines = files.source.read_text(encoding="utf-8").splitlines()
    trained = Translator.from_preset(TRAINED, compiled=False)
    for name in options.models:
        translator, number = trained, options.sentences
        if name != TRAINED:
            translator = with_random_weights(name, trained)
            number = options.random_sentences
        row = {**origin, "model": name, "num_beams": translator.num_beams}
        append_row(options.output, row | compare(translator, lines[:number]))


def with_random_weights(preset, trained):
    """A translator of a preset, with the tokenizers of another one."""
    import keras

    from keras_deepnmt import Translator, create_model

    keras.utils.set_random_seed(0)
    tokenizers = trained.source_tokenizer, trained.target_tokenizer
    model = create_model(preset, *(t.vocabulary_size for t in tokenizers))
    random = np.random.default_rng(0)
    # So that no two next tokens are almost as likely.
    model.set_weights(
        [
            weight + 0.1 * random.normal(size=weight.shape).astype("float32")
            for weight in model.get_weights()
        ]
    )
    return Translator(model, *tokenizers, compiled=False)


def compare(translator, lines) -> dict:
    """Exports a model and translates with both."""
    from keras_deepnmt.exchange import export_onnx

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "onnx")
        found = export_onnx(translator, folder)
        done = subprocess.run(
            [sys.executable, "-P", str(folder / "translate.py")],
            input="".join(f"{line}\n" for line in lines),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        size = sum(file.stat().st_size for file in folder.glob("*.onnx"))
    theirs = done.stdout.split("\n")[:-1]
    ours = translator.translate(lines)
    return {
        "bytes": size,
        "golden_sentences": found["sentences"],
        "golden_equal": found["equal"],
        "largest_difference": f"{found['largest_difference']:.1e}",
        "sentences": len(lines),
        "equal_translations": sum(
            one == other for one, other in zip(ours, theirs, strict=True)
        ),
    }


if __name__ == "__main__":
    main()
