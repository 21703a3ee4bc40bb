"""Writes a plain Transformer as a folder of Hugging Face's MarianMT."""

import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_deepnmt.errors import UserError
from keras_deepnmt.exchange.engine_folders import (
    ENGINES,
    check_exportable,
    model_pieces,
    refuse_existing,
    write_engine_folder,
)
from keras_deepnmt.exchange.marian_hf import (
    ACTIVATIONS,
    BLOCKS,
    EPSILON_KEY,
    FILLING_KEY,
    FORMAT,
    STOPPING,
    load_marian,
)
from keras_deepnmt.exchange.plain_transformer import (
    check_plain,
    transformer_arrays,
)
from keras_deepnmt.exchange.vocabulary import NEVER
from keras_deepnmt.files import write_json, write_text
from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID, UNKNOWN_ID

if TYPE_CHECKING:
    from keras_deepnmt.translator import Translator

_ENGINE = ENGINES[FORMAT]
# Weights with two names in a folder whose sides have vocabularies of their own.
_BY_SIDE = {
    f"shared_embedding/{name}": [f"{side}_embedding/{name}" for side in sides]
    for name, sides in (
        ("embeddings", ("source", "target")),
        ("reverse_embeddings", ("target",)),
    )
}
# Names that MarianTokenizer knows, of the ids 0 to 3.
_SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")


def export_marian(
    translator: "Translator",
    directory: str | Path,
    sources: list[str] | None = None,
) -> dict[str, Any]:
    """Writes the model of a translator as a folder of MarianMT.

    `MarianMTModel.from_pretrained` and `MarianTokenizer.from_pretrained` of
    Transformers load it; `translate.py` in it translates lines with them.
    Every id is that of this package. The folder appears when its weights, read
    again by `load_marian`, are those of the model, and, where Transformers and
    PyTorch are installed, a fresh process has computed the same with them: the
    same greedy translations, and log-probabilities within 1e-4.

    Transformers adds 1e-5 to the variance in each norm, whatever
    `layer_norm_epsilon` is, and divides log-probabilities by a power of the
    length, as this package does with `length_offset=0`.

    Args:
        translator: The translator; its search options become those of the
            folder.
        directory: The folder to write; it must not exist yet.
        sources: Golden sentences. Defaults to random pieces and special
            characters.

    Returns:
        What the check found: `sentences`, `equal` greedy translations and the
        `largest_difference` of a log-probability, compared with this package;
        `is_checked` is `False` where Transformers or PyTorch is not installed.

    Raises:
        UserError: if the model, its tokenizers or its search options have what
            MarianMT lacks, the folder exists, or what was written does not
            compute the same.

    Example:
    >>> found = export_marian(translator, "marian/demo")
    >>> found["equal"] == found["sentences"]
    True
    """
    directory = Path(directory)
    refuse_existing(directory)
    check_plain(translator.model, _ENGINE.name)
    check_exportable(translator)
    _check(translator)

    def write(folder):
        filling = _write_tokenizers(translator, folder)
        _write_model(translator, folder, filling)
        _write_search(translator, folder)
        options = translator.options
        return {
            "max_source_length": translator.max_source_length,
            "length_ratio": options.max_length_ratio,
            "extra_tokens": options.max_extra_tokens,
            # Pieces end words, so that a text ends with a space.
            "word_ends": translator.target_tokenizer.marks_word_ends,
        }

    def check(folder):
        _check_weights(translator.model, folder, directory)

    return write_engine_folder(
        _ENGINE, translator, directory, write, sources, check=check
    )


def _check(translator):
    config = translator.model.get_config()
    rules = {
        # The norms follow the sub-layers in MarianMT's code.
        "normalize_first": config["normalize_first"] is False,
        "activation": config["activation"] in ACTIVATIONS.values(),
        "embedding_scale": config["embedding_scale"]
        in (None, config["hidden_dim"] ** 0.5),
        "encode_end": config["encode_end"],
    }
    activations = ", ".join(dict.fromkeys(ACTIVATIONS.values()))
    needed = {
        "normalize_first": "False, since its norms follow each sub-layer",
        "activation": f"one of {activations}",
        "embedding_scale": "None, the square root of the width",
        "encode_end": "True",
    }
    for name, is_met in rules.items():
        if not is_met:
            raise UserError(
                f"MarianMT cannot compute this model: `{name}` must be "
                f"{needed[name]}. Received: {config[name]}. Train such a "
                "model, or export for CTranslate2 or TensorFlow Serving."
            )
    if translator.options.patience not in STOPPING:
        raise UserError(
            "MarianMT can stop a search as this package does with a "
            "`patience` of 0 or 1 alone. Received: "
            f"patience={translator.options.patience:g}"
        )
    for tag in translator.source_tokenizer.user_defined_symbols:
        if tag.startswith(">>") and f"▁{tag}" not in _pieces_of(translator):
            raise UserError(
                f"The source tokenizer has the tag {tag}, which "
                "MarianTokenizer reads as another token than this package. "
                "Export for CTranslate2 or TensorFlow Serving."
            )
    for side in ("source", "target"):
        names = _names(getattr(translator, f"{side}_tokenizer"))
        if len(set(names)) < len(names):
            raise UserError(
                f"The {side} vocabulary must have no other piece with the name "
                f"of a special token: {', '.join(_SPECIAL)}."
            )


def _pieces_of(translator):
    return set(model_pieces(translator.source_tokenizer))


def _names(tokenizer):
    """The pieces with the names that MarianTokenizer looks for."""
    pieces = model_pieces(tokenizer)[len(_SPECIAL) :]
    # A tag, which MarianTokenizer cuts off before SentencePiece.
    tags = [p[1:] if p.startswith("▁>>") else p for p in pieces]
    return [
        *_SPECIAL,
        *(
            t if t.endswith("<<") else p
            for t, p in zip(tags, pieces, strict=True)
        ),
    ]


def _write_tokenizers(translator, folder):
    """Writes the vocabularies; returns how many pieces fill up each file."""
    sides = [
        getattr(translator, f"{s}_tokenizer") for s in ("source", "target")
    ]
    shared = translator.model.get_config()["share_embeddings"]
    shared = shared and sides[0].has_pieces_of(sides[1])
    files = ["vocab.json"] if shared else ["vocab.json", "target_vocab.json"]
    size = max(tokenizer.vocabulary_size for tokenizer in sides)
    filling = {}
    for file, tokenizer in zip(files, sides, strict=False):
        names = _names(tokenizer)
        # Transformers makes both embeddings with the size of the source.
        filling[file] = size - len(names)
        names += _unused_names(filling[file], names)
        table = {name: number for number, name in enumerate(names)}
        # In ASCII: MarianTokenizer reads it in the encoding of the system.
        write_text(folder / file, json.dumps(table) + "\n")
    padding, unknown, begin, end = _SPECIAL
    content = {
        "tokenizer_class": "MarianTokenizer",
        "separate_vocabs": not shared,
        "pad_token": padding,
        "unk_token": unknown,
        # So that `skip_special_tokens` skips it; a translation begins with it.
        "bos_token": begin,
        "eos_token": end,
        "model_max_length": translator.max_source_length,
        "clean_up_tokenization_spaces": False,
    }
    write_json(folder / "tokenizer_config.json", content)
    return filling


def _unused_names(number, names):
    known = set(names)
    free = (f"<unused{n}>" for n in itertools.count())
    return list(itertools.islice((n for n in free if n not in known), number))


def _write_model(translator, folder, filling):
    from safetensors.numpy import save_file

    model = translator.model
    config = model.get_config()
    shared = len(filling) == 1
    size = max(model.source_vocabulary_size, model.target_vocabulary_size)
    sizes = {
        f"{side}_{name}": config[ours]
        for side in ("encoder", "decoder")
        for name, ours in (
            ("layers", f"num_{side}_layers"),
            ("attention_heads", "num_heads"),
            ("ffn_dim", "intermediate_dim"),
        )
    }
    names = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    content = {
        "model_type": FORMAT.partition("-")[0],
        "architectures": ["MarianMTModel"],
        "torch_dtype": "float32",
        "vocab_size": size,
        "decoder_vocab_size": size,
        FILLING_KEY: filling,
        "share_encoder_decoder_embeddings": shared,
        "tie_word_embeddings": model.target_embedding.tie_weights,
        "d_model": config["hidden_dim"],
        **sizes,
        "num_hidden_layers": config["num_encoder_layers"],
        "activation_function": names[config["activation"]],
        "dropout": config["dropout"],
        "attention_dropout": config["attention_dropout"],
        "activation_dropout": 0.0,
        "scale_embedding": True,
        # Transformers does not read it: its norms always add 1e-5.
        EPSILON_KEY: config["layer_norm_epsilon"],
        "max_position_embeddings": model.max_length,
        "is_encoder_decoder": True,
        **_token_ids(),
    }
    write_json(folder / "config.json", content)
    tensors = _tensors(model, shared, size)
    save_file(
        {name: np.ascontiguousarray(x) for name, x in tensors.items()},
        folder / "model.safetensors",
        {"format": "pt"},
    )


def _token_ids():
    return {
        "pad_token_id": PADDING_ID,
        "bos_token_id": BEGIN_ID,
        "eos_token_id": END_ID,
        "decoder_start_token_id": BEGIN_ID,
        "forced_eos_token_id": END_ID,
    }


def _write_search(translator, folder):
    options = translator.options
    never = [PADDING_ID, BEGIN_ID]
    if not options.allow_unknown:
        never.append(UNKNOWN_ID)
    content = {
        **_token_ids(),
        "bad_words_ids": [[token] for token in never],
        "num_beams": options.num_beams,
        "length_penalty": options.length_penalty,
        "max_length": translator.model.max_length,
    }
    if options.num_beams > 1:
        content["early_stopping"] = STOPPING[options.patience]
    if options.min_length:
        content["min_new_tokens"] = options.min_length
    if options.no_repeat_ngram_size:
        content["no_repeat_ngram_size"] = options.no_repeat_ngram_size
    write_json(folder / "generation_config.json", content)


def _tensors(model, shared, size):
    """Returns the weights by the names of MarianMT."""
    arrays = transformer_arrays(model)
    tensors = {}
    if shared:
        tensors["model.shared.weight"] = arrays["source_embedding"]
    for side, name in (("encoder", "source"), ("decoder", "target")):
        if not shared:
            tensors[f"model.{side}.embed_tokens.weight"] = _filled(
                arrays[f"{name}_embedding"], size
            )
        # Its own waves have other lengths.
        tensors[f"model.{side}.embed_positions.weight"] = arrays[
            f"{side}.positions"
        ]
    if not model.target_embedding.tie_weights:
        tensors["lm_head.weight"] = _filled(arrays["output"], size)
    no_bias = np.zeros(model.target_vocabulary_size, "float32")
    bias = arrays.get("output_bias", no_bias)
    tensors["final_logits_bias"] = _filled(bias, size, NEVER)[None]
    for side in BLOCKS:
        for number in range(len(getattr(model, f"{side}_blocks"))):
            tensors |= _block_tensors(arrays, side, number)
    return tensors


def _block_tensors(arrays, side, number):
    names, found = BLOCKS[side], {}
    ours, theirs = f"{side}.{number}", f"model.{side}.layers.{number}"
    dense = {
        f"feed_forward.{part}": layer
        for part, layer in names.feed_forward.items()
    }
    for part, attention in names.attentions.items():
        for inner, projection in names.projections.items():
            dense[f"{part}.{inner}"] = f"{attention}.{projection}"
    for part, layer in dense.items():
        # PyTorch keeps the matrix with a row for each output.
        kernel = arrays[f"{ours}.{part}.kernel"].T
        found[f"{theirs}.{layer}.weight"] = kernel
        found[f"{theirs}.{layer}.bias"] = arrays[f"{ours}.{part}.bias"]
    for part, norm in names.norms.items():
        for kind, weight in (("gamma", "weight"), ("beta", "bias")):
            found[f"{theirs}.{norm}.{weight}"] = arrays[
                f"{ours}.{part}.norm.{kind}"
            ]
    return found


def _filled(rows, size, value=0.0):
    """Adds rows for the pieces that fill up a vocabulary."""
    missing = [(0, size - len(rows)), *[(0, 0)] * (rows.ndim - 1)]
    return np.pad(rows, missing, constant_values=value)


def _check_weights(model, folder, shown):
    """Reads the folder again, and compares its weights."""
    found = load_marian(folder).weights
    for weight in model.weights:
        paths = [weight.path]
        if weight.path not in found:
            paths = _BY_SIDE.get(weight.path, paths)
        values = [found.get(path) for path in paths]
        if not all(np.array_equal(each, weight.numpy()) for each in values):
            raise UserError(
                f"{shown}: {weight.path} is not read again as it was written. "
                "Nothing was written. Check the disk, and run again."
            )
