"""Checks that tokenizers and shortlists belong to a model."""

from keras_deepnmt.errors import UserError


def check_vocabularies(
    model, source_tokenizer, target_tokenizer, shortlists=None
) -> None:
    """Refuses what does not have the vocabularies of the model.

    Raises:
        ValueError: if the size of a tokenizer differs.
        UserError: if one of the shortlists does.
    """
    if shortlists is not None:
        found = (len(shortlists.by_source), shortlists.target_vocabulary_size)
        sizes = (model.source_vocabulary_size, model.target_vocabulary_size)
        if found != sizes:
            raise UserError(
                "Shortlists must have the vocabularies of the model. Received: "
                f"shortlists of {found[0]} source and {found[1]} target tokens "
                f"for a model of {sizes[0]} and {sizes[1]}. Prepare them with "
                "the model's tokenizers."
            )
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
