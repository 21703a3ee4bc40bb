"""What the READMEs show runs, and what they list exists.

Python blocks of one file run in order in one namespace, as a reader would
type them. Commands must be verbs, dotted names must resolve, and a table with
a column `layer` or `preset` must hold exactly the public ones.
"""

import importlib
import re
import runpy

import pytest
from package_tree import REPOSITORY, public_objects, relative

from keras_deepnmt.commands import VERBS
from keras_deepnmt.zoo import list_models

READMES = sorted(
    [
        *REPOSITORY.glob("*.md"),
        *(REPOSITORY / "keras_deepnmt").rglob("*.md"),
        *(REPOSITORY / "benchmarks").rglob("*.md"),
        *(REPOSITORY / "docs").rglob("*.md"),
    ]
)
FILES = [pytest.param(path, id=relative(path)) for path in READMES]


def blocks(path, language):
    text = path.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.M)


def column(path, title):
    """Names in backticks in the columns of that title, or None."""
    names, index = None, None
    for line in path.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            index = None
        elif title in [cell.lower() for cell in cells]:
            index = [cell.lower() for cell in cells].index(title)
            names = names or set()
        elif index is not None and index < len(cells):
            names |= set(re.findall(r"`(\w+)`", cells[index]))
    return names


@pytest.mark.parametrize("path", FILES)
def test_python_blocks_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for number, block in enumerate(blocks(path, "python"), 1):
        exec(compile(block, f"{path.name} block {number}", "exec"), namespace)


@pytest.mark.parametrize("path", FILES)
def test_commands_are_verbs(path):
    for block in blocks(path, r"(?:bash|console|sh|shell)"):
        for line in re.findall(r"(?:^|&& |\| |\$ )deepnmt (.*)", block, re.M):
            word = line.split()[0]
            assert word in VERBS or word.startswith("-"), line


@pytest.mark.parametrize("path", FILES)
def test_dotted_names_resolve(path):
    text = path.read_text(encoding="utf-8")
    for name in re.findall(r"`(keras_deepnmt(?:\.\w+)+)", text):
        value = importlib.import_module("keras_deepnmt")
        for part in name.split(".")[1:]:
            assert hasattr(value, part) or _is_module(value, part), name
            value = getattr(value, part)


@pytest.mark.parametrize("path", FILES)
def test_tables_of_layers_and_presets_are_complete(path):
    layers = column(path, "layer")
    # In a table of measurements they stand without backticks.
    if layers or path.parent.name == "layers":
        assert layers == set(public_objects("keras_deepnmt.layers"))
    presets = column(path, "preset")
    if presets is not None:
        assert presets == set(list_models())


def _is_module(value, part):
    return importlib.util.find_spec(f"{value.__name__}.{part}") is not None


def test_measured_numbers_are_the_rows_of_the_results():
    file = REPOSITORY / "benchmarks" / "write_tables.py"
    script = runpy.run_path(str(file))
    for page in script["PAGES"]:
        assert script["section"](page) in page.read_text("utf-8")
