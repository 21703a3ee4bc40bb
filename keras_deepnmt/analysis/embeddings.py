"""Expressiveness of embeddings, and their similarity across languages."""

from collections.abc import Sequence

import keras
import numpy as np

from keras_deepnmt.analysis.analyzed_run import AnalyzedRun
from keras_deepnmt.analysis.figure import Figure, Lines, Points, Table
from keras_deepnmt.data import learn_lexical_table
from keras_deepnmt.errors import UserError
from keras_deepnmt.layers import FineGrainedLayerAttention

_SIDES = ("source", "target")
# Training pairs from which translations of words are learned.
NUM_PAIRS = 20_000
# A pair of words that is seen less often may be a mistake of the aligner.
MIN_COUNT = 3.0


def singular_value_curve(matrix: np.ndarray) -> np.ndarray:
    """Measures how evenly a matrix uses its dimensions.

        curve[i] = ln(sigma_i / sigma_1)

    for the singular values sigma in descending order. The flatter the curve,
    the more evenly distributed they are (Liu et al., 2021, "More expressive
    word embeddings").

    Args:
        matrix: Array `(V, D)`, such as a model's source embeddings.

    Returns:
        Array `(min(V, D),)` that starts at 0 and never increases; `-inf` where
        a singular value is zero.

    Raises:
        ValueError: if `matrix` is not a matrix, or all its entries are zero.

    Example:
    >>> singular_value_curve(np.diag([1.0, np.e])).round(3).tolist()
    [0.0, -1.0]
    """
    matrix = np.asarray(matrix, "float64")
    if matrix.ndim != 2 or not np.any(matrix):
        raise ValueError(
            "`matrix` must have two axes and a non-zero entry. "
            f"Received: shape {matrix.shape}."
        )
    values = np.linalg.svd(matrix, compute_uv=False)
    with np.errstate(divide="ignore"):
        return np.log(values / values[0])


def embedding_similarity(
    source_embeddings: np.ndarray,
    target_embeddings: np.ndarray,
    pairs: Sequence[tuple[int, int]],
    source_words: Sequence[str] | None = None,
    target_words: Sequence[str] | None = None,
) -> dict[str, float]:
    """Averages the cosine similarity of words and their translations.

    Liu et al. (2021) report it over all pairs of a word alignment, and over
    the pairs of two different strings ("Non-Shared").

    Args:
        source_embeddings: Array `(V_source, D)`.
        target_embeddings: Array `(V_target, D)`.
        pairs: Pairs of aligned ids, `(source id, target id)`.
        source_words: The word of each source id. Without words, equal ids are
            the same word, as in a joint vocabulary.
        target_words: The word of each target id.

    Returns:
        Dict `{"all", "non_shared"}` of means in [-1, 1]; `nan` if there is no
        such pair.

    Raises:
        ValueError: if there are no pairs, or words for only one side.

    Example:
    >>> matrix = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, -1.0]])
    >>> embedding_similarity(matrix, matrix, [(0, 0), (1, 2)])
    {'all': 0.0, 'non_shared': -1.0}
    """
    if not len(pairs) or (source_words is None) != (target_words is None):
        raise ValueError(
            "`pairs` must not be empty, and words must be given for both "
            f"sides or neither. Received: {len(pairs)} pairs, "
            f"source_words={source_words is not None}, "
            f"target_words={target_words is not None}."
        )
    source, target = np.asarray(pairs).T
    x = np.asarray(source_embeddings, "float64")[source]
    y = np.asarray(target_embeddings, "float64")[target]
    lengths = np.linalg.norm(x, axis=-1) * np.linalg.norm(y, axis=-1)
    # An embedding of zeros has no direction: its cosine is set to 0.
    cosines = np.sum(x * y, axis=-1) / np.where(lengths > 0.0, lengths, 1.0)
    if source_words is None:
        differ = source != target
    else:
        differ = np.array(
            [source_words[s] != target_words[t] for s, t in pairs]
        )
    return {
        "all": float(cosines.mean()),
        "non_shared": float(cosines[differ].mean()) if any(differ) else np.nan,
    }


def principal_components(matrix: np.ndarray, number: int = 2) -> np.ndarray:
    """Projects the rows of a matrix to their first principal components.

    Args:
        matrix: Array `(V, D)`, such as a model's embeddings.
        number: Number of components.

    Returns:
        Array `(V, number)`: the coordinates of each row, centered, those with
        the largest variance first. The entry of largest size in each direction
        is positive.

    Raises:
        ValueError: if the matrix has fewer rows or columns than components.

    Example:
    >>> matrix = np.array([[0.0, 3.0], [0.0, 1.0]])
    >>> principal_components(matrix, 1).round(3).tolist()
    [[1.0], [-1.0]]
    """
    matrix = np.asarray(matrix, "float64")
    if matrix.ndim != 2 or min(matrix.shape) < number:
        raise ValueError(
            "`matrix` must have at least as many rows and columns as "
            f"components. Received: shape {matrix.shape}, number={number}."
        )
    centered = matrix - matrix.mean(axis=0)
    directions = np.linalg.svd(centered, full_matrices=False)[2][:number]
    largest = np.abs(directions).argmax(axis=1)
    signs = np.sign(directions[np.arange(number), largest])
    return centered @ (directions * signs[:, None]).T


def channel_spectra(
    matrix: np.ndarray,
    channel_weights: np.ndarray,
    number: int | None = None,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """Compares the spectra of channels that a decoder uses much and little.

    The channels of the embeddings are ranked by their weight, such as that of
    the embeddings in the last decoder block of
    `layers.FineGrainedLayerAttention` (Liu et al., 2021).

    Args:
        matrix: Array `(V, D)`, the embeddings.
        channel_weights: Array `(D,)`.
        number: Number of channels in each group. Defaults to half of them.
        seed: Seed of the random group.

    Returns:
        `singular_value_curve` of the channels with the largest weights,
        `"most"`, with the smallest ones, `"least"`, and of `"random"` ones.

    Raises:
        ValueError: if there is not a weight for each channel, or there are
            fewer channels than `number`.

    Example:
    >>> curves = channel_spectra(np.eye(4), np.arange(4.0))
    >>> {name: curve.shape for name, curve in curves.items()}
    {'most': (2,), 'least': (2,), 'random': (2,)}
    """
    matrix, weights = np.asarray(matrix), np.asarray(channel_weights)
    width = matrix.shape[-1]
    number = width // 2 if number is None else number
    if weights.shape != (width,) or not 1 <= number <= width:
        raise ValueError(
            f"`channel_weights` must have the shape ({width},), and `number` "
            f"lie between 1 and {width}. Received: shape {weights.shape}, "
            f"number={number}."
        )
    order = np.argsort(-weights, kind="stable")
    random = np.random.default_rng(seed).choice(width, number, replace=False)
    groups = {
        "most": order[:number],
        "least": order[-number:],
        "random": random,
    }
    return {
        name: singular_value_curve(matrix[:, channels])
        for name, channels in groups.items()
    }


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
    similarity = _similarity(run, source, target, pairs)
    if similarity is not None:
        figures.append(similarity)
    return figures


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
    """Similarity across languages; `None` where no words can be compared."""
    if source.shape[1] != target.shape[1]:
        return None
    aligned = learn_lexical_table(pairs).best_targets(MIN_COUNT)
    if not aligned:  # of a short text
        return None
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
