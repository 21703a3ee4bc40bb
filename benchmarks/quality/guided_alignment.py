"""Measures what guided alignment does to word alignments, and to BLEU.

    python benchmarks/quality/guided_alignment.py --work-folder FOLDER

A recipe, by default that of the embedded corpus, is trained with different
weights of `training.objective.guided_alignment`, several seeds each, and the
alignments are compared with gold ones: those of the twelve pairs of the
embedded corpus that are aligned by hand, or of `--gold FILE ...`, lines of
source, target and alignment (`0-0 1?2`) with tabs between them. `--set` changes
the recipe. Each decoder block of each model gives a row of
`results/guided_alignment.csv`. The runs stay in the folder: called again with
the same one, the script goes on where it was.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_rows, provenance, read_rows

RESULTS = Path(__file__).parent / "results" / "guided_alignment.csv"
EMBEDDED = "embedded"
KEY = "training.objective.guided_alignment.weight"


def main(arguments: list[str] | None = None) -> None:
    """Trains the models that have no rows yet, and appends their rows."""
    options = _parse(arguments)
    done = {
        (
            row["recipe"],
            row["changes"],
            int(row["updates"]),
            float(row["weight"]),
            int(row["seed"]),
            row["gold"],
        )
        for row in (
            read_rows(options.output) if options.output.exists() else []
        )
    }
    for seed in options.seeds:
        for weight in options.weights:
            for gold in options.gold:
                row = (
                    recipe_name(options),
                    " ".join(options.set),
                    options.steps,
                    weight,
                    seed,
                    Path(gold).stem,
                )
                if row not in done:
                    rows = measure(weight, seed, gold, options)
                    append_rows(options.output, rows)


def recipe_name(options) -> str:
    """Returns the name of the recipe, which `--set name=` changes."""
    from keras_deepnmt.commands.options.overrides import read_overrides

    return read_overrides(options.set).get("name", options.recipe)


def measure(weight: float, seed: int, gold: str, options) -> list[dict]:
    """Trains a model, unless it is there, and returns a row for each block."""
    from keras_deepnmt import Translator
    from keras_deepnmt.analysis import (
        align_words,
        cross_attention_names,
        recorded_names,
    )
    from keras_deepnmt.commands.options.overrides import read_overrides
    from keras_deepnmt.evaluation import alignment_error_rate
    from keras_deepnmt.recipes import load_recipe
    from keras_deepnmt.runs.test_translations import translate_runs
    from keras_deepnmt.runs.train import train

    changes = read_overrides(options.set)
    changes |= {"seed": seed, "training.steps": options.steps}
    if weight:
        changes[KEY] = weight
    folder = options.work_folder / f"weight-{weight}-seed-{seed}"
    train(load_recipe(options.recipe, changes), folder, quiet=True)
    translator = Translator.load(folder, compiled=False)
    sources, targets, sure, possible = read_gold(gold)
    names = cross_attention_names(recorded_names(translator.model))
    scores = translate_runs([str(folder)], metrics=("bleu",)).scores
    bleu = scores[str(folder)]["bleu"]
    return [
        {
            **provenance("tensorflow", "keras"),
            "recipe": recipe_name(options),
            "changes": " ".join(options.set),
            "weight": weight,
            "seed": seed,
            "updates": options.steps,
            "gold": Path(gold).stem,
            "sentences": len(sources),
            "layer": layer,
            "layers": len(names),
            "alignment_error_rate": round(
                alignment_error_rate(
                    align_words(translator, sources, targets, layer),
                    sure,
                    possible,
                ),
                4,
            ),
            "test_bleu": round(bleu.value, 2),
            "bleu_signature": bleu.signature,
        }
        for layer in range(1, len(names) + 1)
    ]


def read_gold(gold: str):
    """Returns sources, targets, and their sure and possible links."""
    from keras_deepnmt.data.demo import demo_alignments
    from keras_deepnmt.evaluation import parse_alignment

    if gold == EMBEDDED:
        rows = [(p.source, p.target, p.alignment) for p in demo_alignments()]
    else:
        lines = Path(gold).read_text(encoding="utf-8-sig").splitlines()
        rows = [line.split("\t") for line in lines]
    sources, targets, links = zip(*rows, strict=True)
    sure, possible = zip(*map(parse_alignment, links), strict=True)
    return sources, targets, sure, possible


def _parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work-folder", type=Path, required=True)
    parser.add_argument(
        "--weights", type=float, nargs="+", default=[0.0, 0.05, 0.5]
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--recipe", default="transformer_tiny.demo_de_en")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE")
    parser.add_argument("--gold", nargs="+", default=[EMBEDDED])
    parser.add_argument("--output", type=Path, default=RESULTS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
