"""What layers add to a batch's loss, the same for any split of the batch."""


def losses_by_side(model):
    """Lists what layers added in the last call, and over which positions.

    A layer of the model whose `reduction` is `"sum"` added a sum over real
    positions, and its `positions` says on which side they lie. Any other loss
    is a mean, as Keras' layers add it.

    Args:
        model: a `models.Seq2Seq` that was just called.

    Returns:
        List of tuples `(loss, side)`: a float scalar, and `"source"`,
        `"target"` or `None`.

    Example:
    >>> losses_by_side(keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1))
    []
    """
    return [
        (
            loss,
            layer.positions
            if getattr(layer, "reduction", None) == "sum"
            else None,
        )
        for layer in model.layers
        for loss in layer.losses
    ]


def sum_auxiliary_losses(losses, share, counts):
    """Weighs the losses that layers added, so that replicas add up to one.

    A sum is divided by the real positions of its side in the global batch; a
    mean counts with the share of the tokens it comes from.

    Args:
        losses: list from `losses_by_side`, of a call on a part of a batch.
        share: float scalar. Real target tokens of this part, divided by those
            of the global batch.
        counts: dict `{"source", "target"}` of float scalars: real tokens of
            the global batch, at least 1.

    Returns:
        Float scalar; the sum of it over all parts is the batch's.

    Example:
    >>> counts = {"source": 5.0, "target": 7.0}
    >>> sum_auxiliary_losses([(10.0, "source"), (4.0, None)], 0.5, counts)
    4.0
    """
    total = 0.0
    for loss, side in losses:
        total = total + (loss * share if side is None else loss / counts[side])
    return total
