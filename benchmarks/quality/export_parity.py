"""Compares the translations of a SavedModel with those of Python.

    python benchmarks/quality/export_parity.py RUN SAVED_MODEL --source FILE

Prints every difference, and appends a row to `results/export_parity.csv`. The
exit code is 0 if the SavedModel translates all sentences as the same graph in
Python does and 99.5 % of them as the compiled search does, and if all
differences from the latter are near ties; otherwise it is 1.
"""

import argparse
import datetime
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_row

RESULTS = Path(__file__).parent / "results" / "export_parity.csv"
MIN_IDENTICAL_FRACTION = 0.995


def main(arguments: list[str] | None = None) -> int:
    """Compares and appends the row; returns the exit code."""
    options = _parse(arguments)
    from keras_deepnmt.commands.terminal.quiet_import import import_backend

    import_backend()
    from benchmarks.quality.measuring.export_comparison import (
        compare_translations,
    )
    from keras_deepnmt.translator import Translator

    sentences = options.source.read_text(encoding="utf-8").splitlines()
    sentences = sentences[: options.sentences]
    translator = Translator.load(options.run, batch_size=options.batch_size)
    with _progress(len(sentences)) as advance:
        report = compare_translations(
            options.saved_model, translator, sentences, advance
        )
    print(report)
    _append_row(options.run, report)
    passed = (
        report.identical_to_graph == report.num_sentences
        and report.identical_to_compiled
        >= MIN_IDENTICAL_FRACTION * report.num_sentences
        and report.other_differences == 0
    )
    return 0 if passed else 1


def _parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="run folder")
    parser.add_argument(
        "saved_model", type=Path, help="SavedModel that deepnmt export wrote"
    )
    parser.add_argument(
        "--source", type=Path, required=True, help="text file to translate"
    )
    parser.add_argument(
        "--sentences", type=int, help="translate only the first N sentences"
    )
    parser.add_argument("--batch-size", type=int, default=32)
    return parser.parse_args(arguments)


class _progress:
    def __init__(self, total):
        from rich.progress import Progress

        self.bar = Progress(disable=not sys.stderr.isatty())
        self.task = self.bar.add_task("sentences", total=total)

    def __enter__(self):
        self.bar.start()
        return lambda done: self.bar.advance(self.task, done)

    def __exit__(self, *error):
        self.bar.stop()


def _append_row(run, report):
    from importlib.metadata import version

    from keras_deepnmt.runs.provenance import commit, device, versions

    text_version = {"tensorflow-text": version("tensorflow-text")}
    row = {
        "commit": commit(),
        "date": datetime.date.today().isoformat(),
        "device": json.dumps(device()),
        "versions": json.dumps({**versions(), **text_version}),
        "run": run.resolve().name,
        "sentences": report.num_sentences,
        "identical_to_graph": report.identical_to_graph,
        "identical_to_compiled": report.identical_to_compiled,
        "near_ties": report.near_ties,
        "other_differences": report.other_differences,
    }
    append_row(RESULTS, row)


if __name__ == "__main__":
    sys.exit(main())
