"""Compares imported models around `torch.nn.Transformer` with PyTorch.

    python -m venv torch
    torch/bin/pip install torch safetensors pyyaml
    python benchmarks/exchange/torch_transformer.py --python torch/bin/python

`torch_models.py` makes a model with random weights there, and records ids and
logits. Here it is imported, and the same is computed. A row for each kind of
model is appended to `results/torch_transformer.csv`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_row, provenance

RESULTS = Path(__file__).parent / "results" / "torch_transformer.csv"
CASES = [
    dict(
        zip(
            ("normalize_first", "activation", "tied", "file"),
            values,
            strict=True,
        )
    )
    for values in (
        (False, "relu", False, "model.safetensors"),
        (False, "gelu", True, "weights.npz"),
        (True, "relu", True, "model.safetensors"),
        (True, "gelu", False, "weights.npz"),
    )
]


def main(arguments: list[str] | None = None) -> None:
    """Measures each case and appends its row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", required=True)
    parser.add_argument("--cases", type=int, default=len(CASES))
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    from keras_deepnmt.commands.terminal.quiet_import import import_backend

    import_backend()
    for case in CASES[: options.cases]:
        with tempfile.TemporaryDirectory() as folder:
            row = compare(Path(folder), case, options)
        append_row(options.output, row)


def compare(folder: Path, case: dict, options) -> dict:
    """Makes the model, imports it, and returns the row."""
    from keras_deepnmt import Translator
    from keras_deepnmt.exchange import import_model

    program = Path(__file__).with_name("torch_models.py")
    subprocess.run(
        [options.python, str(program), str(folder), json.dumps(case)],
        check=True,
    )
    preset = import_model(folder / "model.yaml", folder / "preset")
    translator = Translator.load(preset)
    with np.load(folder / "logits.npz") as file:
        source, target, expected = (
            file[name] for name in ("source", "target", "logits")
        )
    # Their ids 0 to 3 are unknown, padding, begin and end; the begin token of
    # a source has the id 4 here.
    ours = np.array([1, 0, 2, 3])
    source = np.where(source < 4, ours[source % 4], source + 1)
    source[:, 0] = 4
    target = np.where(target < 4, ours[target % 4], target)
    found = np.asarray(
        translator.model({"source_ids": source, "target_ids": target})
    )
    order = [1, 0, *range(2, expected.shape[-1])]
    difference = np.abs(found - expected[..., order])
    return {
        **provenance("tensorflow", "keras"),
        **json.loads((folder / "versions.json").read_text()),
        **case,
        "sentences": len(source),
        "largest_logit": float(f"{np.abs(expected).max():.3g}"),
        "largest_difference": float(f"{difference.max():.2g}"),
    }


if __name__ == "__main__":
    main()
