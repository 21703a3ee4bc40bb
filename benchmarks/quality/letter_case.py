"""Measures what factored case gains on text in capitals and costs elsewhere.

    python benchmarks/quality/letter_case.py --seeds 3
    python benchmarks/quality/letter_case.py --set data.case_examples=0.05

Trains the recipe of the embedded corpus with case kept and with case factored,
and translates its test set in three forms: as it is, in capitals, and with
every word capitalized, the references likewise. With case factored, batches
have more tokens, so that an update has as many pairs. BLEU is that of
sacreBLEU, with case. A row for each form is appended to
`results/letter_case.csv`. Rows that are there are skipped, and after an
interrupt the same command continues where it was.
"""

import argparse
import datetime
import hashlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import REPOSITORY, append_row, read_rows

RESULTS = Path(__file__).parent / "results" / "letter_case.csv"
RECIPE = "transformer_tiny.demo_de_en"
# With symbols German has 1.28 times as many tokens, and 4 % of the pairs are
# examples. An update must have as many pairs of the corpus.
CASES = {"kept": {}, "factored": {"training.batch_tokens": 1330}}
FORMS = ("ordinary", "all_caps", "capitalized")


def main(arguments: list[str] | None = None):
    """Trains, translates and appends the missing rows."""
    options = _parse(arguments)
    from benchmarks.quality.rows.row_folder import deepnmt
    from keras_deepnmt.commands.options.overrides import read_overrides
    from keras_deepnmt.commands.terminal.quiet_import import import_backend

    import_backend()
    changes = read_overrides(options.set)
    for seed in range(1, options.seeds + 1):
        for case in options.cases:
            measure(
                case, seed, changes, options.folder, options.output, deepnmt
            )


def _parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="from 1 to this")
    parser.add_argument(
        "--cases", nargs="+", choices=list(CASES), default=list(CASES)
    )
    parser.add_argument(
        "--set", nargs="+", default=[], help="changes of the recipe, key=value"
    )
    parser.add_argument(
        "--folder", type=Path, default=REPOSITORY / "runs" / "letter_case"
    )
    parser.add_argument("--output", type=Path, default=RESULTS)
    return parser.parse_args(arguments)


def measure(case, seed, changes, folder, output, run_command):
    """Appends the rows of one training that are missing in a CSV file.

    `run_command` runs `deepnmt` with a list of arguments.
    """
    from benchmarks.quality.rows.corpora import prepared_corpus
    from keras_deepnmt.recipes import load_recipe
    from keras_deepnmt.recipes.loading import save_recipe

    text = json.dumps(changes, sort_keys=True) if changes else ""
    key = {"case": case, "seed": str(seed), "changes": text}
    missing = [
        form
        for form in FORMS
        if not any(
            {**key, "form": form}.items() <= row.items()
            for row in read_rows(output)
        )
    ]
    if not missing:
        return
    recipe = load_recipe(
        RECIPE, {"data.case": case, "seed": seed, **CASES[case], **changes}
    )
    data = prepared_corpus(recipe.data, folder)
    run = folder / f"{case}_{seed}{_suffix(text)}"
    recipe_file = run.with_suffix(".yaml")
    save_recipe(recipe, recipe_file, {})
    run_command(
        [
            *("train", str(recipe_file), "--run-dir", str(run)),
            *("--prepared", str(data.directory.absolute())),
        ]
    )
    for columns in scored(run, data.texts("test"), missing):
        append_row(
            output,
            {**columns, "batch_tokens": recipe.training.batch_tokens, **key},
        )
        print(columns, flush=True)


def scored(run, texts, forms):
    """Translates the test set in several forms and yields their columns."""
    from benchmarks.quality.rows.row_folder import provenance_of_run
    from keras_deepnmt.data.preparation.case_examples import (
        all_caps,
        capitalized,
    )
    from keras_deepnmt.evaluation.scores import corpus_scores
    from keras_deepnmt.json_files import read_json
    from keras_deepnmt.translator import Translator

    changes = {
        "ordinary": str,
        "all_caps": all_caps,
        "capitalized": capitalized,
    }
    content = read_json(run / "run.json")
    translator = Translator.load(run)
    for form in forms:
        sources, references = (list(map(changes[form], side)) for side in texts)
        translations = translator.translate(sources)
        bleu = corpus_scores(translations, references, ["bleu"], "13a")["bleu"]
        yield {
            **provenance_of_run(content),
            "date": datetime.date.today().isoformat(),
            "recipe": RECIPE,
            "updates": content["steps"],
            "training_minutes": round(content["training"]["seconds"] / 60, 1),
            "form": form,
            "sentences": len(sources),
            "bleu": round(bleu.value, 2),
            "bleu_signature": bleu.signature,
        }


def _suffix(text):
    return f"_{hashlib.sha256(text.encode()).hexdigest()[:8]}" if text else ""


if __name__ == "__main__":
    main()
