"""A paper is added with three new files and at most five additions.

A toy paper is added to a copy of the repository as CONTRIBUTING says; there the
rules hold, the catalogue proves the layer, and a recipe names it in its slot.
"""

import os
import re
import shutil
import subprocess
import sys

import pytest
from package_tree import REPOSITORY, committed_files

MOST_ADDITIONS = 5
NEW_FILES = {
    "keras_deepnmt/layers/word_gate.py": '''\
"""A gate on each word embedding (Doe et al., 2030, Eq. 1)."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_deepnmt")
class WordGate(keras.layers.Layer):
    """Multiplies each word embedding by a gate.

    It computes (Doe et al., 2030, Eq. 1):

        y = sigmoid(w) * x

    Differs from the paper: nothing.
    Cost: `D` parameters.

    Args:
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        embeddings: float tensor `(B, S, D)`.
        padding_mask: ignored; positions are independent.

    Returns:
        Float tensor `(B, S, D)`.

    Masking: passes the embeddings' mask through.

    Example:
    >>> layer = keras_deepnmt.layers.WordGate()
    >>> layer(np.zeros((3, 5, 7), "float32")).shape
    TensorShape([3, 5, 7])

    Reference:
        - [Doe et al., 2030](https://example.org/gates).
    """

    slots = ("source_embedding_layer", "target_embedding_layer")

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, embeddings_shape):
        self.gate = self.add_weight(
            name="gate", shape=(embeddings_shape[-1],), initializer="zeros"
        )

    def call(self, embeddings, padding_mask=None):
        return embeddings * ops.sigmoid(self.gate)  # Eq. 1

    def compute_output_shape(self, embeddings_shape):
        return embeddings_shape
''',
    "tests/layers/test_word_gate.py": '''\
"""What must be true of WordGate: it is Equation 1."""

import numpy as np

from keras_deepnmt.layers import WordGate


def test_matches_the_equation():
    inputs = np.random.default_rng(0).normal(size=(3, 5, 7)).astype("float32")
    layer = WordGate()
    layer.build(inputs.shape)
    gate = np.linspace(-2, 2, 7, dtype="float32")
    layer.set_weights([gate])
    expected = inputs / (1 + np.exp(-gate))
    np.testing.assert_allclose(layer(inputs), expected, atol=1e-6)
''',
    "keras_deepnmt/zoo/word_gate.py": '''\
"""Presets of Doe et al. (2030): gates on word embeddings."""

from keras_deepnmt.layers.word_gate import WordGate
from keras_deepnmt.models.transformer import Transformer
from keras_deepnmt.zoo.papers import describe_paper
from keras_deepnmt.zoo.registry import register_variant
from keras_deepnmt.zoo.transformer import base

PAPER = "Doe et al. (2030)"


@register_variant(Transformer, {"base": base}, PAPER)
def word_gate(arguments):
    """A gate on the word embeddings of both sides (Eq. 1)."""
    return dict.fromkeys(WordGate.slots, WordGate())


describe_paper(
    PAPER,
    links="[Doe et al., 2030](https://example.org/gates)",
    changes="multiplies word embeddings by gates",
    presets="`word_gate_*`",
)
''',
}
# A line before which each addition stands; at the end of the file if None.
ADDITIONS = {
    "keras_deepnmt/layers/__init__.py": (
        None,
        "from keras_deepnmt.layers.word_gate import WordGate as WordGate\n",
    ),
    "tests/rules/public_names.txt": (None, "keras_deepnmt.layers.WordGate\n"),
    "tests/catalog.py": (
        "    LayerEntry(\n",
        "    LayerEntry(\n"
        '        "WordGate",\n'
        "        keras_deepnmt.layers.WordGate,\n"
        '        {"embeddings": (B, S, D)},\n'
        "    ),\n",
    ),
    "CHANGELOG.md": ("- ", "- `WordGate` of Doe et al. (2030).\n"),
}
GENERATING = (
    "docs/write_papers.py",
    "docs/write_recipe_keys.py",
    'benchmarks/speed/preset_cost.py --only "word_gate_*"',
)
GENERATED = {
    "README.md",
    "docs/papers.md",
    "docs/recipes.md",
    "keras_deepnmt/layers/README.md",
    "keras_deepnmt/recipes/recipe.schema.json",
    "keras_deepnmt/recipes/plain_presets.yaml",
    "keras_deepnmt/zoo/measured_costs.csv",
}
COMMANDS = """
import runpy, sys

for command in sys.argv[1].splitlines():
    sys.argv = command.replace('"', "").split()
    runpy.run_path(sys.argv[0], run_name="__main__")
"""
PROOFS = """
import pytest

code = pytest.main(
    [
        *("-n", "0", "-q", "-p", "no:cacheprovider"),
        *(
            f"tests/rules/test_{name}"
            for name in (
                "docstrings.py::test_every_example_runs[layers]",
                "docstrings.py::test_every_call_argument_of_a_layer_is_explained",
                "docstrings.py::test_a_layer_names_its_paper_and_its_differences",
                *("glossary.py", "imports.py", "public_names.py", "words.py"),
                "docs.py::test_generated_pages_and_files_are_those_of_the_code",
                "readme.py::test_tables_of_layers_and_presets_are_complete",
            )
        ),
        "tests/layers/test_word_gate.py",
        "tests/conformance/test_catalog.py",
        "tests/zoo",
        *(
            f"tests/conformance/test_{name}.py::{test}"
            for name, test in (
                ("config", "test_a_layer_survives_its_configuration[WordGate]"),
                ("saving", "test_a_layer_saves_and_loads[WordGate]"),
            )
        ),
    ]
)
assert code == 0, code

from keras_deepnmt import create_model
from keras_deepnmt.recipes import load_recipe

recipe = load_recipe(
    "transformer_tiny.demo_de_en",
    {"model.overrides.source_embedding_layer": "WordGate"},
)
model = create_model(recipe.model.preset, 11, 11, **recipe.model.overrides)
assert type(model.source_embedding_layer).__name__ == "WordGate"
"""


def add_the_paper(copy):
    """Writes the new files and the additions into a copy."""
    for name, text in NEW_FILES.items():
        (copy / name).write_text(text, encoding="utf-8")
    for name, (before, line) in ADDITIONS.items():
        text = (copy / name).read_text(encoding="utf-8")
        head, mark, rest = text, "", ""
        if before is not None:
            head, mark, rest = text.partition(f"\n{before}")
            head += "\n"
            mark = mark.removeprefix("\n")
            assert mark, name
        (copy / name).write_text(head + line + mark + rest, encoding="utf-8")


def contents(folder):
    """Maps the files of a copy to their bytes, without what Python leaves."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_additions_are_few():
    assert len(NEW_FILES) == 3
    assert len(ADDITIONS) <= MOST_ADDITIONS


def test_contributing_lists_the_files_and_the_commands():
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = re.search(r"(?ms)^## Add a paper.*?(?=^## )", text)[0]
    rows = re.findall(r"(?m)^\| `(.*?)` \|", section)
    assert sorted(rows) == sorted(ADDITIONS)
    for command in GENERATING:
        assert f"python {command.split()[0]}" in section


@pytest.mark.thorough
def test_a_toy_paper_needs_three_files_and_few_additions(tmp_path):
    copy = tmp_path / "copy"
    for path in committed_files():
        place = copy / path.relative_to(REPOSITORY)
        if "sentence_counts" not in path.parts:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
    before = contents(copy)
    add_the_paper(copy)
    for code in (COMMANDS, PROOFS):
        done = subprocess.run(
            [sys.executable, "-c", code, "\n".join(GENERATING)],
            cwd=copy,
            env={
                **os.environ,
                "PYTHONPATH": str(copy),
                "DEEPNMT_COMMIT": "toy",
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            capture_output=True,
            text=True,
        )
        output = done.stdout[-8000:] + done.stderr[-4000:]
        assert done.returncode == 0, output
    after = contents(copy)
    assert set(after) - set(before) == set(NEW_FILES)
    changed = {name for name in before if after[name] != before[name]}
    assert changed == set(ADDITIONS) | GENERATED
