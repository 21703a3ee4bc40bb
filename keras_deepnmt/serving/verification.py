"""Runs an export's golden sentences in a process without this package."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from keras_deepnmt.errors import UserError
from keras_deepnmt.serving.golden import EXPORT_FILE, read_golden

SCRIPT = Path(__file__).with_name("standalone.py")
_LONGEST = 80


@dataclass(frozen=True)
class Verification:
    """What a verification found; printed, it is one line.

    Attributes:
        directory: the version folder.
        num_sentences: golden sentences, all of them as they were.
        largest_difference: of any score, relative where it is above 1.
    """

    directory: Path
    num_sentences: int
    largest_difference: float

    def __str__(self) -> str:
        return (
            f"{self.directory}: {self.num_sentences} golden sentences in a "
            "process with TensorFlow and TensorFlow-Text alone: same strings, "
            f"largest difference of a score {self.largest_difference:.1e}."
        )


def verify(directory: str | Path) -> Verification:
    """Checks that an export gives what it gave when it was made.

    A fresh process that can import neither this package nor keras-nlp loads
    the SavedModel and runs its golden sentences.

    Args:
        directory: A version folder, or a model folder: then its newest one.

    Returns:
        The numbers; `str` of it is a sentence.

    Raises:
        UserError: if the folder is no export, or a string differs, or a score
            by more than 1e-5 (of its size where that is above 1). Names the
            first sentence that differs.

    Example:
    >>> print(verify("served/demo"))
    served/demo/1: 16 golden sentences in a process with ...
    """
    version_dir = find_version(directory)
    read_golden(version_dir)
    report = _run_standalone("verify", version_dir)
    if report["differences"]:
        raise UserError(_explain(version_dir, report))
    return Verification(
        version_dir, report["sentences"], report["largest_difference"]
    )


def translate_in_fresh_process(
    directory: str | Path, texts: Sequence[str]
) -> list[str]:
    """Translates with an export as somebody else would.

    Args:
        directory: A version folder, or a model folder: then its newest one.
        texts: One sentence each.

    Returns:
        One translation per sentence, made in a process that can import
        neither this package nor keras-nlp.

    Raises:
        UserError: if the folder is no export.

    Example:
    >>> translate_in_fresh_process("served/demo", ["a little dog"])
    ['ein kleiner Hund']
    """
    version_dir = find_version(directory)
    report = _run_standalone("translate", version_dir, json.dumps(list(texts)))
    return report["texts"]


def find_version(directory: str | Path) -> Path:
    """Finds the folder of an exported version.

    Args:
        directory: A version folder, or a model folder: then its newest one.

    Returns:
        The version folder.

    Raises:
        UserError: if there is none.
    """
    directory = Path(directory)
    if (directory / "saved_model.pb").is_file():
        found = directory
    elif versions := numbered_versions(directory):
        found = directory / str(max(versions))
    else:
        raise UserError(
            f"{directory}: there is no exported model here. Make one with "
            f"`deepnmt export RUN {directory}`."
        )
    for name in ("saved_model.pb", EXPORT_FILE):
        if not (found / name).is_file():
            raise UserError(
                f"{found}: {name} is missing; this is no complete export."
            )
    return found


def numbered_versions(directory: str | Path) -> list[int]:
    """Lists the versions that TensorFlow Serving would see.

    Args:
        directory: A model folder; it need not exist.

    Returns:
        The numbers, in no order.
    """
    directory = Path(directory)
    if not directory.is_dir():
        return []
    return [
        int(folder.name)
        for folder in directory.iterdir()
        if folder.name.isdecimal() and folder.is_dir()
    ]


def _run_standalone(action, version_dir, text=""):
    # -P: the script's folder is no place to import from.
    process = subprocess.run(
        [sys.executable, "-P", str(SCRIPT), action, str(version_dir)],
        input=text,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        env={
            **os.environ,
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "PYTHONIOENCODING": "utf-8",
        },
    )
    if process.returncode:
        raise UserError(
            f"{version_dir}: could not be run in a fresh process "
            f"(exit code {process.returncode}): {_cause(process.stderr)}"
        )
    return json.loads(process.stdout.splitlines()[-1])


def _cause(stderr):
    # The last line that names an exception; TensorFlow's messages go on with
    # the graph's nodes.
    named = re.findall(r"^[\w.]*(?:Error|Exception)\b.*", stderr, re.MULTILINE)
    return named[-1] if named else (stderr.strip() or "no message")


def _explain(version_dir, report):
    first = report["differences"][0]
    lines = {difference["line"] for difference in report["differences"]}
    return (
        f"{version_dir}: {len(lines)} of {report['sentences']} golden "
        f"sentences differ. The first is number {first['line']}, "
        f"{_short(first['source'])}: `{first['name']}` was "
        f"{_short(first['expected'])} and is {_short(first['received'])}."
    )


def _short(value):
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
