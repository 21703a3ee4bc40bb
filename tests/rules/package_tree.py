"""The package as text: its files, their syntax trees, their imports."""

import ast
import functools
import importlib
import inspect
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "keras_deepnmt"


def refuse(offenders, remedy):
    """Fails with every offender on a line of its own, and the remedy."""
    assert not offenders, "\n".join([remedy, *offenders])


def source_files():
    return sorted(PACKAGE.rglob("*.py"))


def relative(path):
    return path.relative_to(REPOSITORY).as_posix()


@functools.cache
def syntax_tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def package_of(path):
    """`layers` for `keras_deepnmt/layers/x/y.py`, `cli` for `cli.py`."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def module_name(path):
    return ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)


def imports(path):
    """Yields `(line, dotted name, whether it runs when the file is loaded)`.

    The dotted name of a relative import begins with its dots.
    """
    for node in ast.walk(syntax_tree(path)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            origin = "." * node.level + (node.module or "")
            names = [f"{origin}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            yield node.lineno, name, id(node) not in _inside_functions(path)


@functools.cache
def _inside_functions(path):
    return {
        id(inner)
        for node in ast.walk(syntax_tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
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

    yield from visit(syntax_tree(path), "")


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


def public_packages():
    """Dotted names of the packages and modules that are public API."""
    names = [
        f"keras_deepnmt.{path.parent.name}"
        for path in sorted(PACKAGE.glob("*/__init__.py"))
        if path.parent.name != "commands"
    ]
    modules = ["errors", "losses", "masks", "translator"]
    names += [
        f"keras_deepnmt.{name}"
        for name in modules
        if (PACKAGE / f"{name}.py").exists()
    ]
    return ["keras_deepnmt", *sorted(names)]


def public_objects(package_name):
    """The public objects of a package: name to value."""
    module = importlib.import_module(package_name)
    packages = {package_of(path) for path in source_files()}
    values = {
        name: getattr(module, name)
        for name in dir(module)
        if module.__name__ != "keras_deepnmt" or name not in packages
    }
    return {
        name: value
        for name, value in values.items()
        if not name.startswith("_")
        and not inspect.ismodule(value)
        and (
            _is_defined_in(value, package_name)
            or name in _exported_names(Path(module.__file__))
        )
    }


@functools.cache
def _exported_names(path):
    """The names that a file imports `as` themselves, from any package."""
    return {
        alias.name
        for node in ast.walk(syntax_tree(path))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }


def _is_defined_in(value, package_name):
    # A constant has no `__module__`; an imported object has another one.
    return getattr(value, "__module__", package_name).startswith(package_name)


def public_names():
    """Every public name with its full path, sorted."""
    return sorted(
        f"{package_name}.{name}"
        for package_name in public_packages()
        for name in public_objects(package_name)
    )


if __name__ == "__main__":
    print("\n".join(public_names()))
