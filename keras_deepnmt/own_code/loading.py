"""Runs files of the user, so that their classes can be named."""

import contextlib
import importlib.util
import logging
import os
import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from keras_deepnmt.errors import UserError
from keras_deepnmt.own_code.code_file import (
    CodeFile,
    read_code,
    read_codes,
)
from keras_deepnmt.own_code.consent import check_consent, consent

_logger = logging.getLogger(__name__)
# Code of `--import` and `import_code`, by module name: it is preferred.
_given: dict[str, CodeFile] = {}
# What was run in this process, by module name, the latest use last.
_loaded: dict[str, tuple[CodeFile, ModuleType]] = {}
# The modules of the files that each was run after, which it may have imported.
_helpers: dict[str, dict[str, ModuleType]] = {}
_latest: list[str] = []
# The paths of all files that were run, also those of other models.
_run_paths: set[str] = set()
# Where files may register names besides with Keras.
_registries: list[dict[str, Any]] = []
_warned: set[str] = set()
# What Keras adds to the message of an error in a layer.
_KERAS_FRAME = re.compile(
    r"\x1b\[\d+m|Exception encountered when calling .*?\(\)\.\s+"
    r"|\s+Arguments received by .*",
    re.S,
)


def import_code(*entries: str | Path) -> list[ModuleType]:
    """Runs files with your own layers, losses, metrics or callbacks.

    Recipes, run folders and preset folders that are loaded later in this
    process find the classes, `Scaled` or `my_layers.Scaled`, and take these
    files instead of their own copies. Each class with a `get_config` that is
    not registered with Keras is registered, as `my_layers>Scaled`.

    Args:
        *entries: files that end with `.py`, or names of installed modules.

    Returns:
        The modules, in order.

    Raises:
        UserError: if a file is missing or raises an error, or a name is taken.

    Example:
    >>> size = Path("my_layers.py").write_text("WIDTH = 7")
    >>> import_code("my_layers.py")[0].WIDTH
    7
    """
    with given_code(entries) as codes:
        use_code([])
    _given.update({code.name: code for code in codes})
    return [_loaded[code.name][1] for code in codes]


@contextlib.contextmanager
def given_code(entries: Iterable[str | Path]) -> Iterator[list[CodeFile]]:
    """Prefers these files to all copies of them within the block; yields them.

    They run when a model, a preset or a loss is first needed, since Keras and
    its backend must be set up before.
    """
    before = dict(_given)
    codes = read_codes(entries)
    _given.update({code.name: code for code in codes})
    consent(codes)
    try:
        yield codes
    finally:
        _given.clear()
        _given.update(before)


def given_entries() -> list[str]:
    """Returns the entries of `--import` and `import_code`."""
    return [code.entry for code in _given.values()]


def allow_code(entries: Iterable[str]) -> None:
    """Notes the consent to the files of a recipe that the user has named."""
    consent(read_codes(entries))


def use_code(entries: Iterable[str]) -> None:
    """Runs the files of a recipe or a folder, unless they have been run.

    Names of their classes are looked up in them from now on, and in those of
    `given_code`, which replace files of the same name. Files that the user has
    never asked to run are refused.
    """
    codes = dict(_given)
    for code in read_codes(
        entry for entry in entries if _name(entry) not in _given
    ):
        codes[code.name] = _as_imported(code)
    check_consent(codes.values())
    helpers = {}
    for code in codes.values():
        _load(code, codes, helpers)
        helpers[code.name] = _loaded[code.name][1]
    _latest[:] = codes


@contextlib.contextmanager
def code_of_another_model() -> Iterator[None]:
    """Loads another model within the block; names mean the same after it.

    That model may have files of the same names. Those that were in use are not
    run again after it, since objects of their classes may exist already.
    """
    latest, loaded, helpers = list(_latest), dict(_loaded), dict(_helpers)
    names = [
        (registry, dict(registry)) for registry in (_registered(), *_registries)
    ]
    try:
        yield
    finally:
        for name, entry in loaded.items():
            _note(name, entry)
            sys.modules[name] = entry[1]
        _helpers.update(helpers)
        _latest[:] = latest
        for registry, before in names:
            registry.update(before)


def new_registry() -> dict[str, Any]:
    """Returns a dict in which files of the user may register names."""
    _registries.append({})
    return _registries[-1]


def preferred(entry: str) -> CodeFile | None:
    """Returns the file that `given_code` has in place of an entry, if any."""
    return _given.get(_name(entry))


def warn_once(place: str, text: str) -> None:
    """Logs a warning about a file, the first one in a process."""
    if place not in _warned:
        _warned.add(place)
        _logger.warning("%s: %s", place, text)


def latest_modules() -> dict[str, ModuleType]:
    """Returns the modules of the latest `use_code`, by name."""
    return {name: _loaded[name][1] for name in _latest}


def all_modules() -> dict[str, ModuleType]:
    """Returns all modules of the user that were run here, by name."""
    return {name: module for name, (_, module) in _loaded.items()}


def own_sha256(value: Any) -> str | None:
    """Returns the hash of the user's file that defines a class or function.

    It is `None` for one that an installed package defines.
    """
    for code, module in _loaded.values():
        if is_own(value, module):
            return code.sha256
    return None


def error_place(error: BaseException) -> str | None:
    """Names the line of the user's own code in which an error arose.

    It is `None` if no such code was running.
    """
    found = None
    while error is not None:
        for frame in traceback.extract_tb(error.__traceback__):
            if frame.filename in _run_paths:
                found = frame
        if found is not None:
            file = _shown(found.filename)
            return f"{file}, line {found.lineno}, in {found.name}"
        error = error.__cause__ or error.__context__
    return None


def describe_own_error(error: BaseException) -> str | None:
    """Describes an error that arose in the user's own code in a line.

    It is `None` if no such code was running.
    """
    place = error_place(error)
    if place is None:
        return None
    message = _KERAS_FRAME.sub("", str(error))
    return f"{place}: {type(error).__name__}: {message}"


@contextlib.contextmanager
def own_errors() -> Iterator[None]:
    """Raises an error in the user's own code as a `UserError` with its line."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        described = describe_own_error(error)
        if described is None:
            raise
        raise UserError(described) from error


def _name(entry):
    return Path(entry).stem if entry.endswith(".py") else entry


def _shown(path):
    """The path as short as possible, for a message."""
    relative = os.path.relpath(path)
    return relative if not relative.startswith("..") else str(path)


def _as_imported(code):
    """The file of the same name that the program itself imported, if any."""
    module = sys.modules.get(code.name)
    file = getattr(module, "__file__", None)
    if code.name in _loaded or code.is_module or file is None:
        return code
    if Path(file).name != code.path.name:
        return code  # refused
    other = read_code(file)
    consent([other])  # it runs already
    if other.sha256 != code.sha256:
        warn_once(
            str(code.path), f"{file} is used, which this program imported."
        )
    return other


def _load(code, together, helpers):
    """Runs a file, unless the same content was run with the same helpers."""
    known = _loaded.get(code.name)
    is_same = known is not None and known[0].sha256 == code.sha256
    ran_after = _helpers.get(code.name, {})
    if is_same and all(
        ran_after.get(name, module) is module
        for name, module in helpers.items()
    ):
        _note(code.name, known)
        return
    registered, module = dict(_registered()), sys.modules.get(code.name)
    before = module
    file = getattr(module, "__file__", None) or code.name
    is_run = module is not None and known is None and not code.is_module
    if is_run and os.path.abspath(file) != str(code.path):
        raise UserError(
            f"{_shown(code.path)}: this program has a module {code.name} "
            f"already, {file}. Rename the file."
        )
    try:
        if not is_run:
            with _errors_named(code):
                module = _run(code)
        _register(code, module, registered, together)
    except UserError:
        _registered().clear()
        _registered().update(registered)
        sys.modules.pop(code.name, None)
        if before is not None:
            sys.modules[code.name] = before
        raise
    _note(code.name, (code, module))
    _run_paths.add(str(code.path))
    _helpers[code.name] = dict(helpers)


def _note(name, entry):
    _loaded.pop(name, None)  # the latest use is the last one
    _loaded[name] = entry


def _run(code):
    if code.is_module:
        return importlib.import_module(code.name)
    spec = importlib.util.spec_from_file_location(code.name, code.path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[code.name] = module
    # Compiled here: a cached program may be that of another content.
    exec(compile(code.content, str(code.path), "exec"), vars(module))
    return module


@contextlib.contextmanager
def _errors_named(code):
    """Raises errors of the user's file with its name and line."""
    try:
        yield
    except SyntaxError as error:
        line = "" if error.lineno is None else f", line {error.lineno}"
        file = _shown(error.filename or code.path)
        raise UserError(f"{file}{line}: {error.msg}.") from error
    except (Exception, SystemExit) as error:
        lines = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename == str(code.path)
        ]
        line = f", line {lines[-1]}" if lines else ""
        raise UserError(
            f"{_shown(code.path)}{line}: {type(error).__name__}: {error}"
            f"{_missing_file(code, error)}"
        ) from error


def _missing_file(code, error):
    """Says that an import is a file that must be listed, too."""
    name = isinstance(error, ModuleNotFoundError) and error.name
    if not name or not code.path.with_name(f"{name}.py").is_file():
        return ""
    return (
        f". It is a file of yours: import it, too, before {code.path.name}, so "
        f"that a run keeps a copy: {name}.py"
    )


def _registered() -> dict[str, Any]:
    import keras

    return keras.saving.get_custom_objects()


def _register(code, module, before, together):
    """Registers the classes with Keras, and refuses names of others."""
    import keras

    for name, value in _registered().items():
        other = before.get(name)
        if other is None or other is value or not is_own(value, module):
            continue
        owner = getattr(other, "__module__", "")
        # An earlier version of the same file may be replaced.
        is_taken = owner in together and owner != code.name
        if is_taken or owner.partition(".")[0] == "keras_deepnmt":
            raise UserError(
                f"{_shown(code.path)}: the class {value.__name__} must not be "
                f'registered with Keras as "{name}", which is '
                f"{owner}.{other.__name__}. Take another name or package."
            )
    for value in vars(module).values():
        if (
            isinstance(value, type)
            and is_own(value, module)
            and hasattr(value, "get_config")
            and ">" not in keras.saving.get_registered_name(value)
        ):
            register = keras.saving.register_keras_serializable
            register(package=code.name)(value)


def is_own(value: Any, module: ModuleType) -> bool:
    """Whether a class or function is defined in a module or its package."""
    place = getattr(value, "__module__", None) or ""
    return place == module.__name__ or place.startswith(f"{module.__name__}.")
