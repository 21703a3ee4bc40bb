r"""Compares quality and speed of trained models with those of a baseline.

    python benchmarks/quality/compared_runs.py --corpus multi30k_tok_en_de \
        --baseline RUN --systems RUN --rounds 5
    python benchmarks/quality/compared_runs.py --corpus tatoeba_de_en \
        --baseline transformer_small.tatoeba_de_en --systems RUN \
        --target-language en

A run is the folder of a finished run, a preset folder or the name of a trained
model of the package. Each translates the test set of the corpus as its recipe
says. The first translations are scored. For speed each translates again until
nothing is compiled any more, which is not counted; then all take turns, and a
ratio is that of two times in one round. Rows are appended to
`results/compared_runs.csv`: BLEU, the difference from the baseline with the
p-value of the paired approximate randomization test, and sentences a second.
With `--target-language` a model for several languages is told the language.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_rows, provenance

RESULTS = Path(__file__).parent / "results" / "compared_runs.csv"


def main(arguments: list[str] | None = None) -> None:
    """Translates with all models, and appends a row for each."""
    options = _parse(arguments)
    from keras_deepnmt.commands.terminal.quiet_import import import_backend

    import_backend()
    from keras_deepnmt.errors import UserError

    try:
        sources, references = _test_set(options)
        systems = [
            System(run, sources, options.target_language)
            for run in (options.baseline, *options.systems)
        ]
    except UserError as error:
        sys.exit(f"error: {error}")
    if options.rounds:
        for system in systems:
            system.warm_up()
    for _ in range(options.rounds):
        for system in systems:
            system.translate()
    baseline = systems[0]
    rows = [
        {
            **provenance("keras", "tensorflow", "sacrebleu"),
            "corpus": options.corpus + ", reversed" * options.reversed,
            "sentences": len(sources),
            **system.columns(),
            **_quality(system, baseline, references),
            **_speed(system, baseline),
        }
        for system in systems
    ]
    append_rows(options.output, rows)
    for row in rows:
        print(row)


class System:
    """A model, its first translations of the test set, and later times."""

    def __init__(self, run, sources, target_language):
        from keras_deepnmt.runs.run_folder import RunFolder
        from keras_deepnmt.trained import find_run_folder
        from keras_deepnmt.translator import Translator
        from keras_deepnmt.xla.events import listen

        self.recipe = RunFolder(find_run_folder(run)).recipe()
        self.seconds = []
        self._translator = Translator.load(run)
        self._compilations = []
        listen(self._translator.model, self._compilations.append)
        self._texts = sources
        # A model of one direction may not say which one it is.
        is_known = target_language in self._translator.directions.targets
        self._given = {"target_language": target_language} if is_known else {}
        self.translations = self._translate()

    def warm_up(self):
        """Translates until nothing is compiled any more.

        Shapes with many sentences get programs of their own after a while.
        """
        compiled = None
        while compiled != len(self._compilations):
            compiled = len(self._compilations)
            self._translate()

    def translate(self):
        """Translates once more, and notes the time."""
        start = time.perf_counter()
        self._translate()
        self.seconds.append(time.perf_counter() - start)

    def columns(self):
        """Returns what the model is and how it searches."""
        options = self._translator.options
        return {
            "recipe": self.recipe.name,
            "preset": self.recipe.model.preset,
            "seed": self.recipe.seed,
            "precision": self.recipe.training.precision,
            "training_text": _training_text(self.recipe),
            "updates": _updates(self.recipe),
            "parameters": self._translator.model.count_params(),
            "num_beams": options.num_beams,
            "length_penalty": options.length_penalty,
        }

    def _translate(self):
        return self._translator.translate(self._texts, **self._given)


def _updates(recipe):
    """Counts updates, with those of the run whose weights a run began with."""
    from keras_deepnmt.runs.run_folder import RunFolder
    from keras_deepnmt.trained import find_run_folder

    began = recipe.training.initialize_from
    if began is None:
        return recipe.training.steps
    before = RunFolder(find_run_folder(began)).recipe()
    return _updates(before) + recipe.training.steps


def _training_text(recipe):
    """Says whose translations the model has learned.

    Prepared data have the file with the translations of a named corpus.
    """
    translated = [
        bool(corpus.translated_by or (corpus.name and corpus.file))
        for corpus in recipe.data.train
    ]
    if all(translated):
        return "a teacher's translations"
    if any(translated):
        return "the corpus and a teacher's translations"
    return "the corpus"


def _test_set(options):
    """Reads the two sides of the test set."""
    from keras_deepnmt.data import CorpusOptions
    from keras_deepnmt.data.known_corpora.finding import find_corpus_files

    corpus = CorpusOptions(name=options.corpus)
    files = find_corpus_files(corpus, "test", options.data_dir)
    sides = [
        file.read_text(encoding="utf-8").splitlines()[: options.sentences]
        for file in (files.source, files.target)
    ]
    return reversed(sides) if options.reversed else sides


def _quality(system, baseline, references):
    from keras_deepnmt.evaluation import compare_systems, corpus_scores

    tokenize = baseline.recipe.evaluation.tokenize
    (bleu,) = corpus_scores(
        system.translations,
        references,
        ["bleu"],
        tokenize=tokenize,
        num_resamples=1000,
    ).values()
    difference = compare_systems(
        system.translations,
        baseline.translations,
        references,
        ["bleu"],
        tokenize,
    )["bleu"]
    return {
        "bleu": round(bleu.value, 2),
        "bleu_interval": round(bleu.interval, 2),
        "bleu_signature": bleu.signature,
        "bleu_difference": round(difference.difference, 2),
        "p_value": round(difference.randomization_p_value, 4),
    }


def _speed(system, baseline):
    ratios = [
        before / now
        for before, now in zip(baseline.seconds, system.seconds, strict=True)
    ]
    rates = [len(system.translations) / seconds for seconds in system.seconds]
    return {
        "rounds": len(ratios),
        "sentences_per_second": _rounded(statistics.median, rates, 1),
        "speed_ratio_median": _rounded(statistics.median, ratios, 3),
        "speed_ratio_min": _rounded(min, ratios, 3),
        "speed_ratio_max": _rounded(max, ratios, 3),
    }


def _rounded(function, values, digits):
    """Returns a statistic of the values; nothing if there are none."""
    return round(function(values), digits) if values else ""


def _parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--baseline", required=True, metavar="RUN")
    parser.add_argument("--systems", required=True, nargs="+", metavar="RUN")
    parser.add_argument(
        "--corpus", required=True, help="a known corpus, with its languages"
    )
    parser.add_argument(
        "--reversed",
        action="store_true",
        help="translate its target side to its source side",
    )
    parser.add_argument("--target-language")
    parser.add_argument(
        "--data-dir",
        type=Path,
        help="folder with copies of the corpora; default: they are downloaded",
    )
    parser.add_argument(
        "--rounds", type=int, default=0, help="0 measures no speed"
    )
    parser.add_argument(
        "--sentences", type=int, help="only the first N of the test set"
    )
    parser.add_argument("--output", type=Path, default=RESULTS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
