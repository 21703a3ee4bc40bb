"""Runs golden sentences of a folder with another engine alone.

    python engine_check.py PROGRAM FOLDER < golden.json > outputs.json

`engine_folders.py` starts it in a process of its own. The program is this
package's and not the copy in the folder, which may come from a stranger.
"""

import importlib.util
import json
import sys

# What the folder must not need.
_BLOCKED = ("keras_deepnmt", "keras", "tensorflow")


def main(file, folder):
    """Prints the translations, and log-probabilities or scores."""
    for name in _BLOCKED:
        sys.modules[name] = None  # importing it now raises an error
    spec = importlib.util.spec_from_file_location("translate", file)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    golden = json.load(sys.stdin)
    model = program.Model(folder)
    outputs = dict(golden)
    if "targets" in golden:
        outputs["texts"] = model.translate(golden["sources"], beam_size=1)
        outputs["log_probs"] = model.score(golden["sources"], golden["targets"])
    else:
        best = model.best(golden["sources"])
        outputs["texts"] = [text for text, _ in best]
        outputs["scores"] = [score for _, score in best]
    print(json.dumps(outputs))


if __name__ == "__main__":
    main(*sys.argv[1:])
