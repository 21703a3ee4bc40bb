"""The lists in the guides are complete and up to date.

* `docs/recipe_keys.md`, `docs/recipes.md`, the JSON Schema of recipes, the
  table of plain presets, the tables of papers, slots and layers and the page of
  features are up to date
* the figures of the guides are those of the notebooks
* `docs/cli.md` lists every option of every command
* a YAML block is a recipe, or a part of one, that loads
* a console example (`pycon`) of a run runs and gives values of the shown type
"""

import ast
import dataclasses
import doctest
import hashlib
import json
import re
import runpy

import pytest
import yaml
from package_tree import REPOSITORY, relative
from test_readme import PAGES, blocks

from keras_deepnmt import cli, create_model
from keras_deepnmt.commands import VERBS
from keras_deepnmt.data import CorpusOptions, train_tokenizer
from keras_deepnmt.recipes import load_recipe
from keras_deepnmt.recipes.loading import flatten_recipe
from keras_deepnmt.zoo.registry import PRESET_VERSION

DOCS = REPOSITORY / "docs"


def pages_with(language):
    return [path for path in PAGES if any(blocks(path, language))]


RECIPE = """
name: mine
model: {preset: transformer_tiny}
data: {train: [{source: a, target: b}]}
training: {steps: 7}
"""


def rows(file, heading):
    """Cells of all rows below a table heading with these first cells."""
    text = (DOCS / file).read_text(encoding="utf-8")
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        lines = [
            [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            for line in table.splitlines()
        ]
        if lines[0][: len(heading)] == heading:
            yield from lines[2:]


@pytest.mark.parametrize(
    "name", ["write_recipe_keys.py", "write_papers.py", "write_features.py"]
)
def test_generated_pages_and_files_are_those_of_the_code(name):
    for file, content in runpy.run_path(str(DOCS / name))["files"]().items():
        assert file.read_text(encoding="utf-8") == content, (
            f"{file.name}: run python docs/{name}"
        )


def test_figures_are_those_of_the_notebooks():
    script = runpy.run_path(str(DOCS / "write_figures.py"))
    for file, content in script["files"]().items():
        assert file.read_bytes() == content, (
            f"{file.name}: run python docs/write_figures.py"
        )


def test_every_figure_is_on_a_page():
    pages = "".join(path.read_text(encoding="utf-8") for path in PAGES)
    notebooks = [
        path.read_text(encoding="utf-8")
        for path in (REPOSITORY / "notebooks").glob("*.ipynb")
    ]
    for file in (DOCS / "images").glob("*"):
        assert f"images/{file.name}" in pages + "".join(notebooks), file.name


def test_every_recipe_key_is_on_the_page_of_keys():
    listed = [
        key.strip("`")
        for key, *_ in rows("recipe_keys.md", ["key", "type", "default"])
    ]
    keys = flatten_recipe(load_recipe("transformer_tiny.demo_de_en"))
    inner = ("model.overrides.", "data.test.")
    assert not {key for key in keys if not key.startswith(inner)} - set(listed)
    assert {field.name for field in dataclasses.fields(CorpusOptions)} < set(
        listed
    )


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_of_a_command_is_listed(verb, capsys):
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    section = re.search(rf"^## {verb}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    first_cells = re.findall(r"^\|(.*?)\|", section[1], re.MULTILINE)
    listed = re.findall(r"`(--[\w-]+)`", "".join(first_cells))
    assert cli.main([verb, "--help"]) == 0
    options = set(re.findall(r"--[\w-]+", _option_list(capsys)))
    assert sorted(listed) == sorted(options - {"--help", "--quiet"})


def _option_list(capsys):
    usage, _ = capsys.readouterr().out.split("\n\n", 1)
    return usage


def test_commands_stand_in_the_order_of_the_help():
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## ([\w-]+)$", text, re.MULTILINE)
    assert headings == list(VERBS)


@pytest.mark.parametrize("path", pages_with("yaml"), ids=relative)
def test_yaml_blocks_are_recipes(path, tmp_path):
    for _, block in blocks(path, "yaml"):
        file = tmp_path / "recipe.yaml"
        file.write_text(RECIPE, encoding="utf-8")
        if block.startswith(("name:", "extends:")):
            file.write_text(block, encoding="utf-8")
            load_recipe(file)
            continue
        changes = {}
        for section, keys in yaml.safe_load(block).items():
            if isinstance(keys, dict):
                changes |= {f"{section}.{k}": v for k, v in keys.items()}
            else:
                changes[section] = keys
        load_recipe(file, changes)


@pytest.fixture(scope="module")
def folder_with_a_run(tmp_path_factory):
    """A folder with a tiny, untrained run `runs/mine`."""
    folder = tmp_path_factory.mktemp("console")
    run = folder / "runs" / "mine"
    (run / "tokenizer").mkdir(parents=True)
    (run / "model").mkdir()
    sizes = {
        "hidden_dim": 16,
        "intermediate_dim": 24,
        "num_heads": 2,
        "num_encoder_layers": 1,
        "num_decoder_layers": 1,
    }
    text = ["Wir sollen oft seltsam sein.", "We should be strange often."] * 5
    tokenizer = train_tokenizer(text, folder / "joint.model", 41)
    for side in ("source", "target"):
        tokenizer.save(run / "tokenizer" / f"{side}.model")
    size = tokenizer.vocabulary_size
    weights = run / "model" / "model.weights.h5"
    create_model("transformer_tiny", size, size, **sizes).save_weights(weights)
    description = {
        "preset": "transformer_tiny",
        "preset_version": PRESET_VERSION,
        "overrides": sizes,
        "source_vocabulary_size": size,
        "target_vocabulary_size": size,
        "tokenizer": {"source": tokenizer.sha256, "target": tokenizer.sha256},
        "weights_sha256": hashlib.sha256(weights.read_bytes()).hexdigest(),
    }
    (run / "run.json").write_text(json.dumps(description))
    return folder


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path,
            id=relative(path),
            # README's examples run in every test run.
            marks=() if path.name == "README.md" else pytest.mark.thorough,
        )
        for path in pages_with("pycon")
    ],
)
def test_console_examples_run(path, folder_with_a_run, monkeypatch):
    monkeypatch.chdir(folder_with_a_run)
    namespace = {}
    for _, block in blocks(path, "pycon"):
        for example in doctest.DocTestParser().get_examples(block):
            if not example.want:
                exec(example.source, namespace)
                continue
            value = eval(example.source, namespace)
            # The run is not trained: only the form can be as shown.
            assert form(value) == form(ast.literal_eval(example.want))


def form(value):
    """Types of a value and of the parts of a list or tuple."""
    if isinstance(value, tuple) and not all(
        isinstance(part, str) for part in value
    ):
        return tuple(form(part) for part in value)
    if isinstance(value, list | tuple):
        return type(value), {form(part) for part in value}
    return type(value)
