"""One update from the gradients of several parts of a batch, on JAX."""

import keras
from keras import ops


def accumulated_step(model, state, data, parts):
    """Adds up the gradients of equal parts of the rows, and makes one update.

    The parts are computed one after another, so that the memory is that of one
    of them. Row i is in part `i % parts`, as on TensorFlow.

    Args:
        model: a compiled `models.Seq2Seq`, whose loss of a part is its share
            in the loss of the batch.
        state: tuple of all variables' arrays, as Keras hands them over.
        data: `({"source_ids": (B, S), "target_ids": (B, T)}, labels (B, T))`;
            `parts` divides B.
        parts: int. Number of parts.

    Returns:
        Tuple of the logs and the new state.
    """
    import jax

    trainable, untrained, optimizer, metrics = state
    gradient = jax.value_and_grad(model.compute_loss_and_updates, has_aux=True)

    def split(ids):
        rows = ops.shape(ids)[0] // parts
        return ops.swapaxes(ops.reshape(ids, (rows, parts, -1)), 0, 1)

    def add_part(carry, part):
        total, untrained, metrics = carry
        (_, aux), more = gradient(
            trainable,
            untrained,
            metrics,
            *part,
            None,
            training=True,
            optimizer_variables=optimizer,
        )
        total = [one + other for one, other in zip(total, more, strict=True)]
        return (total, list(aux[2]), list(aux[3])), None

    nothing = [ops.zeros_like(value) for value in trainable]
    (gradients, untrained, metrics), _ = jax.lax.scan(
        add_part,
        (nothing, list(untrained), list(metrics)),
        keras.tree.map_structure(split, tuple(data[:2])),
    )
    trainable, optimizer = model.optimizer.stateless_apply(
        optimizer, gradients, trainable
    )
    values = zip(model.metrics_variables, metrics, strict=True)
    with keras.StatelessScope(list(values)):
        logs = model.compute_metrics(None, None, None)
    return logs, (trainable, untrained, optimizer, metrics)
