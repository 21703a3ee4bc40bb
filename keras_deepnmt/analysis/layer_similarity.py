"""Similarity and diversity of the states of layers."""

from collections.abc import Callable, Mapping

import keras
import numpy as np

from keras_deepnmt.analysis.analyzed_run import AnalyzedRun
from keras_deepnmt.analysis.figure import Figure, HeatMap
from keras_deepnmt.layers.layer_diversity import diversity


def centered_kernel_alignment(x: np.ndarray, y: np.ndarray) -> float:
    """Computes linear CKA of two representations of the same tokens.

        CKA = ||Y^T X||^2 / (||X^T X|| ||Y^T Y||)

    with columns centered, in Frobenius norms (Kornblith et al., 2019, Section
    3). It does not change if a representation is rotated or scaled.

    Args:
        x: Array `(n, D)` of n tokens.
        y: Array `(n, E)` of the same tokens.

    Returns:
        A number from 0, unrelated, to 1, equal up to rotation and scale; `nan`
        if a representation is the same for all tokens.

    Raises:
        ValueError: if the arrays are not matrices with the same number of rows.

    Example:
    >>> x = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> round(centered_kernel_alignment(x, 3 * x[:, ::-1]), 6)
    1.0
    """
    x, y = (np.asarray(matrix, "float64") for matrix in (x, y))
    if x.ndim != 2 or y.ndim != 2 or len(x) != len(y):
        raise ValueError(
            "`x` and `y` must be matrices with the same number of rows. "
            f"Received: shapes {x.shape} and {y.shape}."
        )
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    norms = np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y)
    if not norms:
        return float("nan")
    return float(np.linalg.norm(y.T @ x) ** 2 / norms)


def layer_similarities(
    states: Mapping[str, np.ndarray], mask: np.ndarray
) -> tuple[list[str], np.ndarray]:
    """Computes CKA between all pairs of layers at the real positions.

    Args:
        states: Arrays `(B, S, D)` by name, such as the tensors
            `encoder_block_*/output` of `record`.
        mask: Bool array `(B, S)`, `True` = real token.

    Returns:
        The names, and a symmetric array of similarities in their order.

    Raises:
        ValueError: if a state does not fit the mask.

    Example:
    >>> states = {"one": np.eye(3)[None], "other": 2 * np.eye(3)[None]}
    >>> names, similarities = layer_similarities(states, np.ones((1, 3), bool))
    >>> names, similarities.round(3).tolist()
    (['one', 'other'], [[1.0, 1.0], [1.0, 1.0]])
    """
    return _compare_all(states, mask, centered_kernel_alignment)


def layer_diversities(
    states: Mapping[str, np.ndarray], mask: np.ndarray
) -> tuple[list[str], np.ndarray]:
    """Computes the diversity of all pairs of layers at the real positions.

        D(H^l, H^m) = 1 / N sum_n (1 - cos^2(h^l_n, h^m_n))

    (Dou et al., 2018, Eq. 10, there for adjacent layers): 0 if the states point
    in the same or opposite directions, 1 if they are orthogonal.

    Args:
        states: Arrays `(B, S, D)` by name, such as the tensors
            `encoder_block_*/output` of `record`.
        mask: Bool array `(B, S)`, `True` = real token.

    Returns:
        The names, and a symmetric array of diversities in their order.

    Raises:
        ValueError: if a state does not fit the mask.

    Example:
    >>> states = {"one": np.eye(3)[None], "other": np.eye(3)[None, ::-1]}
    >>> names, table = layer_diversities(states, np.ones((1, 3), bool))
    >>> names, table.round(3).tolist()
    (['one', 'other'], [[0.0, 0.667], [0.667, 0.0]])
    """

    def mean_diversity(x, y):
        values = diversity([x[None], y[None]])  # (1, n)
        return float(keras.ops.convert_to_numpy(values).mean())

    return _compare_all(states, mask, mean_diversity)


def _compare_all(
    states: Mapping[str, np.ndarray],
    mask: np.ndarray,
    compare: Callable[[np.ndarray, np.ndarray], float],
) -> tuple[list[str], np.ndarray]:
    """Compares the real positions of all pairs of layers."""
    mask = np.asarray(mask, "bool")
    tokens = {}
    for name, state in states.items():
        state = np.asarray(state)
        if state.shape[:-1] != mask.shape:
            raise ValueError(
                f"`states` must have the axes {mask.shape} of the mask before "
                f"the last one. Received: {name} of shape {state.shape}."
            )
        tokens[name] = state[mask]
    names = list(tokens)
    table = np.array(
        [
            [compare(tokens[one], tokens[other]) for other in names]
            for one in names
        ]
    )
    return names, table


def similarity_figures(run: AnalyzedRun) -> list[Figure]:
    """CKA and diversity of all pairs of blocks, for each stack."""
    figures: list[Figure] = []
    for side, mask in (
        ("encoder", run.source_mask),
        ("decoder", run.target_mask),
    ):
        names = [
            name
            for name in run.names
            if name.startswith(f"{side}_block_") and name.count("/") == 1
        ]
        states = {
            name.split("/")[0].rsplit("_", 1)[1]: state
            for name, state in run.record(names).items()
        }
        if len(states) < 2:
            continue
        blocks, similarities = layer_similarities(states, mask)
        shared = {
            "row_names": blocks,
            "column_names": blocks,
            "row_label": f"{side} block",
            "column_label": f"{side} block",
            "limits": (0.0, 1.0),
        }
        figures.append(
            HeatMap(
                name=f"{side}_similarity",
                title=f"Similarity of {side} blocks",
                caption="Linear centered kernel alignment (Kornblith et al., "
                "2019) of the outputs; 1: equal up to rotation and scale.",
                values=similarities,
                unit="CKA",
                **shared,
            )
        )
        if len({state.shape for state in states.values()}) == 1:
            figures.append(
                HeatMap(
                    name=f"{side}_diversity",
                    title=f"Diversity of {side} blocks",
                    caption="1 - cos² of the outputs, mean over tokens (Dou "
                    "et al., 2018, Eq. 10); 1: orthogonal.",
                    values=layer_diversities(states, mask)[1],
                    unit="diversity",
                    **shared,
                )
            )
    return figures
