"""Files and functions stay small enough to be read in one go."""

import ast

import pytest
from package_tree import functions, relative, source_files

MOST_FILE_LINES = 450
MOST_FUNCTION_LINES = 60
BAGS = {"utils", "util", "helpers", "helper", "common", "misc"}
FILES = [pytest.param(path, id=relative(path)) for path in source_files()]


@pytest.mark.parametrize("path", FILES)
def test_a_file_has_at_most_450_lines(path):
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= MOST_FILE_LINES


@pytest.mark.parametrize("path", FILES)
def test_a_function_body_has_at_most_60_lines(path):
    wrong = {
        name: length
        for name, node in functions(path)
        if (length := _body_lines(node)) > MOST_FUNCTION_LINES
    }
    assert not wrong


@pytest.mark.parametrize("path", FILES)
def test_no_file_is_a_bag(path):
    assert not BAGS & {*path.with_suffix("").parts[-3:]}


def _body_lines(node):
    body = node.body
    if ast.get_docstring(node) is not None:
        body = body[1:]
    if not body:
        return 0
    return node.end_lineno - body[0].lineno + 1
