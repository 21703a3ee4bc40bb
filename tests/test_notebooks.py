"""Every notebook runs from top to bottom and is committed with its outputs."""

import re
from pathlib import Path

import nbformat
import pytest
from forked_processes import run_forked
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
# In every test run, as Jupyter runs it.
IN_A_KERNEL = "01_transformer_from_layers"
# Slow: tests/system/test_quickstart.py goes the same way, 08 exports too.
IN_SLOW_TESTS = "00_quickstart"
IN_A_FORK = [
    pytest.param(
        path,
        id=path.stem,
        marks=pytest.mark.slow if path.stem == IN_SLOW_TESTS else (),
    )
    for path in NOTEBOOKS
    if path.stem != IN_A_KERNEL
]
INSTALL = """import importlib.util

if importlib.util.find_spec("keras_deepnmt") is None:
    %pip install -q "..[analysis]"
"""


def code_cells(path):
    notebook = nbformat.read(path, as_version=4)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.fixture
def smoke_scale(tmp_path, monkeypatch):
    monkeypatch.setenv("DEEPNMT_SCALE", "smoke")
    monkeypatch.setenv("TMPDIR", str(tmp_path))


@pytest.mark.thorough
def test_one_runs_in_a_kernel(tmp_path, smoke_scale):
    (path,) = (path for path in NOTEBOOKS if path.stem == IN_A_KERNEL)
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute(
        cwd=str(tmp_path)
    )


@pytest.mark.thorough
@pytest.mark.parametrize("path", IN_A_FORK)
def test_runs_in_smoke_scale(path, tmp_path, smoke_scale):
    # A kernel would first import for as long as many of its cells take.
    program = Path(__file__).with_name("notebook_program.py")
    done = run_forked([program, path], cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]


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
        "10_fine_tune_a_public_model",
        "11_minimum_risk",
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


def test_no_p_value_is_printed_as_zero():
    offenders = [
        path.name
        for path in NOTEBOOKS
        if re.search(r"p = 0\.0+(?!\d)", path.read_text(encoding="utf-8"))
    ]
    assert not offenders, f"Use `format_p_value`: {offenders}"
