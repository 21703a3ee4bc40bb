"""Models around `torch.nn.Transformer`, described by a YAML file.

PyTorch saves the weights alone. The YAML file beside them says what they do
not: which modules embed and project, the positions, the norms and the
vocabularies.
"""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pydantic

from keras_deepnmt.errors import UserError
from keras_deepnmt.exchange.embedding_weights import embedding_weights
from keras_deepnmt.exchange.imported_model import ImportedModel
from keras_deepnmt.exchange.named_tensors import NamedTensors
from keras_deepnmt.exchange.position_tables import is_near
from keras_deepnmt.exchange.sinusoids import (
    position_encoding,
    sinusoids,
    with_sines_first,
)
from keras_deepnmt.exchange.tensor_files import read_tensor_file
from keras_deepnmt.exchange.vocabulary import (
    Vocabulary,
    read_pieces,
    read_sentencepiece,
)
from keras_deepnmt.json_files import check_form
from keras_deepnmt.suggestions import did_you_mean
from keras_deepnmt.yaml_files import read_yaml

FORMAT = "torch-transformer"
_NORMS = {
    "encoder": ("attention", "feed_forward"),
    "decoder": ("attention", "cross_attention", "feed_forward"),
}


class _Side(pydantic.BaseModel, extra="forbid"):
    """The vocabulary of a side."""

    pieces: str
    sentencepiece: str | None = None
    padding: str | None = None
    unknown: str | None = None
    begin: str
    end: str


class _Description(pydantic.BaseModel, extra="forbid"):
    """The content of the YAML file; its keys are described in the docs."""

    format: Literal["torch-transformer"]
    weights: str
    state_dict: str | None = None
    transformer: str
    source_embedding: str
    target_embedding: str
    output: str
    num_heads: int
    activation: Literal["relu", "gelu"]
    normalize_first: bool
    final_norm: bool = True
    layer_norm_epsilon: float = 1e-5
    bias: bool = True
    scale_embeddings: bool
    positions: Literal["interleaved", "halves", "learned"] | None
    position_tables: list[str] = []
    max_length: int = 1024
    dropout: float = 0.1
    source_begin: bool
    source_end: bool
    ignored: list[str] = []
    source: _Side
    target: _Side


def is_torch_transformer(file: Path) -> bool:
    """Whether a file is of this format."""
    if file.suffix not in (".yaml", ".yml") or not file.is_file():
        return False
    content, _ = read_yaml(file)
    return isinstance(content, dict) and content.get("format") == FORMAT


def load_torch_transformer(
    path: str | Path,
    source_tokenizer: str | Path | None = None,
    target_tokenizer: str | Path | None = None,
) -> ImportedModel:
    """Reads a model around `torch.nn.Transformer`.

    Its logits and ids are those of PyTorch, at the ids of this package.

    Args:
        path: the YAML file that describes the model. Other files that it names
            are in its folder.
        source_tokenizer: SentencePiece model in place of the file that
            `source.sentencepiece` names.
        target_tokenizer: SentencePiece model in place of the file that
            `target.sentencepiece` names.

    Returns:
        The model and its tokenizers.

    Raises:
        UserError: if a file is missing or damaged, the vocabularies do not fit
            the weights, or the weights are of another model.

    Example:
    >>> from keras_deepnmt.exchange import load_torch_transformer
    >>> load_torch_transformer("model.yaml").arguments["num_encoder_layers"]
    3
    """
    file = Path(path)
    given = _read_description(file)
    folder = file.parent
    vocabularies = tuple(
        _vocabulary(folder, getattr(given, side), begins_texts)
        for side, begins_texts in (
            ("source", given.source_begin),
            ("target", False),
        )
    )
    weights_file = folder / given.weights
    tensors = NamedTensors(
        read_tensor_file(weights_file, given.state_dict), weights_file
    )
    weights, arguments = _model(given, tensors, vocabularies)
    tensors.ignore(*given.ignored)
    tensors.refuse_others()
    protos = [
        _tokenizer(folder, getattr(given, side), vocabulary, tokenizer)
        for side, vocabulary, tokenizer in zip(
            ("source", "target"),
            vocabularies,
            (source_tokenizer, target_tokenizer),
            strict=True,
        )
    ]
    return ImportedModel(
        str(file),
        FORMAT,
        arguments,
        weights,
        *protos,
        facts={"name": file.stem, "source": None, "target": None},
    )


def _read_description(file):
    try:
        content, _ = read_yaml(file)
    except OSError as error:
        raise UserError(
            f"{file}: cannot be read ({error.strerror})."
        ) from error
    check_form(content, file, dict[str, Any])
    _refuse_unknown(content, _Description, file, "")
    for side in ("source", "target"):
        if isinstance(content.get(side), dict):
            _refuse_unknown(content[side], _Side, file, f"{side}.")
    check_form(content, file, _Description)
    return _Description(**content)


def _refuse_unknown(content, form, file, prefix):
    for key in content:
        if key not in form.model_fields:
            raise UserError(
                f"{file}: `{prefix}{key}` is no key of this format."
                f"{did_you_mean(str(key), form.model_fields)}"
            )


def _vocabulary(folder, side, begins_texts):
    file = folder / side.pieces
    names = read_pieces(file)
    ids = {}
    for key in ("padding", "unknown", "begin", "end"):
        piece = getattr(side, key)
        if piece is not None and piece not in names:
            raise UserError(
                f"{file}: lacks the piece of `{key}`. Received: {piece}"
            )
        ids[key] = None if piece is None else names.index(piece)
    return Vocabulary(file, names, **ids, begins_texts=begins_texts)


def _tokenizer(folder, side, vocabulary, tokenizer):
    if tokenizer is None and side.sentencepiece is None:
        return vocabulary.character_tokenizer()
    file = Path(tokenizer or folder / side.sentencepiece)
    return vocabulary.tokenizer(read_sentencepiece(file))


def _model(given, tensors, vocabularies):
    """Returns the weights by path and the arguments of `Transformer`."""
    source, target = (
        tensors.matrix(f"{name}.weight")
        for name in (given.source_embedding, given.target_embedding)
    )
    width = source.shape[1]
    weights, arguments = embedding_weights(
        source,
        target,
        tensors.matrix(f"{given.output}.weight"),
        tensors.take_if_there(f"{given.output}.bias"),
        vocabularies,
    )
    prefix = f"{given.transformer}." if given.transformer else ""
    first = tensors.matrix(f"{prefix}encoder.layers.0.linear1.weight")
    for side in ("encoder", "decoder"):
        layers = f"{prefix}{side}.layers."
        count = arguments[f"num_{side}_layers"] = tensors.count(layers)
        for number in range(count):
            weights |= _block(tensors, side, number, f"{layers}{number}", given)
        if given.final_norm:
            name = f"{prefix}{side}.norm"
            weights |= tensors.norm(name, f"{side}_norm", given.bias)
    arguments |= dict(
        hidden_dim=width,
        intermediate_dim=len(first),
        num_heads=given.num_heads,
        position_encoding=None,
        dropout=given.dropout,
        attention_dropout=given.dropout,
        activation=given.activation,
        layer_norm_epsilon=given.layer_norm_epsilon,
        normalize_first=given.normalize_first,
        final_norm=given.final_norm,
        key_bias=True,
        max_length=given.max_length,
        encode_end=given.source_end,
    )
    if not given.scale_embeddings:
        arguments["embedding_scale"] = 1.0
    if given.positions is None and given.position_tables:
        raise UserError(
            f"{tensors.origin}: `position_tables` must be empty with "
            f"`positions: null`. Received: {given.position_tables}. Name the "
            "kind in `positions`, or, if the model does not use the tables, "
            "list them in `ignored`."
        )
    tables = [_table_of(tensors, name, width) for name in given.position_tables]
    if given.positions == "learned":
        arguments |= _learned_positions(given, tables, weights)
    elif given.positions is not None:
        arguments["position_encoding"] = position_encoding(width)
        for name, table in zip(given.position_tables, tables, strict=True):
            _check_table(given.positions, tensors.origin, name, table)
        if given.positions == "interleaved":
            weights = with_sines_first(weights, width)
    return weights, arguments


def _table_of(tensors, name, width):
    """A table of positions, which may have an axis for the batch."""
    table = tensors.take(name)
    if table.ndim < 2 or table.shape[-1] != width:
        raise UserError(
            f"{tensors.origin}: the table of positions {name} must have "
            f"{width} columns, as the model. Received: shape "
            f"{tuple(table.shape)}. Name another tensor in `position_tables`."
        )
    return table.reshape(-1, width)


def _block(tensors, side, number, theirs, given):
    ours = f"{side}_block_{number + 1}"
    found = {}
    attentions = {"attention": "self_attn"}
    if side == "decoder":
        attentions["cross_attention"] = "multihead_attn"
    for name, attention in attentions.items():
        found |= _attention(
            tensors, f"{theirs}.{attention}", f"{ours}/{name}", given.bias
        )
    for layer, part in (("linear1", "intermediate"), ("linear2", "output")):
        found |= tensors.dense(
            f"{theirs}.{layer}", f"{ours}/feed_forward/{part}", given.bias
        )
    for place, name in enumerate(_NORMS[side], start=1):
        found |= tensors.norm(
            f"{theirs}.norm{place}",
            f"{ours}/{name}_residual/layer_norm",
            given.bias,
        )
    return found


def _attention(tensors, theirs, ours, has_bias):
    """PyTorch has the projections of queries, keys and values in one matrix."""
    found = tensors.dense(f"{theirs}.out_proj", f"{ours}/output", has_bias)
    together = tensors.matrix(f"{theirs}.in_proj_weight")
    bias = np.zeros(len(together), "float32")
    if has_bias:
        bias = tensors.take(f"{theirs}.in_proj_bias")
    for name, matrix, part in zip(
        ("query", "key", "value"),
        np.array_split(together, 3),
        np.array_split(bias, 3),
        strict=True,
    ):
        found[f"{ours}/{name}/kernel"] = matrix.T
        found[f"{ours}/{name}/bias"] = part
    return found


def _check_table(order, origin, name, table):
    """Refuses a table of other positions than the description says."""
    expected = sinusoids(*table.shape, order)
    if not is_near(table, expected):
        difference = np.abs(table - expected).max()
        raise UserError(
            f"{origin}: {name} has other values than `positions: {order}`; "
            f"they differ by up to {difference:.2g}."
        )


def _learned_positions(given, tables, weights):
    """Adds the tables to the weights; returns arguments."""
    if len(tables) not in (1, 2):
        raise UserError(
            "`position_tables` must name one tensor for both sides, or that of "
            "the source and that of the target, for learned positions. "
            f"Received: {given.position_tables}"
        )
    if len(tables[0]) != len(tables[-1]):
        raise UserError(
            "`position_tables` must name tables of equal length. Received: "
            f"{len(tables[0])} and {len(tables[1])}"
        )
    names = ("position_encoding", "target_position_encoding")
    for name, table in zip(names, tables, strict=False):
        weights[f"{name}/table/embeddings"] = table
    length = len(tables[0])
    layer = {"max_length": length, "add_to_inputs": True}
    return {
        "position_encoding": {"LearnedPositionEmbedding": layer},
        "share_position_encoding": len(tables) == 1,
        "max_length": min(given.max_length, length),
    }
