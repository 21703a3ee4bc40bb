"""Trains models with Marian and records what it computes with them.

    PYTHON benchmarks/exchange/marian_models.py FOLDER CASE

PYTHON is an environment with pymarian 1.12.42 and sentencepiece 0.2.0; this
package is not needed there. FOLDER has `train.source`, `train.target` and
`sentences`; SentencePiece's and Marian's files are written to it, translations
and scores to `outputs.json`. CASE is a JSON object. `marian_npz.py` starts it.
"""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import sentencepiece
from pymarian import Trainer, Translator

SIDES = ("source", "target")


def main(folder: Path, case: dict) -> None:
    """Trains the model and writes its outputs."""
    vocabularies = write_vocabularies(folder, case)
    arguments = {
        "vocabs": vocabularies,
        "cpu_threads": 1,
        "workspace": 512,
        "quiet": "",
    }
    train(folder, case, arguments)
    sentences = (folder / "sentences").read_text().splitlines()
    translator = Translator(
        **arguments,
        models=folder / "model.npz",
        beam_size=4,
        normalize=case["normalize"],
        mini_batch=16,
        n_best="",
        max_length=200,
    )
    # Lines as `NUMBER ||| TEXT ||| F0= LOG-PROBABILITY ||| SCORE`, best first.
    best = {}
    for line in "\n".join(translator.translate(sentences)).splitlines():
        number, text, features, _ = map(str.strip, line.split("|||"))
        log_prob = float(features.removeprefix("F0="))
        best.setdefault(int(number), (text, log_prob))
    translations, log_probs = zip(
        *(best[number] for number in range(len(sentences))), strict=True
    )
    (folder / "translations").write_text("\n".join(translations) + "\n")
    content = {
        "sentences": sentences,
        "translations": translations,
        "log_probs": log_probs,
        "scorer": scored(folder, vocabularies),
        "versions": {"pymarian": version("pymarian")},
    }
    (folder / "outputs.json").write_text(json.dumps(content))


def scored(folder, vocabularies) -> list[float]:
    """Returns what Marian's scorer gives the translations, in nats."""
    command = [sys.executable, "-m", "pymarian", "score", "--quiet"]
    command += [
        "--cpu-threads",
        "1",
        "--workspace",
        "512",
        "--max-length",
        "200",
    ]
    command += ["--model", str(folder / "model.npz"), "--vocabs"]
    command += [*map(str, vocabularies), "--train-sets"]
    command += [str(folder / "sentences"), str(folder / "translations")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [float(line) for line in done.stdout.splitlines()]


def write_vocabularies(folder, case) -> list[Path]:
    """Trains SentencePiece models with the special tokens Marian expects."""
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
            vocab_size=2000,
            model_type=case["kind"],
            # Marian's own: the end of a sentence is 0, unknown is 1.
            bos_id=-1,
            eos_id=0,
            unk_id=1,
            pad_id=-1,
            minloglevel=2,
        )
        # Marian knows them by this ending.
        (folder / f"{name}.model").rename(folder / f"{name}.spm")
    names = ["joint", "joint"] if case["shared"] else SIDES
    return [folder / f"{name}.spm" for name in names]


def train(folder, case, arguments) -> None:
    """Trains for the given number of updates."""
    tied = "tied_embeddings_all" if case["shared"] else "tied_embeddings"
    Trainer(
        **arguments,
        **{tied: ""},
        model=folder / "model.npz",
        type="transformer",
        train_sets=[folder / f"train.{side}" for side in SIDES],
        dim_emb=128,
        transformer_dim_ffn=256,
        transformer_heads=4,
        enc_depth=2,
        dec_depth=2,
        **case["operations"],
        transformer_postprocess_emb="d",
        transformer_ffn_activation=case["activation"],
        transformer_dropout=0.1,
        label_smoothing=0.1,
        cost_type="ce-mean-words",
        learn_rate=0.002,
        lr_warmup=100,
        optimizer_params=[0.9, 0.98, 1e-9],
        clip_norm=1,
        mini_batch=64,
        maxi_batch=50,
        max_length=60,
        after=f"{case['updates']}u",
        save_freq=f"{case['updates']}u",
        overwrite="",
        seed=1,
    ).train()


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
