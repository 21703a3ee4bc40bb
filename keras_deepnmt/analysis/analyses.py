"""The analyses of one run, by the names that `deepnmt analyze` knows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from keras_deepnmt.analysis.analyzed_run import AnalyzedRun
from keras_deepnmt.analysis.attention import attention_figures
from keras_deepnmt.analysis.dense_nmt import dense_layer_figures
from keras_deepnmt.analysis.embeddings import embedding_figures
from keras_deepnmt.analysis.figure import Figure
from keras_deepnmt.analysis.hybrid_self_attention import branch_figures
from keras_deepnmt.analysis.layer_aggregation import aggregation_figures
from keras_deepnmt.analysis.layer_attention import (
    layer_attention_figures,
)
from keras_deepnmt.analysis.layer_lens import lens_figures
from keras_deepnmt.analysis.layer_similarity import similarity_figures
from keras_deepnmt.analysis.role_interaction import role_figures
from keras_deepnmt.analysis.source_ablation import ablation_figures
from keras_deepnmt.errors import UserError


@dataclass(frozen=True)
class Analysis:
    """One analysis of a run.

    Attributes:
        name: The name on the command line.
        summary: What it shows.
        make: Function from a run to its figures; none if the model lacks the
            layers that are analysed.
        needs: What a model must have.
    """

    name: str
    summary: str
    make: Callable[[AnalyzedRun], list[Figure]]
    needs: str = ""


ANALYSES = {
    analysis.name: analysis
    for analysis in (
        Analysis(
            "attention",
            "entropy of each head, attention maps and alignments of sentences",
            attention_figures,
            "attention",
        ),
        Analysis(
            "similarity",
            "similarity (CKA) and diversity of all pairs of blocks",
            similarity_figures,
            "two blocks",
        ),
        Analysis(
            "lens",
            "what each decoder block would predict",
            lens_figures,
            "Transformer decoder blocks",
        ),
        Analysis(
            "ablation",
            "loss of each label if a source token is hidden",
            ablation_figures,
        ),
        Analysis(
            "embeddings",
            "spectra, principal components and bilingual similarity",
            embedding_figures,
        ),
        Analysis(
            "aggregation",
            "inputs that aggregation nodes use",
            aggregation_figures,
            "layer aggregation or multi-layer attention",
        ),
        Analysis(
            "branches",
            "gates of hybrid self-attention, BLEU without a branch",
            branch_figures,
            "hybrid self-attention",
        ),
        Analysis(
            "layer_attention",
            "encoder states that the decoder uses, BLEU with one masked",
            layer_attention_figures,
            "fine-grained layer attention",
        ),
        Analysis(
            "roles",
            "roles of source tokens, and those of one token",
            role_figures,
            "role interaction",
        ),
        Analysis(
            "dense_layers",
            "earlier layers that the blocks of a dense stack read",
            dense_layer_figures,
            "dense convolutional blocks",
        ),
    )
}


def analyze(
    run: AnalyzedRun,
    names: Sequence[str] | None = None,
    on_start: Callable[[Analysis], None] | None = None,
) -> list[Figure]:
    """Computes the figures of a run.

    Args:
        run: the run, with the sentences to look at.
        names: keys of `ANALYSES`. Defaults to all that the model's layers
            have.
        on_start: called before each analysis.

    Returns:
        The figures in the order of the names.

    Raises:
        UserError: if a name is unknown, or the model lacks the layers that it
            analyses.

    Example:
    >>> figures = analyze(AnalyzedRun("runs/demo"), ["lens"])
    >>> [figure.name for figure in figures]
    ['layer_lens', 'layer_lens_accuracy']
    """
    unknown = [name for name in names or () if name not in ANALYSES]
    if unknown:
        raise UserError(
            f"unknown analysis: {', '.join(unknown)}. Known are: "
            f"{', '.join(ANALYSES)}."
        )
    figures = []
    for name in names or ANALYSES:
        analysis = ANALYSES[name]
        if on_start is not None:
            on_start(analysis)
        made = analysis.make(run)
        if names and not made:
            raise UserError(
                f"the model of {run.name} has no figures for the analysis "
                f"{name}: it lacks {analysis.needs}."
            )
        figures += made
    return figures
