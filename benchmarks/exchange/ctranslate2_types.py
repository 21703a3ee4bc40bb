"""Measures what the types of weights for CTranslate2 cost.

    python benchmarks/exchange/ctranslate2_types.py

The trained model of the package translates the test set of the embedded corpus
with this package and, exported with each type, with CTranslate2; both with 4
beams and the same length penalty. A row for each type is appended to
`results/ctranslate2_types.csv`: BLEU, equal translations, how many of the
others have the higher score with either search, bytes of the model, and what
the check of the export found in golden sentences.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import get_args

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_row, provenance

RESULTS = Path(__file__).parent / "results" / "ctranslate2_types.csv"
MODEL = "transformer_tiny.demo_de_en"
# The test set is this part of the embedded corpus' known files.
CORPUS = "demo_de_en"


def main(arguments: list[str] | None = None) -> int:
    """Measures each type and appends its row; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, help="use the first N")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    from keras_deepnmt.commands.terminal.quiet_import import import_backend

    import_backend()
    from keras_deepnmt import Translator
    from keras_deepnmt.data.corpora import CorpusOptions
    from keras_deepnmt.data.known_corpora.finding import find_corpus_files
    from keras_deepnmt.exchange import export_ctranslate2
    from keras_deepnmt.exchange.ctranslate2_export import Dtype
    from keras_deepnmt.exchange.ctranslate2_program import Model

    origin = provenance("keras", "tensorflow", "ctranslate2", "sacrebleu")
    files = find_corpus_files(CorpusOptions(name=CORPUS), "test", None)
    sources, references = (
        file.read_text(encoding="utf-8").splitlines()[: options.sentences]
        for file in (files.source, files.target)
    )
    # CTranslate2 has this length penalty alone.
    translator = Translator.from_preset(
        MODEL, length_offset=0.0, compiled=False
    )
    best = [found for (found,) in translator.translate_nbest(sources, 1)]
    ours = [found.text for found in best]
    for dtype in get_args(Dtype):
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / "model"
            found = export_ctranslate2(translator, folder, dtype)
            theirs = Model(folder).translate(sources)
            row = {
                **origin,
                "model": MODEL,
                "dtype": dtype,
                "bytes": (folder / "model.bin").stat().st_size,
                "golden_sentences": found["sentences"],
                "golden_equal": found["equal"],
                "largest_difference": f"{found['largest_difference']:.1e}",
                "sentences": len(sources),
                "num_beams": translator.num_beams,
                "length_penalty": translator.length_penalty,
                "equal_translations": sum(
                    one == other
                    for one, other in zip(ours, theirs, strict=True)
                ),
                **_higher(translator, sources, best, theirs),
                **_bleu("bleu", theirs, references),
                **_bleu("bleu_here", ours, references),
            }
        append_row(options.output, row)
    return 0


def _higher(translator, sources, ours, theirs):
    """Counts which of two different translations this package scores higher."""
    others = [
        (source, one, other)
        for source, one, other in zip(sources, ours, theirs, strict=True)
        if one.text != other
    ]
    scored = translator.score(
        [source for source, _, _ in others], [text for _, _, text in others]
    )
    differences = [
        one.score - score.total / len(score.tokens) ** translator.length_penalty
        for (_, one, _), score in zip(others, scored, strict=True)
    ]
    return {
        "higher_here": sum(each > 0 for each in differences),
        "higher_there": sum(each < 0 for each in differences),
    }


def _bleu(name, translations, references):
    from keras_deepnmt.evaluation import corpus_scores

    score = corpus_scores(translations, references, num_resamples=1_000)["bleu"]
    return {
        name: round(score.value, 2),
        f"{name}_interval": round(score.interval, 2),
        f"{name}_signature": score.signature,
    }


if __name__ == "__main__":
    sys.exit(main())
