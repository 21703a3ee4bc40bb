"""Sizes and names of files, functions and folders."""

import ast
import collections

from package_tree import (
    PACKAGE,
    REPOSITORY,
    functions,
    refuse,
    relative,
    source_files,
)

MOST_FILE_LINES = 450
MOST_MODULES = 14
MOST_FUNCTION_LINES = 60
# Names that would fit any code.
CATCH_ALL_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}


def test_a_file_has_at_most_450_lines():
    offenders = []
    for path in source_files():
        lines = path.read_text(encoding="utf-8").count("\n")
        if lines > MOST_FILE_LINES:
            offenders.append(f"{relative(path)}: {lines} lines")
    refuse(
        offenders, f"Split by meaning; at most {MOST_FILE_LINES} lines a file."
    )


def test_a_function_body_has_at_most_60_lines():
    refuse(
        [
            f"{relative(path)}:{node.lineno}: {name} has {_body_lines(node)} "
            "lines"
            for path in source_files()
            for name, node in functions(path)
            if _body_lines(node) > MOST_FUNCTION_LINES
        ],
        f"Split by meaning; at most {MOST_FUNCTION_LINES} lines a function.",
    )


def test_a_folder_has_at_most_14_modules():
    """`layers/` and `commands/` have a file for each layer and each command.

    They are found by their names alone.
    """
    modules = collections.Counter(path.parent for path in source_files())
    del modules[PACKAGE / "layers"], modules[PACKAGE / "commands"]
    refuse(
        [
            f"{relative(folder)}: {number} modules"
            for folder, number in sorted(modules.items())
            if number > MOST_MODULES
        ],
        f"Make subpackages by meaning; at most {MOST_MODULES} modules a "
        "folder, `__init__.py` included.",
    )


def test_no_module_has_a_catch_all_name():
    refuse(
        [
            relative(path)
            for path in source_files()
            if CATCH_ALL_NAMES
            & {*path.relative_to(PACKAGE).with_suffix("").parts}
        ],
        "Name a module or package after what it does.",
    )


def test_no_two_files_of_the_tests_have_the_same_name():
    files = [
        path
        for path in (REPOSITORY / "tests").rglob("*.py")
        if path.name != "conftest.py"
    ]
    numbers = collections.Counter(path.name for path in files)
    refuse(
        sorted(relative(path) for path in files if numbers[path.name] > 1),
        "pytest imports the files of all folders by their names alone.",
    )


def _body_lines(node):
    body = node.body
    if ast.get_docstring(node) is not None:
        body = body[1:]
    if not body:
        return 0
    return node.end_lineno - body[0].lineno + 1
