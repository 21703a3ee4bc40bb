"""What OpenNMT-py and eole have in common."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_deepnmt.data.merge_codes import MergeOptions
from keras_deepnmt.errors import UserError
from keras_deepnmt.exchange.imported_model import ImportedModel
from keras_deepnmt.exchange.merge_files import read_codes, read_frequent_pieces
from keras_deepnmt.exchange.sinusoids import position_encoding, with_sines_first
from keras_deepnmt.exchange.vocabulary import Vocabulary, read_sentencepiece

PADDING, UNKNOWN, BEGIN, END = "<blank>", "<unk>", "<s>", "</s>"
_SIDES = ("src", "tgt")
PROJECTIONS = {
    "query": "linear_query",
    "key": "linear_keys",
    "value": "linear_values",
    "output": "final_linear",
}
# Transforms that cut a text, and what their files are.
_TOKENIZERS = {"sentencepiece": "SentencePiece model", "bpe": "file of codes"}
# Transforms that change nothing when a text is translated.
_ONLY_IN_TRAINING = ("filtertoolong",)


def text_transforms(names: Sequence[str]) -> list[str]:
    """Returns the transforms that change a text when it is translated."""
    return [name for name in names if name not in _ONLY_IN_TRAINING]


def check_transforms(names: Sequence[str], place: object) -> str:
    """Returns the transform that cuts a text; refuses other changes of it."""
    kept = text_transforms(names)
    if len(kept) != 1 or kept[0] not in _TOKENIZERS:
        raise UserError(
            f"{place}: `transforms` must be {' or '.join(_TOKENIZERS)}, since "
            f"others cannot be imported. Received: {', '.join(names) or 'none'}"
        )
    return kept[0]


def read_tokenizers(
    transform: str,
    options: Mapping[str, Any],
    are_shared: bool,
    place: Path,
    given: Sequence[str | Path | None],
    stripped: str,
) -> list[Path | MergeOptions]:
    """Returns how the texts of both sides are cut, for `read_sides`.

    `transform` is what `check_transforms` returns, and `options` are its
    options, such as `src_subword_model`; the files that they name are beside
    `place`, the file with the options. By `are_shared` (`share_vocab`) the
    target side has the source's. `given` are files in place of those of the
    options, and `stripped` the characters that the toolkit drops at the ends of
    a line.
    """
    folder = place.parent
    frequent: list[list[str]] = [[], []]
    if transform == "bpe":
        frequent = [_frequent_pieces(options, side, folder) for side in _SIDES]
    else:
        for side in _SIDES:
            key = f"{side}_vocab_threshold"
            if options.get(f"{side}_subword_vocab") and options.get(key):
                raise UserError(
                    f"{place}: `{key}` must be 0, since others cannot be "
                    f"imported. Received: {options[key]}"
                )
    names = [options.get(f"{side}_subword_model") for side in _SIDES]
    if are_shared and names[0] and frequent[0] == frequent[1]:
        names[1] = names[0]  # as both toolkits do
    found: list[Path | MergeOptions] = []
    for side, own, name, pieces in zip(
        _SIDES, given, names, frequent, strict=True
    ):
        if own is None and not name:
            raise UserError(
                f"{place}: `{side}_subword_model` names no "
                f"{_TOKENIZERS[transform]}. Give it by --source-tokenizer and "
                "--target-tokenizer."
            )
        file = Path(own or folder / Path(name).name)
        if transform == "bpe":
            found.append(
                MergeOptions(
                    **read_codes(file), vocabulary=pieces, stripped=stripped
                )
            )
        else:
            found.append(file)
    return found


def _frequent_pieces(options, side, folder):
    """Returns the pieces to which merges are restricted; none for all."""
    name = options.get(f"{side}_subword_vocab")
    threshold = options.get(f"{side}_vocab_threshold") or 0
    if not name or threshold <= 0:
        return []
    return read_frequent_pieces(folder / Path(name).name, threshold)


def make_vocabulary(
    origin: Path, names: object, begin: str, special: Mapping[str, str]
) -> Vocabulary:
    """Returns the vocabulary of a side, from the pieces in order of their ids.

    `begin` is the token with which a target begins. `special` has other names
    of special tokens, such as `{"pad_token": "<p>"}`. `origin` is the file, for
    errors.
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
    tokenizers: Sequence[Path | MergeOptions],
) -> tuple[tuple[Vocabulary, ...], tuple[bytes, ...]]:
    """Returns the vocabularies of both sides, and their tokenizers.

    `vocabulary` has the pieces of the sides `src` and `tgt`, and perhaps
    `decoder_start_token`; `origin` and `special` are as in `make_vocabulary`.
    `tokenizers` are the SentencePiece models of both sides, or codes.
    """
    begin = vocabulary.get("decoder_start_token", BEGIN)
    vocabularies = tuple(
        make_vocabulary(origin, vocabulary.get(side), begin, special)
        for side in _SIDES
    )
    protos = tuple(
        side.merge_tokenizer(tokenizer)
        if isinstance(tokenizer, MergeOptions)
        else side.tokenizer(read_sentencepiece(tokenizer))
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
