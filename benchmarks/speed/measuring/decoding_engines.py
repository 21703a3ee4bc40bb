"""Worker process: translates with CTranslate2, Hugging Face or JoeyNMT.

It runs in their own environment, so that it imports nothing of ours but
`worker_process`. `FOLDER` holds what `decoding_weights.py` writes.

    decoding_engines.py FOLDER ENGINE build    converts the weights
    decoding_engines.py FOLDER ENGINE          answers requests
    decoding_engines.py FOLDER ENGINE CASE     translates a case once, and ends

A case is a dict: `sources`, rows of ids that each end with the end id, sorted
by length; `batch_size`; `num_beams`; `steps`, the length of all translations,
or 0 if they end by themselves; `max_length`, the limit if so; and
`length_penalty`, the exponent of the length that the sum of log-probabilities
is divided by.
"""

import json
import resource
import sys
import time
from importlib.metadata import version
from pathlib import Path

from benchmarks.shared.worker_process import answer_questions
from benchmarks.speed.measuring.engines.ctranslate2_engine import CTranslate2
from benchmarks.speed.measuring.engines.huggingface_engine import HuggingFace
from benchmarks.speed.measuring.engines.joeynmt_engine import JoeyNMT

ENGINES = {
    "ctranslate2_float32": (CTranslate2, ("float32",)),
    "ctranslate2_int8": (CTranslate2, ("int8",)),
    "huggingface": (HuggingFace, ()),
    "joeynmt": (JoeyNMT, ()),
}


def run_worker(engine):
    """Answers requests with an engine."""
    prepared = {}

    def prepare(case):
        prepared.update(engine.prepare(case))
        return {"ids": engine.translate(prepared)}

    def seconds():
        start = time.perf_counter()
        engine.translate(prepared)
        return time.perf_counter() - start

    answer_questions(
        {
            "prepare": prepare,
            "score": lambda sources, targets: engine.score(sources, targets),
            "seconds": seconds,
            "peak_mib": lambda: (
                resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            ),
            "version": lambda: " ".join(
                f"{name} {version(name)}" for name in engine.packages
            ),
        }
    )


def main(folder, name, task=None):
    """Converts the weights, answers requests, or translates once."""
    engine, arguments = ENGINES[name]
    folder = Path(folder)
    if task == "build":
        engine.build(folder)
        return
    engine = engine(folder, *arguments)
    if task is None:
        run_worker(engine)
    else:
        engine.translate(engine.prepare(json.loads(task)))


if __name__ == "__main__":
    main(*sys.argv[1:])
