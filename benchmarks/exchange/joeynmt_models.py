"""Trains models with JoeyNMT and records what it computes with them.

    PYTHON benchmarks/exchange/joeynmt_models.py FOLDER CASE

PYTHON is an environment with joeynmt 2.3.0 and sentencepiece 0.2.0 (JoeyNMT
calls a method that later versions lack); this package is not needed there. It
has subword-nmt, which JoeyNMT needs.
FOLDER has `text.source`, `text.target` and `lines`; JoeyNMT writes CASE, a JSON
object, to its folder `model`, and what it computes is written to `outputs.json`
and `logits.npy`. `joeynmt_transformers.py` starts it.
"""

import io
import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import sentencepiece
import torch
import yaml
from joeynmt.config import load_config, parse_global_args
from joeynmt.data import load_data
from joeynmt.helpers import load_checkpoint
from joeynmt.model import build_model
from joeynmt.search import beam_search
from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

SIDES = {"source": "de", "target": "en"}
DEV = 40


def main(folder: Path, case: dict) -> None:
    """Trains the model and writes its outputs."""
    config = write_files(folder, case)
    file = folder / "train.yaml"
    file.write_text(yaml.safe_dump(config))
    command = [sys.executable, "-m", "joeynmt", "train", str(file)]
    subprocess.run([*command, "--skip-test"], check=True)
    record(folder)


def write_files(folder, case) -> dict:
    """Writes texts and tokenizers; returns the configuration."""
    has_codes = case["kind"] == "subword-nmt"
    sides = {}
    for side, language in SIDES.items():
        lines = (folder / f"text.{side}").read_text().splitlines()
        for name, part in (("train", lines[:-DEV]), ("dev", lines[-DEV:])):
            file = folder / f"{name}.{language}"
            file.write_text("\n".join(part) + "\n")
        file = folder / f"{side}.{'codes' if has_codes else 'model'}"
        if has_codes:
            cut = [row.split(" ") for row in learn_codes(file, lines)]
        else:
            cut = train_sentencepiece(file, lines, case["kind"])
        # Not all pieces: JoeyNMT restricts both to those of the vocabulary.
        pieces = sorted({piece for row in cut for piece in row})
        sides[side] = {
            "lang": language,
            "level": "bpe",
            "lowercase": False,
            "tokenizer_type": "subword-nmt" if has_codes else "sentencepiece",
            "tokenizer_cfg": {
                "codes" if has_codes else "model_file": str(file)
            },
            "pieces": pieces,
        }
    if case["shared"]:
        pieces = {p for side in sides.values() for p in side["pieces"]}
        for side in sides.values():
            side["pieces"] = sorted(pieces)
    for name, side in sides.items():
        side["voc_file"] = str(folder / f"{name}.voc")
        Path(side["voc_file"]).write_text("\n".join(side.pop("pieces")) + "\n")
    block = {
        "type": "transformer",
        "num_layers": 2,
        "num_heads": 4,
        "embeddings": {"embedding_dim": 64, "scale": case["scale"]},
        "hidden_size": 64,
        "ff_size": 128,
        "dropout": 0.1,
        "layer_norm": case["layer_norm"],
        "activation": case["activation"],
    }
    return {
        "name": "compared",
        "joeynmt_version": "2.3.0",
        "model_dir": str(folder / "model"),
        "use_cuda": False,
        "fp16": False,
        "data": {
            "train": str(folder / "train"),
            "dev": str(folder / "dev"),
            "dataset_type": "plain",
            "src": sides["source"],
            "trg": sides["target"],
        },
        "testing": {
            "beam_size": 4,
            "beam_alpha": 1.0,
            "batch_size": 20,
            "batch_type": "sentence",
            "max_output_length": 60,
            "eval_metrics": ["bleu"],
        },
        "training": {
            "optimizer": "adam",
            # Others call PyTorch with an argument that it has no more.
            "scheduling": "noam",
            "learning_rate_factor": 1.0,
            "learning_rate_warmup": 100,
            "learning_rate": 0.002,
            "batch_size": 32,
            "batch_type": "sentence",
            "epochs": 100,
            "updates": case["updates"],
            "validation_freq": case["updates"],
            "logging_freq": 20,
            "early_stopping_metric": "loss",
            "model_dir": str(folder / "model"),
            "overwrite": True,
        },
        "model": {
            "tied_embeddings": case["shared"],
            "tied_softmax": case["shared"],
            "encoder": block,
            "decoder": block,
        },
    }


def train_sentencepiece(file, lines, kind) -> list[list[str]]:
    """Writes a model; returns the pieces of some of the lines."""
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_prefix=str(file.with_suffix("")),
        vocab_size=500,
        model_type=kind,
        minloglevel=2,
    )
    processor = sentencepiece.SentencePieceProcessor(model_file=str(file))
    return processor.encode(lines[:300], out_type=str)


def learn_codes(file, lines) -> list[str]:
    """Writes codes of subword-nmt; returns some of the lines in pieces."""
    codes = io.StringIO()
    learn_bpe(io.StringIO("\n".join(lines)), codes, 500)
    file.write_text(codes.getvalue())
    return [BPE(codes).segment(line) for line in lines[:300]]


@torch.no_grad()
def record(folder) -> None:
    """Writes ids of lines, logits and translations, by JoeyNMT alone."""
    config = load_config(folder / "model" / "config.yaml")
    arguments = parse_global_args(config, mode="translate")
    source_vocabulary, target_vocabulary, _, dev, _ = load_data(
        arguments.data, datasets=["dev"]
    )
    model = build_model(
        arguments.model,
        src_vocab=source_vocabulary,
        trg_vocab=target_vocabulary,
    )
    checkpoint = load_checkpoint(folder / "model" / "best.ckpt", "cpu")
    model.load_state_dict(checkpoint["model_state"])
    model.eval()
    texts = {
        side: (folder / f"dev.{language}").read_text().splitlines()
        for side, language in SIDES.items()
    }

    def ids(lines, side, vocabulary, **options):
        tokenizer = dev.tokenizer[SIDES[side]]
        rows = [tokenizer(tokenizer.pre_process(line)) for line in lines]
        found, lengths, _ = vocabulary.sentences_to_ids(rows, **options)
        return torch.tensor(found), torch.tensor(lengths)

    source, lengths = ids(
        texts["source"], "source", source_vocabulary, bos=False, eos=True
    )
    target, _ = ids(
        texts["target"], "target", target_vocabulary, bos=True, eos=False
    )
    source_mask = (source != source_vocabulary.pad_index).unsqueeze(1)
    target_mask = (target != target_vocabulary.pad_index).unsqueeze(1)
    memory, hidden, _, _ = model(
        return_type="encode",
        src=source,
        src_length=lengths,
        src_mask=source_mask,
    )
    logits, _, _, _ = model(
        return_type="decode",
        trg_input=target,
        encoder_output=memory,
        encoder_hidden=hidden,
        src_mask=source_mask,
        trg_mask=target_mask,
        unroll_steps=None,
        decoder_hidden=hidden,
    )
    np.save(folder / "logits.npy", logits.numpy())
    found, _, _ = beam_search(
        model=model,
        beam_size=4,
        encoder_output=memory,
        encoder_hidden=hidden,
        src_mask=source_mask,
        max_output_length=60,
        alpha=1.0,
        n_best=1,
    )
    tokens = target_vocabulary.arrays_to_sentences(found, cut_at_eos=True)
    tokenizer = dev.tokenizer[SIDES["target"]]
    lines = (folder / "lines").read_text().split("\n")
    rows, lengths = ids(lines, "source", source_vocabulary, bos=False, eos=True)
    content = {
        "source_ids": source.tolist(),
        "target_ids": target.tolist(),
        "ids": [
            row[:length].tolist()
            for row, length in zip(rows, lengths, strict=True)
        ],
        "sentences": texts["source"],
        "translations": [tokenizer.post_process(row) for row in tokens],
        "versions": {
            "joeynmt": version("joeynmt"),
            "torch": torch.__version__,
        },
    }
    (folder / "outputs.json").write_text(json.dumps(content))


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
