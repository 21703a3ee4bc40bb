"""What OpenNMT-py and eole have in common."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from keras_deepnmt.errors import UserError
from keras_deepnmt.exchange.imported_model import ImportedModel
from keras_deepnmt.exchange.sinusoids import position_encoding, with_sines_first
from keras_deepnmt.exchange.vocabulary import Vocabulary, read_sentencepiece

PADDING, UNKNOWN, BEGIN, END = "<blank>", "<unk>", "<s>", "</s>"
PROJECTIONS = {
    "query": "linear_query",
    "key": "linear_keys",
    "value": "linear_values",
    "output": "final_linear",
}
# Transforms that change nothing when a text is translated.
_ONLY_IN_TRAINING = ("filtertoolong",)


def check_transforms(names: Sequence[str], place: object) -> None:
    """Refuses other changes of a text than those of SentencePiece."""
    others = [
        name
        for name in names
        if name not in ("sentencepiece", *_ONLY_IN_TRAINING)
    ]
    if others or "sentencepiece" not in names:
        raise UserError(
            f"{place}: `transforms` must be sentencepiece, since others cannot "
            f"be imported. Received: {', '.join(names) or 'none'}"
        )


def make_vocabulary(
    origin: Path, names: object, begin: str, special: Mapping[str, str]
) -> Vocabulary:
    """Returns the vocabulary of a side.

    Args:
        origin: the file, for errors.
        names: the piece of each id.
        begin: the token with which a target begins.
        special: other names of special tokens, such as `{"pad_token": "<p>"}`.

    Raises:
        UserError: if it is no list of pieces, or a special token is missing.
    """
    if (
        not isinstance(names, list)
        or not all(isinstance(name, str) for name in names)
        or len(set(names)) < len(names)
    ):
        raise UserError(f"{origin}: a vocabulary must be a list of pieces.")
    tokens = {
        "padding": special.get("pad_token", PADDING),
        "unknown": special.get("unk_token", UNKNOWN),
        "begin": begin,
        "end": special.get("eos_token", END),
    }
    for key, token in tokens.items():
        if token not in names:
            raise UserError(
                f"{origin}: a vocabulary lacks the {key} token {token}."
            )
    ids = {key: names.index(token) for key, token in tokens.items()}
    return Vocabulary(origin, names, **ids)


def read_sides(
    origin: Path,
    vocabulary: Mapping[str, object],
    special: Mapping[str, str],
    tokenizers: Sequence[Path],
) -> tuple[tuple[Vocabulary, ...], tuple[bytes, ...]]:
    """Returns the vocabularies of both sides, and their tokenizers.

    Args:
        origin: the file, for errors.
        vocabulary: the pieces of the sides `src` and `tgt`, and perhaps
            `decoder_start_token`.
        special: as in `make_vocabulary`.
        tokenizers: the SentencePiece models of both sides.
    """
    begin = vocabulary.get("decoder_start_token", BEGIN)
    vocabularies = tuple(
        make_vocabulary(origin, vocabulary.get(side), begin, special)
        for side in ("src", "tgt")
    )
    protos = tuple(
        side.tokenizer(read_sentencepiece(tokenizer))
        for side, tokenizer in zip(vocabularies, tokenizers, strict=True)
    )
    return vocabularies, protos


def imported_model(
    origin: Path,
    format: str,
    arguments: Mapping[str, object],
    weights: Mapping[str, np.ndarray],
    protos: Sequence[bytes],
    is_interleaved: bool,
) -> ImportedModel:
    """Returns the model, whose positions may have sines and cosines in turn."""
    width = weights["encoder_norm/gamma"].shape[0]
    arguments = {**arguments, "hidden_dim": width}
    if is_interleaved:
        weights = with_sines_first(weights, width)
        arguments["position_encoding"] = position_encoding(width)
    name = origin.stem if origin.is_file() else origin.name
    facts = {"name": name, "source": None, "target": None}
    return ImportedModel(
        str(origin), format, arguments, weights, *protos, facts=facts
    )


def positive_integer(value: object, key: str, origin: object) -> int:
    """Returns a size, and refuses what is none."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UserError(
            f"{origin}: `{key}` must be an integer, at least 1. Received: "
            f"{value!r}"
        )
    return value
