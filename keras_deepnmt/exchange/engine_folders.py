"""Folders for other engines: written as a whole, and checked with the engine.

Beside the engine's own files a folder has `translate.py`, a program that
translates lines without this package, and `export.json`: its format, the search
options, and golden sentences with their outputs.
"""

import importlib.util
import json
import math
import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_deepnmt.data.text_steps import DropLastSpace, DropNull
from keras_deepnmt.errors import UserError
from keras_deepnmt.file_tables import check_files, file_table
from keras_deepnmt.files import StagedFolder, write_json
from keras_deepnmt.json_files import read_json
from keras_deepnmt.processes import run_python

if TYPE_CHECKING:
    from keras_deepnmt.data.tokenizers import Tokenizer
    from keras_deepnmt.translator import Translator

EXPORT_FILE = "export.json"
_PROGRAM = "translate.py"
_CHECK = Path(__file__).with_name("engine_check.py")
# Search options that must have these values.
_SEARCH = {
    "num_groups": 1,
    "sampling": False,
    "coverage_penalty": 0.0,
}
# What `translate.py` does to a text besides SentencePiece. MarianTokenizer
# drops spaces at the ends by itself.
_STEPS = (DropNull, DropLastSpace)
# Largest difference of a log-probability, relative to those above 1.
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Engine:
    """Another engine that computes models of this package.

    Attributes:
        format: name of the format.
        name: name of the engine.
        modules: the modules without which its program cannot run.
        packages: the names of their packages, for people.
        searches_alike: whether its program searches as this package does, so
            that golden sentences are translated with all search options, and
            scores compared. Otherwise they are translated by greedy search,
            and log-probabilities of given translations are compared.
    """

    format: str
    name: str
    modules: tuple[str, ...]
    packages: str
    searches_alike: bool = False

    @property
    def program(self) -> Path:
        """The file that becomes `translate.py` of a folder."""
        name = self.format.replace("-", "_")
        return Path(__file__).with_name(f"{name}_program.py")

    @property
    def compares(self) -> tuple[str, str]:
        """What golden sentences compare: texts, and numbers."""
        if self.searches_alike:
            return "translation", "score"
        return "greedy translation", "log-probability"

    @property
    def is_installed(self) -> bool:
        """Whether its program can run here."""
        return all(map(importlib.util.find_spec, self.modules))


ENGINES = {
    engine.format: engine
    for engine in (
        Engine(
            "ctranslate2",
            "CTranslate2",
            ("ctranslate2", "sentencepiece"),
            "CTranslate2 and SentencePiece",
        ),
        Engine(
            "marian-hf",
            "MarianMT",
            ("transformers", "torch", "sentencepiece"),
            "Transformers, PyTorch and SentencePiece",
        ),
        Engine(
            "onnx",
            "ONNX Runtime",
            ("onnxruntime", "sentencepiece"),
            "ONNX Runtime and SentencePiece",
            searches_alike=True,
        ),
    )
}


def check_exportable(translator: "Translator") -> None:
    """Refuses a translator that no folder for another engine can express.

    The programs of these folders lack some search options and steps of
    tokenizers.
    """
    for name, needed in _SEARCH.items():
        value = getattr(translator.options, name, needed)
        if value != needed:
            raise UserError(
                f"`translate.py` of the folder has no `{name}`: it must be "
                f"{needed}. Received: {name}={value}"
            )
    if translator.shortlists is not None:
        raise UserError(
            "`translate.py` of the folder has no shortlists. Export the "
            "translator without: `translator.replaced(shortlists=None)`."
        )
    if translator.tag_side == "target":
        raise UserError(
            "`translate.py` of the folder cannot begin translations with the "
            "tags of a model that has them on the target side "
            "(`data.tag_side: target`). Export for TensorFlow Serving."
        )
    if translator.tag is not None:
        raise UserError(
            f"The tag {translator.tag} cannot be given: write it before the "
            "lines that `translate.py` reads."
        )
    for side in ("source", "target"):
        tokenizer = getattr(translator, f"{side}_tokenizer")
        steps = [s for s in tokenizer.steps if not isinstance(s, _STEPS)]
        if steps:
            raise UserError(
                f"The {side} tokenizer has the step `{steps[0].name}`, which "
                "SentencePiece alone does not do. Export for TensorFlow "
                "Serving, or train with another tokenizer (`data.case: kept` "
                "for `factored_case`, one of SentencePiece for `subword_nmt`)."
            )


def refuse_existing(directory: Path) -> None:
    """Refuses to write where something is."""
    if directory.exists():
        raise UserError(f"{directory}: exists already. Give a new folder.")


def write_engine_folder(
    engine: Engine,
    translator: "Translator",
    directory: Path,
    write: Callable[[Path], Mapping[str, Any]],
    sources: list[str] | None = None,
    is_exact: bool = True,
    check: Callable[[Path], None] | None = None,
) -> dict[str, Any]:
    """Writes a folder for an engine, which appears when it was checked.

    `write` writes the engine's own files into a folder, and returns what
    `export.json` says besides the golden sentences; `check` is one more check
    of what was written. Without `sources` the golden sentences are random
    pieces and special characters. Where `is_exact`, an engine that does not
    compute what this package does is an error.

    Returns `sentences`, the number of `equal` translations and the
    `largest_difference` of a log-probability or score, compared with this
    package, and `is_checked`, `False` where the engine is not installed.
    """
    from keras_deepnmt.xla.float32 import all_digits_of_float32

    # The other engine computes them on a CPU.
    with all_digits_of_float32():
        expected = _expected(engine, translator, sources)
    with StagedFolder(directory) as folder:
        content = {"format": engine.format, **write(folder)}
        for side in ("source", "target"):
            tokenizer = getattr(translator, f"{side}_tokenizer")
            (folder / f"{side}.spm").write_bytes(tokenizer.proto)
        shutil.copy(engine.program, folder / _PROGRAM)
        write_json(folder / EXPORT_FILE, content)
        if check is not None:
            check(folder)
        received = expected
        if engine.is_installed:
            received = _run(engine, folder, expected, directory)
        found = _compare(expected, received)
        if is_exact and not _is_same(found):
            text, number = engine.compares
            raise UserError(
                f"{directory}: {engine.name} does not compute what this "
                f"package does: {found['equal']} of {found['sentences']} "
                f"golden sentences have the same {text}; the largest "
                f"difference of a {number} is "
                f"{found['largest_difference']:.1e}. Nothing was written."
            )
        files = [p.name for p in folder.iterdir() if p.name != EXPORT_FILE]
        content |= {"golden": received, "files": file_table(folder, files)}
        write_json(folder / EXPORT_FILE, content)
    return {**found, "is_checked": engine.is_installed}


def find_engine(directory: str | Path) -> Engine | None:
    """Returns the engine for which a folder was written.

    Args:
        directory: Any path.

    Returns:
        The engine, or `None` for any other folder.

    Example:
    >>> find_engine("served/demo") is None
    True
    """
    file = Path(directory) / EXPORT_FILE
    if not file.is_file():
        return None
    return ENGINES.get(read_json(file, dict[str, Any]).get("format"))


def verify_engine_folder(directory: str | Path) -> dict[str, Any]:
    """Checks that a folder for an engine computes what it did at first.

    A fresh process with the engine alone computes the golden sentences.

    Args:
        directory: A folder that an export for another engine wrote.

    Returns:
        The number of `sentences`, of `equal` translations, and the
        `largest_difference` of a log-probability or score from the recorded
        one.

    Raises:
        UserError: if it is no such folder, the engine is not installed, a file
            is damaged or missing, a translation differs, or a number by more
            than 1e-4 (relative if it is above 1).

    Example:
    >>> verify_engine_folder("ctranslate2/demo")["sentences"]
    17
    """
    folder = Path(directory)
    engine, golden = check_engine_files(folder)
    if not engine.is_installed:
        raise UserError(
            f"{folder}: verifying it needs {engine.packages}. Install them by "
            f"`pip install keras_deepnmt[{engine.format}]`."
        )
    found = _compare(golden, _run(engine, folder, golden, folder))
    if not _is_same(found):
        raise UserError(
            f"{folder}: {found['sentences'] - found['equal']} of "
            f"{found['sentences']} golden sentences are translated otherwise "
            "than when it was written, and the largest difference of a "
            f"{engine.compares[1]} is {found['largest_difference']:.1e}."
        )
    return found


def check_engine_files(folder: Path) -> tuple[Engine, dict[str, Any]]:
    """Checks that a folder for an engine is whole, without running the engine.

    Returns the engine, and the golden sentences with their outputs.
    """
    engine = find_engine(folder)
    if engine is None:
        raise UserError(
            f"{folder}: {EXPORT_FILE} must name one of the formats "
            f"{', '.join(ENGINES)}. Export the model again."
        )
    content = read_json(folder / EXPORT_FILE, dict)
    remedy = "Copy the folder again, or export the model again."
    golden, files = content.get("golden"), content.get("files")
    if not _is_golden(golden, engine) or not isinstance(files, dict):
        raise UserError(f"{folder / EXPORT_FILE}: damaged. {remedy}")
    check_files(folder, files, EXPORT_FILE, remedy)
    return engine, golden


def model_pieces(tokenizer: "Tokenizer") -> list[str]:
    """Returns the pieces of a vocabulary, without others that the model has."""
    return tokenizer.pieces(range(tokenizer.vocabulary_size))


def _expected(engine, translator, sources):
    """What this package computes of the golden sentences."""
    from keras_deepnmt.serving.golden import default_sources

    sources = sources or default_sources(translator.source_tokenizer)
    if engine.searches_alike:
        plain = translator.replaced(compiled=False)
        best = [found[0] for found in plain.translate_nbest(sources, 1)]
        return {
            "sources": sources,
            "texts": [found.text for found in best],
            "scores": [float(found.score) for found in best],
        }
    greedy = translator.replaced(num_beams=1, compiled=False)
    texts = greedy.translate(sources)
    # A text has at most one token per character, one for its beginning, and the
    # end: those of a translation that is read again may be more than it had.
    longest = translator.model.max_length - 2
    targets = [text[: max(longest, 0)] for text in texts]
    scores = [float(found.total) for found in greedy.score(sources, targets)]
    return {
        "sources": sources,
        "targets": targets,
        "texts": texts,
        "log_probs": scores,
    }


def _run(engine, folder, golden, shown):
    """Computes golden sentences in a fresh process, without this package."""
    asked = {n: golden[n] for n in ("sources", "targets") if n in golden}
    process = run_python(
        [_CHECK, engine.program, folder],
        json.dumps(asked),
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    if process.returncode:
        lines = re.findall(
            r"^[\w.]*(?:Error|Exception)\b.*", process.stderr, re.MULTILINE
        )
        raise UserError(
            f"{shown}: {engine.name} could not run it: "
            f"{(lines or [process.stderr.strip() or 'no message'])[-1]}"
        )
    return json.loads(process.stdout.splitlines()[-1])


def _is_golden(golden, engine):
    """Whether something read from a file has the form of golden sentences."""
    names = ["sources", "texts"]
    names += ["scores"] if engine.searches_alike else ["targets", "log_probs"]
    lists = [golden.get(name) for name in names if isinstance(golden, dict)]
    return (
        len(lists) == len(names)
        and all(isinstance(each, list) for each in lists)
        and len({len(each) for each in lists}) == 1
        and len(lists[0]) > 0
    )


def _compare(expected, received):
    numbers = "scores" if "scores" in expected else "log_probs"
    differences = [
        abs(one - other) / max(1.0, abs(one))
        for one, other in zip(expected[numbers], received[numbers], strict=True)
    ]
    return {
        "sentences": len(expected["texts"]),
        "equal": sum(
            one == other
            for one, other in zip(
                expected["texts"], received["texts"], strict=True
            )
        ),
        # No number is greater than NaN, and none is smaller.
        "largest_difference": max(
            differences, key=lambda each: (math.isnan(each), each)
        ),
    }


def _is_same(found):
    return (
        found["equal"] == found["sentences"]
        and found["largest_difference"] <= _TOLERANCE
    )
