"""Runs the code cells of a notebook in this process.

    notebook_program.py NOTEBOOK

What takes long and is tested elsewhere is spared: models are updated without a
graph, the validations of a run do not search, and an export is verified by the
cell that does so alone.
"""

import functools
import sys

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from uncompiled_models import eager_updates

from keras_deepnmt.runs import train as training
from keras_deepnmt.serving import exporting
from keras_deepnmt.translator import Translator


class Shell(InteractiveShell):
    """A shell without a window."""

    def enable_gui(self, gui=None):
        assert gui is None


def without_search(train):
    """Returns a `train` in which the translation of a text is the text."""

    @functools.wraps(train)
    def wrapped(*arguments, **options):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                Translator, "translate", lambda self, texts, **_: list(texts)
            )
            return train(*arguments, **options)

    return wrapped


if __name__ == "__main__":
    training.train = without_search(training.train)
    exporting.verify = lambda folder: None
    shell = Shell.instance()
    with eager_updates():
        for cell in nbformat.read(sys.argv[1], as_version=4).cells:
            if cell.cell_type == "code":
                shell.run_cell(cell.source).raise_error()
