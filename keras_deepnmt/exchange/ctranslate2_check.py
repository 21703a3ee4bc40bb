"""Runs golden sentences of a folder with CTranslate2 alone.

    python ctranslate2_check.py FOLDER < golden.json > outputs.json

`ctranslate2_export.py` starts it in a process of its own. The program is this
package's and not the copy in the folder, which may come from a stranger.
"""

import importlib.util
import json
import sys
from pathlib import Path


class _Refuses:
    """Lets nothing be imported that the folder must not need."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("keras_deepnmt", "keras", "tensorflow"):
            raise ImportError(f"{name} must not be needed.")


def main():
    """Prints the greedy translations and the log-probabilities."""
    sys.meta_path.insert(0, _Refuses())
    file = Path(__file__).with_name("ctranslate2_program.py")
    spec = importlib.util.spec_from_file_location("translate", file)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    golden = json.load(sys.stdin)
    model = program.Model(sys.argv[1])
    outputs = {
        **golden,
        "texts": model.translate(golden["sources"], beam_size=1),
        "log_probs": model.score(golden["sources"], golden["targets"]),
    }
    print(json.dumps(outputs))


if __name__ == "__main__":
    main()
