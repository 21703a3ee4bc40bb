"""Worker process: translates with our search, of this or another checkout.

The checkout is the one that PYTHONPATH names.

    decoding_search.py FOLDER create SIZES     writes a random model
    decoding_search.py FOLDER read RUN TEXT    writes a trained one
    decoding_search.py FOLDER compiled         answers requests
    decoding_search.py FOLDER compiled CASE    translates a case once, and ends

The models are written by `decoding_weights.py`, and the lines of TEXT as ids,
shortest first, to `text.json`. With `plain` in place of `compiled` TensorFlow
runs a plain graph. Requests and cases are those of `decoding_engines.py`; a
case of a trained model has the `lines` too.
"""

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.shared.worker_process import answer_questions

PADDING_ID, END_ID = 0, 3
WAYS = {"compiled": True, "plain": False}


def create_model(folder, sizes):
    """Writes a Transformer with random weights."""
    import keras

    from benchmarks.speed.measuring.decoding_weights import write_model

    keras.utils.set_random_seed(0)
    write_model(_transformer(sizes), folder)


def read_run(folder, run, text):
    """Writes the model of a run, and the lines of a text as ids.

    Raises a `ValueError` if a line is too long for the other engines.
    """
    from benchmarks.speed.measuring.decoding_weights import (
        MAX_LENGTH,
        write_model,
    )
    from keras_deepnmt.translator.loading import read_summary
    from keras_deepnmt.translator.translator import Translator

    summary = read_summary(run)
    translator = Translator.load(run)
    write_model(translator.model, folder)
    lines = Path(text).read_text(encoding="utf-8").splitlines()
    rows = [
        [*map(int, ids), END_ID]
        for ids in translator.source_tokenizer.encode(lines)
    ]
    order = sorted(range(len(rows)), key=lambda number: len(rows[number]))
    order = [number for number in order if len(rows[number]) > 1]
    longest = len(rows[order[-1]])
    extra = translator.options.max_extra_tokens
    if longest + extra > MAX_LENGTH:
        raise ValueError(
            f"Sentences must have at most {MAX_LENGTH - extra} tokens. "
            f"Received: a sentence of {longest} tokens in {text}"
        )
    found = {
        "run": str(run),
        "name": summary["name"],
        "updates": summary["steps"],
        "lines": [lines[number] for number in order],
        "sources": [rows[number] for number in order],
        "max_length": longest + extra,
    }
    (folder / "text.json").write_text(json.dumps(found))


class WordTokenizer:
    """Turns text whose words are numbers into these numbers, and back."""

    def __init__(self, vocabulary_size):
        self.vocabulary_size = vocabulary_size

    def encode(self, texts):
        return [np.array(text.split(), "int32") for text in texts]

    def decode(self, ids):
        return [" ".join(map(str, _without_end(row))) for row in ids]


def random_translator(folder, is_compiled):
    """Returns the translator of a random model, whose words are numbers."""
    from keras_deepnmt.translator.translator import Translator

    model = _transformer(json.loads((folder / "model.json").read_text()))
    model.load_weights(folder / "model.weights.h5")
    tokenizer = WordTokenizer(model.target_vocabulary_size)
    return Translator(model, tokenizer, tokenizer, compiled=is_compiled)


def trained_translator(folder, is_compiled):
    """Returns the translator of a run."""
    from keras_deepnmt.translator.translator import Translator

    text = json.loads((folder / "text.json").read_text())
    return Translator.load(text["run"], compiled=is_compiled)


class Search:
    """The translator of a model."""

    def __init__(self, translator):
        self.translator = translator
        self.model = translator.model

    def prepare(self, case):
        """Sets the case that `translate` translates."""
        self.num_hypotheses = 1
        options = {
            "num_beams": case["num_beams"],
            "length_penalty": case["length_penalty"],
            "batch_size": case["batch_size"],
        }
        if case["steps"]:
            self.num_hypotheses = case["num_beams"]
            # The end token is the last of the steps.
            options |= {
                "min_length": case["steps"] - 1,
                "max_length_ratio": 0.0,
                "max_extra_tokens": case["steps"],
            }
        else:
            # As in the other engines: see `decoding_engines.py`.
            options |= {"length_offset": 0.0, "patience": 1.0}
        for name, value in options.items():
            setattr(self.translator, name, value)
        self.lines = case.get("lines") or [
            " ".join(map(str, _without_end(row))) for row in case["sources"]
        ]

    def translate(self):
        """Translates; returns hypotheses and sums of log-probabilities."""
        found = self.translator.translate_nbest(self.lines, self.num_hypotheses)
        rows = [[_without_end(one.ids) for one in nbest] for nbest in found]
        return {
            "ids": [each[0] for each in rows],
            "hypotheses": rows,
            "log_probs": [nbest[0].log_prob for nbest in found],
        }


def score(model, sources, targets):
    """Returns the sums of log-probabilities of targets, end included."""
    from keras_deepnmt.decoding import score_targets
    from keras_deepnmt.masks import BEGIN_ID

    sums = []
    for source, target in zip(sources, targets, strict=True):
        labels = [*target, END_ID]
        log_probs = score_targets(
            model,
            *(
                np.array([row], "int32")
                for row in (source, [BEGIN_ID, *target], labels)
            ),
        )
        sums.append(float(np.sum(log_probs)))
    return sums


def _without_end(row):
    return [n for n in row if n not in (PADDING_ID, END_ID)]


def _transformer(sizes):
    from keras_deepnmt.models import Transformer

    sizes = dict(sizes)
    vocabulary_size = sizes.pop("vocabulary_size")
    return Transformer(
        vocabulary_size, vocabulary_size, **sizes, share_embeddings=True
    )


def run_worker(search):
    """Answers requests with a search."""

    def prepare(case):
        search.prepare(case)
        # Compiles; for batches of a common shape also in later rounds.
        for _ in range(1 if case["steps"] else 3):
            search.translate()
        return search.translate()

    def seconds():
        start = time.perf_counter()
        search.translate()
        return time.perf_counter() - start

    answer_questions(
        {
            "prepare": prepare,
            "score": lambda sources, targets: score(
                search.model, sources, targets
            ),
            "seconds": seconds,
            "peak_mib": lambda: (
                resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            ),
        }
    )


def main(folder, task, *arguments):
    """Writes a model, answers requests, or translates once."""
    folder = Path(folder)
    if task == "create":
        create_model(folder, json.loads(*arguments))
        return
    if task == "read":
        read_run(folder, *arguments)
        return
    is_trained = (folder / "text.json").exists()
    translator = trained_translator if is_trained else random_translator
    search = Search(translator(folder, WAYS[task]))
    if arguments:
        search.prepare(json.loads(*arguments))
        search.translate()
    else:
        run_worker(search)


if __name__ == "__main__":
    main(*sys.argv[1:])
