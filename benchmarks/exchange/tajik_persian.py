"""Compares the imported model of tg2fa_translit with the package itself.

    python -m venv tg2fa
    tg2fa/bin/pip install torch safetensors pyyaml tg2fa_translit==1.0
    python benchmarks/exchange/tajik_persian.py --python tg2fa/bin/python

[tg2fa_translit](https://pypi.org/project/tg2fa_translit/) writes Tajik in
Persian letters, with a model around `torch.nn.Transformer`.
`tajik_persian_words.py` writes this model and what the package makes of 1,000
words; nothing of it is kept. Here the model is imported and translates the same
words. A row is appended to `results/tajik_persian.csv`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_row, provenance

RESULTS = Path(__file__).parent / "results" / "tajik_persian.csv"


def main(arguments: list[str] | None = None) -> None:
    """Compares, and appends the row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", required=True)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    from keras_deepnmt.commands.terminal.quiet_import import import_backend

    import_backend()
    with tempfile.TemporaryDirectory() as folder:
        row = compare(Path(folder), options.python)
    append_row(options.output, row)


def compare(folder: Path, python: str) -> dict:
    """Writes the model, imports it, and returns the row."""
    from keras_deepnmt import Translator
    from keras_deepnmt.exchange import import_model

    program = Path(__file__).with_name("tajik_persian_words.py")
    subprocess.run([python, str(program), str(folder)], check=True)
    theirs = json.loads((folder / "words.json").read_text())
    preset = import_model(folder / "model.yaml", folder / "preset")
    translator = Translator.load(preset, num_beams=1, compiled=False)
    found = translator.translate(theirs["words"])
    equal = 0
    for word, one, other in zip(
        theirs["words"], found, theirs["outputs"], strict=True
    ):
        equal += one == other
        if one != other:
            print(f"{word}: {one!r} here, {other!r} there", file=sys.stderr)
    return {
        **provenance("tensorflow", "keras"),
        **theirs["versions"],
        "words": len(found),
        "equal_outputs": equal,
    }


if __name__ == "__main__":
    main()
