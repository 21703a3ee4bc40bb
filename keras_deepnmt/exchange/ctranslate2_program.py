"""Translates lines of text with CTranslate2 and SentencePiece alone.

    python translate.py < source.txt > translations.txt

The model is in the folder of this file. `deepnmt export --format ctranslate2`
wrote both.
"""

import itertools
import json
import math
import re
import sys
from pathlib import Path

import ctranslate2
import sentencepiece


class Model:
    """The model of a folder, with its tokenizers and search options.

    `threads` compute with it; 0 lets CTranslate2 decide.
    """

    def __init__(self, folder, threads=0):
        folder = Path(folder)
        content = json.loads((folder / "export.json").read_text("utf-8"))
        self.options = content["search"]
        self.longest = content["max_source_length"]
        # Folders of earlier versions lack these: there are positions for no
        # more tokens, and whether pieces end words.
        self.most = content.get("max_target_length") or math.inf
        self.word_ends = content.get("word_ends", False)
        self.special = content["special_pieces"]
        self.source, self.target = (
            sentencepiece.SentencePieceProcessor(
                model_file=str(folder / f"{side}.spm")
            )
            for side in ("source", "target")
        )
        # The type of the stored weights; others would be converted.
        self.translator = ctranslate2.Translator(
            str(folder),
            device="auto",
            compute_type="default",
            intra_threads=threads,
        )

    def pieces(self, text):
        """Returns the pieces of a source."""
        return self.source.encode(text.replace("\0", ""), out_type=str)

    def text(self, pieces):
        """Returns the text of the pieces of a translation."""
        text = self.target.decode(pieces)
        return text.removesuffix(" ") if self.word_ends else text

    def translate(self, texts, **changes):
        """Returns the translations; that of an empty text is empty."""
        nbest = self.translate_nbest(texts, 1, **changes)
        return [found[0]["text"] for found in nbest]

    def translate_nbest(self, texts, number, **changes):
        """Returns up to `number` translations of each text, best first.

        Each is a dict: `text`, `score` by which they are sorted, `log_prob`
        and `truncated`, whether it was broken off.
        """
        rows = [self.pieces(text)[: self.longest - 1] for text in texts]
        full = [row for row in rows if row]
        options = {"max_batch_size": 32, **self.options, **changes}
        ratio, extra = options.pop("length_ratio"), options.pop("extra_tokens")
        # Each source has a limit of its own; ends count as tokens.
        limits = [
            min(
                self.most,
                # A ratio such as 1.1 is no exact number.
                math.ceil(ratio * (len(row) + 1) * (1 - 1e-6)) + extra,
            )
            for row in full
        ]
        found = self.translator.translate_batch(
            full,
            max_input_length=0,
            max_decoding_length=max(limits, default=1),
            num_hypotheses=number,
            return_scores=True,
            # Padding and the begin are no tokens of a translation.
            suppress_sequences=[[piece] for piece in self.special],
            **options,
        )
        empty = {"text": "", "score": 0.0, "log_prob": 0.0, "truncated": False}
        results = iter(
            self._hypotheses(result, limit, options["length_penalty"])
            for result, limit in zip(found, limits, strict=True)
        )
        return [next(results) if row else [empty] for row in rows]

    def _hypotheses(self, result, limit, length_penalty):
        """The hypotheses of a source, of at most `limit` tokens each."""
        return [
            {
                "text": self.text(pieces[: limit - 1]),
                "score": score,
                # Not divided by a power of the length, its end included.
                "log_prob": score * (len(pieces) + 1) ** length_penalty,
                "truncated": len(pieces) >= limit,
            }
            for pieces, score in zip(
                result.hypotheses, result.scores, strict=True
            )
        ]

    def score(self, sources, targets):
        """Returns the sums of the log-probabilities, end included."""
        return list(map(sum, self.token_scores(sources, targets)))

    def token_scores(self, sources, targets):
        """Returns the log-probabilities of the tokens of given targets."""
        scores = self.translator.score_batch(
            [self.pieces(text)[: self.longest - 1] for text in sources],
            [self.target.encode(text, out_type=str) for text in targets],
            max_input_length=0,
        )
        return [list(score.log_probs) for score in scores]

    def num_target_tokens(self, text):
        """Returns the number of tokens of a target, its end included."""
        return len(self.target.encode(text)) + 1


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
