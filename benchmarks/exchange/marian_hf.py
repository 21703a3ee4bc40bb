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
    return {
        **provenance("tensorflow", "keras", "sentencepiece"),
        **theirs["versions"],
        **case,
        "updates": options.updates,
        "lines": len(lines),
        "equal_ids": equal_ids,
        **compare_translations(translator, theirs, target),
        **compare_logits(
            translator.model,
            (np.array(theirs["source_ids"]), source),
            (np.array(theirs["decoder_ids"]), target),
            folder,
        ),
    }


def compare_translations(translator, theirs, order) -> dict:
    """Returns how many are equal, and whose have the higher scores.

    Args:
        translator: has the same search options as `theirs`.
        theirs: what `transformers_models.py` recorded.
        order: the id in `transformers` of each id of this package.
    """
    found = [
        one for (one,) in translator.translate_nbest(theirs["sentences"], 1)
    ]
    # Theirs begin with the start token, and are padded after the end.
    tokens = []
    for row in theirs["sequences"]:
        tokens.append(row[1 : row.index(order[3], 1) + 1])
    is_equal = [
        [order[i] for i in one.ids] == row
        for one, row in zip(found, tokens, strict=True)
    ]
    differences = [
        one.score - score
        for one, score, equal in zip(
            found, theirs["scores"], is_equal, strict=True
        )
        if not equal
    ]
    return {
        "sentences": len(found),
        "equal_translations": sum(
            one.text == other
            for one, other in zip(found, theirs["translations"], strict=True)
        ),
        # Of the same tokens; a text lacks unknown ones there.
        "equal_tokens": sum(is_equal),
        # Of the others, those that this or the other search scores higher.
        "higher_here": sum(each > 1e-5 for each in differences),
        "higher_there": sum(each < -1e-5 for each in differences),
    }


def compare_logits(model, source, target, folder) -> dict:
    """Compares logits at real tokens.

    Args:
        model: the model here.
        source: the ids there, and the id there of each id of this package.
        target: the same of the target.
        folder: has the logits there, in both precisions.

    Returns:
        The largest logit, the largest difference between both, and that of each
        from the logits in double precision.
    """
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
    found = found[..., 1:][ids["target_ids"] != 0]
    order = np.array(target[1])[1:]
    expected, exact = (
        np.load(folder / f"{name}.npy")[..., order][ids["target_ids"] != 0]
        for name in ("logits", "logits_64")
    )
    return {
        "largest_logit": float(f"{np.abs(expected).max():.3g}"),
        **{
            name: float(f"{np.abs(one - other).max():.2g}")
            for name, one, other in (
                ("largest_difference", found, expected),
                ("error_here", found, exact),
                ("error_there", expected, exact),
            )
        },
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
