"""Trains a SentencePiece model with the special ids of `Tokenizer`."""

import io
import re
from collections.abc import Iterable
from pathlib import Path

from keras_deepnmt.data.tokenizers import Tokenizer
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import write_bytes
from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID, UNKNOWN_ID

MODEL_TYPES = ("bpe", "unigram")


def train_tokenizer(
    texts: Iterable[str],
    output_file: str | Path,
    vocabulary_size: int,
    model_type: str = "bpe",
    *,
    character_coverage: float = 1.0,
    max_sentences: int = 1_000_000,
    seed: int = 0,
) -> Tokenizer:
    """Trains a BPE or unigram tokenizer and writes its model.

    Args:
        texts: Sentences, or a list of paths of text files with one sentence
            per line. An iterable of sentences is read once, as a stream.
        output_file: The model file to write; it appears only when complete.
        vocabulary_size: Number of pieces, including the four special ones.
        model_type: `"bpe"` or `"unigram"`.
        character_coverage: Share of the characters of the text that get a
            piece, from 0.98 to 1. Lower it (0.9995) for large noisy corpora and
            for scripts with thousands of characters.
        max_sentences: Maximum number of sentences, drawn uniformly, that are
            kept in memory for training. It must be more than 100.
        seed: Seed of that draw.

    Returns:
        The tokenizer.

    Raises:
        UserError: if the text does not allow a vocabulary of this size.
        ValueError: if `model_type` is unknown or `max_sentences` too small.

    Example:
    >>> tokenizer = train_tokenizer(["a rose is a rose"] * 9, "rose.model", 12)
    >>> tokenizer.vocabulary_size
    12
    """
    import sentencepiece

    if model_type not in MODEL_TYPES:
        raise ValueError(
            f"`model_type` must be one of {', '.join(MODEL_TYPES)}. "
            f"Received: model_type={model_type!r}"
        )
    if max_sentences <= 100:  # as SentencePiece demands
        raise ValueError(
            "`max_sentences` must be more than 100. "
            f"Received: max_sentences={max_sentences}"
        )
    model = io.BytesIO()
    sentences = _Sentences(texts)
    sentencepiece.set_random_generator_seed(seed)
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            vocab_size=vocabulary_size,
            model_type=model_type,
            normalization_rule_name="nfkc",
            byte_fallback=False,
            pad_id=PADDING_ID,
            unk_id=UNKNOWN_ID,
            bos_id=BEGIN_ID,
            eos_id=END_ID,
            hard_vocab_limit=True,
            character_coverage=character_coverage,
            input_sentence_size=max_sentences,
            shuffle_input_sentence=True,
            # Fixed: float sums of the unigram trainer depend on the threads.
            num_threads=16,
            minloglevel=2,
        )
    except RuntimeError as error:
        if sentences.failure is not None:
            raise sentences.failure from None
        raise _training_error(str(error), vocabulary_size) from error
    write_bytes(output_file, model.getvalue())
    return Tokenizer(output_file)


class _Sentences:
    """Iterates over sentences and keeps an exception for the caller.

    SentencePiece replaces every exception by one of its own.
    """

    def __init__(self, texts):
        self.texts = texts
        self.failure = None

    def __iter__(self):
        try:
            for text in self.texts:
                if isinstance(text, Path):
                    with open(text, encoding="utf-8", newline="\n") as file:
                        yield from (line.rstrip("\n") for line in file)
                else:
                    yield text
        except BaseException as failure:  # including Ctrl-C
            self.failure = failure
            raise


def _training_error(message: str, vocabulary_size: int) -> UserError:
    largest = re.search(r"value <= (\d+)", message)
    if largest:
        return UserError(
            "`vocabulary_size` is larger than the training text allows. "
            f"Received: vocabulary_size={vocabulary_size}. "
            f"The largest possible is {largest[1]}."
        )
    smallest = re.search(r"required_chars\. \d+ vs (\d+)", message)
    if smallest:
        return UserError(
            "`vocabulary_size` must hold every character of the training text. "
            f"Received: vocabulary_size={vocabulary_size}. Give at least "
            f"{smallest[1]}, or lower `character_coverage`."
        )
    if "sentences_.empty()" in message:
        return UserError("There is no text to train a tokenizer on.")
    return UserError(f"SentencePiece could not train a tokenizer: {message}")
