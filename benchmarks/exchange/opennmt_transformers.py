"""Compares imported Transformers of OpenNMT-py with OpenNMT-py itself.

    python -m venv onmt
    onmt/bin/pip install OpenNMT-py==3.5.1 subword-nmt==0.3.8
    python benchmarks/exchange/opennmt_transformers.py --python onmt/bin/python

OpenNMT-py 3.5.1 asks for torch below 2.3, and runs with 2.13 and NumPy 1.26 if
it is installed with `--no-deps` beside its other requirements.

`opennmt_models.py` trains a small model there, by OpenNMT-py's own command, and
records the ids of lines of many kinds, logits and translations by its search
with 4 beams. Here the model is imported, and the same is computed. A checkpoint
of OpenNMT-py is a pickle, so that this package's environment needs torch too. A
row is appended to `results/opennmt_transformers.csv`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.exchange.marian_hf import lines_of_many_kinds
from benchmarks.shared.result_rows import append_row, provenance

RESULTS = Path(__file__).parent / "results" / "opennmt_transformers.csv"
CASES = [
    {"tied": True, "activation": "relu", "bias": False},
    {"tied": False, "activation": "gelu", "bias": True},
    {"tied": False, "activation": "relu", "bias": False, "transform": "bpe"},
]
PAIRS = 1500


def main(arguments: list[str] | None = None) -> None:
    """Measures each case and appends its row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", required=True)
    parser.add_argument("--updates", type=int, default=800)
    parser.add_argument("--cases", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    from keras_deepnmt.commands.terminal.quiet_import import import_backend

    import_backend()
    for number in options.cases:
        case = {
            "toolkit": "opennmt-py",
            "transform": "sentencepiece",
            **CASES[number],
            "updates": options.updates,
        }
        with tempfile.TemporaryDirectory() as folder:
            row = compare(Path(folder), case, options.python)
        append_row(options.output, row)


def compare(folder: Path, case: dict, python: str) -> dict:
    """Trains the model, imports it, and returns the row."""
    from keras_deepnmt import Translator
    from keras_deepnmt.data.demo import demo_pairs
    from keras_deepnmt.exchange import import_model

    pairs = [(pair.source, pair.target) for pair in demo_pairs(PAIRS)]
    for side, texts in zip(
        ("source", "target"), zip(*pairs, strict=True), strict=True
    ):
        (folder / f"text.{side}").write_text("\n".join(texts) + "\n")
    lines = lines_of_many_kinds([source for source, _ in pairs])
    (folder / "lines").write_text("\n".join(lines))
    program = Path(__file__).with_name("opennmt_models.py")
    subprocess.run(
        [python, str(program), str(folder), json.dumps(case)], check=True
    )
    theirs = json.loads((folder / "outputs.json").read_text())
    (model,) = (folder / "model").glob("*.pt")
    tokenizers = [
        folder / "model" / f"{side}.model" for side in ("source", "target")
    ]
    preset = import_model(model, folder / "preset", None, *tokenizers)
    # OpenNMT-py counts the begin token, too.
    translator = Translator.load(
        preset,
        batch_size=16,
        num_beams=4,
        length_penalty=1.0,
        length_offset=1.0,
    )
    orders = {side: order_of(names) for side, names in theirs["pieces"].items()}
    return {
        **provenance("tensorflow", "keras", "sentencepiece"),
        **theirs["versions"],
        **case,
        **compare_ids_and_logits(folder, translator, theirs, orders),
        **compare_translations(folder, translator, theirs),
    }


def compare_ids_and_logits(folder, translator, theirs, orders) -> dict:
    """Returns how many lines have equal ids, and how far logits differ.

    Args:
        folder: has `lines` and `logits.npy`.
        translator: the imported model.
        theirs: what the toolkit recorded: the `ids` of the lines, and those of
            the logits.
        orders: the results of `order_of`, by side.
    """
    lines = (folder / "lines").read_text().split("\n")
    rows = translator.source_tokenizer.encode(lines)
    equal_ids = sum(
        [orders["source"][i] for i in row] == other
        for row, other in zip(rows, theirs["ids"], strict=True)
    )
    ids = {
        f"{side}_ids": np.argsort(orders[side])[theirs[f"{side}_ids"]]
        for side in orders
    }
    found = np.asarray(translator.model(ids))
    expected = np.load(folder / "logits.npy")[..., orders["target"]]
    difference = np.abs(found - expected)[ids["target_ids"] != 0]
    return {
        "lines": len(lines),
        "equal_ids": equal_ids,
        "largest_logit": float(f"{np.abs(expected).max():.3g}"),
        "largest_difference": float(f"{difference.max():.2g}"),
    }


def compare_translations(folder, translator, theirs) -> dict:
    """Returns how many are equal, and whose have the higher scores.

    The toolkit's scores are log-probabilities divided by the number of tokens
    with the begin and the end.

    Args:
        folder: has `dev.source`.
        translator: the imported model, with the same search options.
        theirs: what the toolkit recorded: `translations` and `scores`.
    """
    sentences = (folder / "dev.source").read_text().splitlines()
    found = [row[0] for row in translator.translate_nbest(sentences, 1)]
    scored = translator.score(sentences, theirs["translations"])
    equal = [
        one.text == other
        for one, other in zip(found, theirs["translations"], strict=True)
    ]
    # Of their texts, by this package and by the toolkit's search.
    scores = [one.total / (len(one.tokens) + 1) for one in scored]
    differences = np.abs(np.subtract(scores, theirs["scores"]))
    higher = [
        one.log_prob / (len(one.ids) + 1) > other
        for one, other, is_equal in zip(found, scores, equal, strict=True)
        if not is_equal
    ]
    return {
        "sentences": len(sentences),
        "equal_translations": sum(equal),
        # A search may have made a text of other pieces than it is cut into.
        "as_in_search": int((differences < 1e-4).sum()),
        "higher_here": sum(higher),
        "higher_there": len(higher) - sum(higher),
    }


def order_of(names: list[str]) -> list[int]:
    """Returns the toolkit's id of each id of this package."""
    special = [
        names.index(name) for name in ("<blank>", "<unk>", "<s>", "</s>")
    ]
    return special + [i for i in range(len(names)) if i not in special]


if __name__ == "__main__":
    main()
