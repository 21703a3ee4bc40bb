"""Every notebook runs from top to bottom and is committed with its outputs."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
FILES = [pytest.param(path, id=path.stem) for path in NOTEBOOKS]


def code_cells(path):
    notebook = nbformat.read(path, as_version=4)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.thorough
@pytest.mark.parametrize("path", FILES)
def test_runs_in_smoke_scale(path, tmp_path, monkeypatch):
    monkeypatch.setenv("DEEPNMT_SCALE", "smoke")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute(
        cwd=str(tmp_path)
    )


@pytest.mark.parametrize("path", FILES)
def test_is_committed_with_the_outputs_of_one_whole_run(path):
    cells = code_cells(path)
    counts = [cell.execution_count for cell in cells]
    assert counts == list(range(1, len(cells) + 1))
    errors = [o for cell in cells for o in cell.outputs if "ename" in o]
    assert not errors
    assert sum(bool(cell.outputs) for cell in cells) >= len(cells) - 1


@pytest.mark.parametrize("path", FILES)
def test_cells_are_short_and_name_no_path_of_a_machine(path):
    for cell in code_cells(path):
        assert len(cell.source.splitlines()) <= 15
    text = path.read_text(encoding="utf-8")
    assert "/root" not in text and "/home" not in text
