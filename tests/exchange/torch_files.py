"""A small model around `torch.nn.Transformer`: its files, and its equations in
NumPy. PyTorch itself is not needed."""

import math

import numpy as np
import yaml
from safetensors.numpy import save_file

D, F, N, LAYERS = 8, 12, 2, 2
SOURCE = ["<unk>", "<pad>", "<bos>", "<eos>", " ", *"abcdeghiklmnoprstu"]
TARGET = ["<unk>", "<pad>", "<bos>", "<eos>", *"edcba", " ", *"ghiklmn"]
SPECIAL = {
    "unknown": "<unk>",
    "padding": "<pad>",
    "begin": "<bos>",
    "end": "<eos>",
}


def write_model(folder, *, tied=False, seed=0, **changes):
    """Writes the YAML file and the others; returns it and the tensors."""
    folder.mkdir(parents=True, exist_ok=True)
    description = {
        "format": "torch-transformer",
        "weights": "model.safetensors",
        "transformer": "transformer",
        "source_embedding": "source",
        "target_embedding": "target",
        "output": "generator",
        "num_heads": N,
        "activation": "relu",
        "normalize_first": False,
        "scale_embeddings": True,
        "positions": "interleaved",
        "source_begin": True,
        "source_end": True,
        "source": {"pieces": "source.txt", **SPECIAL},
        "target": {"pieces": "target.txt", **SPECIAL},
        **changes,
    }
    for name, pieces in (("source", SOURCE), ("target", TARGET)):
        (folder / f"{name}.txt").write_text("\n".join(pieces) + "\n")
    sizes = len(SOURCE), len(TARGET)
    random = np.random.default_rng(seed)
    tensors = make_tensors(random, description, tied, sizes)
    if description["weights"].endswith(".npz"):
        np.savez(folder / description["weights"], **tensors)
    else:
        save_file(tensors, folder / description["weights"])
    file = folder / "model.yaml"
    file.write_text(yaml.safe_dump(description))
    return file, tensors


def make_tensors(random, description, tied, sizes):
    tensors = {}
    num_source, num_target = sizes

    def add(name, *shape, mean=0.0):
        value = random.normal(mean, 0.4, shape).astype("float32")
        tensors[name] = value
        return value

    def linear(name, rows, columns, weight="weight", bias="bias"):
        add(f"{name}.{weight}", rows, columns)
        add(f"{name}.{bias}", rows)

    def norm(name):
        add(f"{name}.weight", D, mean=1.0)
        add(f"{name}.bias", D)

    add("source.weight", num_source, D)
    add("target.weight", num_target, D)
    linear("generator", num_target, D)
    if tied:
        tensors["generator.weight"] = tensors["target.weight"].copy()
    for name in description.get("position_tables", []):
        add(name, 11, 1, D)
    for side, attentions in (
        ("encoder", ["self_attn"]),
        ("decoder", ["self_attn", "multihead_attn"]),
    ):
        for number in range(LAYERS):
            layer = f"transformer.{side}.layers.{number}"
            for name in attentions:
                attention = f"{layer}.{name}"
                linear(attention, 3 * D, D, "in_proj_weight", "in_proj_bias")
                linear(f"{attention}.out_proj", D, D)
            linear(f"{layer}.linear1", F, D)
            linear(f"{layer}.linear2", D, F)
            for place in range(1, len(attentions) + 2):
                norm(f"{layer}.norm{place}")
        if description.get("final_norm", True):
            norm(f"transformer.{side}.norm")
    return tensors


def logits(tensors, description, source, target):
    """The logits `(T, V)` of one pair of id rows, in float64."""
    t = {name: value.astype("float64") for name, value in tensors.items()}
    activations = {
        "relu": lambda x: np.maximum(x, 0.0),
        "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / 2**0.5)) / 2,
    }
    activation = activations[description.get("activation", "relu")]
    norm_first = description.get("normalize_first", False)
    epsilon = description.get("layer_norm_epsilon", 1e-5)

    def dense(x, name):
        return x @ t[f"{name}.weight"].T + t[f"{name}.bias"]

    def norm(x, name):
        x = x - x.mean(-1, keepdims=True)
        variance = (x**2).mean(-1, keepdims=True)
        x = x / np.sqrt(variance + epsilon)
        return x * t[f"{name}.weight"] + t[f"{name}.bias"]

    def positions(length, side):
        kind = description.get("positions", "interleaved")
        if kind is None:
            return 0.0
        if kind == "learned":
            names = description["position_tables"]
            name = names[0] if side == "source" else names[-1]
            return t[name].reshape(-1, D)[:length]
        waves = np.zeros((length, D))
        for place in range(length):
            for i in range(D // 2):
                angle = place / 10_000 ** (2 * i / D)
                interleaved = kind == "interleaved"
                sine, cosine = (
                    (2 * i, 2 * i + 1) if interleaved else (i, D // 2 + i)
                )
                waves[place, sine] = math.sin(angle)
                waves[place, cosine] = math.cos(angle)
        return waves

    def embed(ids, side):
        scale = D**0.5 if description.get("scale_embeddings", True) else 1.0
        return t[f"{side}.weight"][ids] * scale + positions(len(ids), side)

    def attend(x, memory, name, causal):
        matrices = np.split(t[f"{name}.in_proj_weight"], 3)
        biases = np.split(t[f"{name}.in_proj_bias"], 3)
        q, k, v = (
            states @ matrix.T + bias
            for states, matrix, bias in zip(
                (x, memory, memory), matrices, biases, strict=True
            )
        )
        heads = []
        for n in range(N):
            part = slice(n * D // N, (n + 1) * D // N)
            scores = q[:, part] @ k[:, part].T / np.sqrt(D // N)
            if causal:
                later = np.triu(np.ones(scores.shape, bool), 1)
                scores = np.where(later, -np.inf, scores)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            heads.append(weights / weights.sum(-1, keepdims=True) @ v[:, part])
        return dense(np.concatenate(heads, axis=1), f"{name}.out_proj")

    def residual(x, name, sublayer):
        if norm_first:
            return x + sublayer(norm(x, name))
        return norm(x + sublayer(x), name)

    def stack(x, side, memory=None):
        causal = memory is not None
        for number in range(LAYERS):
            layer = f"transformer.{side}.layers.{number}"
            sublayers = [
                lambda x, name=layer: attend(x, x, f"{name}.self_attn", causal)
            ]
            if causal:
                sublayers.append(
                    lambda x, name=layer: attend(
                        x, memory, f"{name}.multihead_attn", False
                    )
                )
            sublayers.append(
                lambda x, name=layer: dense(
                    activation(dense(x, f"{name}.linear1")), f"{name}.linear2"
                )
            )
            for place, sublayer in enumerate(sublayers, start=1):
                x = residual(x, f"{layer}.norm{place}", sublayer)
        if description.get("final_norm", True):
            x = norm(x, f"transformer.{side}.norm")
        return x

    memory = stack(embed(source, "source"), "encoder")
    states = stack(embed(target, "target"), "decoder", memory)
    return dense(states, "generator")
