"""The vocabularies of Marian: SentencePiece models, and lists of pieces."""

from pathlib import Path

import yaml
from sentencepiece import sentencepiece_model_pb2 as model_pb2

from keras_deepnmt.errors import UserError
from keras_deepnmt.exchange.vocabulary import Vocabulary, read_sentencepiece
from keras_deepnmt.json_files import read_json

_SUFFIXES = (".yml", ".yaml")
# The names that each special piece may have; the last is that of Nematus.
_NAMES = {"end": ("</s>", "eos"), "unknown": ("<unk>", "UNK")}
_MOST_BYTES = 100_000_000


def read_marian_vocabulary(file: Path, size: int) -> Vocabulary:
    """Reads a vocabulary of Marian, for a model with `size` pieces.

    The file is a SentencePiece model, or has pieces with their ids as YAML
    (`.yml`) or JSON (`.json`). Pieces of such a list after the first `size`
    have no weights, and are left out.
    """
    if file.suffix == ".json":
        names = _in_order(read_json(file, dict[str, int]), file)[:size]
    elif file.suffix in _SUFFIXES:
        names = _in_order(_read_yaml_pieces(file), file)[:size]
    else:
        model = model_pb2.ModelProto.FromString(read_sentencepiece(file))
        names = [piece.piece for piece in model.pieces]
    special = {}
    for kind, known in _NAMES.items():
        found = [name for name in known if name in names]
        if not found:
            raise UserError(f"{file}: must have the piece {known[0]}.")
        special[kind] = names.index(found[0])
    return Vocabulary(file, names, None, begin=None, **special)


def _in_order(ids, file):
    names = sorted(ids, key=ids.__getitem__)
    if not names or [ids[name] for name in names] != list(range(len(names))):
        raise UserError(
            f"{file}: must map pieces to the ids from 0 on, each once."
        )
    return names


def _read_yaml_pieces(file):
    """Reads lines such as `"▁der": 7`.

    They are as many as a vocabulary has pieces, too many for a reader of YAML
    that limits what a stranger's file may cost.
    """
    content = file.read_bytes()
    if len(content) > _MOST_BYTES:
        raise UserError(f"{file}: must have at most {_MOST_BYTES:,} bytes.")
    try:
        lines = content.decode().split("\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: not UTF-8 at byte {error.start}.") from error
    ids: dict[str, int] = {}
    key = None
    for number, line in enumerate(lines, start=1):
        line = line.rstrip("\r")
        if line.startswith("? "):  # a long key, whose value is the next line
            key = line[2:]
            continue
        if not line or line.startswith(("#", "---")):
            continue
        name, _, value = line.rpartition(":")
        name = _scalar(key if key is not None else name)
        key = None
        if name is None or name in ids or not value.strip().isdecimal():
            raise UserError(
                f"{file}, line {number}: must be a piece and its id, each "
                f"piece once. Received: {line[:60]!r}"
            )
        ids[name] = int(value)
    return ids


def _scalar(text):
    """Returns the text of a scalar of YAML; `None` if it is damaged."""
    quote = text[:1]
    if quote not in ("'", '"'):
        return text
    if len(text) < 2 or text[-1] != quote:
        return None
    if quote == "'":
        return text[1:-1].replace("''", "'")
    if "\\" not in text:
        return text[1:-1]
    try:
        found = yaml.load(text, yaml.BaseLoader)
    except yaml.YAMLError:
        return None
    return found if isinstance(found, str) else None
