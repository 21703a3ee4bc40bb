"""Attention: the entropy of each head, maps of sentences, aligned positions."""

from collections.abc import Mapping, Sequence

import numpy as np

from keras_deepnmt.analysis.analyzed_run import AnalyzedRun
from keras_deepnmt.analysis.figure import Figure, HeatMap, Table
from keras_deepnmt.analysis.hybrid_self_attention import branch_names
from keras_deepnmt.layers.recording import attention_to_source

_END = "/weights"
NUM_SENTENCES = 3
# A longer sentence makes a map that cannot be read.
MOST_TOKENS = 16


def attention_entropy(
    weights: np.ndarray, query_mask: np.ndarray | None = None
) -> np.ndarray:
    """Computes how widely each head spreads its attention.

        entropy[n] = mean over queries t of -sum_s w[n, t, s] ln w[n, t, s]

    0 means that each query attends to one position, ln S that it attends to S
    positions equally.

    Args:
        weights: Array `(B, N, T, S)`, such as a tensor
            `.../cross_attention/weights` of `record`; leading axes between B
            and N are kept, as the branches of hybrid attention.
        query_mask: Bool array `(B, T)`, `True` = real token. Defaults to all.

    Returns:
        Float array `(N,)`, or `(n, N)` for n branches, in nats.

    Raises:
        ValueError: if `weights` has fewer than four axes, or no query is real.

    Example:
    >>> weights = np.full((1, 2, 3, 4), 0.25)
    >>> attention_entropy(weights).round(3).tolist()
    [1.386, 1.386]
    """
    weights, mask = _check(weights, query_mask)
    # The limit of w ln w at 0 is 0.
    logs = np.log(np.where(weights > 0.0, weights, 1.0))
    entropy = -np.sum(weights * logs, axis=-1)  # (B, ..., N, T)
    by_query = np.moveaxis(entropy, -1, 1)[mask]  # (real queries, ..., N)
    return by_query.mean(axis=0)


def align_by_attention(
    weights: np.ndarray,
    source_mask: np.ndarray | None = None,
    target_mask: np.ndarray | None = None,
) -> list[list[tuple[int, int]]]:
    """Aligns each target position with the source position attended to most.

    The weights are averaged over heads.

    Args:
        weights: Array `(B, N, T, S)` of cross-attention. The query at position
            t predicts label t.
        source_mask: Bool array `(B, S)`, `True` = may be aligned. Defaults to
            all.
        target_mask: Bool array `(B, T)` of the labels. Defaults to all.

    Returns:
        For each sentence pairs `(source position, target position)`, in the
        order of the target.

    Raises:
        ValueError: if `weights` has fewer than four axes, or no query is real.

    Example:
    >>> weights = np.array([[[[0.9, 0.1], [0.2, 0.8]]]])
    >>> align_by_attention(weights)
    [[(0, 0), (1, 1)]]
    """
    weights, mask = _check(weights, target_mask)
    mean = weights.mean(axis=tuple(range(1, weights.ndim - 2)))  # (B, T, S)
    if source_mask is not None:
        real = np.asarray(source_mask, "bool")[:, None, :]
        mean = np.where(real, mean, -1.0)
    best = mean.argmax(axis=-1)  # (B, T)
    return [
        [(int(best[row, t]), int(t)) for t in np.flatnonzero(mask[row])]
        for row in range(len(best))
    ]


def cross_attention_names(names: Sequence[str]) -> list[str]:
    """Chooses the attention of decoder blocks to the source, block by block.

    Args:
        names: Names from `recorded_names`.

    Returns:
        Those of the weights; none if the model has no such attention.

    Example:
    >>> from keras_deepnmt.analysis import recorded_names
    >>> model = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 2)
    >>> cross_attention_names(recorded_names(model))[-1]
    'decoder_block_2/cross_attention/weights'
    """
    return attention_to_source(names)


def _check(weights, query_mask) -> Sequence[np.ndarray]:
    weights = np.asarray(weights, "float64")
    if weights.ndim < 4:
        raise ValueError(
            "`weights` must have the axes (B, N, T, S). Received: shape "
            f"{weights.shape}."
        )
    shape = weights.shape[0], weights.shape[-2]
    mask = np.ones(shape, "bool") if query_mask is None else query_mask
    mask = np.asarray(mask, "bool")
    if mask.shape != shape or not mask.any():
        raise ValueError(
            f"The mask of the queries must have the shape {shape} and a real "
            f"position. Received: shape {mask.shape}, {mask.sum()} real."
        )
    return weights, mask


def attention_figures(run: AnalyzedRun) -> list[Figure]:
    """Entropy of each head, attention maps of short sentences, alignments."""
    names = [name for name in run.names if name.endswith(_END)]
    if not names:
        return []
    rows = short_sentences(run)
    tensors = run.record(names, rows)
    return [
        _entropies(run, names),
        *self_attention_maps(run, tensors, rows),
        *_cross_maps(run, tensors, rows),
    ]


def short_sentences(run: AnalyzedRun, number: int = NUM_SENTENCES) -> list[int]:
    """Chooses the longest sentences that still make a readable figure."""
    lengths = np.maximum(run.source_mask.sum(1), run.target_mask.sum(1))
    fitting = np.flatnonzero(lengths <= MOST_TOKENS)
    if not len(fitting):
        return [int(lengths.argmin())]
    order = fitting[np.argsort(-lengths[fitting], kind="stable")]
    return sorted(int(row) for row in order[:number])


def _entropies(run, names):
    """A heat map of layers and heads; a row for each branch of a layer."""
    rows, values = [], []
    entropies: dict[str, np.ndarray] = {}
    # The weights of all sentences would need gigabytes.
    for batch, tensors in run.record_batches(names):
        for name, weights in tensors.items():
            is_source = name.startswith("encoder")
            mask = run.source_mask if is_source else run.target_mask
            share = mask[batch].sum() / mask.sum()
            found = share * attention_entropy(weights, mask[batch])
            entropies[name] = entropies.get(name, 0.0) + found
    branches = branch_names(run.model)
    for name, entropy in entropies.items():
        layer = name.removesuffix(_END)
        if entropy.ndim == 1:
            entropy = entropy[None]
        of_layer = branches[layer.split("_")[0]] if len(entropy) > 1 else []
        for index, heads in enumerate(entropy):
            branch = f" {of_layer[index]}" if of_layer else ""
            rows.append(layer.replace("_", " ") + branch)
            values.append(heads)
    width = max(map(len, values))
    table = np.full((len(values), width), np.nan)
    for row, heads in zip(table, values, strict=True):
        row[: len(heads)] = heads
    return HeatMap(
        name="attention_entropy",
        title="Entropy of attention",
        caption="0: each query attends to one position; ln S: to S positions "
        f"equally. Mean over the real tokens of {len(run.sources)} sentences.",
        values=table,
        row_names=rows,
        column_names=[str(head) for head in range(1, width + 1)],
        row_label="attention",
        column_label="head",
        unit="entropy (nats)",
    )


def self_attention_maps(
    run: AnalyzedRun, tensors: Mapping[str, np.ndarray], rows: Sequence[int]
) -> list[Figure]:
    """Draws the self-attention of the first encoder block.

    `tensors` are weights of attention by name, of some sentences, and `rows`
    the places of these sentences; the first one is drawn. Returns a map for
    each branch.
    """
    names = [name for name in tensors if name.startswith("encoder_block_1/")]
    figures: list[Figure] = []
    branches = branch_names(run.model)["encoder"]
    tokens = run.source_tokens(rows[0])
    for name in names:
        weights = tensors[name][0]  # ([n,] N, S, S)
        maps = weights if weights.ndim == 4 else weights[None]
        for index, heads in enumerate(maps):
            branch = branches[index] if len(maps) > 1 else ""
            stem = f"self_attention_{branch}" if branch else "self_attention"
            figures.append(
                HeatMap(
                    name=stem,
                    title=f"Self-attention, {branch or 'encoder block 1'}",
                    caption="First encoder block"
                    f"{f', branch {branch}' if branch else ''}, mean over "
                    "heads; each row sums to 1.",
                    values=heads.mean(0)[: len(tokens), : len(tokens)],
                    row_names=tokens,
                    column_names=tokens,
                    row_label="query",
                    column_label="key",
                    unit="weight",
                )
            )
    return figures


def _cross_maps(run, tensors, rows):
    """Cross-attention of the last decoder block, and alignments by it."""
    name = next(reversed(cross_attention_names(list(tensors))), None)
    if name is None:
        return []
    figures: list[Figure] = []
    weights = tensors[name]
    source_mask = run.source_mask[rows]
    pairs = align_by_attention(weights, source_mask, run.target_mask[rows])
    aligned = []
    for index, row in enumerate(rows):
        source, target = run.source_tokens(row), run.target_tokens(row)
        values = weights[index].mean(0)[: len(target), : len(source)]
        figures.append(
            HeatMap(
                name=f"cross_attention_{index + 1}",
                title=f"Attention to the source, sentence {run.rows[row] + 1}",
                caption=f"{name.removesuffix(_END).replace('_', ' ')}, mean "
                "over heads. A row is the label that is predicted; it sums "
                "to 1.",
                values=values,
                row_names=target,
                column_names=source,
                row_label="label",
                column_label="source",
                unit="weight",
                limits=(0.0, 1.0),
            )
        )
        aligned += [
            [run.rows[row] + 1, target[t], source[s], round(values[t, s], 4)]
            for s, t in pairs[index]
        ]
    figures.append(
        Table(
            name="attention_alignment",
            title="Alignment by attention",
            caption="The source token with the largest mean weight for each "
            "label.",
            header=["sentence", "label", "source token", "weight"],
            rows=aligned,
        )
    )
    return figures
