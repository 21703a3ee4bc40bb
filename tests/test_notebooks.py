"""Every notebook runs from top to bottom and is committed with its outputs."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

# Of any checkout; the others run in the thorough stage.
IN_EVERY_RUN = {"01_transformer_from_layers", "07_many_devices"}
NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
FILES = [
    pytest.param(
        path,
        id=path.stem,
        marks=() if path.stem in IN_EVERY_RUN else pytest.mark.thorough,
    )
    for path in NOTEBOOKS
]
INSTALL = """import importlib.util

if importlib.util.find_spec("keras_deepnmt") is None:
    %pip install -q "..[analysis]"
"""


def code_cells(path):
    notebook = nbformat.read(path, as_version=4)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


# What the kernel runs first: updates without XLA need no graph for four steps.
STARTUP = f"""import sys

sys.path.append({str(Path(__file__).parent)!r})
from uncompiled_models import eager_updates

eager_updates().__enter__()
del eager_updates, sys
"""


@pytest.mark.parametrize("path", FILES)
def test_runs_in_smoke_scale(path, tmp_path, monkeypatch):
    startup = tmp_path / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "eager_updates.py").write_text(STARTUP, encoding="utf-8")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("DEEPNMT_SCALE", "smoke")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute(
        cwd=str(tmp_path)
    )


def test_there_is_one_for_each_paper():
    assert [path.stem for path in NOTEBOOKS] == [
        "00_quickstart",
        "01_transformer_from_layers",
        "02_layer_aggregation",
        "03_hybrid_self_attention",
        "04_layer_attention_and_surface_fusion",
        "05_role_interaction",
        "06_dense_nmt",
        "07_many_devices",
        "08_export_and_serve",
        "09_compose_papers",
    ]


def test_the_first_cell_installs_the_package_when_it_is_missing():
    offenders = [
        path.name
        for path in NOTEBOOKS
        if not code_cells(path)[0].source.startswith(INSTALL)
    ]
    assert not offenders, f"Begin with `INSTALL`: {offenders}"


def test_each_is_committed_with_the_outputs_of_one_whole_run():
    offenders = []
    for path in NOTEBOOKS:
        cells = code_cells(path)
        counts = [cell.execution_count for cell in cells]
        if counts != list(range(1, len(cells) + 1)):
            offenders.append(f"{path.name}: cells were run as {counts}")
        if any("ename" in output for cell in cells for output in cell.outputs):
            offenders.append(f"{path.name}: an output is an error")
        if sum(bool(cell.outputs) for cell in cells) < len(cells) - 1:
            offenders.append(f"{path.name}: cells without an output")
    assert not offenders, "\n".join(
        ["Restart the kernel, run all cells, and save.", *offenders]
    )


def test_cells_are_short_and_name_no_path_of_a_machine():
    offenders = []
    for path in NOTEBOOKS:
        for number, cell in enumerate(code_cells(path), 1):
            lines = len(cell.source.splitlines())
            if lines > 15:
                offenders.append(f"{path.name}, cell {number}: {lines} lines")
        text = path.read_text(encoding="utf-8")
        for folder in ("/root", "/home"):
            if folder in text:
                offenders.append(f"{path.name}: {folder}")
    assert not offenders, "\n".join(
        ["At most 15 lines a cell, and relative paths.", *offenders]
    )
