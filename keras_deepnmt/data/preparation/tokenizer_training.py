"""Trains a SentencePiece model with the special ids of `Tokenizer`."""

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sentencepiece import sentencepiece_model_pb2 as model_pb2

from keras_deepnmt.data.model_files import with_normalization
from keras_deepnmt.data.normalization import Normalization, load_normalization
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
    normalization: str = "nfkc",
    case: str = "kept",
    character_coverage: float = 1.0,
    max_sentences: int = 1_000_000,
    seed: int = 0,
    split_digits: bool = False,
    byte_fallback: bool = False,
    user_defined_symbols: Sequence[str] = (),
    required_chars: str = "",
) -> Tokenizer:
    """Trains a BPE or unigram tokenizer and writes its model.

    Args:
        texts: Sentences, or a list of paths of text files with one sentence
            per line. An iterable of sentences is read once, as a stream.
        output_file: The model file to write; it appears only when complete.
        vocabulary_size: Number of pieces, including the four special ones.
        model_type: `"bpe"` or `"unigram"`.
        normalization: What the tokenizer does to the characters of a text:
            `"nfkc"`, `"nfc"`, `"nmt_nfkc"`, `"identity"` or the path of a file
            of rules.
        case: How it reads upper-case letters: `"kept"`, as letters of their
            own, or `"factored"`, as lower-case ones after a symbol.
        character_coverage: Share of the characters of the text that get a
            piece, from 0.98 to 1. Lower it (0.9995) for large noisy corpora and
            for scripts with thousands of characters.
        max_sentences: Maximum number of sentences, drawn uniformly, that are
            kept in memory for training. It must be more than 100.
        seed: Seed of that draw.
        split_digits: Whether each digit is a piece of its own.
        byte_fallback: Whether a character without a piece is cut into the
            bytes of its UTF-8 code. 256 pieces then are bytes.
        user_defined_symbols: Texts that always are one piece, which no
            normalization changes.
        required_chars: Characters that get a piece in any case.

    Returns:
        The tokenizer.

    Raises:
        UserError: if the text does not allow a vocabulary of this size, or the
            normalization is unknown.
        ValueError: if `model_type` or `case` is unknown or `max_sentences` too
            small.

    Example:
    >>> tokenizer = train_tokenizer(["a rose is a rose"] * 9, "rose.model", 12)
    >>> tokenizer.vocabulary_size
    12
    """
    rule = load_normalization(normalization, case, user_defined_symbols)
    model = train_model(
        training_sentences(_read(texts), rule, user_defined_symbols),
        vocabulary_size,
        model_type,
        character_coverage=character_coverage,
        max_sentences=max_sentences,
        seed=seed,
        split_digits=split_digits,
        byte_fallback=byte_fallback,
        user_defined_symbols=user_defined_symbols,
        required_chars=required_characters(required_chars, rule),
    )
    return write_tokenizer(model, rule, output_file)


def required_characters(given: str, normalization: Normalization) -> str:
    """Returns the characters that get a piece in any case.

    Those of the steps are among them. No upper-case letter is left to read
    where case is factored.
    """
    steps = "".join(step.joining for step in normalization.steps)
    return (normalization.apply_rule(given) if steps else given) + steps


def write_tokenizer(
    model: bytes, normalization: Normalization, output_file: str | Path
) -> Tokenizer:
    """Writes the file of a tokenizer, whose model `train_model` made."""
    write_bytes(output_file, with_normalization(model, normalization))
    return Tokenizer(output_file)


def train_model(
    sentences: Iterable[str],
    vocabulary_size: int,
    model_type: str,
    *,
    character_coverage: float,
    max_sentences: int,
    seed: int,
    split_digits: bool,
    byte_fallback: bool,
    user_defined_symbols: Sequence[str],
    required_chars: str,
) -> bytes:
    """Trains a SentencePiece model, which does not change a text itself.

    `sentences` are those of `training_sentences`, and the other arguments and
    errors are those of `train_tokenizer`.
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
    sentences = _Sentences(sentences)
    sentencepiece.set_random_generator_seed(seed)
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            vocab_size=vocabulary_size,
            model_type=model_type,
            normalization_rule_name="identity",
            pad_id=PADDING_ID,
            unk_id=UNKNOWN_ID,
            bos_id=BEGIN_ID,
            eos_id=END_ID,
            hard_vocab_limit=True,
            character_coverage=character_coverage,
            max_sentence_length=_LONGEST_SENTENCE,
            input_sentence_size=max_sentences,
            shuffle_input_sentence=True,
            split_digits=split_digits,
            byte_fallback=byte_fallback,
            user_defined_symbols=list(user_defined_symbols),
            required_chars=required_chars,
            # Fixed: float sums of the unigram trainer depend on the threads.
            num_threads=16,
            minloglevel=2,
        )
    except RuntimeError as error:
        if sentences.failure is not None:
            raise sentences.failure from None
        raise _training_error(str(error), vocabulary_size) from error
    if model_type == "unigram":
        return _with_exact_sums(model.getvalue())
    return model.getvalue()


def _with_exact_sums(model: bytes) -> bytes:
    """Rounds the scores of a unigram model to multiples of 1/256.

    Sums of so many of them as a sentence has pieces are exact in float32. So
    "..." is cut alike by every version of SentencePiece, also by the older one
    in tensorflow-text: the sums of ".", ".." and "..", "." are equal, whatever
    comes before them, and do not depend on how each version rounds.
    """
    proto = model_pb2.ModelProto.FromString(model)
    for piece in proto.pieces:
        piece.score = round(piece.score * 256) / 256
    return proto.SerializeToString(deterministic=True)


def training_sentences(
    texts: Iterable[str],
    normalization: Normalization,
    user_defined_symbols: Sequence[str] = (),
) -> Iterator[str]:
    """Iterates over the sentences that SentencePiece learns pieces from.

    They are the texts as the tokenizer will read them, cut where SentencePiece
    would otherwise leave out the whole text or a part of it: at tabs and `▅`,
    in the names of its special pieces, and, at a space where there is one, at
    4,192 bytes. No piece is learned across a user-defined symbol.
    """
    symbols = sorted(user_defined_symbols, key=len, reverse=True)
    is_symbol = (
        re.compile("|".join(map(re.escape, symbols))) if symbols else None
    )
    for text in map(normalization.before, texts):
        for part in is_symbol.split(text) if is_symbol else [text]:
            for sentence in _CUTS.split(normalization.apply_rule(part)):
                if len(sentence) * 4 <= _LONGEST_SENTENCE:
                    yield sentence
                else:
                    yield from _cut(sentence)


# SentencePiece leaves out longer sentences. It has 16 bits for a place in a
# word, so the limit cannot just be removed.
_LONGEST_SENTENCE = 4192  # bytes
_CUTS = re.compile("[\t▅]|(?<=<)(?=(?:s|/s|unk|pad|0x[0-9A-F]{2})>)", re.ASCII)


def _cut(sentence: str) -> Iterator[str]:
    """Cuts a sentence so that no part has more bytes than the limit."""
    rest = sentence.encode()
    while len(rest) > _LONGEST_SENTENCE:
        end = rest.rfind(b" ", 1, _LONGEST_SENTENCE + 1)
        if end < 0:
            end = _LONGEST_SENTENCE
            while rest[end] & 0xC0 == 0x80:  # not the first byte of a character
                end -= 1
        yield rest[:end].decode()
        rest = rest[end:]
    yield rest.decode()


def _read(texts: Iterable[str | Path]) -> Iterator[str]:
    for text in texts:
        if isinstance(text, Path):
            with open(text, encoding="utf-8", newline="\n") as file:
                yield from (line.rstrip("\n") for line in file)
        else:
            yield text


class _Sentences:
    """Iterates over sentences and keeps an exception for the caller.

    SentencePiece replaces every exception by one of its own.
    """

    def __init__(self, sentences):
        self.sentences = sentences
        self.failure = None

    def __iter__(self):
        try:
            yield from self.sentences
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
