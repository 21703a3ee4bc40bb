"""Makes a trained model of the package from a run, and measures it.

    python benchmarks/quality/trained_models.py RUN --data-dir FOLDER
        [--other-test-sets newstest2014 multi30k]

The run was trained by a bundled recipe, whose name the model gets. Its weights
are stored as float16 in a preset folder in `keras_deepnmt/trained`. The model
is scored on the test set of its corpus and on others, outside its domain, with
the stored weights and with those of the run; rows are appended to
`results/trained_models.csv`. No sentence of a test set gets into the folder.
"""

import argparse
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_row, provenance

RESULTS = Path(__file__).parent / "results" / "trained_models.csv"
PACKAGE = Path(__file__).parents[2] / "keras_deepnmt" / "trained"


@dataclass(frozen=True)
class _Texts:
    """What a person has to say in the card, by the training corpus.

    Attributes:
        license: name of the license, as Hugging Face has it.
        use: who is to use the model and what for.
        limits: what is known of errors, bias and harm, as a list.
        terms: the section about the license.
    """

    license: str
    use: str
    limits: str
    terms: str


_TEXTS = {
    "demo": _Texts(
        "apache-2.0",
        """\
To try this package without training a model first. The corpus was made by a
grammar with a few hundred words ("Der alte Lehrer malt ein Buch."): the model
translates sentences of this grammar, and nothing else.
""",
        """\
- Other words are read as other words of the grammar, without a warning.
""",
        """\
[Apache-2.0](https://www.apache.org/licenses/LICENSE-2.0), as keras_deepnmt,
which wrote the training text.
""",
    ),
    "tatoeba": _Texts(
        "cc-by-2.0",
        """\
For short everyday sentences, and to try this package without training. It is
not for anything that matters: not for news, technical, legal or medical text,
not for documents, and not without a reader who knows both languages. The scores
on other test sets below show how far it falls outside its domain.
""",
        """\
- The sentences that it was trained on have 6 to 7 words on average, are written
  by volunteers, and speak of "Tom" and "Mary" in a large part; it may put such
  names where none are.
- It was not examined for bias. Where one language leaves the gender of a person
  open, it chooses one.
""",
        """\
[CC BY 2.0](https://creativecommons.org/licenses/by/2.0/), as the training text,
which is licensed under CC BY 2.0 FR: sentences of [Tatoeba](https://tatoeba.org),
as exported for Anki by [manythings.org](https://www.manythings.org/anki) on
2018-05-13. Name both when you pass the model on. No sentence of it is in this
folder.
""",
    ),
}
_ASK = "**For the author of this card to fill in:**"


def main(arguments: list[str] | None = None) -> int:
    """Writes the model and its rows; returns the exit code."""
    options = _parse(arguments)
    from keras_deepnmt.commands.terminal.quiet_import import import_backend

    import_backend()
    from keras_deepnmt.files import SCORES_FILE, write_json
    from keras_deepnmt.runs.preset_folder import save_run_to_preset
    from keras_deepnmt.runs.run_folder import RunFolder

    recipe = RunFolder(options.run).recipe()
    own, *sides = recipe.data.train[0].name.rsplit("_", 2)
    origin = provenance("keras", "tensorflow", "sacrebleu")
    with tempfile.TemporaryDirectory(dir=PACKAGE) as temporary:
        folder = Path(temporary) / recipe.name
        save_run_to_preset(options.run, folder, dtype="float16")
        scores = []
        for name in (own, *options.other_test_sets):
            corpus = f"{name}_{'_'.join(sides)}"
            kept, full = (
                _evaluate(run, corpus, options) for run in (folder, options.run)
            )
            scores.append(kept)
            append_row(RESULTS, {**origin, **_row(folder, kept, full)})
        write_json(folder / SCORES_FILE, {"evaluations": scores})
        write_card(folder, _TEXTS[own])
        final = PACKAGE / recipe.name
        shutil.rmtree(final, ignore_errors=True)
        os.rename(folder, final)
    print(final)
    return 0


def _parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="folder of a finished run")
    parser.add_argument(
        "--data-dir",
        type=Path,
        help="folder with copies of the corpora; default: they are downloaded",
    )
    parser.add_argument(
        "--other-test-sets",
        nargs="*",
        default=[],
        metavar="NAME",
        help="known corpora, without their languages, on whose test sets the "
        "model is scored too",
    )
    parser.add_argument(
        "--sentences",
        type=int,
        help="score only the first N sentences of each test set",
    )
    return parser.parse_args(arguments)


def _evaluate(run, corpus, options):
    """Returns the scores of a run on the test set of a corpus."""
    from keras_deepnmt.data.corpora import CorpusOptions
    from keras_deepnmt.data.known_corpora.finding import find_corpus_files
    from keras_deepnmt.runs.evaluate import evaluate

    files = find_corpus_files(
        CorpusOptions(name=corpus), "test", options.data_dir
    )
    with tempfile.TemporaryDirectory() as folder:
        texts = []
        for side in (files.source, files.target):
            texts.append(Path(folder) / side.name)
            lines = side.read_text(encoding="utf-8").splitlines(keepends=True)
            text = "".join(lines[: options.sentences])
            texts[-1].write_text(text, encoding="utf-8")
        row = evaluate(
            run,
            source_file=texts[0],
            target_file=texts[1],
            metrics=("bleu", "chrf"),
        )
    row["test_set"]["name"] = corpus
    del row["examples"]
    return row


def _row(folder, kept, full):
    bleu, chrf = kept["scores"]["bleu"], kept["scores"]["chrf"]
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {
        "model": kept["name"],
        "weights_sha256": kept["weights_sha256"],
        "parameters": kept["parameters"],
        "bytes": sum(file.stat().st_size for file in files),
        "seed": kept["seed"],
        "updates": kept["steps"],
        "training_minutes": round(kept["training"]["seconds"] / 60, 1),
        "target_tokens": kept["training"]["target_tokens"],
        "test_set": kept["test_set"]["name"],
        "sentences": kept["test_set"]["sentences"],
        "num_beams": kept["decoding"]["num_beams"],
        "length_penalty": kept["decoding"]["length_penalty"],
        "bleu": round(bleu["value"], 2),
        "bleu_interval": round(bleu["interval"], 2),
        "bleu_signature": bleu["signature"],
        "chrf": round(chrf["value"], 2),
        "chrf_interval": round(chrf["interval"], 2),
        "chrf_signature": chrf["signature"],
        # Of the run's own weights, in float32.
        "bleu_float32": round(full["scores"]["bleu"]["value"], 2),
    }


def write_card(folder: Path, texts: _Texts) -> None:
    """Writes the model card of a trained model's folder, with its scores."""
    from keras_deepnmt.files import PRESET_FILE, SCORES_FILE, write_text
    from keras_deepnmt.json_files import read_json
    from keras_deepnmt.runs.model_card import model_card
    from keras_deepnmt.runs.run_folder import RunFolder
    from keras_deepnmt.translator import Translator

    summary = read_json(folder / PRESET_FILE)
    rows = read_json(folder / SCORES_FILE)["evaluations"]
    translator = Translator.load(folder)
    card = model_card(
        RunFolder(folder).recipe(),
        {**summary, "scores": rows},
        type(translator.model).__name__,
        folder.name,
        translator.max_source_length,
    )
    head, *sections = card.split("\n## ")
    lines = [
        f"license: {texts.license}" if line.startswith("# license") else line
        for line in head.splitlines()
    ]
    sections = [_section(section.rstrip(), texts) for section in sections]
    parts = ["\n".join(lines).rstrip(), *filter(None, sections)]
    write_text(folder / "README.md", "\n\n## ".join(parts) + "\n")


def _section(section, texts):
    """Fills in what the card asks for; leaves the section of examples out."""
    title = section.partition("\n")[0]
    if title == "Examples":
        return None
    if title == "License":
        return f"{title}\n\n{texts.terms}".rstrip()
    before, ask, _ = section.partition(_ASK)
    if not ask:
        return section
    filled = {"Intended use": texts.use, "Limits": texts.limits}[title]
    # A list goes on without an empty line.
    before = before.rstrip() + "\n" if title == "Limits" else before
    return (before + filled).rstrip()


if __name__ == "__main__":
    sys.exit(main())
