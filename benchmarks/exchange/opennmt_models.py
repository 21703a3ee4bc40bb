"""Trains models with OpenNMT-py and records what it computes with them.

    PYTHON benchmarks/exchange/opennmt_models.py FOLDER CASE

PYTHON is an environment with OpenNMT-py 3.5.1 and subword-nmt; this package is
not needed there. FOLDER has `text.source`, `text.target` and `lines`;
OpenNMT-py writes the model of CASE, a JSON object, to the folder `model`, and
what it computes, translations by its search with 4 beams among it, is written
to `outputs.json` and `logits.npy`. `opennmt_transformers.py` starts it.
"""

import io
import json
import os
import subprocess
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import numpy as np
import sentencepiece
import torch
import yaml
from onmt.transforms import get_transforms_cls
from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

DEV = 40
SPECIAL = ["<unk>", "<blank>", "<s>", "</s>"]


def main(folder: Path, case: dict) -> None:
    """Trains the model and writes its outputs."""
    # The checkpoint was written a moment ago, here.
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"
    (folder / "model").mkdir()
    write_files(folder, case["transform"])
    train(folder, case)
    pieces, functions = load(folder)
    record(folder, pieces, *functions, translate(folder, case["transform"]))


def write_files(folder, transform) -> None:
    """Writes texts, SentencePiece models or codes, and vocabularies."""
    for side in ("source", "target"):
        lines = (folder / f"text.{side}").read_text().splitlines()
        for name, part in (("train", lines[:-DEV]), ("dev", lines[-DEV:])):
            (folder / f"{name}.{side}").write_text("\n".join(part) + "\n")
        write = write_codes if transform == "bpe" else write_sentencepiece
        pieces = write(folder / "model" / side, lines)
        (folder / f"{side}.voc").write_text("\n".join(pieces) + "\n")


def write_sentencepiece(prefix, lines) -> list[str]:
    """Writes a model; returns its pieces."""
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_prefix=str(prefix),
        vocab_size=500,
        minloglevel=2,
    )
    processor = sentencepiece.SentencePieceProcessor(
        model_file=f"{prefix}.model"
    )
    return [processor.id_to_piece(n) for n in range(3, 500)]


def write_codes(prefix, lines) -> list[str]:
    """Writes codes of subword-nmt and frequencies; returns some pieces."""
    codes = io.StringIO()
    learn_bpe(io.StringIO("\n".join(lines)), codes, 500)
    Path(f"{prefix}.model").write_text(codes.getvalue())
    bpe = BPE(codes)
    cut = [bpe.segment(line).split(" ") for line in lines]
    counts = Counter(piece for row in cut for piece in row)
    listed = "".join(f"{piece} {n}\n" for piece, n in counts.items())
    Path(f"{prefix}.counts").write_text(listed)
    # Not those of all lines, so that some pieces are unknown.
    return sorted({piece for row in cut[:300] for piece in row})


def data_options(folder, transform) -> dict:
    """Returns the options for the data."""
    corpora = {
        name: {
            "path_src": str(folder / f"{part}.source"),
            "path_tgt": str(folder / f"{part}.target"),
            "transforms": [transform],
        }
        for name, part in (("corpus_1", "train"), ("valid", "dev"))
    }
    return {
        "data": corpora,
        "src_vocab": str(folder / "source.voc"),
        "tgt_vocab": str(folder / "target.voc"),
        "n_sample": 0,
    }


def subword_options(folder, transform) -> dict:
    """Returns the options for SentencePiece and for codes."""
    restricted = {
        # Merges that give rarer pieces are undone.
        "src_subword_vocab": str(folder / "model" / "source.counts"),
        "src_vocab_threshold": 3,
    }
    return {
        **(restricted if transform == "bpe" else {}),
        "src_subword_model": str(folder / "model" / "source.model"),
        "tgt_subword_model": str(folder / "model" / "target.model"),
    }


def train(folder, case) -> None:
    """Trains with OpenNMT-py's command."""
    options = {
        **data_options(folder, case["transform"]),
        **subword_options(folder, case["transform"]),
        "transforms": [case["transform"]],
        "save_model": str(folder / "model" / "compared"),
        "save_checkpoint_steps": case["updates"],
        "valid_steps": case["updates"],
        "train_steps": case["updates"],
        "report_every": 50,
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "enc_layers": 2,
        "dec_layers": 2,
        "heads": 4,
        "hidden_size": 64,
        "word_vec_size": 64,
        "transformer_ff": 128,
        "position_encoding": True,
        "share_decoder_embeddings": case["tied"],
        "pos_ffn_activation_fn": case["activation"],
        "add_qkvbias": case["bias"],
        "batch_type": "sents",
        "batch_size": 32,
        "bucket_size": 2048,  # by default it reads a small corpus many times
        "optim": "adam",
        "learning_rate": 0.002,
        "param_init": 0.0,
        "param_init_glorot": True,
        "num_workers": 0,
        "seed": 1,
    }
    file = folder / "train.yaml"
    file.write_text(yaml.safe_dump(options))
    command = [sys.executable, "-m", "onmt.bin.train", "-config", str(file)]
    subprocess.run(command, check=True)


def load(folder):
    """Returns the pieces of each side and a function that computes logits."""
    from onmt.inputters.inputter import dict_to_vocabs
    from onmt.model_builder import build_base_model
    from onmt.models.model_saver import load_checkpoint

    (file,) = (folder / "model").glob("*.pt")
    checkpoint = load_checkpoint(str(file))
    vocabularies = dict_to_vocabs(checkpoint["vocab"])
    model = build_base_model(checkpoint["opt"], vocabularies)
    model.load_state_dict(
        checkpoint, precision=torch.float32, device=torch.device("cpu")
    )
    model.eval()

    def compute(source, target, lengths):
        # The model leaves out the last token of a target.
        target = torch.nn.functional.pad(target, (0, 1))
        states, _ = model(source[..., None], target[..., None], lengths)
        return model.generator(states)

    return {
        "source": checkpoint["vocab"]["src"],
        "target": checkpoint["vocab"]["tgt"],
    }, (compute, make_cut(checkpoint["opt"]))


def make_cut(options):
    """Returns a function that cuts lines of a side as OpenNMT-py does."""
    (name,) = options.transforms
    transform = get_transforms_cls([name])[name](options)
    transform.warm_up()

    def cut(lines, side):
        side = {"source": "src", "target": "tgt"}[side]
        # As `ParallelCorpusIterator` and `numericalize`.
        rows = [
            " ".join(transform._tokenize(line.strip().split(" "), side))
            for line in lines
        ]
        return [row.split(" ") if row else [] for row in rows]

    return cut


def translate(folder, transform) -> dict:
    """Translates by OpenNMT-py's search; returns texts and scores."""
    from onmt.inference_engine import InferenceEnginePY
    from onmt.opts import translate_opts
    from onmt.utils.parse import ArgumentParser

    (file,) = (folder / "model").glob("*.pt")
    options = {
        "model": file,
        "src": folder / "dev.source",
        "output": folder / "translations",
        "batch_size": 16,
        "beam_size": 4,
        "length_penalty": "avg",
        "alpha": 1.0,
        "transforms": transform,
        **subword_options(folder, transform),
    }
    parser = ArgumentParser()
    translate_opts(parser)
    options = parser.parse_args(
        [
            part
            for name, value in options.items()
            for part in (f"-{name}", str(value))
        ]
    )
    # As its command does.
    ArgumentParser.validate_translate_opts(options)
    ArgumentParser._get_all_transform_translate(options)
    ArgumentParser._validate_transforms_opts(options)
    ArgumentParser.validate_translate_opts_dynamic(options)
    scores, texts = InferenceEnginePY(options).infer_file()
    return {
        "translations": [row[0] for row in texts],
        "scores": [float(row[0]) for row in scores],
    }


@torch.no_grad()
def record(folder, pieces, compute, cut, translated) -> None:
    """Writes ids of lines, logits and translations, by OpenNMT-py alone."""
    known = {
        side: {piece: number for number, piece in enumerate(names)}
        for side, names in pieces.items()
    }

    def ids(lines, side):
        unknown = known[side]["<unk>"]
        return [
            [known[side].get(piece, unknown) for piece in row]
            for row in cut(lines, side)
        ]

    def padded(rows, side):
        longest = max(map(len, rows))
        padding = known[side]["<blank>"]
        return torch.tensor(
            [[*row, *[padding] * (longest - len(row))] for row in rows]
        )

    texts = {
        side: (folder / f"dev.{side}").read_text().splitlines()
        for side in ("source", "target")
    }
    rows = ids(texts["source"], "source")
    source = padded(rows, "source")
    begin = known["target"]["<s>"]
    target = padded(
        [[begin, *row] for row in ids(texts["target"], "target")], "target"
    )
    lengths = torch.tensor([len(row) for row in rows])
    np.save(folder / "logits.npy", compute(source, target, lengths).numpy())
    content = {
        "pieces": pieces,
        "source_ids": source.tolist(),
        "target_ids": target.tolist(),
        "lines": (folder / "lines").read_text().split("\n"),
        "ids": ids((folder / "lines").read_text().split("\n"), "source"),
        **translated,
        "versions": {
            "toolkit_version": version("OpenNMT-py"),
            "torch": torch.__version__,
        },
    }
    (folder / "outputs.json").write_text(json.dumps(content))


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
