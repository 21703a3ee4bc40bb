"""A small Marian model in Hugging Face's layout, and its equations in NumPy."""

import json
import math
from functools import partial

import numpy as np
import sentencepiece
from safetensors.numpy import save_file

GERMAN = [
    "ein kleiner Hund läuft über die Straße",
    "zwei Hunde spielen im großen Garten",
    "der Mann trägt einen roten Hut",
    "eine Frau liest ein dickes Buch",
] * 5
ENGLISH = [
    "a small dog runs across the street",
    "two dogs play in the large garden",
    "the man wears a red hat",
    "a woman reads a thick book",
] * 5
TAGS = [">>eng<<", ">>fra<<"]
D, F, N, LAYERS = 8, 12, 2, 2
# Of the waves in Hugging Face's models.
EXPONENTS = 2 * np.arange(D // 2) / D


def write_folder(
    folder, shared=True, activation="swish", tied=True, seed=0, kind="unigram"
):
    """Writes the folder; returns its tensors."""
    folder.mkdir(parents=True)
    pieces = {}
    for side, texts, size in (
        ("source", GERMAN, 45),
        ("target", ENGLISH, 36),
    ):
        prefix = folder / side
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_prefix=str(prefix),
            vocab_size=size,
            model_type=kind,
            hard_vocab_limit=False,
            minloglevel=2,
        )
        prefix.with_suffix(".model").rename(folder / f"{side}.spm")
        prefix.with_suffix(".vocab").unlink()
        cut = load(folder, side).encode(texts[:3], out_type=str)
        # Not all that the model has: some were never seen in training.
        pieces[side] = sorted({piece for row in cut for piece in row})
    names = {
        "source": ["</s>", "<unk>", *TAGS, *pieces["source"], "<pad>"],
        "target": ["</s>", "<unk>", *pieces["target"]],
    }
    if shared:
        joint = dict.fromkeys(names["source"][:-1] + pieces["target"])
        names["source"] = names["target"] = [*joint, "<pad>"]
    else:
        missing = len(names["source"]) - len(names["target"]) - 1
        names["target"] += [f"<{n}>" for n in range(missing)] + ["<pad>"]
    for side, file in (("source", "vocab"), ("target", "target_vocab")):
        if side == "source" or not shared:
            table = {piece: number for number, piece in enumerate(names[side])}
            (folder / f"{file}.json").write_text(json.dumps(table))
    size = len(names["source"])
    config = {
        "model_type": "marian",
        "vocab_size": size,
        "decoder_vocab_size": size,
        "d_model": D,
        "encoder_layers": LAYERS,
        "decoder_layers": LAYERS,
        "encoder_attention_heads": N,
        "decoder_attention_heads": N,
        "encoder_ffn_dim": F,
        "decoder_ffn_dim": F,
        "activation_function": activation,
        "scale_embedding": True,
        "pad_token_id": size - 1,
        "decoder_start_token_id": size - 1,
        "eos_token_id": 0,
        "max_position_embeddings": 64,
        "share_encoder_decoder_embeddings": shared,
        "tie_word_embeddings": tied,
        "bad_words_ids": [[size - 1]],
        "num_beams": 4,
    }
    (folder / "config.json").write_text(json.dumps(config))
    tensors = draw_tensors(np.random.default_rng(seed), size, shared, tied)
    save_file(tensors, folder / "model.safetensors")
    return tensors


def load(folder, side):
    """The SentencePiece model of one side."""
    return sentencepiece.SentencePieceProcessor(
        model_file=str(folder / f"{side}.spm")
    )


def draw_tensors(random, size, shared, tied):
    """Random weights by their names in Hugging Face's layout."""
    tensors = {}

    def add(name, *shape, mean=0.0, scale=0.4):
        value = random.normal(mean, scale, shape).astype("float32")
        tensors[name] = value
        return value

    sides = ("encoder", "decoder")
    if shared:
        add("model.shared.weight", size, D)[-1] = 0.0
    else:
        for side in sides:
            add(f"model.{side}.embed_tokens.weight", size, D)[-1] = 0.0
    if not tied:
        add("lm_head.weight", size, D)
    add("final_logits_bias", 1, size)
    for side in sides:
        for number in range(LAYERS):
            layer = f"model.{side}.layers.{number}"
            attentions = ["self_attn", "encoder_attn"][: 1 + sides.index(side)]
            for attention in attentions:
                for part in ("q", "k", "v", "out"):
                    name = f"{layer}.{attention}.{part}_proj"
                    add(f"{name}.weight", D, D)
                    add(f"{name}.bias", D)
            for name, shape in (("fc1", (F, D)), ("fc2", (D, F))):
                add(f"{layer}.{name}.weight", *shape)
                add(f"{layer}.{name}.bias", shape[0])
            norms = [f"{attention}_layer_norm" for attention in attentions]
            for norm in (*norms, "final_layer_norm"):
                add(f"{layer}.{norm}.weight", D, mean=1.0)
                add(f"{layer}.{norm}.bias", D)
    return tensors


def logits(
    tensors,
    activation,
    source,
    target,
    exponents=EXPONENTS,
    epsilon=1e-5,
    pre_norm=False,
    decoder_layer=None,
):
    """The logits `(T, V)` of one pair of id rows, in float64.

    The waves have the frequencies 10,000 ** -exponents. A norm follows a stack
    if there are weights for it. In place of a decoder's self-attention may be
    another layer, a function of the weights, the block's number and the input.
    """
    t = {name: value.astype("float64") for name, value in tensors.items()}
    act = {
        "relu": lambda x: np.maximum(x, 0.0),
        "swish": lambda x: x / (1.0 + np.exp(-x)),
        # What Marian computed for gelu before version 1.12.3.
        "sigmoid gelu": lambda x: x / (1.0 + np.exp(-1.702 * x)),
        "gelu": lambda x: x * (1.0 + np.vectorize(math.erf)(x / 2**0.5)) / 2,
    }[activation]

    def dense(x, name):
        return x @ t[f"{name}.weight"].T + t[f"{name}.bias"]

    def norm(x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon)
        return x * t[f"{name}.weight"] + t[f"{name}.bias"]

    def embed(ids, side):
        name = "model.shared.weight"
        if name not in t:
            name = f"model.{side}.embed_tokens.weight"
        angles = np.arange(len(ids))[:, None] / 10_000**exponents
        waves = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
        return t[name][ids] * np.sqrt(D) + waves

    def attend(x, memory, name, causal):
        heads = []
        q = dense(x, f"{name}.q_proj")
        k = dense(memory, f"{name}.k_proj")
        v = dense(memory, f"{name}.v_proj")
        for n in range(N):
            part = slice(n * D // N, (n + 1) * D // N)
            scores = q[:, part] @ k[:, part].T / np.sqrt(D // N)
            if causal:
                later = np.triu(np.ones(scores.shape, bool), 1)
                scores = np.where(later, -np.inf, scores)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            heads.append(weights / weights.sum(-1, keepdims=True) @ v[:, part])
        return dense(np.concatenate(heads, axis=1), f"{name}.out_proj")

    def attend_self(name, causal, x):
        return attend(x, x, name, causal)

    def residual(x, sublayer, name):
        if pre_norm:
            return x + sublayer(norm(x, name))
        return norm(x + sublayer(x), name)

    def stack(x, side, memory=None):
        for number in range(LAYERS):
            layer = f"model.{side}.layers.{number}"
            name = f"{layer}.self_attn"
            attention = partial(attend_self, name, memory is not None)
            if memory is not None and decoder_layer is not None:
                attention = partial(decoder_layer, t, number + 1)
            x = residual(x, attention, f"{name}_layer_norm")
            if memory is not None:
                name = f"{layer}.encoder_attn"
                x = residual(
                    x,
                    lambda x, name=name: attend(x, memory, name, False),
                    f"{name}_layer_norm",
                )
            x = residual(
                x,
                lambda x, layer=layer: dense(
                    act(dense(x, f"{layer}.fc1")), f"{layer}.fc2"
                ),
                f"{layer}.final_layer_norm",
            )
        top = f"model.{side}.layer_norm"
        return norm(x, top) if f"{top}.weight" in t else x

    memory = stack(embed(source, "encoder"), "encoder")
    states = stack(embed(target, "decoder"), "decoder", memory)
    output = t.get("lm_head.weight", t.get("model.shared.weight"))
    if output is None:
        output = t["model.decoder.embed_tokens.weight"]
    return states @ output.T + t["final_logits_bias"]
