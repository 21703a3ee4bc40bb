"""A file or an installed module with code of the user, and its hash."""

import importlib.util
import keyword
import os
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keras_deepnmt.errors import UserError
from keras_deepnmt.files import bytes_sha256

# Copies of imported files, in a run folder or a preset folder.
CODE_DIR = "code"


@dataclass(frozen=True)
class CodeFile:
    """One entry of the recipe's key `import`.

    Attributes:
        name: the name of the module that it becomes.
        path: its file.
        content: the bytes of the file.
        is_module: whether it was given as the name of an installed module.
    """

    name: str
    path: Path
    content: bytes
    is_module: bool = False

    @property
    def sha256(self) -> str:
        return bytes_sha256(self.content)

    @property
    def entry(self) -> str:
        """The entry that names it: the absolute path, or the module."""
        return self.name if self.is_module else str(self.path)


def is_file_entry(entry: str) -> bool:
    """Whether an entry names a file, and not an installed module.

    Example:
    >>> is_file_entry("my_layers.py"), is_file_entry("my_package.layers")
    (True, False)
    """
    return entry.endswith(".py") or "/" in entry or os.sep in entry


def located(entry: Any, folder: Path) -> Any:
    """Returns an entry with the absolute path of its file.

    Relative paths are relative to `folder`. Anything else is returned as it is.

    Example:
    >>> located("my_package.layers", Path("recipes"))
    'my_package.layers'
    """
    if not isinstance(entry, str) or not is_file_entry(entry):
        return entry
    return os.path.abspath(folder / Path(entry).expanduser())


def read_code(entry: str | Path) -> CodeFile:
    """Reads the file that an entry names."""
    entry = str(entry)
    if not is_file_entry(entry):
        return _read_module(entry)
    path = Path(os.path.abspath(Path(entry).expanduser()))
    if not path.is_file() or path.suffix != ".py":
        raise UserError(f"{entry}: no such file of Python code.")
    name = path.stem
    if not name.isidentifier() or keyword.iskeyword(name):
        raise UserError(
            f"{entry}: the name of the file must be one that Python can "
            f"import. Received: {name}. Rename it: letters, digits and _."
        )
    if _is_installed(name, path):
        raise UserError(
            f"{entry}: there is an installed module `{name}` already. Rename "
            "the file."
        )
    return CodeFile(name, path, path.read_bytes())


def read_codes(entries: Any) -> list[CodeFile]:
    """Reads several entries; two different files must not have one name."""
    found = {}
    for code in map(read_code, entries):
        other = found.setdefault(code.name, code)
        if other.path != code.path:
            raise UserError(
                f"{code.path} and {other.path} have the same name, "
                f"{code.name}. Rename one of them."
            )
    return list(found.values())


def _read_module(name):
    spec = None
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):  # of a package above it
        pass
    if spec is None or not spec.origin or not Path(spec.origin).is_file():
        other = Path(f"{name}.py")
        hint = f" Did you mean the file {other}?" if other.is_file() else ""
        raise UserError(
            f"{name}: is neither a file that ends with .py nor an installed "
            f"module.{hint}"
        )
    path = Path(spec.origin)
    return CodeFile(name, path, path.read_bytes(), is_module=True)


def _is_installed(name, path):
    if name in sys.stdlib_module_names or name == "keras_deepnmt":
        return True
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return False
    if spec is None or not spec.origin:
        return False
    folders = {sysconfig.get_path(kind) for kind in ("purelib", "platlib")}
    parents = map(str, Path(spec.origin).parents)
    return not folders.isdisjoint(parents) and Path(spec.origin) != path
