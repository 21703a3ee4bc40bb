"""Imports go one way, and heavy or private modules stay out.

A package imports only from lower levels of `LEVELS`, and neither modules nor
folders import each other in a circle.
"""

import ast
import graphlib
import sys

from package_tree import (
    imports,
    module_name,
    package_of,
    refuse,
    relative,
    source_files,
    syntax_tree,
)

# Top to bottom. Packages on one level do not import each other.
LEVELS = [
    {"cli", "commands", "__main__", "__init__"},
    {"server"},
    {"documents"},
    {"analysis"},
    {"runs", "reranking", "exchange", "bulk"},
    {"recipes", "training", "evaluation", "serving"},
    {"translator"},
    {"decoding", "data"},
    {"zoo"},
    {"models"},
    {"layers", "losses", "validation"},
    {"xla", "own_code", "weights_files", "file_tables", "trained"},
    {
        "masks",
        "files",
        "json_files",
        "yaml_files",
        "processes",
        "docstrings",
        "threads",
        "limits",
        "private_folders",
    },
    {
        "errors",
        "lazy_names",
        "signals",
        "suggestions",
        "terminal_text",
        "version",
    },
]
# The command line is one program; its parts import each other.
COMMAND_LINE = {"cli", "commands", "__main__"}

BACKEND_NEUTRAL = {"masks", "xla", "losses", "layers", "models", "zoo"}
BACKEND_NEUTRAL |= {"decoding"}
NEVER_A_BACKEND = {"masks", "losses", "layers", "zoo"}
KERAS_ALONE = {"masks", "xla", "losses", "layers", "models", "zoo"}
BACKENDS = {"tensorflow", "jax", "torch"}
ONLY_KERAS = {"keras", "numpy", "keras_deepnmt"}
# Private modules of other projects; written apart for `test_words.py`.
PRIVATE_MODULES = tuple(
    f"{package}.{folder}"
    for package, folder in (
        ("keras", "src"),
        ("keras_hub", "src"),
        ("keras_nlp", "src"),
        ("tensorflow", "python"),
    )
)


# Names that control XLA, or the memory of its programs.
XLA_SETTINGS = (
    "XLA_FLAGS",
    "persistent_cache",
    "compilation_cache_dir",
    "mallopt",
)
# What opens a weights file without the checks of `weights_files.py`.
UNCHECKED_WEIGHTS = ("h5py.File(", ".load_weights(")


def level(package):
    """Height of a package's level, 0 for the lowest; None for an unknown."""
    for height, packages in enumerate(reversed(LEVELS)):
        if package in packages:
            return height
    return None


def is_forbidden(importer, imported):
    """Whether one package may not import the other."""
    if imported == importer or {importer, imported} <= COMMAND_LINE:
        return False
    heights = level(imported), level(importer)
    return None in heights or heights[0] >= heights[1]


def all_imports():
    """Yields every file with each of its imports."""
    for path in source_files():
        for line, name, at_load in sorted(imports(path)):
            where = f"{relative(path)}:{line}: {name}"
            yield path, where, name, at_load


def is_for_tensorflow(path):
    """Whether the file may use TensorFlow, as parts of the training step do."""
    is_named_so = path.stem.startswith("tensorflow_")
    return is_named_so and package_of(path) in {"models", "xla"}


def test_every_package_has_a_level():
    packages = {package_of(path) for path in source_files()}
    refuse(
        sorted(name for name in packages if level(name) is None),
        "Give these packages a level in `LEVELS` of test_imports.py.",
    )


def test_imports_go_one_way():
    offenders = []
    for path, where, name, _ in all_imports():
        parts = name.split(".")
        # `keras_deepnmt/__init__.py` loads every package lazily.
        if package_of(path) == "__init__" or parts[0] != "keras_deepnmt":
            continue
        if len(parts) > 1 and is_forbidden(package_of(path), parts[1]):
            offenders.append(f"{where}, imported by `{package_of(path)}`")
    refuse(
        offenders,
        "Import only from levels below (`LEVELS` in test_imports.py), and a "
        "name from its package; move the code to the level that needs it.",
    )


def module_imports():
    """Maps each module to those that it imports; packages are left out.

    A package re-exports names of its modules, which is not a dependency.
    """
    modules = {
        module_name(path): path
        for path in source_files()
        if path.name != "__init__.py"
    }
    return {
        module: {
            imported
            for _, name, _ in imports(path)
            for imported in (name, name.rpartition(".")[0])
            if imported in modules and imported != module
        }
        for module, path in modules.items()
    }


def circle(imported):
    """A circle in a mapping from each module to those it imports, if any."""
    try:
        graphlib.TopologicalSorter(imported).prepare()
    except graphlib.CycleError as error:
        return [" <- ".join(error.args[1])]
    return []


def test_modules_do_not_import_each_other_in_a_circle():
    refuse(
        circle(module_imports()),
        "Move what both need to a module below them.",
    )


def test_folders_do_not_import_each_other_in_a_circle():
    folders = {}
    for module, imported in module_imports().items():
        folder, _, _ = module.rpartition(".")
        others = {name.rpartition(".")[0] for name in imported}
        folders.setdefault(folder, set()).update(others - {folder})
    folders.pop("keras_deepnmt")
    refuse(
        circle(folders),
        "Move what both need to a folder below them, or join the folders.",
    )


def test_a_circle_is_found():
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})
    assert not circle({"a": {"b", "c"}, "b": {"c"}})


def test_imports_are_absolute_and_public():
    refuse(
        [
            where
            for _, where, name, _ in all_imports()
            if name.startswith((*PRIVATE_MODULES, ".", "_"))
            and not name.startswith("__future__")
        ],
        "Import by the full name, and only public modules.",
    )


def test_a_backend_is_loaded_only_where_it_must_be():
    refuse(
        [
            where
            for path, where, name, at_load in all_imports()
            if name.split(".")[0] in BACKENDS
            and package_of(path) in BACKEND_NEUTRAL
            and not is_for_tensorflow(path)
            and (at_load or package_of(path) in NEVER_A_BACKEND)
        ],
        "Use `keras.ops`; in models, decoding and xla, import a backend inside "
        "the function that needs it.",
    )


def test_layers_and_models_need_no_optional_package():
    offenders = []
    for path, where, name, at_load in all_imports():
        if package_of(path) not in KERAS_ALONE or not at_load:
            continue
        allowed = ONLY_KERAS | set(sys.stdlib_module_names)
        if package_of(path) == "models":
            allowed |= {"keras_nlp"}
        if is_for_tensorflow(path):
            allowed |= BACKENDS
        if name.split(".")[0] not in allowed:
            offenders.append(where)
    refuse(offenders, "Import this inside the function that needs it.")


def test_only_xla_has_programs_compiled_and_kept():
    offenders = []
    for path in source_files():
        if package_of(path) == "xla":
            continue
        text = path.read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            if any(setting in line for setting in XLA_SETTINGS):
                offenders.append(f"{relative(path)}:{number}: {line.strip()}")
        for node in ast.walk(syntax_tree(path)):
            if isinstance(node, ast.Call) and has_compiled(node):
                where = f"{relative(path)}:{node.lineno}"
                offenders.append(f"{where}: {ast.unparse(node)[:60]}")
    refuse(
        offenders,
        "Call `compile_for`, `CompiledProgram` or what `xla/` has for this, or "
        "move the code there. (Keras compiles the training step of JAX.)",
    )


def test_weights_are_read_by_one_module_that_checks_them():
    offenders = []
    for path in source_files():
        if package_of(path) == "weights_files":
            continue
        text = path.read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            if any(call in line for call in UNCHECKED_WEIGHTS):
                offenders.append(f"{relative(path)}:{number}: {line.strip()}")
    refuse(
        offenders,
        "Call `opened_weights` or `load_weights` of `weights_files.py`, which "
        "refuse files that name other files.",
    )


def has_compiled(call):
    """Whether a call is that of `jax.jit`, or has `jit_compile=True`."""
    if ast.unparse(call.func) in {"jax.jit", "jit"}:
        return True
    return any(
        keyword.arg == "jit_compile"
        and isinstance(keyword.value, ast.Constant)
        and keyword.value.value is True
        for keyword in call.keywords
    )
