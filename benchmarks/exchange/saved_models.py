"""Measures exports for TensorFlow Serving: warm-up, size and BLEU.

    python benchmarks/exchange/saved_models.py

The trained model of the package is exported with each type of weights. A fresh
process loads the export as the server does, by a session, with and without the
requests in its warm-up file; then it times real requests of each signature,
one sentence and eight, for the first time and again. A first request is run
once in a process, and some take only milliseconds: with the warm-up several
processes do it, and the row has the median of their ratios. The test set of
the embedded corpus is translated with the export. A row for each type is
appended to `results/saved_models.csv`.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import get_args

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.shared.result_rows import append_row, provenance

RESULTS = Path(__file__).parent / "results" / "saved_models.csv"
MODEL = "transformer_tiny.demo_de_en"
# The test set is this part of the embedded corpus' known files.
CORPUS = "demo_de_en"
BATCH = 8
REPETITIONS = 5


def main(arguments: list[str] | None = None) -> int:
    """Measures each type and appends its row; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, help="use the first N")
    parser.add_argument(
        "--types", nargs="+", help="of the weights, that get a row; else all"
    )
    parser.add_argument(
        "--processes", type=int, default=5, help="that load it with warm-up"
    )
    parser.add_argument("--output", type=Path, default=RESULTS)
    # The fresh process.
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--warm", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        print(json.dumps(serve(options.serve, options.warm)))
        return 0
    from keras_deepnmt.commands.terminal.quiet_import import import_backend

    import_backend()
    from keras_deepnmt import Translator
    from keras_deepnmt.data.corpora import CorpusOptions
    from keras_deepnmt.data.known_corpora.finding import find_corpus_files
    from keras_deepnmt.serving import SavedModelClient, export, verify
    from keras_deepnmt.serving.exporting import Dtype

    origin = provenance("keras", "tensorflow", "tensorflow-text", "sacrebleu")
    files = find_corpus_files(CorpusOptions(name=CORPUS), "test", None)
    sources, references = (
        file.read_text(encoding="utf-8").splitlines()[: options.sentences]
        for file in (files.source, files.target)
    )
    translator = Translator.from_preset(MODEL, compiled=False)
    pairs = list(zip(sources, references, strict=True))
    exact = None
    # Float32 comes first, with which the others are compared.
    for dtype in get_args(Dtype):
        is_measured = not options.types or dtype in options.types
        if exact and not is_measured:
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder = export(translator, temporary, dtype=dtype)
            client = SavedModelClient(folder)
            texts = []
            for start in range(0, len(sources), 32):
                texts += client.translate(sources[start : start + 32])
            exact = exact or texts
            if not is_measured:
                continue
            golden = verify(folder)
            row = {
                **origin,
                "model": MODEL,
                "dtype": dtype,
                "bytes": sum(
                    file.stat().st_size
                    for file in (folder / "variables").iterdir()
                ),
                "golden_sentences": golden.num_sentences,
                "largest_difference": f"{golden.largest_difference:.1e}",
                "sentences": len(sources),
                "equal_to_float32": sum(
                    one == other
                    for one, other in zip(exact, texts, strict=True)
                ),
                **_bleu(texts, references),
                **_timed(folder, pairs[:BATCH], warm=False, processes=1),
                **_timed(folder, pairs[:BATCH], True, options.processes),
            }
        append_row(options.output, row)
    return 0


def _timed(folder, pairs, warm, processes):
    """Times requests in fresh processes; medians over them."""
    found = [_served(folder, pairs, warm) for _ in range(processes)]
    ratios = {
        name: round(statistics.median(one["ratios"][name] for one in found), 2)
        for name in found[0]["ratios"]
    }
    kind = "warmed" if warm else "cold"
    return {
        f"{kind}_processes": processes,
        f"{kind}_requests": found[0]["requests"],
        **{
            f"{kind}_{name}": round(
                statistics.median(one[name] for one in found), 3
            )
            for name in ("requests_s", "slowest_first_s")
        },
        f"{kind}_largest_ratio": max(ratios.values()),
        f"{kind}_ratios": json.dumps(ratios),
    }


def _served(folder, pairs, warm):
    done = subprocess.run(
        [
            *(sys.executable, __file__, "--serve", str(folder)),
            *(["--warm"] if warm else []),
        ],
        input=json.dumps(pairs),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def serve(folder: Path, warm: bool) -> dict:
    """Runs an export as TensorFlow Serving does, and times its requests."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  registers Sentencepiece*

    from keras_deepnmt.serving.warm_up import read_warm_up

    pairs = json.load(sys.stdin)
    requests = read_warm_up(folder) if warm else []
    session = tf.compat.v1.Session(graph=tf.Graph())
    with session.graph.as_default():
        model = tf.compat.v1.saved_model.loader.load(
            session, ["serve"], str(folder)
        )

    def seconds(signature, inputs):
        definition = model.signature_def[signature]
        feeds = {
            definition.inputs[name].name: value
            for name, value in inputs.items()
        }
        for name, value in definition.defaults.items():
            feeds.setdefault(
                definition.inputs[name].name, tf.make_ndarray(value)
            )
        fetches = [output.name for output in definition.outputs.values()]
        start = time.perf_counter()
        session.run(fetches, feeds)
        return time.perf_counter() - start

    spent = sum(seconds(*request) for request in requests)
    firsts, ratios = [], {}
    for signature in ("serving_default", "translate_nbest", "translate_given"):
        for number in (1, BATCH):
            texts = [source for source, _ in pairs[:number]]
            first, usual = _first_and_usual(seconds, signature, {"text": texts})
            firsts.append(first)
            ratios[f"{signature}_{number}"] = first / usual
    for number in (1, BATCH):
        sources, targets = zip(*pairs[:number], strict=True)
        inputs = {"source": list(sources), "target": list(targets)}
        first, usual = _first_and_usual(seconds, "score", inputs)
        firsts.append(first)
        ratios[f"score_{number}"] = first / usual
    return {
        "requests": len(requests),
        "requests_s": round(spent, 1),
        "slowest_first_s": round(max(firsts), 3),
        "ratios": ratios,
    }


def _first_and_usual(seconds, signature, inputs):
    first = seconds(signature, inputs)
    again = [seconds(signature, inputs) for _ in range(REPETITIONS)]
    return first, statistics.median(again)


def _bleu(translations, references):
    from keras_deepnmt.evaluation import corpus_scores

    score = corpus_scores(translations, references, num_resamples=1_000)["bleu"]
    return {
        "bleu": round(score.value, 2),
        "bleu_interval": round(score.interval, 2),
        "bleu_signature": score.signature,
    }


if __name__ == "__main__":
    sys.exit(main())
