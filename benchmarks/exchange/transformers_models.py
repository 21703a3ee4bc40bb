"""Makes MarianMT models with `transformers` and records what they compute.

    PYTHON benchmarks/exchange/transformers_models.py FOLDER [CASE STEPS]

PYTHON is an environment with torch, transformers and sentencepiece; this
package is not needed there. FOLDER has `text.source`, `text.target` and
`lines`; the model is written to its folder `model`, what it computes to
`outputs.json` and `logits.npy`, and the logits in double precision to
`logits_64.npy`. `marian_hf.py` starts it. Without CASE and
STEPS the model is already there, for `marian_hf_export.py`.
"""

import json
import random
import sys
from pathlib import Path

import numpy as np
import sentencepiece
import torch
import transformers
from transformers import (
    GenerationConfig,
    MarianConfig,
    MarianMTModel,
    MarianTokenizer,
)

TAGS = [">>eng<<", ">>fra<<"]
LONGEST = 60


def main(folder: Path, case: dict, steps: int) -> None:
    """Writes the model and its outputs."""
    torch.manual_seed(0)
    random.seed(0)
    model_dir = folder / "model"
    model_dir.mkdir()
    texts = {
        side: (folder / f"text.{side}").read_text().splitlines()
        for side in ("source", "target")
    }
    size = write_vocabularies(model_dir, texts, case)
    tokenizer = MarianTokenizer.from_pretrained(model_dir)
    config = MarianConfig(
        vocab_size=size,
        decoder_vocab_size=size,
        d_model=64,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        activation_function=case["activation"],
        scale_embedding=True,
        pad_token_id=size - 1,
        decoder_start_token_id=size - 1,
        eos_token_id=0,
        forced_eos_token_id=0,
        max_position_embeddings=128,
        share_encoder_decoder_embeddings=case["shared"],
        dropout=0.1,
        init_std=64**-0.5,
    )
    model = MarianMTModel(config)
    # As the converter of `transformers` leaves them, but for the bias, which is
    # zero in a new model.
    for name, weight in model.named_parameters():
        if name.endswith(("shared.weight", "embed_tokens.weight")):
            weight.data[-1] = 0.0
    model.final_logits_bias[:, :-1].normal_(std=0.1)
    train(model, tokenizer, texts, steps)
    model.eval()
    model.generation_config = GenerationConfig(
        num_beams=4,
        # Until no hypothesis can win at any length, as here.
        early_stopping="never",
        max_length=LONGEST,
        bad_words_ids=[[size - 1]],
        pad_token_id=size - 1,
        eos_token_id=0,
        decoder_start_token_id=size - 1,
        forced_eos_token_id=0,
    )
    model.save_pretrained(model_dir)
    record(folder, model, tokenizer)


def load(folder: Path) -> None:
    """Loads a model, and writes its outputs."""
    model = MarianMTModel.from_pretrained(folder / "model").eval()
    record(folder, model, MarianTokenizer.from_pretrained(folder / "model"))


def write_vocabularies(folder, texts, case) -> int:
    """Trains the SentencePiece models; returns the size of a vocabulary."""
    pieces = {}
    for side, lines in texts.items():
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_prefix=str(folder / side),
            vocab_size=600,
            model_type=case["kind"],
            character_coverage=0.9995,
            minloglevel=2,
        )
        (folder / f"{side}.vocab").unlink()
        file = (folder / f"{side}.model").rename(folder / f"{side}.spm")
        processor = sentencepiece.SentencePieceProcessor(model_file=str(file))
        # Some pieces of a model are in no vocabulary: they were not in the
        # text that it was made of.
        cut = processor.encode(lines[:400], out_type=str)
        pieces[side] = sorted({piece for row in cut for piece in row})
    source = ["</s>", "<unk>", *TAGS, *pieces["source"]]
    target = ["</s>", "<unk>", *pieces["target"]]
    if case["shared"]:
        source = list(dict.fromkeys([*source, *target]))
    else:  # padding has the same id on both sides
        longer = max(len(source), len(target))
        for side in (source, target):
            side += [f"<unused{n}>" for n in range(longer - len(side))]
    write(folder / "vocab.json", numbered([*source, "<pad>"]))
    if not case["shared"]:
        write(folder / "target_vocab.json", numbered([*target, "<pad>"]))
    write(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "MarianTokenizer",
            "separate_vocabs": not case["shared"],
            "source_lang": "de",
            "target_lang": "en",
        },
    )
    return len(source) + 1


def train(model, tokenizer, texts, steps) -> None:
    """Makes some updates, so that the model's search ends its sentences."""
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    pairs = list(zip(texts["source"], texts["target"], strict=True))
    padding = model.config.pad_token_id
    for _ in range(steps):
        source, target = zip(*random.sample(pairs, 32), strict=True)
        inputs = tokenizer(list(source), return_tensors="pt", padding=True)
        labels = tokenizer(
            text_target=list(target), return_tensors="pt", padding=True
        ).input_ids
        labels[labels == padding] = -100
        optimizer.zero_grad()
        model(**inputs, labels=labels).loss.backward()
        optimizer.step()


@torch.no_grad()
def record(folder, model, tokenizer) -> None:
    """Writes the ids of lines, logits and translations."""
    lines = (folder / "lines").read_text().split("\n")
    sentences = (folder / "text.source").read_text().splitlines()[-60:]
    targets = (folder / "text.target").read_text().splitlines()[-60:]
    inputs = tokenizer(sentences, return_tensors="pt", padding=True)
    labels = tokenizer(
        text_target=targets, return_tensors="pt", padding=True
    ).input_ids
    start = torch.full((len(labels), 1), model.config.decoder_start_token_id)
    decoder_ids = torch.cat([start, labels[:, :-1]], dim=1)
    logits = model(**inputs, decoder_input_ids=decoder_ids).logits
    np.save(folder / "logits.npy", logits.numpy())
    found = model.generate(
        **inputs, return_dict_in_generate=True, output_scores=True
    )
    exact = model.double()(**inputs, decoder_input_ids=decoder_ids).logits
    np.save(folder / "logits_64.npy", exact.numpy())
    write(
        folder / "outputs.json",
        {
            "ids": [tokenizer(line).input_ids for line in lines],
            "source_ids": inputs.input_ids.tolist(),
            "decoder_ids": decoder_ids.tolist(),
            "sentences": sentences,
            "translations": tokenizer.batch_decode(
                found.sequences, skip_special_tokens=True
            ),
            "sequences": found.sequences.tolist(),
            "scores": found.sequences_scores.tolist(),
            "versions": {
                "transformers": transformers.__version__,
                "torch": torch.__version__,
            },
        },
    )


def numbered(names) -> dict[str, int]:
    """Maps pieces to their places."""
    return {name: number for number, name in enumerate(names)}


def write(file, content) -> None:
    """Writes a JSON file."""
    file.write_text(json.dumps(content), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        main(Path(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3]))
    else:
        load(Path(sys.argv[1]))
