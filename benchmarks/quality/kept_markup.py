"""Measures what `translate --keep-markup` keeps, and what it costs.

    python benchmarks/quality/kept_markup.py RUN

The run translates the embedded corpus. The committed rows are of the
quickstart's run, and of one trained by its recipe with `data.mask_symbols: 4`,
whose folder was renamed since. Segments with tags, placeholders and
other items are made from its test set by a seed. Rows are appended to
`results/kept_markup.csv`: of the items, how many the translations have exactly
as often as the segments; and the BLEU of the rest, without all items, beside
that of the same sentences without markup (`plain`: the placeholders are names,
which are taken out of the translations) and of the segments without their items
(`removed`). A model without symbols is also measured with an unknown token
where an item was.
"""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_row, provenance

RESULTS = Path(__file__).parent / "results" / "kept_markup.csv"
# No text has it, so that it is an unknown token.
UNKNOWN = "\ue000"
NUM_VALID = 500


def main(arguments: list[str] | None = None) -> int:
    """Measures a run and appends the rows; returns the exit code."""
    options = _parse(arguments)
    from keras_deepnmt.commands.terminal.quiet_import import import_backend

    import_backend()
    from benchmarks.quality.measuring.marked_segments import make_segments
    from keras_deepnmt.data.demo import demo_pairs
    from keras_deepnmt.translator import Translator

    pairs = demo_pairs(NUM_VALID + options.segments)[NUM_VALID:]
    segments = make_segments(pairs, options.seed)
    translator = Translator.load(options.run)
    rows = measure(translator, segments)
    for row in rows:
        print(json.dumps(row))
        append_row(
            options.output,
            {
                **provenance("tensorflow", "keras", "sentencepiece"),
                "run": options.run.resolve().name,
                "segments": len(segments),
                "seed": options.seed,
                **row,
            },
        )
    return 0 if rows[0]["kept"] == rows[0]["items"] else 1


def measure(translator, segments) -> list[dict]:
    """Returns what the rows have of the translations of segments."""
    from benchmarks.quality.measuring.marked_segments import rest_of
    from keras_deepnmt.data.kept_items import find_kept_items
    from keras_deepnmt.data.mask_symbols import mask_symbols
    from keras_deepnmt.documents import Segments
    from keras_deepnmt.evaluation import corpus_scores

    symbols = mask_symbols(
        translator.source_tokenizer, translator.target_tokenizer
    )
    references = [segment.reference for segment in segments]

    def bleu(texts):
        rest = [
            rest_of(text, segment.names)
            for text, segment in zip(texts, segments, strict=True)
        ]
        return corpus_scores(rest, references, ["bleu"])["bleu"]

    made = Segments(translator, [segment.source for segment in segments])
    nbest = translator.translate_nbest(made.reads, 1)
    found = made.finish([hypotheses[0] for hypotheses in nbest])
    texts = [segment.text for segment in found]
    plain = bleu(translator.translate([s.plain for s in segments]))
    removed = bleu(translator.translate([rest_of(s.source) for s in segments]))
    kept = [
        Counter(item.text for item in find_kept_items(text))
        for text in (*(s.source for s in segments), *texts)
    ]
    pairs = list(zip(kept[: len(texts)], kept[len(texts) :], strict=True))
    score = bleu(texts)
    common = {
        "mask_symbols": len(symbols),
        "plain_bleu": round(plain.value, 2),
        "removed_bleu": round(removed.value, 2),
        "signature": score.signature,
    }
    rows = [
        {
            "reading": "symbols" if symbols else "nothing",
            "items": sum(source.total() for source, _ in pairs),
            "kept": sum((one & other).total() for one, other in pairs),
            "invented": sum((other - one).total() for one, other in pairs),
            "without_symbols": made.num_without_symbols,
            "bleu": round(score.value, 2),
            **common,
        }
    ]
    if not symbols:
        marked = [_with_unknown(segment.source) for segment in segments]
        outputs = translator.translate(marked)
        score = bleu([text.replace("⁇", " ") for text in outputs])
        rows.append(
            {
                **dict.fromkeys(rows[0], ""),
                "reading": "unknown token",
                "bleu": round(score.value, 2),
                **common,
            }
        )
    return rows


def _with_unknown(text):
    from keras_deepnmt.data.kept_items import TAG_KINDS, find_kept_items

    for item in reversed(find_kept_items(text)):
        stand_in = "" if item.kind in TAG_KINDS else UNKNOWN
        text = text[: item.begin] + stand_in + text[item.end :]
    return text


def _parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="run folder")
    parser.add_argument("--segments", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=RESULTS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
