"""Translates lines of text with ONNX Runtime, NumPy and SentencePiece alone.

    python translate.py < source.txt > translations.txt

The model is in the folder of this file: `encoder.onnx` reads B sources,
`decoder_step.onnx` gives the log-probabilities of the next token of B x K
hypotheses, and `export.json` describes both. `deepnmt export --format onnx`
wrote all of them.
"""

import itertools
import json
import math
import re
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import sentencepiece

PADDING, UNKNOWN, BEGIN, END = range(4)
BATCH = 32
# Stands for log 0: far below any sum of log-probabilities.
NEVER = np.float32(-1e9)


class Model:
    """The model of a folder, with its tokenizers and search options."""

    def __init__(self, folder):
        folder = Path(folder)
        self.facts = json.loads((folder / "export.json").read_text("utf-8"))
        self.encoder, self.decoder = (
            onnxruntime.InferenceSession(
                folder / name, providers=["CPUExecutionProvider"]
            )
            for name in ("encoder.onnx", "decoder_step.onnx")
        )
        self.source, self.target = (
            sentencepiece.SentencePieceProcessor(
                model_file=str(folder / f"{side}.spm")
            )
            for side in ("source", "target")
        )

    def translate(self, texts):
        """Returns the translations; that of an empty text is empty."""
        return [text for text, _ in self.best(texts)]

    def best(self, texts):
        """Returns the translation of each text, and its score."""
        rows = [self.ids(text) for text in texts]
        found = [("", 0.0)] * len(rows)
        full = [place for place, row in enumerate(rows) if len(row) > 1]
        full.sort(key=lambda place: len(rows[place]))
        for start in range(0, len(full), BATCH):
            places = full[start : start + BATCH]
            ids, scores = self.search([rows[place] for place in places])
            for place, row, score in zip(places, ids, scores, strict=True):
                found[place] = (self.text(row.tolist()), float(score))
        return found

    def ids(self, text):
        """Returns the ids of a source, with the end."""
        ids = self.source.encode(text.replace("\0", ""))
        ids = ids[: self.facts["max_source_length"] - 1]
        size = self.facts["source_vocabulary_size"]
        return [*(n if n < size else UNKNOWN for n in ids), END]

    def text(self, ids):
        """Returns the text of a translation that ends with the end id."""
        text = self.target.decode(ids[: ids.index(END)])
        return text.removesuffix(" ") if self.facts["word_ends"] else text

    def search(self, rows):
        """Beam search: returns the best ids (B, M) and their scores (B,)."""
        options = self.facts["search"]
        limits = np.array([self.limit(len(row)) for row in rows])
        num_beams, length = options["num_beams"], limits.max()
        shape = (len(rows), num_beams)  # B, K
        sources = np.zeros((len(rows), max(map(len, rows))), "int32")
        for source, row in zip(sources, rows, strict=True):
            source[: len(row)] = row
        inputs = {"num_beams": num_beams, "max_length": length}
        state = run(self.encoder, source_ids=sources, **inputs)
        last = np.full(shape, BEGIN)
        parents = np.broadcast_to(np.arange(num_beams), shape)
        # Live hypotheses and their sums; one begins in the first beam.
        ids = np.full((*shape, length), PADDING)
        sums = np.full(shape, NEVER)
        sums[:, 0] = 0.0
        # Finished hypotheses, best first, their scores, and how many ended.
        done, scores, counts = ids, np.full(shape, NEVER), 0
        for step in range(length):
            inputs = {"token_ids": last, "parents": parents, "position": step}
            outputs = run(self.decoder, **inputs, **state)
            log_probs = self.permitted(
                outputs.pop("log_probs"), ids, step, limits
            )
            # What a step computes for the next one.
            for name, value in outputs.items():
                state[name.removeprefix("next/")] = value
            # The best extensions by one token.
            totals = sums[:, :, None] + log_probs
            sums, places = largest(totals.reshape(len(rows), -1), num_beams)
            parents, last = np.divmod(places, log_probs.shape[-1])
            ids = np.take_along_axis(ids, parents[:, :, None], axis=1)
            ids[:, :, step] = last
            # Those that end compete with the ones that ended before.
            ended = (last == END) & (sums > NEVER / 2)
            counts = counts + ended.sum(axis=1)
            new = np.where(ended, sums / self.penalty(step + 1), NEVER)
            scores, places = largest(np.hstack([scores, new]), num_beams)
            done = np.take_along_axis(
                np.hstack([done, ids]), places[:, :, None], axis=1
            )
            sums = np.where(last == END, NEVER, sums)
            # A sentence is over if no live hypothesis can become better.
            most = sums / self.penalty(limits)[:, None]
            goes_on = (most > scores[:, -1:]) & (sums > NEVER / 2)
            goes_on = goes_on.any(axis=1)
            if options["patience"]:
                goes_on &= counts < options["patience"] * num_beams
            if not goes_on.any():
                break
            sums = np.where(goes_on[:, None], sums, NEVER)
        return done[:, 0], scores[:, 0]

    def permitted(self, log_probs, ids, step, limits):
        """Makes tokens (B, K, V) impossible that must not follow."""
        options = self.facts["search"]
        log_probs = np.maximum(log_probs, NEVER)
        ends = log_probs[:, :, END].copy()
        log_probs[:, :, [PADDING, BEGIN, END]] = NEVER
        if not options["allow_unknown"]:
            log_probs[:, :, UNKNOWN] = NEVER
        size = options["no_repeat_ngram_size"]
        for place in np.ndindex(ids.shape[:2]) if size else ():
            row = ids[place][:step].tolist()
            last = row[step - size + 1 :]
            for start in range(step - size + 1):
                if row[start : start + size - 1] == last:
                    log_probs[(*place, row[start + size - 1])] = NEVER
        must_end = (limits <= step + 1)[:, None]
        no_word = log_probs.max(axis=-1) <= NEVER / 2
        may_end = must_end | no_word | (step >= options["min_length"])
        log_probs[np.broadcast_to(must_end, may_end.shape)] = NEVER
        log_probs[:, :, END] = np.where(may_end, ends, NEVER)
        return log_probs

    def limit(self, source_length):
        """Returns the maximum length of a translation, with the end."""
        options = self.facts["search"]
        # Without the rounding error of 1.1 times 10.
        scaled = options["max_length_ratio"] * source_length * (1 - 1e-6)
        limit = max(math.ceil(scaled) + options["max_extra_tokens"], 1)
        return min(limit, self.facts["max_length"] or limit)

    def penalty(self, length):
        """Returns what a sum of log-probabilities is divided by."""
        offset = self.facts["search"]["length_offset"]
        ratio = (offset + np.float32(length)) / (offset + 1)
        return ratio ** self.facts["search"]["length_penalty"]


def run(session, **values):
    """Runs a graph; returns its outputs by name."""
    feeds = {}
    for each in session.get_inputs():
        dtype = "int32" if each.type == "tensor(int32)" else None
        feeds[each.name] = np.asarray(values[each.name], dtype)
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def largest(values, number):
    """Returns the largest values of each row and their places, best first."""
    places = np.argpartition(-values, number - 1, axis=1)[:, :number]
    # Of equal values the first one.
    places.sort(axis=1)
    found = np.take_along_axis(values, places, axis=1)
    order = np.argsort(-found, axis=1, kind="stable")
    return (
        np.take_along_axis(found, order, axis=1),
        np.take_along_axis(places, order, axis=1),
    )


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
