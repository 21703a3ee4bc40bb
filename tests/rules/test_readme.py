"""Examples on the pages run, and names that they list exist.

Python blocks of one page run in order in one namespace, as a reader would
type them. Commands must be verbs, dotted names must resolve, and a table with
a column `layer` or `preset` must hold exactly the public ones.
"""

import pkgutil
import re
import runpy
from pathlib import Path

import pytest
from own_code_process import new_process
from package_tree import REPOSITORY, public_objects, refuse, relative

from keras_deepnmt.commands import VERBS
from keras_deepnmt.zoo import list_models

PAGES = sorted(
    [
        *REPOSITORY.glob("*.md"),
        *(REPOSITORY / "docs").rglob("*.md"),
        *(REPOSITORY / "keras_deepnmt").rglob("*.md"),
        *(REPOSITORY / "benchmarks").rglob("*.md"),
    ]
)
# Their blocks take longer than those of all other pages together.
THOROUGH = {
    "docs/devices.md",
    "docs/documents.md",
    "docs/trained_models.md",
    "docs/training.md",
}


def blocks(path, language):
    """Yields `(line of its fence, text)` of every block of a language."""
    text = path.read_text(encoding="utf-8")
    for match in re.finditer(
        rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.M
    ):
        yield text.count("\n", 0, match.start()) + 1, match.group(1)


def write_files(path):
    """Writes the blocks with the name of a file, as a reader would."""
    for _, block in blocks(path, r"\w+ title=\"[\w.]+\""):
        name = re.search(rf'title="(.*)"\n{re.escape(block)}', path.read_text())
        Path(name[1]).write_text(block, encoding="utf-8")


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


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path,
            id=relative(path),
            marks=pytest.mark.thorough if relative(path) in THOROUGH else (),
        )
        for path in PAGES
        if any(blocks(path, "python"))
    ],
)
def test_python_blocks_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files(path)
    namespace = {}
    with new_process(tmp_path / "home"):
        for line, block in blocks(path, "python"):
            name = f"{path.name}, block of line {line}"
            exec(compile(block, name, "exec"), namespace)


def test_commands_are_verbs():
    offenders = []
    for path in PAGES:
        for line, block in blocks(path, r"(?:bash|console|sh|shell)"):
            for words in re.findall(
                r"(?:^|&& |\| |\$ )deepnmt (.*)", block, re.M
            ):
                word = words.split()[0]
                if word not in VERBS and not word.startswith("-"):
                    offenders.append(
                        f"{relative(path)}, block of line {line}: "
                        f"deepnmt {words}"
                    )
    refuse(offenders, "`deepnmt --help` lists the verbs.")


def test_dotted_names_resolve():
    offenders = []
    for path in PAGES:
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, 1):
            for name in re.findall(r"`(keras_deepnmt(?:\.\w+)+)", line):
                if not resolves(name):
                    offenders.append(f"{relative(path)}:{number}: {name}")
    refuse(offenders, "These names do not exist; correct the page.")


def resolves(name):
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


def test_tables_of_layers_and_presets_are_complete():
    public = {
        "layer": set(public_objects("keras_deepnmt.layers")),
        "preset": set(list_models()),
    }
    offenders = []
    for path in PAGES:
        listed = {title: column(path, title) for title in public}
        if path.parent.name == "layers":
            listed["layer"] = listed["layer"] or set()
        elif not listed["layer"]:
            # In a table of measurements the layers stand without backticks.
            listed["layer"] = None
        for title, names in listed.items():
            if names is not None and names != public[title]:
                wrong = sorted(names ^ public[title])
                offenders.append(f"{relative(path)}: column {title}: {wrong}")
    refuse(offenders, "List exactly the public ones; these differ.")


def test_measured_numbers_are_the_rows_of_the_results():
    file = REPOSITORY / "benchmarks" / "write_tables.py"
    script = runpy.run_path(str(file))
    for page in script["PAGES"]:
        assert script["section"](page) in page.read_text("utf-8")
