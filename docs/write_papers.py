"""Writes the tables of papers, slots, presets and layers.

They stand between marks in README.md, `docs/papers.md` and
`keras_deepnmt/layers/README.md`, and come from what the presets and the layers
say of themselves: `describe_paper`, the attribute `slots` and the docstrings.

python docs/write_papers.py
"""

import inspect
import re
from pathlib import Path

import keras

import keras_deepnmt.layers
from keras_deepnmt.models.slot_layers import (
    POSITION_LAYERS,
    SLOT_LAYERS,
    SLOT_PURPOSES,
)
from keras_deepnmt.zoo import list_models
from keras_deepnmt.zoo.papers import Paper, papers
from keras_deepnmt.zoo.registry import get_preset

REPOSITORY = Path(__file__).parents[1]
PURPOSES = {
    **SLOT_PURPOSES,
    "position_encoding": "tells the order of the tokens",
    "kernel_initializer": "draws the initial kernels of the blocks",
}
LAYERS = {
    **SLOT_LAYERS,
    "position_encoding": POSITION_LAYERS,
    "kernel_initializer": ("DepthScaledInitializer",),
}
KINDS = (keras.layers.Layer, keras.initializers.Initializer)


def table(headings: list[str], rows: list[list[str]]) -> str:
    """Returns a Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def papers_table() -> str:
    """Returns the table of papers for README.md."""
    headings = ["paper", "what it changes", "slot", "presets"]
    return table(
        headings,
        [
            [paper.links, paper.changes, slots_of(paper), paper.presets]
            for paper in papers()
        ],
    )


def slots_of(paper: Paper) -> str:
    """Names the slots that a paper's presets fill, or else their model."""
    filled, models = set(), set()
    for name in list_models():
        preset = get_preset(name)
        if preset.paper == paper.name:
            models.add(preset.model.__name__)
            filled |= set(preset.arguments(11, 13)) & set(PURPOSES)
    if not filled:
        return f"(the model `{'`, `'.join(sorted(models))}`)"
    return ", ".join(f"`{slot}`" for slot in PURPOSES if slot in filled)


def slots_table() -> str:
    """Returns the table of slots for `docs/papers.md`."""
    slots_for = {}
    for slot, purpose in PURPOSES.items():
        slots_for.setdefault((purpose, LAYERS[slot]), []).append(slot)
    return table(
        ["slot", "what the layer replaces or adds", "layers"],
        [
            [
                ", ".join(f"`{slot}`" for slot in slots),
                purpose,
                ", ".join(f"`{layer}`" for layer in layers),
            ]
            for (purpose, layers), slots in slots_for.items()
        ],
    )


def presets_table() -> str:
    """Returns the table of presets for `docs/papers.md`."""
    return table(
        ["paper", "presets", "baseline", "embeddings"],
        [
            [paper.name, paper.presets, paper.baseline, paper.embeddings]
            for paper in papers()
        ],
    )


def layers_table() -> str:
    """Returns the table of layers for their README, from their docstrings."""
    rows = []
    for name, layer in sorted(vars(keras_deepnmt.layers).items()):
        if inspect.isclass(layer) and issubclass(layer, KINDS):
            file = Path(inspect.getfile(layer)).name
            text = inspect.getdoc(layer)
            rows.append(
                [
                    f"[`{name}`]({file})",
                    text.splitlines()[0],
                    "; ".join(references(text)),
                    difference(text),
                ]
            )
    return table(
        ["layer", "what it does", "papers", "differs from the paper"], rows
    )


def references(docstring: str) -> list[str]:
    """Returns the papers under "Reference", as links."""
    section = docstring.partition("\nReference:\n")[2]
    return re.findall(r"(?m)^ *- (\[.*?\]\(.*?\))", section)


def difference(docstring: str) -> str:
    """Returns what follows "Differs from the paper:", in one line."""
    found = re.search(
        r"^Differs from the papers?: *(.*?)(?=^Cost:|^\w[\w ]*:$|\n\n|\Z)",
        docstring,
        re.DOTALL | re.MULTILINE,
    )
    # A bar would end the cell.
    return " ".join(found[1].split()).replace("|", "\\|") if found else ""


TABLES = {
    "README.md": {"papers": papers_table},
    "docs/papers.md": {"slots": slots_table, "presets": presets_table},
    "keras_deepnmt/layers/README.md": {"layers": layers_table},
}


def files() -> dict[Path, str]:
    """Returns the content of each file that this script writes."""
    contents = {}
    for name, tables in TABLES.items():
        file = REPOSITORY / name
        text = file.read_text(encoding="utf-8")
        for mark, make in tables.items():
            start, end = f"<!-- {mark} -->\n\n", f"\n<!-- /{mark} -->"
            before, rest = text.split(start)
            text = before + start + make() + end + rest.split(end)[1]
        contents[file] = text
    return contents


if __name__ == "__main__":
    for file, content in files().items():
        file.write_text(content, encoding="utf-8")
        print(file)
