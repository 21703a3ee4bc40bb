"""Compares models exported for MarianMT with what `transformers` computes.

    python -m venv hf
    hf/bin/pip install "transformers<5" torch sentencepiece
    python benchmarks/exchange/marian_hf_export.py --python hf/bin/python

A small model is trained here for some updates on the embedded corpus and
exported by `--format marian-hf`. `transformers_models.py` loads the folder with
`transformers`, and records the ids of lines of many kinds, its logits and its
translations by beam search. Here the same is computed. A row for each kind of
model is appended to `results/marian_hf_export.csv`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.exchange.marian_hf import (
    compare_logits,
    compare_translations,
    lines_of_many_kinds,
)
from benchmarks.shared.result_rows import append_row, provenance

RESULTS = Path(__file__).parent / "results" / "marian_hf_export.csv"
CASES = [
    {"shared": True, "activation": "relu"},
    {"shared": False, "activation": "silu"},
]
# The package's own, and that of Transformers, which does not read it.
EPSILONS = [1e-6, 1e-5]
PAIRS = 4_000
LONGEST = 32
BATCH = 32


def main(arguments: list[str] | None = None) -> None:
    """Measures each case and appends its rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", required=True)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--cases", type=int, default=len(CASES))
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    from keras_deepnmt.commands.terminal.quiet_import import import_backend

    import_backend()
    from keras_deepnmt import Translator
    from keras_deepnmt.data.demo import demo_pairs
    from keras_deepnmt.models import Transformer

    pairs = [(pair.source, pair.target) for pair in demo_pairs(PAIRS)]
    for case in CASES[: options.cases]:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            tokenizers = train_tokenizers(pairs, case["shared"], folder)
            model = train(pairs, tokenizers, case, options.epochs)
            for epsilon in EPSILONS:
                config = {**model.get_config(), "layer_norm_epsilon": epsilon}
                other = Transformer.from_config(config)
                other.set_weights(model.get_weights())
                translator = Translator(
                    other,
                    *tokenizers,
                    num_beams=4,
                    length_offset=0.0,
                    compiled=False,
                )
                case_folder = folder / f"{epsilon:.0e}"
                case_folder.mkdir()
                found = compare(case_folder, translator, pairs, options.python)
                row = {
                    **provenance("tensorflow", "keras", "sentencepiece"),
                    **case,
                    "layer_norm_epsilon": epsilon,
                    "updates": int(model.optimizer.iterations),
                    **found,
                }
                append_row(options.output, row)


def train_tokenizers(pairs, shared, folder):
    """Trains a tokenizer of both sides, or one for each."""
    from keras_deepnmt.data import train_tokenizer

    sources, targets = zip(*pairs, strict=True)
    if shared:
        one = train_tokenizer([*sources, *targets], folder / "joint.model", 900)
        return [one, one]
    return [
        train_tokenizer(texts, folder / f"{side}.model", 600)
        for side, texts in (("source", sources), ("target", targets))
    ]


def train(pairs, tokenizers, case, epochs):
    """Trains a small model."""
    import keras

    from keras_deepnmt.models import Transformer

    keras.utils.set_random_seed(0)
    model = Transformer(
        *(tokenizer.vocabulary_size for tokenizer in tokenizers),
        *(64, 128, 4, 2, 2),
        share_embeddings=case["shared"],
        activation=case["activation"],
        output_bias=True,
        max_length=128,
    )
    rows = [
        tokenizer.encode(list(texts))
        for tokenizer, texts in zip(
            tokenizers, zip(*pairs, strict=True), strict=True
        )
    ]
    kept = [
        (source, target)
        for source, target in zip(*rows, strict=True)
        if max(len(source), len(target)) < LONGEST
    ]
    inputs = {
        "source_ids": _padded([[*source, 3] for source, _ in kept]),
        "target_ids": _padded([[2, *target] for _, target in kept]),
    }
    labels = _padded([[*target, 3] for _, target in kept])
    model.compile(keras.optimizers.Adam(2e-3))
    model.fit(inputs, labels, batch_size=BATCH, epochs=epochs, verbose=2)
    return model


def _padded(rows):
    return np.array([[*row, *[0] * (LONGEST - len(row))] for row in rows])


def compare(folder, translator, pairs, python) -> dict:
    """Exports a model, and compares what `transformers` computes of it."""
    from keras_deepnmt.exchange import export_marian

    lines = lines_of_many_kinds([source for source, _ in pairs])
    # A tag that the vocabulary lacks is one unknown token in Transformers.
    lines = [line for line in lines if not line.startswith(">>")]
    (folder / "lines").write_text("\n".join(lines))
    for side, texts in zip(
        ("source", "target"), zip(*pairs[-60:], strict=True), strict=True
    ):
        (folder / f"text.{side}").write_text("\n".join(texts) + "\n")
    export_marian(translator, folder / "model")
    program = Path(__file__).with_name("transformers_models.py")
    subprocess.run([python, str(program), str(folder)], check=True)
    theirs = json.loads((folder / "outputs.json").read_text())
    rows = [
        [*row.tolist(), 3] for row in translator.source_tokenizer.encode(lines)
    ]
    orders = [
        list(range(tokenizer.vocabulary_size))
        for tokenizer in (
            translator.source_tokenizer,
            translator.target_tokenizer,
        )
    ]
    return {
        **theirs["versions"],
        "lines": len(lines),
        "equal_ids": sum(
            one == other for one, other in zip(rows, theirs["ids"], strict=True)
        ),
        **compare_translations(translator, theirs, orders[1]),
        **compare_logits(
            translator.model,
            (np.array(theirs["source_ids"]), orders[0]),
            (np.array(theirs["decoder_ids"]), orders[1]),
            folder,
        ),
    }


if __name__ == "__main__":
    main()
