"""Runs an export's golden sentences in a process without this package."""

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from keras_deepnmt.errors import UserError
from keras_deepnmt.files import file_sha256
from keras_deepnmt.json_files import read_json
from keras_deepnmt.processes import run_python
from keras_deepnmt.serving.golden import EXPORT_FILE, read_golden
from keras_deepnmt.translator.requests import as_sentences

SCRIPT = Path(__file__).with_name("standalone.py")
_MAX_CHARACTERS = 80
_REMEDY = "Copy the export again, or export the model again."


class _Description(BaseModel, extra="allow"):
    """The values of `export.json` that are read, and their types."""

    num_beams: int
    length_penalty: float
    sha256: dict[str, str] = {}


@dataclass(frozen=True)
class Verification:
    """The result of a successful verification; `str` of it is one line.

    Attributes:
        directory: the version folder.
        num_sentences: number of golden sentences.
        largest_difference: largest difference of a score, relative to scores
            above 1.
    """

    directory: Path
    num_sentences: int
    largest_difference: float

    def __str__(self) -> str:
        return (
            f"{self.directory}: {self.num_sentences} golden sentences run in a "
            "process with only TensorFlow and TensorFlow-Text: equal strings, "
            f"largest difference of a score {self.largest_difference:.1e}."
        )


def verify(directory: str | Path) -> Verification:
    """Checks that the outputs of an export are those of when it was made.

    A fresh process that can import neither this package nor keras-nlp loads
    the SavedModel and runs its golden sentences.

    Args:
        directory: A version folder, or a model folder, whose newest version is
            used.

    Returns:
        A `Verification`; `str` of it is a one-line summary.

    Raises:
        UserError: if the folder is not an export, a string differs, or a score
            differs by more than 1e-5 (relative if it is above 1). The message
            names the first sentence that differs.

    Example:
    >>> print(verify("served/demo"))
    served/demo/1: 16 golden sentences run in a process with ...
    """
    version_dir = find_version(directory)
    read_golden(version_dir)
    report = _run_standalone("verify", version_dir)
    refuse_differences(version_dir, report)
    return Verification(
        version_dir, report["sentences"], report["largest_difference"]
    )


def translate_in_fresh_process(
    directory: str | Path, texts: str | Iterable[str]
) -> str | list[str]:
    """Translates with an export in a process without this package.

    Args:
        directory: A version folder, or a model folder, whose newest version is
            used.
        texts: Sentences, or one sentence as a string.

    Returns:
        One translation per sentence, from a process that can import neither
        this package nor keras-nlp; of a string, the translation alone.

    Raises:
        TypeError: if a sentence is not a string.
        UserError: if the folder is not an export.

    Example:
    >>> translate_in_fresh_process("served/demo", ["a little dog"])
    ['ein kleiner Hund']
    """
    texts, is_one = as_sentences(texts)
    version_dir = find_version(directory)
    report = _run_standalone("translate", version_dir, json.dumps(texts))
    return report["texts"][0] if is_one else report["texts"]


def find_version(directory: str | Path) -> Path:
    """Returns `directory` if it is a version, or the newest version in it.

    Raises a `UserError` if there is no complete export, or if a file of it is
    damaged.
    """
    directory = Path(directory)
    if (directory / "saved_model.pb").is_file():
        version_dir = directory
    elif versions := numbered_versions(directory):
        version_dir = directory / str(max(versions))
    else:
        raise UserError(
            f"{directory}: there is no exported model here. Make one with "
            f"`deepnmt export RUN {directory}`."
        )
    for name in ("saved_model.pb", EXPORT_FILE):
        if not (version_dir / name).is_file():
            raise UserError(
                f"{version_dir}: {name} is missing; the export is not complete."
            )
    _check_files(version_dir)
    return version_dir


def _check_files(version_dir):
    """Refuses files of the SavedModel that are not those of the export."""
    description = version_dir / EXPORT_FILE
    for name, expected in read_description(version_dir)["sha256"].items():
        try:
            received = file_sha256(version_dir / name)
        except OSError as error:
            received = error.strerror
        if received != expected:
            raise UserError(
                f"{version_dir / name}: damaged; its SHA-256 must be that in "
                f"{description}. Received: {received} instead of {expected}. "
                f"{_REMEDY}"
            )


def read_description(version_dir: Path) -> dict[str, Any]:
    """Reads what an export says about its model and its files.

    Raises a `UserError` if the file is damaged.
    """
    content = read_json(version_dir / EXPORT_FILE, _Description, _REMEDY)
    # Exports of earlier versions have no hashes.
    return {"sha256": {}, **content}


def numbered_versions(directory: str | Path) -> list[int]:
    """Lists the version numbers in a model folder, which need not exist."""
    directory = Path(directory)
    if not directory.is_dir():
        return []
    return [
        int(folder.name)
        for folder in directory.iterdir()
        if folder.name.isdecimal() and folder.is_dir()
    ]


def _run_standalone(action, version_dir, text=""):
    process = run_python(
        [SCRIPT, action, version_dir],
        text,
        env={
            **os.environ,
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "PYTHONIOENCODING": "utf-8",
        },
    )
    if process.returncode:
        raise UserError(
            f"{version_dir}: could not be run in a fresh process "
            f"(exit code {process.returncode}): {_error_line(process.stderr)}"
        )
    return json.loads(process.stdout.splitlines()[-1])


def _error_line(stderr):
    # The last line that names an exception; TensorFlow lists graph nodes after
    # it.
    named = re.findall(r"^[\w.]*(?:Error|Exception)\b.*", stderr, re.MULTILINE)
    return named[-1] if named else (stderr.strip() or "no message")


def refuse_differences(version_dir: Path, report: dict[str, Any]) -> None:
    """Raises a `UserError` that names the first difference, if there is one."""
    if report["differences"]:
        raise UserError(_describe_difference(version_dir, report))


def _describe_difference(version_dir, report):
    first = report["differences"][0]
    lines = {difference["line"] for difference in report["differences"]}
    return (
        f"{version_dir}: {len(lines)} of {report['sentences']} golden "
        f"sentences differ. The first is number {first['line']}, "
        f"{_shorten(first['source'])}: `{first['name']}` was "
        f"{_shorten(first['expected'])} and is {_shorten(first['received'])}."
    )


def _shorten(value):
    text = repr(value)
    return (
        text
        if len(text) <= _MAX_CHARACTERS
        else f"{text[: _MAX_CHARACTERS - 3]}..."
    )
