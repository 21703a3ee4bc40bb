"""Writes the model of the package tg2fa_translit and what it makes of words.

    PYTHON benchmarks/exchange/tajik_persian_words.py FOLDER

PYTHON is an environment with torch, safetensors, PyYAML and tg2fa_translit 1.0;
this package is not needed there. FOLDER then has `model.yaml` and the files
that it names, and `words.json`: words of random syllables and the package's
greedy output for each. `tajik_persian.py` starts it.
"""

import json
import random
import sys
from importlib.metadata import version
from pathlib import Path

import torch
import yaml
from safetensors.torch import save_file
from tg2fa_translit.decode import decode, fa_voc, tg_keys
from tg2fa_translit.transformer import transformer

VOWELS = "аеёиоуэюяӣӯ"
CONSONANTS = "бвгджзйклмнпрстфхчшғқҳҷ"
NUM_WORDS = 1000


def main(folder: Path) -> None:
    """Writes the model and the words."""
    save_file(
        {
            name: tensor.clone()
            for name, tensor in transformer.state_dict().items()
        },
        folder / "model.safetensors",
    )
    special = dict(
        zip(("unknown", "padding", "begin", "end"), tg_keys[:4], strict=True)
    )
    pieces = {"source": tg_keys, "target": list(fa_voc.values())}
    for side, names in pieces.items():
        file = folder / f"{side}.txt"
        file.write_text("\n".join(names), encoding="utf-8")
    description = {
        "format": "torch-transformer",
        "weights": "model.safetensors",
        "transformer": "transformer",
        "source_embedding": "src_tok_emb.embedding",
        "target_embedding": "tgt_tok_emb.embedding",
        "output": "generator",
        "num_heads": 8,
        "activation": "relu",
        "normalize_first": False,
        "scale_embeddings": True,
        "positions": "interleaved",
        "position_tables": ["positional_encoding.pos_embedding"],
        "source_begin": True,
        "source_end": True,
        **{s: {"pieces": f"{s}.txt", **special} for s in pieces},
    }
    (folder / "model.yaml").write_text(yaml.safe_dump(description))
    random.seed(0)
    words = [
        "".join(
            random.choice(CONSONANTS)
            + random.choice(VOWELS)
            + random.choice(["", "", random.choice(CONSONANTS)])
            for _ in range(random.randint(1, 4))
        )
        for _ in range(NUM_WORDS)
    ]
    # Threads only wait for each other in a model as small as this one.
    torch.set_num_threads(1)
    with torch.no_grad():
        outputs = [decode(transformer, word) for word in words]
    content = {
        "words": words,
        "outputs": outputs,
        "versions": {
            "torch": torch.__version__,
            "tg2fa_translit": version("tg2fa_translit"),
        },
    }
    (folder / "words.json").write_text(json.dumps(content))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
