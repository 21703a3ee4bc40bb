"""Makes models around `torch.nn.Transformer` and records what they compute.

    PYTHON benchmarks/exchange/torch_models.py FOLDER CASE

PYTHON is an environment with torch, safetensors and PyYAML; this package is not
needed there. The model of CASE, a JSON object, is written to FOLDER as
`model.yaml` describes it, with ids and logits in `logits.npz`.
`torch_transformer.py` starts it.
"""

import json
import math
import sys
from pathlib import Path

import numpy as np
import torch
import yaml
from safetensors.torch import save_file

WIDTH, HEADS, LAYERS, INNER = 64, 8, 3, 128
SIZES = {"source": 60, "target": 50}
SPECIAL = ["<unk>", "<pad>", "<bos>", "<eos>"]
SENTENCES, LONGEST = 20, 30


class Model(torch.nn.Module):
    """Embeddings, interleaved positions, `nn.Transformer`, and a projection."""

    def __init__(self, case):
        super().__init__()
        self.transformer = torch.nn.Transformer(
            WIDTH,
            HEADS,
            LAYERS,
            LAYERS,
            INNER,
            activation=case["activation"],
            norm_first=case["normalize_first"],
            batch_first=True,
        )
        size = SIZES["target"]
        self.source = torch.nn.Embedding(SIZES["source"], WIDTH)
        self.target = torch.nn.Embedding(size, WIDTH)
        self.output = torch.nn.Linear(WIDTH, size)
        if case["tied"]:
            self.output.weight = self.target.weight
        frequencies = torch.exp(
            torch.arange(0, WIDTH, 2) * (-math.log(10_000) / WIDTH)
        )
        angles = torch.arange(1000)[:, None] * frequencies
        table = torch.stack([angles.sin(), angles.cos()], dim=-1)
        self.register_buffer("positions", table.reshape(1000, WIDTH))

    def embed(self, embedding, ids):
        x = embedding(ids) * math.sqrt(WIDTH)
        return x + self.positions[: ids.shape[1]]

    def forward(self, source, target):
        mask = torch.nn.Transformer.generate_square_subsequent_mask(
            target.shape[1]
        )
        padding = torch.zeros(source.shape).masked_fill(
            source == SPECIAL.index("<pad>"), -torch.inf
        )
        states = self.transformer(
            self.embed(self.source, source),
            self.embed(self.target, target),
            tgt_mask=mask,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return self.output(states)


@torch.no_grad()
def main(folder: Path, case: dict) -> None:
    """Writes the model and its outputs."""
    torch.manual_seed(0)
    model = Model(case)
    for name, weight in model.named_parameters():
        # New biases are zero and new norms one, which would show nothing.
        if weight.ndim == 1:
            weight += 0.1 * torch.randn(weight.shape)
        elif name == "target.weight" and case["tied"]:
            weight *= WIDTH**-0.5
    model.eval()
    state = model.state_dict()
    if case["file"] == "weights.npz":
        arrays = {name: tensor.numpy() for name, tensor in state.items()}
        np.savez(folder / case["file"], **arrays)
    else:
        tensors = {name: tensor.clone() for name, tensor in state.items()}
        save_file(tensors, folder / case["file"])
    describe(folder, case)
    source = torch.randint(4, SIZES["source"], (SENTENCES, LONGEST))
    target = torch.randint(4, SIZES["target"], (SENTENCES, LONGEST))
    source[:, 0] = target[:, 0] = SPECIAL.index("<bos>")
    for row, length in enumerate(range(LONGEST - SENTENCES, LONGEST)):
        source[row, length] = SPECIAL.index("<eos>")
        source[row, length + 1 :] = SPECIAL.index("<pad>")
    np.savez(
        folder / "logits.npz",
        source=source.numpy(),
        target=target.numpy(),
        logits=model(source, target).numpy(),
    )
    (folder / "versions.json").write_text(
        json.dumps({"torch": torch.__version__})
    )


def describe(folder, case) -> None:
    """Writes the YAML file and the vocabularies."""
    special = dict(
        zip(("unknown", "padding", "begin", "end"), SPECIAL, strict=True)
    )
    description = {
        "format": "torch-transformer",
        "weights": case["file"],
        "transformer": "transformer",
        "source_embedding": "source",
        "target_embedding": "target",
        "output": "output",
        "num_heads": HEADS,
        "activation": case["activation"],
        "normalize_first": case["normalize_first"],
        "scale_embeddings": True,
        "positions": "interleaved",
        "position_tables": ["positions"],
        "source_begin": True,
        "source_end": True,
    }
    for side, size in SIZES.items():
        letters = [chr(97 + n) for n in range(size - len(SPECIAL))]
        (folder / f"{side}.txt").write_text("\n".join([*SPECIAL, *letters]))
        description[side] = {"pieces": f"{side}.txt", **special}
    (folder / "model.yaml").write_text(yaml.safe_dump(description))


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
