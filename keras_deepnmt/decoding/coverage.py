"""The coverage penalty: how much of its source a translation attends to."""

from keras import ops

from keras_deepnmt.errors import UserError
from keras_deepnmt.layers.recording import attention_to_source, recorder
from keras_deepnmt.masks import padding_mask
from keras_deepnmt.models.ensemble import Ensemble

# Smaller attention counts as this value, so that no penalty is infinite.
_LEAST = 1e-9


def first_coverage(source_ids, num_hypotheses):
    """Returns the coverage `(B * K, S)` of hypotheses that have no token.

    It is 0, or 1 at padding, which needs no attention.

    Example:
    >>> np.asarray(first_coverage(np.array([[7, 3, 0]]), 2)).tolist()
    [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
    """
    is_padding = ops.logical_not(padding_mask(source_ids))
    return ops.repeat(ops.cast(is_padding, "float32"), num_hypotheses, axis=0)


def add_coverage_score(scores, state, penalty):
    """Adds the coverage penalty to the scores of hypotheses.

    Equation 14 of Wu et al. (2016): `penalty` times the sum over the source
    tokens of log(min(c, 1)), with the sum c of the attention to the token.

    Args:
        scores: float tensor `(...)`.
        state: dict with `coverage` `(..., S)`; without it nothing is added.
        penalty: float.

    Returns:
        The scores, none of which is greater than before.

    Example:
    >>> state = {"coverage": np.array([0.5, 2.0])}
    >>> round(float(add_coverage_score(-1.0, state, 2.0)), 4)
    -2.3863
    """
    if "coverage" not in state:
        return scores
    covered = ops.clip(state["coverage"], _LEAST, 1.0)
    return scores + penalty * ops.sum(ops.log(covered), axis=-1)


def decode_and_cover(model, state, *inputs):
    """Runs one step of `model.decode`, and adds its attention to the coverage.

    Args:
        model: a model of this package.
        state: dict of a search. Without `coverage`, attention is not needed.
        *inputs: the arguments of `model.decode`, with a cache.

    Returns:
        Scores and cache from `model.decode`, and `{"coverage": (..., S)}` of
        the shape in `state`, or `{}`. The attention is the mean of all heads of
        all decoder blocks.

    Raises:
        UserError: if attention is needed and the model has none to the source,
            or is an ensemble.
    """
    if "coverage" not in state:
        return *model.decode(*inputs), {}
    recorded = []
    with recorder(lambda name, tensor: recorded.append((name, tensor))):
        scores, cache = model.decode(*inputs)
    names = set(attention_to_source([name for name, _ in recorded]))
    # The blocks of several models have the same names.
    if not names or isinstance(model, Ensemble):
        raise UserError(
            "`coverage_penalty` needs a single model with attention to the "
            f"source. Received: {type(model).__name__}. Set it to 0."
        )
    weights = [
        ops.mean(ops.cast(tensor, "float32"), axis=1)  # (B, K, S)
        for name, tensor in recorded
        if name in names
    ]
    before = state["coverage"]
    mean = ops.reshape(sum(weights) / len(weights), ops.shape(before))
    return scores, cache, {"coverage": before + mean}
