"""Docstrings begin with a summary, explain every argument, and examples run."""

import ast
import doctest
import functools
import importlib
import inspect
import re
import socket

import keras
import numpy as np
import pytest
from own_code_process import new_process
from package_tree import (
    REPOSITORY,
    module_name,
    package_of,
    public_objects,
    public_packages,
    refuse,
    relative,
    source_files,
    syntax_tree,
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
# Every verb has these two, with the same meaning.
OF_EVERY_VERB = ("add_options", "run")


def section(doc, title):
    """The text under one heading, up to the next heading."""
    headings = "|".join(SECTIONS)
    match = re.search(
        rf"^{title}:(.*?)(?=^(?:{headings}):|\Z)", doc, re.DOTALL | re.MULTILINE
    )
    return match.group(1) if match else None


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
    # "first, ..., last" explains all arguments between the two.
    first, last = re.search(r"(\w+), \.\.\., (\w+)", text).groups()
    between = names[names.index(first) : names.index(last) + 1]
    return [name for name in missing if name not in between]


def public_layers():
    return public_objects("keras_deepnmt.layers").items()


def test_public_definitions_say_what_they_do():
    offenders = []
    for path in source_files():
        for node in syntax_tree(path).body:
            if not isinstance(node, ast.ClassDef | ast.FunctionDef):
                continue
            if node.name.startswith("_"):
                continue
            if package_of(path) == "commands" and node.name in OF_EVERY_VERB:
                continue
            where = f"{relative(path)}:{node.lineno}: {node.name}"
            doc = ast.get_docstring(node)
            first = doc.splitlines()[0] if doc else ""
            if not doc:
                offenders.append(f"{where} has no docstring")
            elif not first.endswith((".", "?")):
                offenders.append(f"{where}: no sentence: {first!r}")
            elif first.startswith(node.name):
                offenders.append(f"{where}: begins with its name: {first!r}")
    refuse(offenders, "A docstring begins with one whole sentence on one line.")


def test_an_internal_function_has_sentences_instead_of_sections():
    pages = "\n".join(
        page.read_text(encoding="utf-8")
        for page in [
            *(REPOSITORY / "docs").rglob("*.md"),
            *(REPOSITORY / "notebooks").glob("*.ipynb"),
        ]
    )
    public = set().union(*map(public_objects, public_packages()))
    offenders = [
        f"{relative(path)}:{node.lineno}: {node.name}"
        for path in source_files()
        for node in syntax_tree(path).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name not in public
        and not re.search(rf"\b{node.name}\b", pages)
        and re.search(
            "^(Args|Returns|Raises|Yields):",
            ast.get_docstring(node) or "",
            re.MULTILINE,
        )
    ]
    refuse(
        offenders,
        "Say in a sentence what its name and its arguments do not say. Only a "
        "function that users call has sections.",
    )


def test_every_argument_is_explained():
    offenders = []
    for package_name in public_packages():
        for name, value in public_objects(package_name).items():
            if not callable(value) or _is_exception(value):
                continue
            doc = inspect.getdoc(value) or ""
            text = section(doc, "Args") or section(doc, "Attributes")
            missing = unexplained(parameters(value), text)
            if missing:
                offenders.append(f"{package_name}.{name}: {missing}")
    refuse(offenders, "Explain these arguments under `Args:`.")


def _is_exception(value):
    return inspect.isclass(value) and issubclass(value, BaseException)


def test_every_call_argument_of_a_layer_is_explained():
    offenders = []
    for name, layer in public_layers():
        text = section(inspect.getdoc(layer) or "", "Call arguments")
        # An initializer has no `call`.
        call = getattr(layer, "call", layer.__call__)
        missing = unexplained(parameters(call), text)
        if missing:
            offenders.append(f"keras_deepnmt.layers.{name}: {missing}")
    refuse(offenders, "Explain these arguments under `Call arguments:`.")


def test_a_layer_names_its_paper_and_its_differences():
    offenders = []
    for name, layer in public_layers():
        doc = inspect.getdoc(layer) or ""
        for words in ("Reference:", "Differs from the paper:", "Example:"):
            if words not in doc:
                offenders.append(f"keras_deepnmt.layers.{name}: no {words!r}")
        if not section(doc, "Returns"):
            offenders.append(f"keras_deepnmt.layers.{name}: no 'Returns:'")
    refuse(offenders, "Add these sections to the docstring of the layer.")


def packages_with_examples():
    return sorted({package_of(path) for path in files_with_examples()})


def files_with_examples():
    return [
        path
        for path in source_files()
        if ">>>" in path.read_text(encoding="utf-8")
    ]


@pytest.fixture(scope="module")
def known_names():
    """What an example may use without importing it."""
    return {
        "np": np,
        "keras": keras,
        "keras_deepnmt": keras_deepnmt,
        "model": keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1),
    }


def examples(package, known_names):
    """Every docstring of a package that has an example."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    for path in files_with_examples():
        if package_of(path) == package:
            module = importlib.import_module(module_name(path))
            yield from finder.find(module, extraglobs=known_names)


def _no_network(*_):
    raise ConnectionError("An example must not use the network.")


@pytest.mark.thorough(each_commit=True)
@pytest.mark.parametrize("package", packages_with_examples())
def test_every_example_runs(package, known_names, tmp_path, monkeypatch):
    """Runs the examples, each in an empty folder; names all that fail."""
    monkeypatch.setattr(socket.socket, "connect", _no_network)
    offenders = []
    for number, example in enumerate(examples(package, known_names)):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        with new_process(tmp_path / "home"):
            failure = run_example(example)
        if failure:
            offenders.append(
                f"{example.name}, line {example.lineno}: {failure}"
            )
    refuse(offenders, "These examples fail; correct the docstring or the code.")


@functools.cache
def public_names():
    """The names of all public objects, without their packages."""
    return {
        name
        for package_name in public_packages()
        for name in public_objects(package_name)
    }


def run_example(example):
    """Runs one example; returns what is wrong with it, or None.

    An example that needs its reader's files or variables stops at that line;
    pytest shows which ones with `-rP`. A public name is no such variable: the
    example has to import it, or nobody notices what is wrong after that line.
    """
    runner = doctest.DebugRunner(optionflags=doctest.ELLIPSIS)
    try:
        runner.run(example, clear_globs=False)
    except doctest.UnexpectedException as failure:
        error = failure.exc_info[1]
        if not isinstance(error, NameError | OSError | UserError):
            return f"{failure.example.source}raised {error!r}"
        if isinstance(error, NameError) and error.name in public_names():
            return f"{failure.example.source}lacks an import of {error.name}"
        print(f"{example.name} needs what only its reader has: {error}")
    except doctest.DocTestFailure as failure:
        return (
            f"{failure.example.source}gave {failure.got}"
            f"instead of {failure.example.want}"
        )
    return None
