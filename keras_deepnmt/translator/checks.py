"""What a translator refuses to be made of."""

from keras_deepnmt.decoding.beams import check_length_offset


def check_vocabularies(model, source_tokenizer, target_tokenizer):
    """Refuses tokenizers of another vocabulary than the model's.

    Args:
        model: a model of this package.
        source_tokenizer: tokenizer of the source side.
        target_tokenizer: tokenizer of the target side.

    Raises:
        ValueError: if a vocabulary differs.
    """
    for side, tokenizer, size in (
        ("source", source_tokenizer, model.source_vocabulary_size),
        ("target", target_tokenizer, model.target_vocabulary_size),
    ):
        if tokenizer.vocabulary_size != size:
            raise ValueError(
                f"`{side}_tokenizer` must have the vocabulary of `model`. "
                f"Received: {tokenizer.vocabulary_size} pieces for a model "
                f"of {size}"
            )


def check_numbers(num_beams, length_penalty, length_offset, batch_size):
    """Refuses numbers that no search can use.

    Args:
        num_beams: int.
        length_penalty: float.
        length_offset: float.
        batch_size: int.

    Raises:
        ValueError: if one is too small.
    """
    if num_beams < 1 or batch_size < 1 or length_penalty < 0:
        raise ValueError(
            "`num_beams` and `batch_size` must be at least 1 and "
            "`length_penalty` at least 0. Received: "
            f"num_beams={num_beams}, batch_size={batch_size}, "
            f"length_penalty={length_penalty}"
        )
    check_length_offset(length_offset)
