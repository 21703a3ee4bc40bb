"""Trains models with eole and records what it computes with them.

    PYTHON benchmarks/exchange/eole_models.py FOLDER CASE

PYTHON is an environment with eole 0.6.4; this package is not needed there.
FOLDER has `train.source`, `train.target`, `dev.source`, `dev.target` and
`lines`. eole trains CASE, a JSON object, and writes the folder `model`. The ids
of lines, logits, translations and their scores are written to `outputs.json`
and `logits.npy`. `eole_transformers.py` starts it.
"""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import sentencepiece
import torch
import yaml
from eole.config.run import PredictConfig
from eole.inference_engine import InferenceEnginePY

SIDES = {"source": "src", "target": "tgt"}
PIECES = 500


def main(folder: Path, case: dict) -> None:
    """Trains the model and writes its outputs."""
    models = write_sentencepiece_models(folder, case)
    options = data_options(folder, case, models)
    write_vocabularies(folder, case, models, options)
    train(folder, case, options)
    record(folder)


def write_sentencepiece_models(folder, case) -> dict:
    """Trains a model for each side, or one; returns the files."""
    texts = {
        side: (folder / f"train.{side}").read_text().splitlines()
        for side in SIDES
    }
    if case["shared"]:
        texts = {"joint": [line for lines in texts.values() for line in lines]}
    for name, lines in texts.items():
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_prefix=str(folder / name),
            vocab_size=PIECES,
            model_type=case["kind"],
            minloglevel=2,
        )
    return {
        side: folder / ("joint" if case["shared"] else side) for side in SIDES
    }


def data_options(folder, case, models) -> dict:
    """Returns the options for the data."""
    return {
        "data": {
            name: {
                f"path_{short}": str(folder / f"{part}.{side}")
                for side, short in SIDES.items()
            }
            for name, part in (("corpus_1", "train"), ("valid", "dev"))
        },
        "transforms": ["sentencepiece"],
        "transforms_configs": {
            "sentencepiece": {
                f"{short}_subword_model": f"{models[side]}.model"
                for side, short in SIDES.items()
            }
        },
        **{
            f"{short}_vocab": f"{models[side]}.tsv"
            for side, short in SIDES.items()
        },
        "share_vocab": case["shared"],
        "n_sample": 0,
        "overwrite": True,
        "seed": 1,
    }


def write_vocabularies(folder, case, models, options) -> None:
    """Writes eole's lists of pieces, by one of its two tools for that."""
    if case["vocabulary"] == "build_vocab":
        run(folder, {**options, "n_sample": -1}, "build_vocab")
        return
    for model in set(models.values()):
        done = subprocess.run(
            [sys.executable, "-m", "eole.bin.main", "tools", "spm_to_vocab"],
            input=Path(f"{model}.vocab").read_text(),
            check=True,
            capture_output=True,
            text=True,
        )
        Path(f"{model}.tsv").write_text(done.stdout)


def run(folder, options, *arguments) -> None:
    """Runs eole's command with a file of options."""
    file = folder / "options.yaml"
    file.write_text(yaml.safe_dump(options))
    command = [sys.executable, "-m", "eole.bin.main", *arguments]
    subprocess.run([*command, "-config", str(file)], check=True)


def train(folder, case, options) -> None:
    """Trains for the given number of updates."""
    training = {
        "model_path": str(folder / "model"),
        "train_steps": case["updates"],
        "save_checkpoint_steps": case["updates"],
        "valid_steps": case["updates"],
        "batch_type": "sents",
        "batch_size": 32,
        "bucket_size": 2048,  # by default it reads a small corpus many times
        "optim": "adam",
        "learning_rate": 0.002,
        "decay_method": "none",
        "dropout": [0.1],
        "attention_dropout": [0.1],
        "num_workers": 0,
        "world_size": 1,
        "gpu_ranks": [],
    }
    run(
        folder,
        {**options, "training": training, "model": case["model"]},
        "train",
    )


@torch.no_grad()
def record(folder) -> None:
    """Writes ids of lines, logits and translations, by eole alone."""
    texts = {
        side: (folder / f"dev.{side}").read_text().splitlines()
        for side in SIDES
    }
    config = PredictConfig(
        model_path=[str(folder / "model")],
        src=str(folder / "dev.source"),
        gpu_ranks=[],
        batch_size=16,
        beam_size=4,
        length_penalty="avg",
        alpha=1.0,
    )
    engine = InferenceEnginePY(config)
    lines = (folder / "lines").read_text().split("\n")
    source, lengths = ids(engine, texts["source"])
    rows, row_lengths = ids(engine, lines)
    target = target_ids(engine, texts["target"])
    model = engine.predictor.model
    # The model leaves out the last token of a target.
    states, _, _ = model(
        source, torch.nn.functional.pad(target, (0, 1)), lengths
    )
    np.save(folder / "logits.npy", model.generator(states).numpy())
    scores, _, translations = engine.infer_list(texts["source"])
    content = {
        "source_ids": source.tolist(),
        "target_ids": target.tolist(),
        "ids": [
            row[:length]
            for row, length in zip(
                rows.tolist(), row_lengths.tolist(), strict=True
            )
        ],
        "translations": [row[0] for row in translations],
        "scores": [float(row[0]) for row in scores],
        "versions": {
            name: version(name) for name in ("eole", "torch", "pyonmttok")
        },
    }
    (folder / "outputs.json").write_text(json.dumps(content))


def ids(engine, lines):
    """Returns the ids that eole's encoder reads, and the lengths."""
    found = {}
    for batch, _ in engine._build_inference_iterator(src=lines):
        for number, row, length in zip(
            batch["ind_in_bucket"], batch["src"], batch["srclen"], strict=True
        ):
            found[int(number)] = row[:length]
    rows = [found.get(number, []) for number in range(len(lines))]
    rows = [torch.as_tensor(row, dtype=torch.long) for row in rows]
    padded = torch.nn.utils.rnn.pad_sequence(
        rows, batch_first=True, padding_value=engine.predictor._src_pad_idx
    )
    return padded, torch.tensor([len(row) for row in rows])


def target_ids(engine, lines):
    """Returns the ids that eole's decoder reads."""
    vocabulary = engine.vocabs["tgt"]
    transform = engine.transforms["sentencepiece"]
    begin = engine.predictor._tgt_start_with
    rows = [
        torch.tensor(
            [begin, *vocabulary(transform.tokenize_string(line, "tgt"))]
        )
        for line in lines
    ]
    return torch.nn.utils.rnn.pad_sequence(
        rows, batch_first=True, padding_value=engine.predictor._tgt_pad_idx
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
