"""Writes the page that compares features with those of other toolkits.

The facts, with the files that show them, are in `docs/features.yaml`.

python docs/write_features.py
"""

from pathlib import Path

import yaml

DOCS = Path(__file__).parent
MARKS = {"yes": "✓", "partly": "(✓)", "no": "–", "not checked": "?"}

HEAD = """\
# Features of this and other toolkits

What translation toolkits have, this one among them, for readers who choose one.
The facts are in [features.yaml](features.yaml), from which
`docs/write_features.py` writes this page. Each was looked up in the source or
the documentation of the version below; a mark leads to the file that shows it.

| mark | meaning |
|---|---|
| ✓ | yes |
| (✓) | partly: point at the mark, or see `features.yaml`, for what |
| – | no: neither source nor documentation of that version has it |
| ? | not checked |

A mark of this package leads to the page that describes the feature; point at it
for the test. What an example or a script beside a toolkit does is “partly”.
What only another package adds is “no” (CTranslate2, for instance, reads models
of Marian, fairseq and transformers by itself), but keras-hub has the features
of Keras, on which it is built. Toolkits change: please report what is no longer
so.

"""
CHOICE = """\

Others are the better choice for large language models and models divided among
devices (eole, keras-hub, transformers), for speech (fairseq, transformers), for
translation without Python (Marian), for non-autoregressive and simultaneous
translation (fairseq), for words with features (Marian, Sockeye), and for public
models in many languages (transformers; this package
[imports](exchange.md#what-can-be-imported) some of them). What this package
lacks, and why, stands under each table.
"""


def read() -> dict:
    """Returns the facts; all values are texts, also `yes` and `no`."""
    text = (DOCS / "features.yaml").read_text(encoding="utf-8")
    return yaml.load(text, yaml.BaseLoader)


def table(rows: list[list[str]]) -> str:
    """Returns a Markdown table, whose first row is the heading."""
    rows = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def split_cell(cell: str) -> tuple[str, str, str]:
    """Divides a toolkit's cell into mark, path and what it has in part."""
    if cell in ("no", "not checked"):
        return cell, "", ""
    mark, _, rest = cell.partition(" ")
    path, _, note = rest.replace("keras:", "keras\0").partition(": ")
    return mark, path.replace("keras\0", "keras:"), note


def address(path: str, name: str, toolkits: dict) -> str:
    """Returns the address of a file that shows a feature of a toolkit."""
    if path.startswith("keras:"):
        name, path = "keras", path.removeprefix("keras:")
    path, _, commit = path.partition("@")
    toolkit = toolkits[name]
    commit = commit or toolkit["commit"]
    return f"{toolkit['repository']}/blob/{commit}/{path}"


def link(mark: str, target: str, title: str) -> str:
    """Returns a mark that leads somewhere, with a text for the pointer."""
    title = f' "{title}"' if title else ""
    return f"[{MARKS[mark]}]({target}{title})"


def feature_row(feature: dict, toolkits: dict) -> list[str]:
    """Returns the row of a feature."""
    mark = feature["here"]
    here = MARKS[mark]
    if mark != "no":
        here = link(mark, feature["page"], f"tested by {feature['test']}")
    row = [feature["feature"], here]
    for name, toolkit in toolkits.items():
        if "column" in toolkit:
            mark, path, note = split_cell(feature[name])
            row.append(
                link(mark, address(path, name, toolkits), note)
                if path
                else MARKS[mark]
            )
    return row


def notes(features: list[dict]) -> str:
    """Returns what this package lacks, and what it has in part."""
    lines = [
        f"- {feature['feature']}: {feature['note']}.\n"
        for feature in features
        if feature["here"] != "yes"
    ]
    return "\nNot here, or in part:\n\n" + "".join(lines) if lines else ""


def page() -> str:
    """Returns the whole page."""
    facts = read()
    toolkits, features = facts["toolkits"], facts["features"]
    compared = {n: t for n, t in toolkits.items() if "column" in t}
    versions = [["column", "toolkit", "version", "commit"]] + [
        [
            toolkit["column"],
            f"[{name}]({toolkit['repository']})",
            toolkit["version"],
            ", ".join(
                filter(None, (toolkit["commit"][:8], toolkit.get("date")))
            ),
        ]
        for name, toolkit in compared.items()
    ]
    heading = ["", "here", *(t["column"] for t in compared.values())]
    parts = [HEAD, table(versions), CHOICE]
    for group in dict.fromkeys(feature["group"] for feature in features):
        rows = [f for f in features if f["group"] == group]
        parts.append(f"\n## {group}\n\n")
        parts.append(
            table([heading, *(feature_row(f, toolkits) for f in rows)])
        )
        parts.append(notes(rows))
    return "".join(parts)


def files() -> dict[Path, str]:
    """Returns the content of the file that this script writes."""
    return {DOCS / "features.md": page()}


if __name__ == "__main__":
    for file, content in files().items():
        file.write_text(content, encoding="utf-8")
        print(file)
