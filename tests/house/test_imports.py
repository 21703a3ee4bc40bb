"""Arrows run down only, and heavy or private modules stay out.

The floors, top to bottom; rooms on one floor do not import each other.
"""

import sys

import pytest
from package_tree import imports, relative, room, source_files

FLOORS = [
    {"cli", "commands", "__main__", "__init__"},
    {"runs"},
    {"recipes", "training", "evaluation", "serving", "analysis"},
    {"translator"},
    {"decoding", "data"},
    {"zoo"},
    {"models"},
    {"layers", "losses"},
    {"masks", "files"},
    {"errors", "version"},
]
# Rooms of the top floor that are one thing.
TOGETHER = {"cli", "commands", "__main__"}

BACKEND_NEUTRAL = {"masks", "losses", "layers", "models", "zoo", "decoding"}
ENGINES = {"tensorflow", "jax", "torch"}
ONLY_KERAS = {"keras", "numpy", "keras_deepnmt"}
FILES = [pytest.param(path, id=relative(path)) for path in source_files()]


def floor(name):
    for height, rooms in enumerate(reversed(FLOORS)):
        if name in rooms:
            return height
    pytest.fail(f"The room {name!r} has no floor in test_imports.FLOORS.")


@pytest.mark.parametrize("path", FILES)
def test_arrows_run_down_only(path):
    here = room(path)
    if here == "__init__":
        pytest.skip("The package itself hands out rooms lazily.")
    wrong = []
    for line, name, _ in imports(path):
        parts = name.split(".")
        if parts[0] != "keras_deepnmt" or len(parts) < 2:
            continue
        there = parts[1]
        if there == here or {here, there} <= TOGETHER:
            continue
        if floor(there) >= floor(here):
            wrong.append(f"line {line}: {here} imports {name}")
    assert not wrong


@pytest.mark.parametrize("path", FILES)
def test_imports_are_absolute_and_public(path):
    # What this test refuses: other projects' private modules.
    private = tuple(
        f"{package}.{folder}"
        for package, folder in (
            ("keras", "src"),
            ("keras_hub", "src"),
            ("keras_nlp", "src"),
            ("tensorflow", "python"),
        )
    )
    wrong = [
        f"line {line}: {name}"
        for line, name, _ in imports(path)
        if name.startswith((*private, "None.", "_"))
        and not name.startswith("__future__")
    ]
    assert not wrong


@pytest.mark.parametrize("path", FILES)
def test_an_engine_is_loaded_only_where_it_must_be(path):
    if room(path) not in BACKEND_NEUTRAL or _is_for_one_engine(path):
        return
    never = room(path) in {"masks", "losses", "layers", "zoo"}
    wrong = [
        f"line {line}: {name}"
        for line, name, at_load in imports(path)
        if name.split(".")[0] in ENGINES and (never or at_load)
    ]
    assert not wrong


@pytest.mark.parametrize("path", FILES)
def test_layers_and_models_need_no_optional_package(path):
    if room(path) not in {"masks", "losses", "layers", "models", "zoo"}:
        return
    allowed = ONLY_KERAS | set(sys.stdlib_module_names)
    if room(path) == "models":
        allowed |= {"keras_nlp"}
        allowed |= ENGINES if _is_for_one_engine(path) else set()
    wrong = [
        f"line {line}: {name}"
        for line, name, at_load in imports(path)
        if at_load and name.split(".")[0] not in allowed
    ]
    assert not wrong


def _is_for_one_engine(path):
    # The step's mixins, taken on TensorFlow only.
    return room(path) == "models" and path.stem.startswith("tensorflow_")
