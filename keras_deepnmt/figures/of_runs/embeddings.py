"""Figures of embeddings: spectra, principal components, bilingual pairs."""

import keras
import numpy as np

from keras_deepnmt.analysis import (
    channel_spectra,
    embedding_similarity,
    principal_components,
    singular_value_curve,
)
from keras_deepnmt.data import learn_lexical_table
from keras_deepnmt.errors import UserError
from keras_deepnmt.figures.analyzed_run import AnalyzedRun
from keras_deepnmt.figures.figure import Figure, Lines, Points, Table
from keras_deepnmt.layers import FineGrainedLayerAttention

# Training pairs from which translations of words are learned.
NUM_PAIRS = 20_000
# A pair of words that is seen less often may be a mistake of the aligner.
MIN_COUNT = 3.0


def embedding_figures(run: AnalyzedRun) -> list[Figure]:
    """Spectra, principal components and similarity across languages."""
    source, target = (_matrix(run.model, side) for side in _SIDES)
    figures: list[Figure] = [_spectra(source, target)]
    channels = _channels(run, source)
    if channels is not None:
        figures.append(channels)
    pairs = _training_pairs(run)
    if pairs is None:
        return figures
    figures.append(_components(source, target, pairs))
    if source.shape[1] == target.shape[1]:
        figures.append(_similarity(run, source, target, pairs))
    return figures


_SIDES = ("source", "target")


def _matrix(model, side):
    layer = getattr(model, f"{side}_embedding")
    return keras.ops.convert_to_numpy(layer.embeddings).astype("float64")


def _spectra(source, target):
    matrices = {"source": source}
    if source.shape != target.shape or not np.array_equal(source, target):
        matrices["target"] = target
    else:
        matrices = {"source and target (shared)": source}
    series = {}
    for name, matrix in matrices.items():
        curve = singular_value_curve(matrix)
        series[name] = (np.arange(1, len(curve) + 1), curve)
    return Lines(
        name="embedding_spectrum",
        title="Singular values of the embeddings",
        caption="ln of each singular value, divided by the largest one (Liu "
        "et al., 2021); the flatter the curve, the more evenly the dimensions "
        "are used.",
        series=series,
        x_label="singular value, largest first",
        y_label="ln(σ / σ₁)",
    )


def _channels(run, source):
    """Spectra of the channels that the last decoder block uses most, least."""
    fusion = getattr(run.model, "encoder_fusion", None)
    if not isinstance(fusion, FineGrainedLayerAttention):
        return None
    weights = keras.ops.convert_to_numpy(fusion.layer_weights())
    curves = channel_spectra(source, weights[-1, 0])  # (M, N + 1, D)
    return Lines(
        name="channel_spectrum",
        title="Singular values of groups of embedding channels",
        caption="Half of the channels of the source embeddings: those with "
        "the largest and the smallest weight of the embeddings in the last "
        "decoder block's layer attention, and random ones.",
        series={
            name: (np.arange(1, len(curve) + 1), curve)
            for name, curve in curves.items()
        },
        x_label="singular value, largest first",
        y_label="ln(σ / σ₁)",
    )


def _training_pairs(run):
    """Ids of training pairs; `None` if the prepared data are gone."""
    try:
        store = run.data.store("train")
    except UserError:
        return None
    places = np.linspace(0, len(store) - 1, min(NUM_PAIRS, len(store)))
    return store.read(sorted({int(place) for place in places}))


def _components(source, target, pairs):
    """The words of a joint vocabulary by the languages they occur in."""
    used = [
        np.unique(np.concatenate([pair[side] for pair in pairs]))
        for side in (0, 1)
    ]
    if source.shape == target.shape and np.array_equal(source, target):
        both = np.intersect1d(*used)
        points = principal_components(source)
        groups = {
            "source only": points[np.setdiff1d(used[0], both)],
            "target only": points[np.setdiff1d(used[1], both)],
            "both languages": points[both],
        }
    else:
        groups = {
            side: principal_components(matrix)[ids]
            for side, matrix, ids in zip(
                _SIDES, (source, target), used, strict=True
            )
        }
    return Points(
        name="embedding_components",
        title="Principal components of the embeddings",
        caption="Tokens by the side of the training pairs that they occur on. "
        "Shared embeddings have common components, others their own.",
        groups=groups,
        x_label="first component",
        y_label="second component",
    )


def _similarity(run, source, target, pairs):
    aligned = learn_lexical_table(pairs).best_targets(MIN_COUNT)
    tokenizers = (
        run.translator.source_tokenizer,
        run.translator.target_tokenizer,
    )
    words = [t.pieces(range(t.vocabulary_size)) for t in tokenizers]
    found = embedding_similarity(source, target, aligned, *words)
    differ = sum(words[0][s] != words[1][t] for s, t in aligned)
    return Table(
        name="bilingual_similarity",
        title="Similarity of embeddings of aligned words",
        caption="Mean cosine of a source token and the target token that it "
        f"is most often aligned with, by IBM Model 1 on {len(pairs):,} "
        "training pairs (Liu et al., 2021). Non-shared: tokens of different "
        "spelling.",
        header=["pairs", "number", "mean cosine"],
        rows=[
            ["all", len(aligned), round(found["all"], 4)],
            ["non-shared", differ, round(found["non_shared"], 4)],
        ],
    )
