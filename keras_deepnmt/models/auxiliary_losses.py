"""What layers add to a batch's loss, the same for any split of the batch."""


def sum_auxiliary_losses(model, share, counts):
    """Weighs the losses that layers added, so that replicas add up to one.

    A layer of the model whose `reduction` is `"sum"` added a sum over real
    positions, and its `positions` says on which side they lie: the sum is
    divided by their number in the global batch. Any other loss is a mean, as
    Keras' layers add it, and counts with the share of the tokens it comes from.

    Args:
        model: a `models.Seq2Seq` that was just called on a part of a batch.
        share: float scalar. Real target tokens of this part, divided by those
            of the global batch.
        counts: dict `{"source", "target"}` of float scalars: real tokens of
            the global batch, at least 1.

    Returns:
        Float scalar; the sum of it over all parts is the batch's.

    Example:
    >>> model = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1)
    >>> sum_auxiliary_losses(model, 1.0, {"source": 5.0, "target": 7.0})
    0.0
    """
    divisors = {
        id(loss): counts[layer.positions]
        for layer in model.layers
        if getattr(layer, "reduction", None) == "sum"
        for loss in layer.losses
    }
    total = 0.0
    for loss in model.losses:
        if id(loss) in divisors:
            total = total + loss / divisors[id(loss)]
        else:
            total = total + loss * share
    return total
