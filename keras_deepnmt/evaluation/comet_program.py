"""Scores sentences by COMET: a program for the Python that has its package.

    python comet_program.py version
    python comet_program.py score REQUEST.json RESULT.json

It is a file by itself, since `unbabel-comet` cannot be installed beside this
package; `comet_scores.py` runs it. `version` prints that of `unbabel-comet`.
REQUEST has `checkpoint`, `batch_size`, `has_references` and `samples`; RESULT
gets `scores`, one for each sample, or `refused`, a sentence.
"""

import os
import sys

# Modules beside this file have names that other packages may have.
_FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [path for path in sys.path if path != _FOLDER]

import importlib.metadata  # noqa: E402
import json  # noqa: E402


def main(action: str, *files: str) -> None:
    """Prints the version, or scores the samples and writes the result."""
    if action == "version":
        print(importlib.metadata.version("unbabel-comet"))
    else:
        _score(*files)


def _score(request_file, result_file):
    # Nothing is downloaded unless the user says so.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    with open(request_file, encoding="utf-8") as file:
        request = json.load(file)
    from comet import load_from_checkpoint

    model = load_from_checkpoint(request["checkpoint"])
    if model.requires_references() and not request["has_references"]:
        result = {"refused": "the model needs references"}
    else:
        # One device: an accelerator if there is one, and else the processor.
        found = model.predict(
            samples=request["samples"],
            batch_size=request["batch_size"],
            gpus=1,
            progress_bar=False,
        )
        result = {"scores": [float(score) for score in found.scores]}
    with open(result_file, "w", encoding="utf-8") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
