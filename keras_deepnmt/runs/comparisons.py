"""Compares systems by their translations, and recipes by seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from keras_deepnmt.evaluation import (
    Comparison,
    Score,
    SeedStatistics,
    SignTest,
    seed_statistics,
    sign_test,
)
from keras_deepnmt.evaluation.scores import metric_label
from keras_deepnmt.runs.seed_groups import SeedGroup
from keras_deepnmt.runs.test_translations import TestTranslations

NOT_COVERED = (
    "The tests tell whether other test sentences would give such a difference, "
    "not whether trainings with other seeds would."
)
MORE_SEEDS = (
    "Train each recipe with several seeds and give all runs: then intervals "
    "over seeds are printed."
)
# Differences whose p-value is below it are called significant.
_LEVEL = 0.05


@dataclass(frozen=True)
class PairedTests:
    """The tests of a system against another one, sentence by sentence.

    Attributes:
        system: The system.
        baseline: The one that it is compared with.
        metrics: The tests of each metric.
        signs: The sign test of BLEU; `None` if it is not among the metrics,
            since its tokenizer may be missing.
    """

    system: str
    baseline: str
    metrics: dict[str, Comparison]
    signs: SignTest | None


@dataclass(frozen=True)
class SeedScores:
    """A score of a recipe, or a difference of two, over seeds.

    Attributes:
        recipe: The recipe.
        metric: The name of the score.
        seeds: The seeds that count.
        statistics: Of their scores, or of the differences seed by seed; `None`
            if no seed counts.
        baseline: The recipe that it is compared with, if any.
    """

    recipe: str
    metric: str
    seeds: tuple[int, ...]
    statistics: SeedStatistics | None
    baseline: str | None = None


class ScoredRuns(Protocol):
    """Runs of one or several recipes, with their scores.

    Attributes:
        scores: The scores by run and metric.
        recipes: The runs of each recipe.
    """

    scores: Mapping[str, Mapping[str, Score]]
    recipes: Sequence[SeedGroup]


def paired_tests(
    text: TestTranslations, num_resamples: int
) -> list[PairedTests]:
    """Tests each system against the first one, or against that of its seed.

    Runs that differ from the first one by the seed alone are left out.
    """
    tests = []
    for system, baseline in pairs_to_test(list(text.systems), text.recipes):
        signs = None
        if "bleu" in text.scoring["metrics"]:
            signs = sign_test(
                text.systems[system],
                text.systems[baseline],
                text.references,
                **text.bleu_options,
                more_references=text.more_references,
            )
        compared = text.compare(system, baseline, num_resamples)
        tests.append(PairedTests(system, baseline, compared, signs))
    return tests


def describe_disagreements(tests: Sequence[PairedTests]) -> str | None:
    """Says which test to believe where two of them disagree, else `None`.

    They disagree if the p-value of only one is below 0.05.
    """
    split = [
        f"{metric_label(metric)} of {test.system} against {test.baseline}"
        for test in tests
        for metric, found in test.metrics.items()
        if (found.bootstrap_p_value < _LEVEL)
        != (found.randomization_p_value < _LEVEL)
    ]
    if not split:
        return None
    return (
        f"The tests of {', '.join(split)} disagree: only one p-value is below "
        f"{_LEVEL}. Believe that of approximate randomization. The paired "
        "bootstrap's is about half as large where the difference is large, and "
        "too small where few sentences differ."
    )


def pairs_to_test(
    systems: Sequence[str], recipes: Sequence[SeedGroup]
) -> list[tuple[str, str]]:
    """Lists the systems that are tested, each with its baseline.

    Without `recipes` the baseline is the first system. Otherwise it is the
    run of the first recipe with the same seed, or the first system if there is
    none.
    """
    first = systems[0]
    if not recipes:
        return [(system, first) for system in systems[1:]]
    runs = recipes[0].runs
    return [
        (run, runs.get(seed, first))
        for group in recipes
        for run, seed in group.seeds.items()
        if group is not recipes[0] or run in group.repeated
    ]


def has_seeds(recipes: Sequence[SeedGroup]) -> bool:
    """Whether a recipe has runs with different seeds."""
    return any(len(group.runs) > 1 for group in recipes)


def seed_scores(text: ScoredRuns) -> list[SeedScores]:
    """Describes the scores of each recipe over its seeds."""
    return [
        SeedScores(
            group.name,
            metric,
            tuple(group.runs),
            seed_statistics(
                [text.scores[run][metric].value for run in group.runs.values()]
            ),
        )
        for group in text.recipes
        for metric in _metrics(text.scores)
    ]


def seed_differences(text: ScoredRuns) -> list[SeedScores]:
    """Compares each recipe with the first one, seed by seed."""
    made = []
    for group in text.recipes[1:]:
        baseline = text.recipes[0]
        seeds = tuple(seed for seed in group.runs if seed in baseline.runs)
        for metric in _metrics(text.scores):
            values = [
                text.scores[group.runs[seed]][metric].value
                - text.scores[baseline.runs[seed]][metric].value
                for seed in seeds
            ]
            made.append(
                SeedScores(
                    group.name,
                    metric,
                    seeds,
                    seed_statistics(values) if values else None,
                    baseline.name,
                )
            )
    return made


def _metrics(scores: Mapping[str, Mapping]):
    return list(next(iter(scores.values())))
