"""Docstrings say what, with which arguments, and their examples run."""

import ast
import doctest
import importlib
import inspect
import re
import socket

import keras
import numpy as np
import pytest
from package_tree import (
    PACKAGE,
    public_objects,
    public_rooms,
    relative,
    room,
    source_files,
    tree,
)

import keras_deepnmt
from keras_deepnmt.errors import UserError

SECTIONS = (
    "Args",
    "Call arguments",
    "Returns",
    "Raises",
    "Yields",
    "Masking",
    "Example",
    "Examples",
    "Reference",
    "Attributes",
)
UNEXPLAINED = {"self", "args", "kwargs", "name", "dtype", "trainable"}


def section(doc, title):
    """The text under one heading, up to the next heading."""
    headings = "|".join(SECTIONS)
    found = re.search(
        rf"^{title}:(.*?)(?=^(?:{headings}):|\Z)", doc, re.DOTALL | re.MULTILINE
    )
    return found.group(1) if found else None


def explained(text):
    """Names before a colon: `a:`, `a, b: …`, `first, ..., last: …`."""
    names = set()
    for line in re.findall(
        r"^ {4}(\S[^:]*(?:\n {4}[^\s:][^:]*)*):", text or "", re.MULTILINE
    ):
        names |= set(re.findall(r"[A-Za-z_]+\w*|\.\.\.", line))
    return names


def parameters(function):
    signature = inspect.signature(function)
    return [name for name in signature.parameters if name not in UNEXPLAINED]


def unexplained(names, text):
    known = explained(text)
    missing = [name for name in names if name not in known]
    if "..." not in known:
        return missing
    # "first, ..., last" explains all that stand between the two.
    first, last = re.search(r"(\w+), \.\.\., (\w+)", text).groups()
    between = names[names.index(first) : names.index(last) + 1]
    return [name for name in missing if name not in between]


def documented_objects():
    for room_name in public_rooms():
        for name, value in public_objects(room_name).items():
            if callable(value):
                yield pytest.param(value, id=f"{room_name}.{name}")


def layer_classes():
    for name, value in public_objects("keras_deepnmt.layers").items():
        yield pytest.param(value, id=name)


def examples():
    """Every docstring with an example, found by importing every file."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    world = {
        "np": np,
        "keras": keras,
        "keras_deepnmt": keras_deepnmt,
        "model": keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1),
    }
    for path in source_files():
        if ">>>" not in path.read_text(encoding="utf-8"):
            continue
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        module = importlib.import_module(".".join(parts))
        for example in finder.find(module, extraglobs=world):
            yield pytest.param(example, id=example.name)


@pytest.mark.parametrize(
    "path", [pytest.param(p, id=relative(p)) for p in source_files()]
)
def test_public_definitions_say_what_they_do(path):
    definitions = [
        node
        for node in tree(path).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
        and not node.name.startswith("_")
    ]
    for node in definitions:
        if room(path) == "commands" and node.name in ("add_options", "run"):
            continue  # the same two in every verb
        doc = ast.get_docstring(node)
        assert doc, f"{node.name} has no docstring"
        first = doc.splitlines()[0]
        assert first.endswith((".", "?")), f"{node.name}: {first!r}"
        assert not first.startswith(node.name), f"{node.name}: {first!r}"


@pytest.mark.parametrize("value", list(documented_objects()))
def test_every_argument_is_explained(value):
    doc = inspect.getdoc(value)
    if inspect.isclass(value) and issubclass(value, BaseException):
        return
    text = section(doc, "Args") or section(doc, "Attributes")
    missing = unexplained(parameters(value), text)
    assert not missing, f"not under Args: {missing}"


@pytest.mark.parametrize("layer", list(layer_classes()))
def test_every_call_argument_of_a_layer_is_explained(layer):
    text = section(inspect.getdoc(layer), "Call arguments")
    assert not unexplained(parameters(layer.call), text)


@pytest.mark.parametrize("layer", list(layer_classes()))
def test_a_layer_names_its_paper_and_its_differences(layer):
    doc = inspect.getdoc(layer)
    for words in ("Reference:", "Differs from the paper:", "Example:"):
        assert words in doc, f"{words!r} is missing"
    assert section(doc, "Returns")


def _no_network(*_):
    raise ConnectionError("An example must not reach for the network.")


@pytest.mark.parametrize("example", list(examples()))
def test_an_example_runs(example, tmp_path, monkeypatch):
    """Runs an example; one that begins in mid-story is skipped by name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(socket.socket, "connect", _no_network)
    runner = doctest.DebugRunner(optionflags=doctest.ELLIPSIS)
    try:
        runner.run(example, clear_globs=False)
    except doctest.UnexpectedException as failure:
        error = failure.exc_info[1]
        if isinstance(error, NameError | OSError | UserError):
            pytest.skip(f"Needs what only its reader has: {error}")
        raise error from None
    except doctest.DocTestFailure as failure:
        pytest.fail(
            f"{failure.example.source}gave {failure.got}"
            f"instead of {failure.example.want}"
        )
