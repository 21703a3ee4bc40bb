"""Translates lines of text with Transformers, PyTorch and SentencePiece alone.

    python translate.py < source.txt > translations.txt

The model is in the folder of this file. `deepnmt export --format marian-hf`
wrote both. Other programs load it by `MarianMTModel.from_pretrained` and
`MarianTokenizer.from_pretrained`.
"""

import itertools
import json
import math
import os
import re
import sys
from pathlib import Path

# Nothing but this folder is read.
os.environ.update(HF_HUB_OFFLINE="1", USE_TF="0", USE_FLAX="0")

import sentencepiece
import torch
import transformers

PADDING, BEGIN, END = 0, 2, 3


class Model:
    """The model of a folder, with its tokenizers and search options."""

    def __init__(self, folder):
        folder = Path(folder)
        content = json.loads((folder / "export.json").read_text("utf-8"))
        self.ratio, self.extra = (
            content["length_ratio"],
            content["extra_tokens"],
        )
        self.longest = content["max_source_length"]
        self.word_ends = content["word_ends"]
        # The tokenizer of Transformers leaves unknown tokens out.
        self.target = sentencepiece.SentencePieceProcessor(
            model_file=str(folder / "target.spm")
        )
        transformers.logging.set_verbosity_error()
        load = {"local_files_only": True}
        self.tokenizer = transformers.MarianTokenizer.from_pretrained(
            folder, **load
        )
        self.model = transformers.MarianMTModel.from_pretrained(folder, **load)
        self.model.eval()

    def ids(self, text):
        """Returns the ids of a source, with the end."""
        row = self.tokenizer(text.replace("\0", "")).input_ids[:-1]
        return [*row[: self.longest - 1], self.tokenizer.eos_token_id]

    def text(self, ids):
        """Returns the text of the ids of a translation."""
        text = self.target.decode(
            [n for n in ids if n not in (PADDING, BEGIN, END)]
        )
        return text.removesuffix(" ") if self.word_ends else text

    @torch.no_grad()
    def translate(self, texts, beam_size=None):
        """Returns the translations; that of an empty text is empty."""
        found = []
        for start in range(0, len(texts), 32):
            rows = [self.ids(text) for text in texts[start : start + 32]]
            translated = iter(
                self._translate([r for r in rows if len(r) > 1], beam_size)
            )
            found += [next(translated) if len(r) > 1 else "" for r in rows]
        return found

    def _translate(self, rows, beam_size):
        if not rows:
            return []
        inputs = self.tokenizer.pad({"input_ids": rows}, return_tensors="pt")
        # Each source has a limit of its own; ends count as tokens.
        most = self.model.config.max_position_embeddings
        limits = [
            min(
                most,
                # A ratio such as 1.1 is no exact number.
                math.ceil(self.ratio * len(row) * (1 - 1e-6)) + self.extra,
            )
            for row in rows
        ]
        options = {"max_new_tokens": max(limits)}
        if beam_size is not None:
            options.update(num_beams=beam_size, early_stopping=beam_size == 1)
        outputs = self.model.generate(**inputs, **options)
        # Without the token before the first one.
        return [
            self.text(row[1:limit])
            for row, limit in zip(outputs.tolist(), limits, strict=True)
        ]

    @torch.no_grad()
    def score(self, sources, targets):
        """Returns the sums of the log-probabilities, end included."""
        start = self.model.config.decoder_start_token_id
        sums = []
        for source, target in zip(sources, targets, strict=True):
            labels = self.tokenizer(text_target=target).input_ids
            logits = self.model(
                input_ids=torch.tensor([self.ids(source)]),
                decoder_input_ids=torch.tensor([[start, *labels[:-1]]]),
            ).logits[0]
            found = logits.log_softmax(-1)[range(len(labels)), labels]
            sums.append(float(found.sum()))
        return sums


def read_lines(stream):
    """Yields lines of UTF-8 without their ends, also those of Windows."""
    for number, line in enumerate(stream, start=1):
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        try:
            yield line.removesuffix(b"\n").removesuffix(b"\r").decode()
        except UnicodeDecodeError as error:
            sys.exit(
                f"standard input, line {number}: not UTF-8 (byte "
                f"{error.start + 1} of the line is "
                f"0x{line[error.start]:02x})."
            )


def main():
    """Translates standard input in blocks of lines."""
    model = Model(Path(__file__).parent)
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    lines = read_lines(sys.stdin.buffer)
    while block := list(itertools.islice(lines, 1024)):
        for translation in model.translate(block):
            # Pieces for bytes may be line ends.
            print(re.sub(r"[\n\r]", " ", translation), flush=True)


if __name__ == "__main__":
    main()
