"""The tables that `deepnmt evaluate` prints, as rows of texts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from keras_deepnmt.files import as_cell

if TYPE_CHECKING:
    from keras_deepnmt.evaluation import AnnotatedSentence
    from keras_deepnmt.runs.comparisons import PairedTests, ScoredRuns
    from keras_deepnmt.runs.test_translations import TestTranslations

Table = list[list[str]]
_DIFFERENCES = [
    *("system", "compared with", "metric", "difference"),
    *("p (paired bootstrap)", "p (approximate randomization)"),
    "better",
]
_SIGNS = [
    *("system", "compared with"),
    *("better", "worse", "equal", "p (sign test)"),
]


def scores(text: "TestTranslations", num_resamples: int) -> Table:
    """One line for each system and metric: score, interval and signature.

    A single system has no column with its name.
    """
    table = []
    for system, by_metric in text.scores.items():
        name = [system] if len(text.systems) > 1 else []
        for metric, score in by_metric.items():
            interval = f"± {score.interval:.2f}" if num_resamples > 1 else ""
            table.append(
                [*name, metric, f"{score.value:.2f}", interval, score.signature]
            )
    return table


def comparisons(tests: "Sequence[PairedTests]") -> list[Table]:
    """Compares systems, sentence by sentence: two tables, or fewer."""
    from keras_deepnmt.evaluation import format_p_value
    from keras_deepnmt.evaluation.own_metrics import direction

    differences, signs = [_DIFFERENCES], [_SIGNS]
    for test in tests:
        names = [test.system, test.baseline]
        for metric, found in test.metrics.items():
            differences.append(
                [
                    *(*names, metric, f"{found.difference:+.2f}"),
                    format_p_value(found.bootstrap_p_value),
                    format_p_value(found.randomization_p_value),
                    direction(metric),
                ]
            )
        if split := test.signs:
            counts = map(str, (split.better, split.worse, split.equal))
            signs.append([*names, *counts, format_p_value(split.p_value)])
    return [table for table in (differences, signs) if len(table) > 1]


def seeds(text: "ScoredRuns") -> list[Table]:
    """Scores of recipes over seeds, and their differences seed by seed."""
    from keras_deepnmt.runs.comparisons import seed_differences, seed_scores

    columns = ["standard deviation", "95 % interval (Student's t over seeds)"]
    columns.append("better")
    means = [["recipe", "metric", "seeds", "mean", *columns]]
    for row in seed_scores(text):
        means.append([row.recipe, row.metric, *_over_seeds(row, "")])
    changes = [["recipe", "compared with", "metric", "seeds in common"]]
    changes[0] += ["mean difference", *columns]
    for row in seed_differences(text):
        names = [row.recipe, row.baseline, row.metric]
        changes.append([*names, *_over_seeds(row, "+")])
    return [table for table in (means, changes) if len(table) > 1]


def _over_seeds(row, sign):
    """The seeds, their mean, deviation and interval, and what is better."""
    from keras_deepnmt.evaluation.own_metrics import direction

    seeds, better = " ".join(map(str, row.seeds)), direction(row.metric)
    found = row.statistics
    if found is None:
        return [seeds, "", "", "", better]
    mean = f"{found.mean:{sign}.2f}"
    if found.number == 1:
        return [seeds, mean, "", "", better]
    interval = f"± {found.interval:.2f}"
    return [seeds, mean, f"{found.deviation:.2f}", interval, better]


def rouge(text: "TestTranslations") -> Table:
    """ROUGE of all systems, of the best reference for each summary."""
    from keras_deepnmt.evaluation import rouge_scores

    groups = list(zip(text.references, *text.more_references, strict=True))
    table = [["system", "ROUGE-1", "ROUGE-2", "ROUGE-L"]]
    for system, lines in text.systems.items():
        found = rouge_scores(lines, groups)
        table.append([system, *(f"{value:.2f}" for value in found.values())])
    return table


def corrections(
    systems: Mapping[str, Sequence[str]],
    gold: "Sequence[AnnotatedSentence]",
    details: bool = False,
) -> list[Table]:
    """Precision, recall and F0.5 of all systems' edits (MaxMatch).

    With `details` there is a second table: for each type of error how many gold
    edits each system made, and how many there are.
    """
    from keras_deepnmt.evaluation import max_match

    table = [["system", "precision", "recall", "F0.5", "correct edits"]]
    table[0] += ["proposed edits", "gold edits"]
    types = [["system", "type", "recall", "correct edits", "gold edits"]]
    for system, lines in systems.items():
        found = max_match(lines, gold)
        rates = found.precision, found.recall, found.f_score
        counts = found.correct, found.proposed, found.gold
        table.append(
            [system, *(f"{100 * rate:.2f}" for rate in rates)]
            + [str(count) for count in counts]
        )
        types += (
            [system, name, f"{made / there:.2%}"[:-1], str(made), str(there)]
            for name, (made, there) in found.by_type.items()
        )
    return [table, types] if details else [table]


def reference_edits(
    text: "TestTranslations", spacy_model: str
) -> "list[AnnotatedSentence]":
    """The edits that ERRANT finds in the references."""
    from keras_deepnmt.evaluation import annotate_corrections
    from keras_deepnmt.evaluation.scores import reference_sets

    sets = reference_sets(text.references, text.more_references)
    return annotate_corrections(text.sources, *sets, spacy_model=spacy_model)


def errant(
    systems: Mapping[str, Sequence[str]],
    gold: "Sequence[AnnotatedSentence]",
    spacy_model: str,
) -> Table:
    """Precision, recall and F0.5 of all systems, also by type of error."""
    from keras_deepnmt.evaluation import errant_score

    table = [["system", "type (ERRANT)", "precision", "recall", "F0.5"]]
    table[0] += ["correct edits", "proposed edits", "gold edits"]
    for system, lines in systems.items():
        score = errant_score(lines, gold, spacy_model=spacy_model)
        for name, found in {"all": score, **score.by_type}.items():
            rates = found.precision, found.recall, found.f_score
            counts = found.correct, found.proposed, found.gold
            table.append(
                [system, name, *(f"{100 * rate:.2f}" for rate in rates)]
                + [str(count) for count in counts]
            )
    return table


def details(text: "TestTranslations") -> list[Table]:
    """BLEU by source length and by rarest word, and rates: a table each."""
    from keras_deepnmt.data.word_units import describe_words
    from keras_deepnmt.evaluation import (
        bleu_by_rarest_word,
        bleu_by_source_length,
    )

    tables = []
    if text.sources is not None:
        tables.append(
            _groups(
                text,
                f"source {describe_words(text.sources)}",
                lambda lines: bleu_by_source_length(
                    text.sources, lines, text.references, **text.bleu_options
                ),
            )
        )
    if text.count_training_words is not None:
        frequencies = text.count_training_words()
        tables.append(
            _groups(
                text,
                f"frequency of the rarest word{_words_of(text)}",
                lambda lines: bleu_by_rarest_word(
                    lines, text.references, frequencies, **text.bleu_options
                ),
            )
        )
    return [*tables, _rates(text)]


def ladder(text: "TestTranslations", language: str | None) -> list[Table]:
    """BLEU of all systems under each definition: one table."""
    from keras_deepnmt.evaluation.bleu_definitions import (
        DEFINITIONS,
        available_definitions,
        bleu_by_definition,
    )

    known = available_definitions()
    found = [
        bleu_by_definition(
            lines, text.references, language or text.language or "en", known
        )
        for lines in text.systems.values()
    ]
    table = [["definition of BLEU", *_names(text), "computed so by"]]
    for each in DEFINITIONS:
        if each in known:
            cells = [f"{scores[each.name].value:.2f}" for scores in found]
        else:
            cells = ["needs pip install keras_deepnmt[moses]" for _ in found]
        table.append([each.name, *cells, each.meaning])
    return [table]


def differences(text: "TestTranslations") -> Iterator[list[str]]:
    """All sentences, first those whose sentence BLEU differs most.

    The columns are the line, for each system its sentence BLEU, the largest
    difference from the first system, source, reference and translations.
    """
    from keras_deepnmt.evaluation.sentence_scores import sentence_bleu

    systems = list(text.systems.values())
    scores = [
        sentence_bleu(lines, text.references, **text.bleu_options)
        for lines in systems
    ]
    changes = [
        max((value - first for value in others), key=abs)
        for first, *others in zip(*scores, strict=True)
    ]
    order = sorted(range(len(changes)), key=lambda row: -abs(changes[row]))
    names = _names(text)
    yield [
        "line",
        *(f"BLEU of {name}" for name in names),
        *("difference", "source", "reference"),
        *names,
    ]
    sources = text.sources or [""] * len(text.references)
    for row in order:
        texts = [sources[row], text.references[row]]
        texts += [lines[row] for lines in systems]
        yield [
            str(row + 1),
            *(f"{values[row]:.1f}" for values in scores),
            f"{changes[row]:+.1f}",
            # A tab would start another column, and a line end another row.
            *(as_cell(line) for line in texts),
        ]


def _words_of(text):
    """Names the tokenizer of BLEU unless words are those between spaces."""
    tokenize = text.scoring["tokenize"]
    return (
        "" if tokenize in ("13a", "intl", "none") else f" (words of {tokenize})"
    )


def _names(text):
    return list(text.systems) if len(text.systems) > 1 else ["BLEU"]


def _groups(text, heading, groups_of):
    """A table of groups; the groups are those of the references or sources."""
    found = [groups_of(lines) for lines in text.systems.values()]
    table = [[heading, "sentences", *_names(text)]]
    for groups in zip(*found, strict=True):
        values = [f"{group.bleu.value:.2f}" for group in groups]
        table.append([groups[0].label, str(groups[0].num_sentences), *values])
    return table


def _rates(text):
    from keras_deepnmt.evaluation import (
        copy_rate,
        length_ratio,
        repetition_rate,
    )

    tokenize = text.scoring["tokenize"]
    table = [[f"system{_words_of(text)}", "length ratio", "repeated 4-grams"]]
    if text.sources is not None:
        table[0].append("copies of the source")
    for name, lines in {**text.systems, "references": text.references}.items():
        row = [
            name,
            f"{length_ratio(lines, text.references, tokenize):.3f}",
            f"{repetition_rate(lines, tokenize=tokenize):.2%}",
        ]
        if text.sources is not None:
            rate = copy_rate(text.sources, lines, tokenize=tokenize)
            row.append(f"{rate:.2%}")
        table.append(row)
    return table
