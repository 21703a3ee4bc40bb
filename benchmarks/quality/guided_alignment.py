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
    from keras_deepnmt.commands.options.overrides import read_overrides
    from keras_deepnmt.errors import UserError
    from keras_deepnmt.recipes import load_recipe

    try:
        # Before hours of training.
        golds = {Path(gold).stem: read_gold(gold) for gold in options.gold}
        changes = read_overrides(options.set)
        changes["training.steps"] = options.steps
        columns = {
            "recipe": load_recipe(options.recipe, changes).name,
            "changes": " ".join(options.set),
        }
        for seed in options.seeds:
            for weight in options.weights:
                key = {
                    **columns,
                    "weight": str(weight),
                    "seed": str(seed),
                    "updates": str(options.steps),
                }
                rows = read_rows(options.output)
                missing = {
                    name: gold
                    for name, gold in golds.items()
                    if not any(
                        {**key, "gold": name}.items() <= row.items()
                        for row in rows
                    )
                }
                if missing:
                    run = options.work_folder / f"weight-{weight}-seed-{seed}"
                    new = {**changes, "seed": seed}
                    new |= {KEY: weight} if weight else {}
                    recipe = load_recipe(options.recipe, new)
                    measured = measure(recipe, run, missing)
                    append_rows(
                        options.output,
                        [
                            {**provenance("tensorflow", "keras"), **key, **row}
                            for row in measured
                        ],
                    )
    except UserError as error:
        sys.exit(f"error: {error}")


def measure(recipe, folder: Path, golds: dict) -> list[dict]:
    """Trains a model, unless it is there; each block and gold gives a row."""
    from keras_deepnmt import Translator
    from keras_deepnmt.analysis import (
        align_words,
        cross_attention_names,
        recorded_names,
    )
    from keras_deepnmt.evaluation import alignment_error_rate
    from keras_deepnmt.runs.test_translations import translate_runs
    from keras_deepnmt.runs.train import train

    train(recipe, folder, quiet=True)
    translator = Translator.load(folder, compiled=False)
    names = cross_attention_names(recorded_names(translator.model))
    scores = translate_runs([str(folder)], metrics=("bleu",)).scores
    bleu = scores[str(folder)]["bleu"]
    return [
        {
            "gold": name,
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
        for name, (sources, targets, sure, possible) in golds.items()
        for layer in range(1, len(names) + 1)
    ]


def read_gold(gold: str):
    """Returns sources, targets, and their sure and possible links.

    Raises:
        UserError: if a line has other columns, or a link to a word that is not
            there.
    """
    from keras_deepnmt.data.demo import demo_alignments
    from keras_deepnmt.errors import UserError
    from keras_deepnmt.evaluation import parse_alignment

    if gold == EMBEDDED:
        rows = [(p.source, p.target, p.alignment) for p in demo_alignments()]
    else:
        if not Path(gold).is_file():
            raise UserError(f"`--gold` must be a file. Received: {gold}.")
        lines = Path(gold).read_text(encoding="utf-8-sig").splitlines()
        rows = [line.split("\t") for line in lines]
    for number, row in enumerate(rows, 1):
        if len(row) != 3:
            raise UserError(
                f"{gold}, line {number}: must be source, target and alignment "
                f"with tabs between them. Received: {len(row)} columns."
            )
        source, target, links = row
        sizes = len(source.split()), len(target.split())
        for link in set.union(*parse_alignment(links)):
            if link[0] >= sizes[0] or link[1] >= sizes[1]:
                raise UserError(
                    f"{gold}, line {number}: a link joins two words, counted "
                    f"from 0. Received: the link {link[0]}-{link[1]}, and "
                    f"{sizes[0]} and {sizes[1]} words. Leave the link or "
                    "the line out."
                )
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
