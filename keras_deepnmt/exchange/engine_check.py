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
    """Prints the greedy translations and the log-probabilities."""
    for name in _BLOCKED:
        sys.modules[name] = None  # importing it now raises an error
    spec = importlib.util.spec_from_file_location("translate", file)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    golden = json.load(sys.stdin)
    model = program.Model(folder)
    outputs = {
        **golden,
        "texts": model.translate(golden["sources"], beam_size=1),
        "log_probs": model.score(golden["sources"], golden["targets"]),
    }
    print(json.dumps(outputs))


if __name__ == "__main__":
    main(*sys.argv[1:])
