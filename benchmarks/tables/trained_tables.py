"""The tables of `benchmarks/quality/table.py`: trained models by corpus."""

import re
from collections import Counter
from functools import cache
from pathlib import Path
from statistics import fmean

from benchmarks.quality.rows.row_list import (
    CORPORA,
    presets_of,
    recipe_sha256,
)
from benchmarks.shared.result_rows import read_rows
from benchmarks.tables.markdown import (
    count,
    decimals,
    listed,
    markdown_table,
    measured_when_and_where,
    millions,
    newest_rows,
    with_interval,
)
from keras_deepnmt.evaluation import format_p_value, seed_statistics

QUALITY = Path(__file__).parents[1] / "quality"
RESULTS = QUALITY / "results"
# Numbers of lines in the project's README.
_SUMMARY_LINES = {"multi30k": 4, "demo": 2}
NOT_RUN = "not run"


def trained_tables():
    """Returns the Markdown blocks of the tables of all corpora."""
    rows = read_rows(RESULTS / "table.csv")
    return [block for corpus in CORPORA for block in _corpus(corpus, rows)]


def trained_summary():
    """Returns a table of the most telling models; none if there are no rows.

    They are the plain model that most models are compared with, and the models
    that gain most over their plain model: first those whose gain is supported
    by an interval over seeds. Each stands below its plain model. Models of
    other dimensions than their plain model, and models whose recipe has been
    changed since, are left out.
    """
    rows = read_rows(RESULTS / "table.csv")
    shown, lines = [], []
    for corpus, number in _SUMMARY_LINES.items():
        models = {
            preset: found
            for preset, found in models_of(corpus, rows).items()
            if _is_current(found[-1])
        }
        for preset in _most_telling(models, presets_of(corpus), number):
            shown += models[preset]
            lines.append(_summary_line(models[preset]))
    if not lines:
        return []
    headings = [
        "recipe",
        "parameters",
        "updates",
        "training time (minutes)",
        "test sentences",
        "BLEU",
        "seeds",
        "difference from its plain model",
        "p-value",
    ]
    return [
        "Translation quality of bundled recipes, with 95 % intervals "
        "([more](benchmarks/quality/README.md)). "
        f"{_measured(shown)}",
        markdown_table(headings, lines),
    ]


def models_of(corpus, rows):
    """Maps presets of a corpus to their rows, one for each seed.

    Only the rows of the recipe as it is now count; without any, those of the
    version that was trained last.
    """
    models = {}
    for preset in presets_of(corpus):
        found = [
            row
            for row in rows
            if row["corpus"] == corpus and row["preset"] == preset
        ]
        if found:
            found.sort(key=_is_current)
            last = found[-1]["recipe_sha256"]
            found = [row for row in found if row["recipe_sha256"] == last]
            models[preset] = newest_rows(found, "seed")
    return models


def _is_current(row):
    """Tells whether the recipe of a row has not been changed since."""
    present = _present_sha256(row["recipe"], row["corpus"])
    return row["recipe_sha256"] == present


@cache
def _present_sha256(recipe, corpus):
    """The hash of a recipe as it is now; cached, since it reads files."""
    return recipe_sha256(recipe, CORPORA[corpus].changes)


def _most_telling(models, plain_of, number):
    """Chooses presets for the summary; see `trained_summary`.

    `models` maps presets to their rows, and `plain_of` to their plain models.
    """
    compared_with = Counter(plain_of.values())

    def order_of_plain(preset):
        return -compared_with[preset], -_mean(models[preset], "bleu")

    def order_of_compared(preset):
        gain, is_supported = _gain(models[preset])
        return not (is_supported and gain > 0), -gain

    plains = sorted(
        (preset for preset in models if plain_of[preset] is None),
        key=order_of_plain,
    )
    compared = sorted(
        (
            preset
            for preset in models
            if plain_of[preset] in plains
            and _differences(models[preset])
            and "model.overrides" not in models[preset][-1]["other_settings"]
        ),
        key=order_of_compared,
    )
    chosen = plains[:1]
    for preset in [*compared, *plains]:
        needed = {preset, plain_of[preset] or preset}.difference(chosen)
        if len(chosen) + len(needed) <= number:
            chosen += needed
    return [
        preset
        for plain in plains
        for preset in [plain, *compared]
        if preset in chosen and plain in (preset, plain_of[preset])
    ]


def _gain(rows):
    """The mean difference, and whether an interval over seeds supports it."""
    differences = _differences(rows)
    if len(differences) < 2:
        return differences[0], False
    found = seed_statistics(differences)
    return found.mean, abs(found.mean) > found.interval


def _summary_line(rows):
    return [
        f"`{rows[-1]['recipe']}`",
        millions(rows[-1]["parameters"]),
        count(_mean(rows, "updates")),
        _minutes(rows),
        count(rows[-1]["sentences"]),
        _bleu(rows),
        str(len(rows)),
        _difference(rows),
        _p_values(rows),
    ]


def _differences(rows):
    """Differences in BLEU from the plain model of the same seed and recipe."""
    values = [row["bleu_difference"] for row in rows]
    return [float(value) for value in values if value]


def _difference(rows):
    """The mean difference from the plain model, with its interval over seeds.

    Empty if none was trained with the same seed and recipe.
    """
    differences = _differences(rows)
    if len(differences) < 2:
        return "".join(f"{difference:+.1f}" for difference in differences)
    found = seed_statistics(differences)
    sign = "+" if found.mean > 0 else ""
    return sign + with_interval(found.mean, found.interval)


def _measured(rows):
    """A sentence with the dates and the devices of the rows."""
    return measured_when_and_where(
        [
            row if row["device"] == "CPU" else row | {"machine": row["device"]}
            for row in rows
        ]
    )


def _corpus(corpus, rows):
    """The section of one corpus."""
    models = models_of(corpus, rows)
    title = f"### {CORPORA[corpus].title}"
    if not models:
        names = ", ".join(f"`{preset}`" for preset in presets_of(corpus))
        return [title, f"Not run: {names}."]
    shown = [row for model in models.values() for row in model]
    return [
        title,
        _scores(corpus, models),
        _notes(corpus, models, shown),
        _costs(models),
        _measured(shown),
    ]


def _scores(corpus, models):
    columns = {
        "model": lambda preset, rows: (
            f"`{preset}`{'' if not rows or _is_current(rows[-1]) else ' ¹'}"
        ),
        "BLEU": lambda preset, rows: _bleu(rows) if rows else NOT_RUN,
        "seeds": lambda preset, rows: str(len(rows)) if rows else "",
        "compared with": lambda preset, rows: _name(plain_of[preset]),
        "difference": lambda preset, rows: _difference(rows),
        "p-value": lambda preset, rows: _p_values(rows),
    }
    if CORPORA[corpus].has_paper_column:
        columns["in the paper, on its own data"] = _paper_cells()
    plain_of = presets_of(corpus)
    lines = [
        [cell(preset, models.get(preset, [])) for cell in columns.values()]
        for preset in plain_of
    ]
    return markdown_table(columns, lines)


def _costs(models):
    headings = [
        "model",
        "parameters",
        "updates",
        "target tokens (M)",
        "minutes",
        "validation BLEU",
    ]
    lines = [
        [
            _name(preset),
            millions(rows[-1]["parameters"]),
            count(_mean(rows, "updates")),
            decimals(_mean(rows, "target_tokens") / 1e6, 1),
            _minutes(rows),
            decimals(_mean(rows, "valid_bleu"), 1),
        ]
        for preset, rows in models.items()
    ]
    return markdown_table(headings, lines)


def _notes(corpus, models, rows):
    """Explains the table's numbers, and names the supported differences."""
    signatures = sorted({f"`{row['bleu_signature']}`" for row in rows})
    test_sets = sorted({count(row["sentences"]) for row in rows})
    searches = sorted(
        {
            f"{row['num_beams']} beams and length penalty "
            f"{row['length_penalty']}"
            for row in rows
        }
    )
    notes = [
        f"BLEU on the {' or '.join(test_sets)} sentences of the test set, with "
        f"{' or '.join(searches)}; {' or '.join(signatures)}. ± is the 95 % "
        "interval: of one seed the bootstrap interval over the test sentences, "
        "of several seeds Student's interval of their mean. p-values are of "
        "the paired approximate randomization test (10,000 trials, two-sided, "
        "ties counted) "
        "against the translations of the model in `compared with`, trained by "
        "the same recipe with the same seed.",
        "Differences are from that model, over the seeds that both have; "
        "without ±, of a single seed.",
        *_settings(models),
        CORPORA[corpus].note,
        *_changed_since(rows),
        "Minutes are those that passed, also where other work ran beside the "
        "training.",
    ]
    return " ".join(notes)


def _changed_since(rows):
    """Explains the mark, if the recipe of any row was changed since."""
    if not all(map(_is_current, rows)):
        yield (
            "¹ Trained before the recipe was changed, and compared with the "
            "plain model of that time; its BLEU cannot be compared with those "
            "of models without this mark."
        )


def _settings(models):
    """Names the models whose recipe is not that of the plain model."""
    models_with = {}
    for preset, rows in models.items():
        if rows[-1]["other_settings"]:
            others = models_with.setdefault(rows[-1]["other_settings"], [])
            others.append(_name(preset))
    for settings, names in models_with.items():
        keys = [f"`{key}`" for key in settings.split("; ")]
        subject = "recipe" if len(names) == 1 else "recipes"
        verb = "has" if len(names) == 1 else "have"
        yield (
            f"The {subject} of {listed(names)} {verb} other values of "
            f"{listed(keys)}."
        )


def _bleu(rows):
    """The mean over seeds with its interval, or the score of the only one."""
    values = [float(row["bleu"]) for row in rows]
    if len(values) > 1:
        found = seed_statistics(values)
        return with_interval(found.mean, found.interval)
    if rows[0]["bleu_interval"]:
        return with_interval(values[0], rows[0]["bleu_interval"])
    return f"{values[0]:.1f}"


def _p_values(rows):
    """The p-value, or the smallest and the largest one of several seeds."""
    values = sorted(float(row["p_value"]) for row in rows if row["p_value"])
    ends = dict.fromkeys(map(format_p_value, [*values[:1], *values[-1:]]))
    return " to ".join(ends)


def _minutes(rows):
    """The mean minutes of training on each kind of device."""
    minutes = {}
    for row in rows:
        if row["training_minutes"]:
            of_device = minutes.setdefault(_device(row), [])
            of_device.append(float(row["training_minutes"]))
    return ", ".join(
        f"{fmean(values):.1f} ({device})" for device, values in minutes.items()
    )


def _device(row):
    """The accelerator, or the number of the processor's cores."""
    if row["device"] != "CPU":
        return row["device"]
    (cores,) = re.findall(r"(\d+) cores", row["machine"])
    return f"{cores} core{'' if cores == '1' else 's'}"


def _mean(rows, column):
    """The mean of a column, or "" if it is empty."""
    values = [float(row[column]) for row in rows if row[column]]
    return fmean(values) if values else ""


def _name(preset):
    return f"`{preset}`" if preset else ""


def _paper_cells():
    """Returns a function that writes the results in a preset's paper."""
    published = {}
    for row in read_rows(QUALITY / "published_scores.csv"):
        published.setdefault(row["variant"], []).append(row)

    def cell(preset, rows):
        found = published.get(variant(preset), [])
        sources = {f"{row['paper']}, {row['source']}" for row in found}
        texts = [
            f"{row['data']}: "
            + (f"{row['plain_bleu']} → " if row["plain_bleu"] else "")
            + row["bleu"]
            for row in found
        ]
        return f"{'; '.join(texts)} ({'; '.join(sources)})" if found else ""

    return cell


def variant(preset):
    """Returns the name of a preset without its size.

    Example:
    >>> variant("transformer_tiny_matched"), variant("dense_nmt_1_4l")
    ('transformer_matched', 'dense_nmt_1')
    """
    return re.sub(r"_(tiny|small|base|big|\d+l)(?=_|$)", "", preset)
