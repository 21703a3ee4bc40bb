"""The tables of the papers' models, each with its own settings."""

import statistics
from pathlib import Path

from benchmarks.quality.rows.row_list import CORPORA
from benchmarks.quality.tuned_models import SETTINGS, chosen_setting
from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import (
    count,
    markdown_table,
    measured_when_and_where,
    millions,
    with_interval,
)
from keras_deepnmt.evaluation import seed_statistics

RESULTS = Path(__file__).parents[1] / "quality" / "results"
TITLES = {
    "tatoeba": "Tatoeba, English to German",
    "iwslt14": CORPORA["iwslt14"].title,
}


def chosen_rows(corpus):
    """Maps each model of a corpus to its rows with the setting chosen for it.

    A model whose settings have not all been tried is left out, as are runs
    with another number of updates than the newest one's.
    """
    rows = [
        row
        for row in read_rows(RESULTS / "tuned_models.csv")
        if row["corpus"] == corpus
    ]
    chosen = {}
    for row in rows:
        name, updates = row["model"], rows[-1]["updates"]
        setting = chosen_setting(rows, corpus, name, int(updates))
        key = setting and (*map(str, setting), updates)
        if key == (row["peak_rate"], row["dropout"], row["updates"]):
            chosen.setdefault(name, []).append(row)
    return chosen


def differences(rows, plain):
    """Returns test BLEU minus the plain model's, for each seed of both."""
    of_plain = {row["seed"]: float(row["test_bleu"]) for row in plain}
    return [
        float(row["test_bleu"]) - of_plain[row["seed"]]
        for row in rows
        if row["seed"] in of_plain
    ]


def plain_of(model):
    """Returns the model that another one is compared with."""
    return "ConvS2S" if model == "DenseNMT-2" else "plain"


def tuned_tables():
    """Returns the Markdown blocks of the tables; none without rows."""
    return [block for corpus in SETTINGS for block in _tables_of_corpus(corpus)]


def _tables_of_corpus(corpus):
    chosen = chosen_rows(corpus)
    if not chosen:
        return []
    everything = [
        row
        for row in read_rows(RESULTS / "tuned_models.csv")
        if row["corpus"] == corpus
    ]
    headings = [
        "model",
        "parameters",
        "peak rate",
        "dropout",
        "validation loss with each setting",
        "seeds",
        "test BLEU",
        "difference",
    ]
    lines = [
        [
            model,
            millions(rows[0]["parameters"]),
            rows[0]["peak_rate"],
            rows[0]["dropout"],
            _losses(everything, rows[0]),
            ", ".join(row["seed"] for row in rows),
            f"{statistics.mean(float(row['test_bleu']) for row in rows):.2f}",
            _difference(rows, chosen.get(plain_of(model), [])),
        ]
        for model, rows in chosen.items()
    ]
    some = next(iter(chosen.values()))[0]
    settings = "; ".join(
        f"{peak} and {dropout}" for peak, dropout in SETTINGS[corpus]
    )
    return [
        f"### Models with their own settings: {TITLES[corpus]}",
        "`tuned_models.csv`",
        markdown_table(headings, lines),
        f"{measured_when_and_where(everything)} "
        f"{count(some['train_pairs'])} training pairs, "
        f"{count(some['updates'])} updates in bfloat16, test set of "
        f"{count(some['test_pairs'])} sentences "
        f"(`{some['bleu_signature']}`). Settings are a peak of the learning "
        f"rate and a dropout: {settings}. The one with the lowest loss on the "
        "validation set with the first seed was chosen. The difference is "
        "from the plain model with the same seeds, for DenseNMT-2 from "
        "ConvS2S, with its 95 % interval over the seeds; that of one seed has "
        "none, and that of two is wide.",
    ]


def _losses(rows, chosen):
    """The validation losses of a model's settings, in their order."""
    keys = ("model", "updates", "seed")
    found = {
        (float(row["peak_rate"]), float(row["dropout"])): row["valid_loss"]
        for row in rows
        if all(row[key] == chosen[key] for key in keys)
    }
    settings = SETTINGS[chosen["corpus"]]
    return ", ".join(f"{float(found[setting]):.3f}" for setting in settings)


def _difference(rows, plain):
    found = differences(rows, plain)
    if rows == plain or not found:
        return ""
    if len(found) == 1:
        return f"{found[0]:+.2f}"
    statistic = seed_statistics(found)
    sign = "+" if statistic.mean > 0 else ""
    return sign + with_interval(statistic.mean, statistic.interval)
