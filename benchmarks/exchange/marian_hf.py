"""Compares imported MarianMT models with `transformers`.

    python -m venv hf
    hf/bin/pip install "transformers<5" torch sentencepiece
    python benchmarks/exchange/marian_hf.py --python hf/bin/python

`transformers_models.py` makes a small model there, trains it for some updates
on the embedded corpus, and records the ids of lines of many kinds, its logits
and its translations by beam search. Here the model is imported, and the same is
computed. A row for each kind of model is appended to `results/marian_hf.csv`.
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

RESULTS = Path(__file__).parent / "results" / "marian_hf.csv"
CASES = [
    {"kind": "unigram", "shared": True, "activation": "swish"},
    {"kind": "bpe", "shared": True, "activation": "relu"},
    {"kind": "unigram", "shared": False, "activation": "relu"},
]
PAIRS = 4_000


def main(arguments: list[str] | None = None) -> None:
    """Measures each case and appends its row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", required=True)
    parser.add_argument("--updates", type=int, default=1500)
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
    from keras_deepnmt.data.demo import demo_pairs
    from keras_deepnmt.exchange import import_model

    pairs = [(pair.source, pair.target) for pair in demo_pairs(PAIRS)]
    for side, texts in zip(
        ("source", "target"), zip(*pairs, strict=True), strict=True
    ):
        (folder / f"text.{side}").write_text("\n".join(texts) + "\n")
    lines = lines_of_many_kinds([source for source, _ in pairs])
    (folder / "lines").write_text("\n".join(lines))
    program = Path(__file__).with_name("transformers_models.py")
    subprocess.run(
        [
            *(options.python, str(program), str(folder)),
            *(json.dumps(case), str(options.updates)),
        ],
        check=True,
    )
    theirs = json.loads((folder / "outputs.json").read_text())
    preset = import_model(folder / "model", folder / "preset")
    translator = Translator.load(preset, batch_size=16)
    source, target = (
        id_order(folder / "model", name)
        for name in (
            "vocab.json",
            "vocab.json" if case["shared"] else "target_vocab.json",
        )
    )
    rows = translator.source_tokenizer.encode(lines)
    found = [[*(source[i] for i in row), 0] for row in rows]
    equal_ids = 0
    for line, one, other in zip(lines, found, theirs["ids"], strict=True):
        equal_ids += one == other
        if one != other:
            print(f"{line!r}: {one} here, {other} there", file=sys.stderr)
    hypotheses = [
        found for (found,) in translator.translate_nbest(theirs["sentences"], 1)
    ]
    differences = [
        one.score - score
        for one, other, score in zip(
            hypotheses, theirs["translations"], theirs["scores"], strict=True
        )
        if one.text != other
    ]
    return {
        **provenance("tensorflow", "keras", "sentencepiece"),
        **theirs["versions"],
        **case,
        "updates": options.updates,
        "lines": len(lines),
        "equal_ids": equal_ids,
        "sentences": len(hypotheses),
        "equal_translations": len(hypotheses) - len(differences),
        # Of the others, those that this or the other search scores higher.
        "higher_here": sum(each > 1e-5 for each in differences),
        "higher_there": sum(each < -1e-5 for each in differences),
        **compare_logits(
            translator.model,
            (np.array(theirs["source_ids"]), source),
            (np.array(theirs["decoder_ids"]), target),
            np.load(folder / "logits.npy"),
        ),
    }


def compare_logits(model, source, target, expected) -> dict:
    """Returns the largest logit and the largest difference at real tokens."""
    ids = {}
    for name, (theirs, order) in (
        ("source_ids", source),
        ("target_ids", target),
    ):
        padding = order[0]
        ours = {number: place for place, number in enumerate(order) if place}
        ids[name] = np.array(
            [[0 if i == padding else ours[i] for i in row] for row in theirs]
        )
    ids["target_ids"][:, 0] = 2  # their padding begins a sentence, too
    found = np.asarray(model(ids))
    order = np.array(target[1])
    expected = expected[..., order[1:]]
    difference = np.abs(found[..., 1:] - expected)[ids["target_ids"] != 0]
    return {
        "largest_logit": float(f"{np.abs(expected).max():.3g}"),
        "largest_difference": float(f"{difference.max():.2g}"),
    }


def id_order(folder: Path, name: str) -> list[int]:
    """Returns the id in a vocabulary file of each id of this package."""
    last = len(json.loads((folder / name).read_text())) - 1
    return [last, 1, last, 0, *range(2, last)]


def lines_of_many_kinds(sentences: list[str]) -> list[str]:
    """Makes 1,000 lines: plain, in capitals, with tags, signs, odd spaces."""
    kinds = [
        lambda text: text,
        lambda text: text.upper(),
        lambda text: f">>eng<< {text}",
        lambda text: f">>fra<< {text.lower()}",
        lambda text: f"  {text}  {text} ",
        lambda text: text.replace(" ", "\t", 1),
        lambda text: f"¼ № … {text}",
        lambda text: f"<b>{text}</b> {{name}} %s",
        lambda text: text.replace("e", "é"),
        lambda text: f"日 {text} ß",
    ]
    return [
        kinds[n % len(kinds)](text) for n, text in enumerate(sentences[:1000])
    ]


if __name__ == "__main__":
    main()
