"""Scores by any metrics: sacreBLEU's, GLEU, COMET and the user's."""

from collections.abc import Mapping, Sequence

from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation.comet_scores import COMET_METRICS, CometModel
from keras_deepnmt.evaluation.gleu_scores import corpus_gleu
from keras_deepnmt.evaluation.own_metrics import check_names
from keras_deepnmt.evaluation.scores import (
    METRICS,
    Score,
    corpus_scores,
    make_metrics,
)

ALL_METRICS = (*METRICS, "gleu", *COMET_METRICS)


def check_metrics(
    metrics: Sequence[str],
    tokenize: str | None,
    comet_models: Mapping[str, CometModel],
    references: Sequence[str] = (),
    more_references: Sequence[Sequence[str]] = (),
) -> None:
    """Refuses metrics that cannot be computed, before a text is translated."""
    check_names(metrics, ALL_METRICS)
    for name in COMET_METRICS:
        if name in metrics and name not in comet_models:
            raise UserError(
                f"The metric {name} needs the folder of a COMET model: give "
                f"`--{name}-model`."
            )
    if "comet" in metrics and more_references:
        raise UserError("The metric comet takes one reference per sentence.")
    make_metrics(_counted(metrics) or METRICS, tokenize, references=references)


def translation_scores(
    hypotheses: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str] | None,
    *,
    metrics: Sequence[str],
    tokenize: str | None,
    lowercase: bool,
    num_resamples: int,
    more_references: Sequence[Sequence[str]] = (),
    comet_models: Mapping[str, CometModel],
) -> tuple[dict[str, Score], dict[str, list[float]]]:
    """Scores translations by metrics that `check_metrics` allows.

    These are any of `ALL_METRICS`, and names of the user's. GLEU and COMET need
    `sources`. `comet_models` has the models of COMET's metrics, by the metric.
    The other arguments are those of `corpus_scores`.

    The result is a `Score` for each metric, in the order of `metrics`, and for
    those that are means of scores of sentences, COMET's, the scores of the
    sentences.
    """
    scores = {}
    if counted := _counted(metrics):
        scores = corpus_scores(
            hypotheses,
            references,
            counted,
            tokenize,
            lowercase,
            num_resamples,
            more_references,
        )
    if "gleu" in metrics:
        scores["gleu"] = corpus_gleu(
            hypotheses,
            sources or [],
            references,
            more_references,
            num_resamples,
        )
    of_sentences = {}
    for name in metrics:
        if name not in COMET_METRICS:
            continue
        model = comet_models[name]
        of_sentences[name] = model.sentence_scores(
            sources or [], hypotheses, references
        )
        scores[name] = model.corpus_score(of_sentences[name], num_resamples)
    return {name: scores[name] for name in metrics}, of_sentences


def _counted(metrics):
    """Those metrics whose counts are summed."""
    return [n for n in metrics if n in METRICS or n not in ALL_METRICS]
