"""What a stack of blocks does with the layers in its slots, if any."""


def aggregate(aggregation, layer_states, x):
    """Gives the next block's input.

    Args:
        aggregation: the slot's layer, or `None`.
        layer_states: list of states so far, embedding first.
        x: float tensor `(B, S, D)`, the last of them.

    Returns:
        Float tensor `(B, S, D)`: `x`, unless the layer feeds back.
    """
    if getattr(aggregation, "feeds_back", False):
        return aggregation(layer_states)
    return x


def finish(aggregation, layer_states, x):
    """Gives the stack's output.

    Args:
        aggregation: the slot's layer, or `None`.
        layer_states: list of all states, embedding first.
        x: float tensor `(B, S, D)`, what `aggregate` gave last.

    Returns:
        Float tensor `(B, S, D)`.
    """
    if aggregation is None or getattr(aggregation, "feeds_back", False):
        return x
    return aggregation(layer_states)


def diversify(diversity, layer_states, mask):
    """Lets the slot's layer add its loss, in place.

    The last state goes through the layer: a functional graph drops a layer
    that nothing reads, and its loss with it.

    Args:
        diversity: the slot's layer, or `None`.
        layer_states: list of all states, embedding first.
        mask: bool tensor `(B, S)`, `True` = real token.
    """
    if diversity is not None:
        layer_states[-1] = diversity(layer_states[1:], padding_mask=mask)
