"""Plain Transformers with the parameter count of another model."""


def matched_dimensions(
    num_parameters,
    source_vocabulary_size,
    target_vocabulary_size,
    *,
    hidden_dim,
    intermediate_dim,
    num_heads,
    num_encoder_layers,
    num_decoder_layers,
    **options,
):
    """Finds the width at which a plain Transformer has `num_parameters`.

    A paper's layers add parameters, and a model may be better for that reason
    alone. The matched baseline (Weissenborn et al., 2019, Section 4) has the
    same number of parameters without the layers: it differs from the plain
    model only in its width.

    Args:
        num_parameters: int. Number of parameters to approximate, such as
            `model.count_params()`.
        source_vocabulary_size: int.
        target_vocabulary_size: int.
        hidden_dim: int. Width of the plain model.
        intermediate_dim: int. Its feed-forward width, whose ratio to
            `hidden_dim` is kept.
        num_heads: int. Heads of both models; divides the width found.
        num_encoder_layers: int. Encoder blocks of both models.
        num_decoder_layers: int. Decoder blocks of both models.
        **options: other arguments of `count_parameters`, for both models.

    Returns:
        Dict `{"hidden_dim", "intermediate_dim"}` with the nearest number of
        parameters; the narrower one if two are equally near.

    Raises:
        ValueError: if `num_parameters` is below 1.

    Example:
    >>> small = dict(hidden_dim=256, intermediate_dim=512, num_heads=4)
    >>> small |= dict(num_encoder_layers=3, num_decoder_layers=3)
    >>> with_roles = count_parameters(10_000, 10_000, **small) + 2 * 16 * 256**2
    >>> matched_dimensions(with_roles, 10_000, 10_000, **small)
    {'hidden_dim': 296, 'intermediate_dim': 592}
    """
    if num_parameters < 1:
        raise ValueError(
            "`num_parameters` must be at least 1. "
            f"Received: num_parameters={num_parameters}."
        )

    def dimensions(head_dim):
        width = head_dim * num_heads
        return {
            "hidden_dim": width,
            "intermediate_dim": round(width * intermediate_dim / hidden_dim),
        }

    def distance(head_dim):
        num_found = count_parameters(
            source_vocabulary_size,
            target_vocabulary_size,
            num_encoder_layers=num_encoder_layers,
            num_decoder_layers=num_decoder_layers,
            **dimensions(head_dim),
            **options,
        )
        return abs(num_found - num_parameters)

    # Parameters grow with the width: the distance has one minimum.
    best = 1
    while distance(best + 1) < distance(best):
        best += 1
    return dimensions(best)


def count_parameters(
    source_vocabulary_size,
    target_vocabulary_size,
    *,
    hidden_dim,
    intermediate_dim,
    num_encoder_layers,
    num_decoder_layers,
    num_heads=None,
    share_embeddings=False,
    tie_output_embedding=True,
    normalize_first=False,
    key_bias=False,
):
    """Computes the number of parameters of a plain `models.Transformer`.

    Args:
        source_vocabulary_size: int.
        target_vocabulary_size: int.
        hidden_dim: int. Width D.
        intermediate_dim: int. Feed-forward width F.
        num_encoder_layers: int.
        num_decoder_layers: int.
        num_heads: int. Has no effect; accepted so that all dimensions of a
            model can be passed.
        share_embeddings: bool. Whether source, target and output share one
            matrix.
        tie_output_embedding: bool. Whether target and output share one matrix.
        normalize_first: bool. Whether each stack ends in a norm.
        key_bias: bool. Whether key projections have a bias.

    Returns:
        Int, equal to `count_params()` of the model.

    Example:
    >>> count_parameters(
    ...     11, 13, hidden_dim=8, intermediate_dim=16,
    ...     num_encoder_layers=1, num_decoder_layers=1
    ... ) == keras_deepnmt.models.Transformer(
    ...     11, 13, 8, 16, 2, 1, 1
    ... ).count_params()
    True
    """
    norm = 2 * hidden_dim
    attention = 4 * hidden_dim**2 + (3 + int(key_bias)) * hidden_dim + norm
    feed_forward = 2 * hidden_dim * intermediate_dim
    feed_forward += intermediate_dim + hidden_dim + norm
    rows = target_vocabulary_size
    if not share_embeddings:
        rows += source_vocabulary_size
        rows += 0 if tie_output_embedding else target_vocabulary_size
    return (
        rows * hidden_dim
        + num_encoder_layers * (attention + feed_forward)
        + num_decoder_layers * (2 * attention + feed_forward)
        + 2 * int(normalize_first) * norm
    )
