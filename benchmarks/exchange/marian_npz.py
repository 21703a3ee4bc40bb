"""Compares imported models of Marian with Marian itself.

    python -m venv marian
    marian/bin/pip install pymarian==1.12.42 sentencepiece==0.2.0
    python benchmarks/exchange/marian_npz.py --python marian/bin/python
        --data-dir DATA

`marian_models.py` trains a small model there on Multi30k, German to English,
and translates sentences of its validation set by beam search with four
hypotheses. Its scorer scores these translations. Here the model is imported,
scores them too, and translates the same sentences. Where the translations
differ, it is counted whose has the higher score. DATA is a folder of corpora
with `multi30k`. A row for each kind of model is appended to
`results/marian_npz.csv`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import sacrebleu

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_row, provenance

RESULTS = Path(__file__).parent / "results" / "marian_npz.csv"
CASES = [
    {
        "kind": "unigram",
        "shared": True,
        "norm": "post",
        "activation": "relu",
        "decoder": "self-attention",
        "normalize": 1.0,
        "operations": {"transformer_postprocess": "dan"},
    },
    {
        "kind": "bpe",
        "shared": False,
        "norm": "pre",
        "activation": "swish",
        "decoder": "self-attention",
        "normalize": 0.6,
        "operations": {
            "transformer_preprocess": "n",
            "transformer_postprocess": "da",
            "transformer_postprocess_top": "n",
        },
    },
    {
        "kind": "unigram",
        "shared": True,
        "norm": "post",
        "activation": "relu",
        "decoder": "average-attention",
        "normalize": 1.0,
        "operations": {
            "transformer_postprocess": "dan",
            "transformer_decoder_autoreg": "average-attention",
            "transformer_dim_aan": 192,
        },
    },
    {
        "kind": "bpe",
        "shared": True,
        "norm": "post",
        "activation": "relu",
        "decoder": "rnn",
        "normalize": 1.0,
        "operations": {
            "transformer_postprocess": "dan",
            "transformer_decoder_autoreg": "rnn",
            "dec_cell": "ssru",
        },
    },
]
SIDES = {"source": "de", "target": "en"}


def main(arguments: list[str] | None = None) -> None:
    """Measures each case and appends its row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", required=True)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--updates", type=int, default=400)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--cases", type=int, nargs="+", default=[0, 1, 2, 3])
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    from keras_deepnmt.commands.terminal.quiet_import import import_backend

    import_backend()
    for number in options.cases:
        with tempfile.TemporaryDirectory() as folder:
            row = compare(Path(folder), CASES[number], options)
        append_row(options.output, row)


def compare(folder: Path, case: dict, options) -> dict:
    """Trains the model, imports it, and returns the row."""
    from keras_deepnmt import Translator
    from keras_deepnmt.exchange import import_model

    corpus = options.data_dir / "multi30k"
    for side, language in SIDES.items():
        text = (corpus / f"train.{language}").read_text()
        (folder / f"train.{side}").write_text(text)
    sentences = (corpus / "valid.de").read_text().splitlines()
    sentences = sentences[: options.sentences]
    references = (corpus / "valid.en").read_text().splitlines()
    references = references[: len(sentences)]
    (folder / "sentences").write_text("\n".join(sentences) + "\n")
    program = Path(__file__).with_name("marian_models.py")
    told = {**case, "updates": options.updates}
    subprocess.run(
        [options.python, str(program), str(folder), json.dumps(told)],
        check=True,
    )
    theirs = json.loads((folder / "outputs.json").read_text())
    preset = import_model(folder / "model.npz", folder / "preset")
    translator = Translator.load(
        preset,
        batch_size=16,
        num_beams=4,
        length_penalty=case["normalize"],
    )
    found = [row[0] for row in translator.translate_nbest(sentences, 1)]
    equal = [
        one.text == other
        for one, other in zip(found, theirs["translations"], strict=True)
    ]
    scored = translator.score(sentences, theirs["translations"])
    # Of the log-probability of a whole translation, in nats.
    from_scorer, from_search = (
        [
            abs(one.total - log_prob)
            for one, log_prob in zip(scored, theirs[name], strict=True)
        ]
        for name in ("scorer", "log_probs")
    )
    # By the same measure, since Marian's decoder may have another.
    higher = [
        one.score > other.total / len(other.tokens) ** case["normalize"]
        for one, other, is_equal in zip(found, scored, equal, strict=True)
        if not is_equal
    ]
    return {
        **provenance("tensorflow", "keras", "sentencepiece"),
        **theirs["versions"],
        **{name: case[name] for name in case if name != "operations"},
        "updates": options.updates,
        "sentences": len(sentences),
        "equal_translations": sum(equal),
        "difference_from_scorer": float(f"{max(from_scorer):.2g}"),
        # A search may have made a text of other pieces than it is cut into.
        "as_in_search": sum(difference < 0.01 for difference in from_search),
        "bleu_here": bleu([one.text for one in found], references),
        "bleu_there": bleu(theirs["translations"], references),
        "higher_here": sum(higher),
        "higher_there": len(higher) - sum(higher),
    }


def bleu(translations, references) -> float:
    """BLEU by SacreBLEU's defaults."""
    score = sacrebleu.corpus_bleu(translations, [references]).score
    return round(score, 2)


if __name__ == "__main__":
    main()
