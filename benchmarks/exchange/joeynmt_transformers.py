"""Compares imported Transformers of JoeyNMT with JoeyNMT itself.

    python -m venv joey
    joey/bin/pip install joeynmt==2.3.0 sentencepiece==0.2.0
    python benchmarks/exchange/joeynmt_transformers.py --python joey/bin/python

`joeynmt_models.py` trains a small model there, and records the ids of lines of
many kinds, logits and translations by beam search. Here the model is imported,
and the same is computed. The checkpoint is a pickle, so that this package's
environment needs torch too. A row for each kind of model is appended to
`results/joeynmt.csv`.
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

RESULTS = Path(__file__).parent / "results" / "joeynmt.csv"
CASES = [
    {
        "kind": "unigram",
        "shared": False,
        "layer_norm": "pre",
        "activation": "relu",
        "scale": True,
    },
    {
        "kind": "bpe",
        "shared": True,
        "layer_norm": "post",
        "activation": "gelu",
        "scale": False,
    },
    {
        "kind": "subword-nmt",
        "shared": False,
        "layer_norm": "pre",
        "activation": "relu",
        "scale": True,
    },
]
PAIRS = 1500


def main(arguments: list[str] | None = None) -> None:
    """Measures each case and appends its row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", required=True)
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--cases", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    from keras_deepnmt.commands.terminal.quiet_import import import_backend

    import_backend()
    for number in options.cases:
        case = {**CASES[number], "updates": options.updates}
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
    program = Path(__file__).with_name("joeynmt_models.py")
    subprocess.run(
        [python, str(program), str(folder), json.dumps(case)], check=True
    )
    theirs = json.loads((folder / "outputs.json").read_text())
    # JoeyNMT read them elsewhere.
    for made in (*folder.glob("*.model"), *folder.glob("*.codes")):
        file = folder / "model" / made.name
        if not file.is_file():
            file.write_bytes(made.read_bytes())
    preset = import_model(folder / "model", folder / "preset")
    translator = Translator.load(preset, batch_size=16)
    # Their ids 0 to 3 are unknown, padding, begin and end.
    equal_ids = 0
    rows = translator.source_tokenizer.encode(lines)
    for line, row, other in zip(lines, rows, theirs["ids"], strict=True):
        found = [*swapped(row), 3]
        equal_ids += found == other
        if found != other:
            print(f"{line!r}: {found} here, {other} there", file=sys.stderr)
    source, target = (
        np.array(swapped(theirs[f"{side}_ids"]))
        for side in ("source", "target")
    )
    found = np.asarray(
        translator.model({"source_ids": source, "target_ids": target})
    )
    expected = np.load(folder / "logits.npy")
    order = [1, 0, *range(2, expected.shape[-1])]
    if found.shape[-1] != len(order):
        raise SystemExit("The vocabularies have other sizes.")
    # The id 0 of this package, padding, is their id 1.
    difference = np.abs(found - expected[..., order])[target != 0]
    translations = translator.translate(theirs["sentences"])
    return {
        **provenance("tensorflow", "keras", "sentencepiece"),
        **theirs["versions"],
        **case,
        "lines": len(lines),
        "equal_ids": equal_ids,
        "sentences": len(translations),
        "equal_translations": sum(
            one == other
            for one, other in zip(
                translations, theirs["translations"], strict=True
            )
        ),
        "largest_logit": float(f"{np.abs(expected).max():.3g}"),
        "largest_difference": float(f"{difference.max():.2g}"),
    }


def swapped(ids):
    """Exchanges the ids 0 and 1, of unknown and padding."""
    ids = np.array(ids)
    return np.where(ids < 2, 1 - ids, ids).tolist()


if __name__ == "__main__":
    main()
