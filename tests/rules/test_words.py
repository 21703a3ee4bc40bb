"""Nothing in the tree depends on one machine or refers to absent things."""

import functools
import re
from pathlib import Path

from package_tree import committed_files, refuse, relative

RULES = Path(__file__).parent
TEXT = {".py", ".md", ".cfg", ".toml", ".yaml", ".yml", ".txt", ".ipynb", ""}
# Written apart so that this file does not hold them.
MACHINE_PATHS = "|".join(
    rf"(?<![\w.])/{folder}/"
    for folder in ("work", "opt", "home", "root", "mnt")
)
DOCUMENTS_ELSEWHERE = re.compile(
    r"\b(" + "|".join(["DESIGN", "STYLE", "PAPERS", "INTERFACES"]) + r")\b"
)
# Finds a note of open work without the number of its issue. The words are in
# parts, so that this line is not found.
OPEN_TASK = re.compile(r"\b(" + "TO" + "DO|FIX" + "ME|XX" + r"X)\b(?!\(#\d+\))")
PRIVATE_MODULES = re.compile(
    "keras" + r"\.src|tensorflow" + r"\.python\b|keras_nlp" + r"\.src"
)
# What Keras checks of its own layers is private, and worth an exception.
KERAS_OWN_CHECKS = "tests/conformance/test_keras_harnesses.py:"


@functools.cache
def text_lines():
    """Every line of every committed text: `(file:line, line)`."""
    return [
        (f"{relative(path)}:{number}", line)
        for path in committed_files()
        if path.suffix in TEXT and RULES not in path.parents
        for number, line in enumerate(
            path.read_text(encoding="utf-8", errors="replace").splitlines(), 1
        )
    ]


def lines_with(pattern):
    return [
        f"{where}: {line.strip()[:100]}"
        for where, line in text_lines()
        if re.search(pattern, line)
    ]


def test_no_path_of_one_machine():
    refuse(lines_with(MACHINE_PATHS), "Use a relative path or a variable.")


def test_no_reference_to_a_document_that_is_not_in_the_tree():
    refuse(lines_with(DOCUMENTS_ELSEWHERE), "Say it here instead.")


def test_an_open_task_names_its_issue():
    refuse(lines_with(OPEN_TASK), "Add the issue's number, as `(#12)`.")


def test_no_private_module_is_named():
    refuse(
        [
            line
            for line in lines_with(PRIVATE_MODULES)
            if not line.startswith(KERAS_OWN_CHECKS)
        ],
        "Use the public module.",
    )
