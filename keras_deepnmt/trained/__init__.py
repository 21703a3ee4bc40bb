"""Trained models that come with the package, each a preset folder.

A model is named like the recipe that trains it. Its folder has the name, and
beside the files of a preset folder `scores.json`, with what `evaluate` measured
of these weights.
"""

import fnmatch
from pathlib import Path
from typing import Any

from keras_deepnmt.files import PRESET_FILE, SCORES_FILE
from keras_deepnmt.json_files import read_json

# The plain one that was trained on real text, which commands take first.
USUAL_MODEL = "transformer_small.tatoeba_de_en"
_FOLDER = Path(__file__).parent


def list_trained_models(pattern: str = "*") -> list[str]:
    """Returns the names of the trained models in the package, in order.

    Args:
        pattern: Names to list; `*` and `?` are wildcards.

    Example:
    >>> list_trained_models("*.demo_de_en")
    ['transformer_tiny.demo_de_en']
    """
    names = [file.parent.name for file in _FOLDER.glob(f"*/{PRESET_FILE}")]
    return sorted(fnmatch.filter(names, pattern))


def find_run_folder(run: str | Path) -> Path:
    """Returns the folder of a run, or that of a trained model of the package.

    Args:
        run: A run folder or preset folder, or the name of a trained model. A
            folder of this name comes first.

    Example:
    >>> find_run_folder("transformer_tiny.demo_de_en").is_dir()
    True
    >>> find_run_folder("runs/demo")
    PosixPath('runs/demo')
    """
    folder = Path(run)
    if not folder.exists() and str(run) in list_trained_models():
        return _FOLDER / str(run)
    return folder


def is_in_package(folder: Path) -> bool:
    """Returns whether a folder is that of a trained model of the package.

    Args:
        folder: What `find_run_folder` returned.

    Example:
    >>> is_in_package(find_run_folder("transformer_tiny.demo_de_en"))
    True
    """
    return folder.parent == _FOLDER


def output_folder(folder: Path) -> Path:
    """Returns where to write files about a run: to its folder.

    For a trained model of the package it is the current folder.

    Args:
        folder: What `find_run_folder` returned.

    Example:
    >>> output_folder(find_run_folder("runs/demo"))
    PosixPath('runs/demo')
    """
    return Path() if is_in_package(folder) else folder


def describe_trained_model(name: str) -> dict[str, Any]:
    """Returns what is known of a trained model of the package.

    Returns:
        Its `name`, the `scores` (one dict for each test set, with its name as
        `test_set`), the `bytes` of its folder, its `license` and the path of
        its `card`.

    Example:
    >>> model = describe_trained_model("transformer_tiny.demo_de_en")
    >>> model["license"]
    'apache-2.0'
    """
    import yaml

    folder = _FOLDER / name
    card = folder / "README.md"
    front = card.read_text(encoding="utf-8").split("---\n", 2)[1]
    rows = read_json(folder / SCORES_FILE)["evaluations"]
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {
        "name": name,
        "scores": [
            {
                "test_set": row["test_set"]["name"],
                **{k: score["value"] for k, score in row["scores"].items()},
            }
            for row in rows
        ],
        "bytes": sum(file.stat().st_size for file in files),
        "license": yaml.safe_load(front)["license"],
        "card": str(card),
    }
