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
    """
    is_padding = ops.logical_not(padding_mask(source_ids))
    return ops.repeat(ops.cast(is_padding, "float32"), num_hypotheses, axis=0)


def add_coverage_score(scores, state, penalty):
    """Adds the coverage penalty to the scores of hypotheses.

    Equation 14 of Wu et al. (2016): `penalty` times the sum over the source
    tokens of log(min(c, 1)), with the sum c of the attention to the token, the
    `coverage` `(..., S)` in `state`. Without it nothing is added.
    """
    if "coverage" not in state:
        return scores
    covered = ops.clip(state["coverage"], _LEAST, 1.0)
    return scores + penalty * ops.sum(ops.log(covered), axis=-1)


def decode_and_cover(model, state, *inputs):
    """Runs one step of `model.decode`, and adds its attention to the coverage.

    `inputs` are the arguments of `model.decode`, with a cache. The result is
    its scores and cache, and `{"coverage": (..., S)}` of the shape in `state`,
    with the mean attention of all heads of all decoder blocks. If `state` has
    no `coverage`, attention is not needed, and the dict is empty.
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
