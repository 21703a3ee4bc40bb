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
    from keras_deepnmt.translator.trained_run import read_summary
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


class Search:
    """The search for translations of a fixed length."""

    def __init__(self, folder, is_compiled):
        self.model = _transformer(
            json.loads((folder / "model.json").read_text())
        )
        self.model.load_weights(folder / "model.weights.h5")
        self.is_compiled = is_compiled

    def prepare(self, case):
        """Sets the case that `translate` translates."""
        from keras_deepnmt.decoding import (
            SearchOptions,
            beam_search,
            compile_for,
            greedy_search,
        )

        # The end token is the last of the steps.
        self.options = SearchOptions(
            num_beams=case["num_beams"],
            length_penalty=0.0,
            min_length=case["steps"] - 1,
            max_length_ratio=0.0,
            max_extra_tokens=case["steps"],
        )
        self.search = compile_for(
            self.model,
            beam_search if case["num_beams"] > 1 else greedy_search,
            self.is_compiled,
        )
        sources, size = case["sources"], case["batch_size"]
        self.batches = [
            np.array(sources[start : start + size], "int32")
            for start in range(0, len(sources), size)
        ]
        self.steps = case["steps"]

    def translate(self):
        """Translates; returns hypotheses and sums of log-probabilities."""
        hypotheses, log_probs = [], []
        for source_ids in self.batches:
            found = self.search(
                source_ids, max_length=self.steps, options=self.options
            )
            ids, values = found["ids"], found["log_probs"]
            if ids.ndim == 2:  # greedy search
                ids, values = ids[:, None], values[:, None]
            hypotheses += [
                [_without_end(row) for row in rows] for rows in ids.tolist()
            ]
            log_probs += values[:, 0].tolist()
        return {
            "ids": [rows[0] for rows in hypotheses],
            "hypotheses": hypotheses,
            "log_probs": log_probs,
        }


class RunSearch:
    """The translator of a run."""

    def __init__(self, folder, is_compiled):
        from keras_deepnmt.translator.translator import Translator

        text = json.loads((folder / "text.json").read_text())
        self.translator = Translator.load(text["run"], compiled=is_compiled)
        self.model = self.translator.model

    def prepare(self, case):
        """Sets the case that `translate` translates."""
        # What the other engines do: see `decoding_engines.py`.
        for name, value in {
            "num_beams": case["num_beams"],
            "length_penalty": case["length_penalty"],
            "length_offset": 0.0,
            "patience": 1.0,
            "batch_size": case["batch_size"],
        }.items():
            setattr(self.translator, name, value)
        self.lines = case["lines"]

    def translate(self):
        """Translates; returns hypotheses and sums of log-probabilities."""
        found = [
            hypotheses[0]
            for hypotheses in self.translator.translate_nbest(self.lines, 1)
        ]
        rows = [_without_end(each.ids) for each in found]
        return {
            "ids": rows,
            "hypotheses": [[row] for row in rows],
            "log_probs": [each.log_prob for each in found],
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
    kind = RunSearch if (folder / "text.json").exists() else Search
    search = kind(folder, WAYS[task])
    if arguments:
        search.prepare(json.loads(*arguments))
        search.translate()
    else:
        run_worker(search)


if __name__ == "__main__":
    main(*sys.argv[1:])
