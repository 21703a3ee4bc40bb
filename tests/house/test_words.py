"""Nothing in the tree depends on one machine, or promises what is not there."""

import re

import pytest
from package_tree import committed_files, relative

TEXT = {".py", ".md", ".cfg", ".toml", ".yaml", ".yml", ".txt", ".ipynb", ""}
# Written apart so that this file does not hold them.
MACHINE_PATHS = [
    "/" + folder + "/" for folder in ("work", "opt", "home", "root", "mnt")
]
PAPERS_OF_THE_DESK = re.compile(
    r"\b(" + "|".join(["DESIGN", "STYLE", "PAPERS", "INTERFACES"]) + r")\b"
)
# A promise that no numbered issue keeps; written apart as well.
OPEN_PROMISE = re.compile(r"\b(" + "TO" + "DO|FIX" + r"ME|XXX)\b(?!\(#\d+\))")
PRIVATE_MODULES = re.compile(
    "keras" + r"\.src|tensorflow" + r"\.python\b|keras_nlp" + r"\.src"
)


def text_files():
    for path in committed_files():
        if path.suffix in TEXT and "house" not in path.parts:
            yield pytest.param(path, id=relative(path))


def lines_with(path, pattern):
    text = path.read_text(encoding="utf-8", errors="replace")
    return [
        f"line {number}: {line.strip()[:100]}"
        for number, line in enumerate(text.splitlines(), 1)
        if re.search(pattern, line)
    ]


@pytest.mark.parametrize("path", list(text_files()))
def test_no_path_of_one_machine(path):
    pattern = "|".join(rf"(?<![\w.]){p}" for p in MACHINE_PATHS)
    assert not lines_with(path, pattern)


@pytest.mark.parametrize("path", list(text_files()))
def test_no_reference_to_a_paper_that_is_not_in_the_tree(path):
    assert not lines_with(path, PAPERS_OF_THE_DESK)


@pytest.mark.parametrize("path", list(text_files()))
def test_an_open_promise_names_its_issue(path):
    assert not lines_with(path, OPEN_PROMISE)


@pytest.mark.parametrize("path", list(text_files()))
def test_no_private_module_is_named(path):
    assert not lines_with(path, PRIVATE_MODULES)
