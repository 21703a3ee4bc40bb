"""Losses that layers add, independent of how a batch is split."""


def losses_by_side(model):
    """Lists the losses that layers added in the model's last call.

    Returns tuples `(loss, side)`. A layer whose `reduction` is `"sum"` added a
    sum over the real positions of one side, which its `positions` names:
    `"source"` or `"target"`. Any other loss is a mean, and its side is `None`.
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
    """Weights layers' losses so that all parts of a batch add up to its loss.

    `losses` are from `losses_by_side`, of a call on a part of a batch. A sum is
    divided by the number of real tokens of its side in the global batch, at
    least 1, in `counts`. A mean is multiplied by `share`: the real target
    tokens of this part divided by those of the global batch.

    Example:
    >>> counts = {"source": 5.0, "target": 7.0}
    >>> sum_auxiliary_losses([(10.0, "source"), (4.0, None)], 0.5, counts)
    4.0
    """
    total = 0.0
    for loss, side in losses:
        total = total + (loss * share if side is None else loss / counts[side])
    return total
