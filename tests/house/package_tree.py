"""The package as text: its files, their syntax trees, their imports."""

import ast
import functools
import importlib
import inspect
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "keras_deepnmt"


def source_files():
    return sorted(PACKAGE.rglob("*.py"))


def relative(path):
    return path.relative_to(REPOSITORY).as_posix()


@functools.cache
def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def room(path):
    """`keras_deepnmt/layers/x.py` and `keras_deepnmt/layers.py`: `layers`."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path):
    """Yields `(line, dotted name, whether it runs when the file is loaded)`."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            yield node.lineno, name, id(node) not in _inside_functions(path)


@functools.cache
def _inside_functions(path):
    return {
        id(inner)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef)
        for inner in ast.walk(node)
    }


def functions(path):
    """Yields `(qualified name, node)` of every function and method."""

    def visit(node, prefix):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{prefix}{child.name}", child
            if hasattr(child, "name") and isinstance(child.name, str):
                yield from visit(child, f"{prefix}{child.name}.")
            else:
                yield from visit(child, prefix)

    yield from visit(tree(path), "")


def committed_files():
    """Files under version control, or every file of a plain checkout."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True
    )
    if listed.returncode == 0:
        names = listed.stdout.decode().split("\0")
        paths = [REPOSITORY / name for name in names if name]
    else:
        paths = [
            path
            for path in REPOSITORY.rglob("*")
            if not any(part.startswith(".") for part in path.parts)
        ]
    return [path for path in paths if path.is_file()]


def public_rooms():
    """Dotted names of the places whose names are promised to users."""
    rooms = [
        f"keras_deepnmt.{path.parent.name}"
        for path in sorted(PACKAGE.glob("*/__init__.py"))
        if path.parent.name != "commands"
    ]
    single = ["errors", "losses", "masks", "translator"]
    rooms += [
        f"keras_deepnmt.{name}"
        for name in single
        if (PACKAGE / f"{name}.py").exists()
    ]
    return ["keras_deepnmt", *sorted(rooms)]


def public_objects(room_name):
    """Name to value of what a room gives its users."""
    module = importlib.import_module(room_name)
    rooms = {room(path) for path in source_files()}
    values = {
        name: getattr(module, name)
        for name in dir(module)
        if module.__name__ != "keras_deepnmt" or name not in rooms
    }
    return {
        name: value
        for name, value in values.items()
        if not name.startswith("_")
        and not inspect.ismodule(value)
        and _belongs(value, room_name)
    }


def _belongs(value, room_name):
    # A constant has no module; what is imported for use has another one.
    return getattr(value, "__module__", room_name).startswith(room_name)


def public_names():
    """Every promised name with its full path, sorted."""
    return sorted(
        f"{room_name}.{name}"
        for room_name in public_rooms()
        for name in public_objects(room_name)
    )


if __name__ == "__main__":
    print("\n".join(public_names()))
