"""Compares imported Transformers of eole with eole itself.

    python -m venv eole
    eole/bin/pip install eole==0.6.4 aiohttp
    python benchmarks/exchange/eole_transformers.py --python eole/bin/python

`eole_models.py` trains a small model there, by eole's own command, on the
embedded corpus, and records the ids of lines of many kinds, logits, and
translations by beam search with four hypotheses. Here the model is imported,
and the same is computed. Where the translations differ, it is counted whose has
the higher score. A row is appended to `results/eole.csv`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.exchange.marian_hf import lines_of_many_kinds
from benchmarks.exchange.opennmt_transformers import (
    compare_ids_and_logits,
    compare_translations,
    order_of,
)
from benchmarks.shared.result_rows import append_row, provenance

RESULTS = Path(__file__).parent / "results" / "eole.csv"
CASES = [
    {
        "kind": "unigram",
        "shared": False,
        "vocabulary": "build_vocab",
        "activation": "relu",
        "output": "tied",
        "positions": "SinusoidalInterleaved",
        "model": {
            "layers": 2,
            "share_decoder_embeddings": True,
            "embeddings": {"word_vec_size": 64},
        },
    },
    {
        "kind": "bpe",
        "shared": True,
        "vocabulary": "spm_to_vocab",
        "activation": "gelu",
        "output": "own",
        "positions": "SinusoidalConcat",
        "model": {
            # Else the encoder is trained without this bias, and eole loads it
            # with one, of arbitrary values.
            "encoder": {"layers": 3, "add_final_linear_bias": True},
            "decoder": {"layers": 2},
            "mlp_activation_fn": "gelu",
            "add_qkvbias": True,
            "add_ffnbias": True,
            "share_embeddings": True,
            "norm_eps": 1e-6,
            "embeddings": {
                "word_vec_size": 64,
                "position_encoding_type": "SinusoidalConcat",
            },
        },
    },
]
SIZES = {
    "architecture": "transformer",
    "hidden_size": 64,
    "heads": 4,
    "transformer_ff": 128,
}
PAIRS, DEV = 1500, 40


def main(arguments: list[str] | None = None) -> None:
    """Measures each case and appends its row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", required=True)
    parser.add_argument("--updates", type=int, default=300)
    parser.add_argument("--cases", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    from keras_deepnmt.commands.terminal.quiet_import import import_backend

    import_backend()
    for number in options.cases:
        case = CASES[number] | {"updates": options.updates}
        case["model"] = SIZES | case["model"]
        with tempfile.TemporaryDirectory() as folder:
            train(Path(folder), case, options.python)
            row = compare(Path(folder), case)
        append_row(options.output, row)


def train(folder: Path, case: dict, python: str) -> None:
    """Writes texts, and has eole train and translate."""
    from keras_deepnmt.data.demo import demo_pairs

    pairs = [(pair.source, pair.target) for pair in demo_pairs(PAIRS)]
    for side, texts in zip(
        ("source", "target"), zip(*pairs, strict=True), strict=True
    ):
        for name, part in (("train", texts[:-DEV]), ("dev", texts[-DEV:])):
            (folder / f"{name}.{side}").write_text("\n".join(part) + "\n")
    lines = lines_of_many_kinds([source for source, _ in pairs])
    (folder / "lines").write_text("\n".join(lines))
    program = Path(__file__).with_name("eole_models.py")
    subprocess.run(
        [python, str(program), str(folder), json.dumps(case)], check=True
    )


def compare(folder: Path, case: dict) -> dict:
    """Imports the model and returns the row."""
    from keras_deepnmt import Translator
    from keras_deepnmt.exchange import import_model

    theirs = json.loads((folder / "outputs.json").read_text())
    preset = import_model(folder / "model", folder / "preset")
    # eole counts the begin token, too.
    translator = Translator.load(
        preset,
        batch_size=16,
        num_beams=4,
        length_penalty=1.0,
        length_offset=1.0,
    )
    names = json.loads((folder / "model" / "vocab.json").read_text())
    orders = {
        side: order_of(names[short])
        for side, short in (("source", "src"), ("target", "tgt"))
    }
    return {
        **provenance("tensorflow", "keras", "sentencepiece"),
        **theirs["versions"],
        **{name: case[name] for name in case if name != "model"},
        **compare_ids_and_logits(folder, translator, theirs, orders),
        **compare_translations(folder, translator, theirs),
    }


if __name__ == "__main__":
    main()
