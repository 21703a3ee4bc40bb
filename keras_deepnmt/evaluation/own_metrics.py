"""Metrics in files of the user, tried before a text is translated."""

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_deepnmt.errors import UserError
from keras_deepnmt.own_code.loading import describe_own_error, own_sha256
from keras_deepnmt.own_code.lookup import (
    find_own,
    is_class_name,
    make_own,
    own_names,
)
from keras_deepnmt.suggestions import did_you_mean

# What a metric is tried with: two sentences, one with a second reference.
_TEXTS = ["a b c", "d e"]
_REFERENCES = [["a b d", "d e"], ["a c", None]]


def check_names(metrics: Sequence[str], known: Sequence[str]) -> None:
    """Refuses names that are neither known metrics nor the user's own.

    An empty list is refused too.
    """
    unknown = [name for name in metrics if name not in known]
    strange = [name for name in unknown if _find(name) is None]
    if strange or not metrics:
        own = own_names(_base())
        nearest = [did_you_mean(name, [*known, *own]) for name in strange[:1]]
        raise UserError(
            f"`metrics` must be some of {', '.join([*known, *own])}, or "
            "classes in files of `import` (--import). Received: "
            f"metrics={list(metrics)}.{''.join(nearest)}"
        )


def make_own_metric(
    name: str, tokenize: str | None = None, lowercase: bool = False
) -> Any:
    """Makes a metric of the user, and tries it on two sentences.

    Its constructor gets `tokenize` and `lowercase` if it has such arguments.
    Raises a `UserError` if its class refuses that, lacks a method, or its score
    is not that of the sums of counts.
    """
    given = {"tokenize": tokenize, "lowercase": lowercase}
    try:
        kind = _with_float_scores(_find(name))
        parameters = inspect.signature(kind).parameters
        options = {key: given[key] for key in given if key in parameters}
        _try(make_own(kind, options))
        return make_own(kind, options)
    except UserError:
        raise
    except Exception as error:
        said = describe_own_error(error) or error
        raise UserError(f"`metrics`: {name}: {said}") from error


def is_better_if_lower(name: str) -> bool:
    """Whether lower scores of a metric are better.

    A metric of the user says so by `higher_is_better = False`.

    Example:
    >>> is_better_if_lower("ter"), is_better_if_lower("bleu")
    (True, False)
    """
    kind = _find(name)
    return name == "ter" or not getattr(kind, "higher_is_better", True)


def direction(name: str) -> str:
    """Returns which values of a metric are better: lower or higher ones.

    Empty for a metric of the user whose file was not imported. `name` may begin
    with the name of a split.

    Example:
    >>> direction("test ter"), direction("bleu"), direction("Unknown")
    ('lower', 'higher', '')
    """
    name = name.split()[-1]
    try:
        if is_class_name(name) and _find(name) is None:
            return ""
        return "lower" if is_better_if_lower(name) else "higher"
    except UserError:
        return ""


def signature_of(metric: Any) -> str:
    """Returns a metric's signature, with the hash of the user's file, if any.

    Example:
    >>> metric = make_own_metric("sacrebleu.metrics.TER")
    >>> score = metric.corpus_score(["a"], [["b"]])
    >>> signature_of(metric).split("|")[:2]
    ['nrefs:1', 'case:lc']
    """
    signature = metric.get_signature()
    for sha256 in filter(None, map(own_sha256, type(metric).__mro__)):
        signature.update("code", sha256[:8])
        break
    return signature.format()


def _base():
    from sacrebleu.metrics.base import Metric

    return Metric


def _find(name):
    """The class of the user's, or `None`."""
    try:
        return find_own(name, _base())
    except ValueError as error:
        raise UserError(f"`metrics`: {error}") from error


def _with_float_scores(kind):
    from keras_deepnmt.evaluation.adapted_metrics import FloatScores

    return type(kind.__name__, (FloatScores, kind), {})


def _try(metric):
    """Raises a `ValueError` for a metric that does not sum its counts."""
    counts = metric._extract_corpus_statistics(_TEXTS, _REFERENCES)
    try:
        rows = np.array(counts, "float64")
    except (TypeError, ValueError):
        rows = np.zeros(0)
    if rows.ndim != 2:
        raise ValueError(
            "`_compute_segment_statistics` must return a list of numbers, as "
            f"many for each sentence. Received: {counts}"
        )
    whole = metric._aggregate_and_compute(counts).score
    of_sums = metric._compute_score_from_stats(rows.sum(axis=0)).score
    if not np.isclose(whole, of_sums):
        raise ValueError(
            "`_aggregate_and_compute` must be `_compute_score_from_stats` of "
            f"the sums of all counts. Received: {whole} and {of_sums}"
        )
