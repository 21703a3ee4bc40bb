"""Checks that tokenizers belong to a model."""


def check_vocabularies(model, source_tokenizer, target_tokenizer) -> None:
    """Refuses tokenizers that do not have the vocabularies of the model.

    Raises:
        ValueError: if a size differs.
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
