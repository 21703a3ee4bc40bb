"""Floating-point operations of a Transformer's training step."""


def step_flops(sizes):
    """Counts the floating-point operations of a step's matrix products.

    Two per multiply-add; the backward pass costs twice the forward pass. Per
    layer: the projections and feed-forward networks of encoder and decoder, and
    the two products of each of the three attentions; then the output matrix.
    """
    width, inner = sizes["hidden_dim"], sizes["intermediate_dim"]
    length = sizes["length"]
    encoder = 4 * width**2 + 2 * width * inner
    decoder = 8 * width**2 + 2 * width * inner
    attention = 3 * 2 * length * width
    per_token = sizes["num_layers"] * (encoder + decoder + attention)
    per_token += width * sizes["vocabulary_size"]
    return 3 * 2 * per_token * sizes["batch_size"] * length
