"""Embeddings and the projection to logits, for all ways to tie them."""

from typing import Any

import numpy as np

from keras_deepnmt.exchange.vocabulary import Vocabulary


def embedding_weights(
    source: np.ndarray,
    target: np.ndarray,
    output: np.ndarray | None,
    bias: np.ndarray | None,
    vocabularies: tuple[Vocabulary, Vocabulary],
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Returns weights by path, and arguments, for another toolkit's embeddings.

    The matrices are `(V, D)` in the order of the toolkit, and those with the
    same values are shared here. Without `output` the target embedding computes
    the logits. The vocabularies are those of source and target.
    """
    source_side, target_side = vocabularies
    is_tied = output is None or np.array_equal(output, target)
    output = target if output is None else output
    is_shared = (
        is_tied
        and source_side.is_same(target_side)
        and np.array_equal(source, target)
    )
    target_rows = target_side.rows(target, "the target embedding")
    name = "shared_embedding" if is_shared else "target_embedding"
    found = {f"{name}/embeddings": target_rows}
    source_rows = source_side.rows(source, "the source embedding")
    if not is_shared:
        found["source_embedding/embeddings"] = source_rows
    if not is_tied:
        rows = target_side.rows(output, "the projection to logits")
        found[f"{name}/reverse_embeddings"] = rows.T
    bias = target_side.output_bias(bias)
    if bias is not None:
        found["output_bias/bias"] = bias
    return found, {
        "source_vocabulary_size": len(source_side),
        "target_vocabulary_size": len(target_side),
        "share_embeddings": is_shared,
        "tie_output_embedding": is_tied,
        "output_bias": bias is not None,
    }
