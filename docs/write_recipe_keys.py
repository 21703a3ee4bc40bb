"""Writes the pages of recipe keys, of recipes and of known corpora.

Also two files that are installed: the JSON Schema of recipes, and the plain
model of each preset, whose recipes the preset can use.

python docs/write_recipe_keys.py
"""

import json
import re
from pathlib import Path

import yaml

from keras_deepnmt.data.known_corpora.registry import NAMED_CORPORA
from keras_deepnmt.models import ConvSeq2Seq, Transformer
from keras_deepnmt.recipes.bundled import (
    PLAIN_PRESETS_FILE,
    bundled_names,
    bundled_text,
    plain_presets_file,
)
from keras_deepnmt.recipes.reference import (
    recipe_schema,
    reference_page,
    schema_file,
)
from keras_deepnmt.zoo import list_models
from keras_deepnmt.zoo.registry import get_preset

PLAIN = {Transformer: "transformer", ConvSeq2Seq: "conv_seq2seq"}
SIZE = re.compile(r"_((?:tiny|small|base|big|\d+l)(?:_embed_\d+)?)(_matched)?$")


RECIPES_HEAD = """\
# Recipes and corpora

The recipes that come with the package, and the corpora that a recipe can name.
This page is written by `docs/write_recipe_keys.py`.

## Bundled recipes

A recipe is called `PRESET.CORPUS`. The recipe of a plain model can be used with
every preset that is compared with it: `fine_grained_layer_attention_tiny` on
Multi30k is trained as `transformer_tiny` is, by
`deepnmt train fine_grained_layer_attention_tiny.multi30k_en_de`. The plain
model of a preset is that of its paper, or else the Transformer or the residual
convolutional model of its size. The last column says how many presets use a
recipe in this way. `deepnmt recipe --list` lists all names, and
`deepnmt recipe --show NAME` prints a recipe with all its values.

Recipes for the papers' corpora (IWSLT and WMT) have the papers' settings as far
as these are known, and say what was chosen here. Nobody has trained them yet.
They take the text as it is, where the papers tokenized it first: scores are not
comparable with the papers' to the digit.

"""
CORPORA_HEAD = """
## Known corpora

A recipe names a corpus by `name`, as in `train: [{name: multi30k_en_de}]`, and
so does `deepnmt prepare --corpus`. Each translation corpus, whose name ends
with two languages, has a second name for the other direction
(`multi30k_de_en`). Files are downloaded into the folder of Keras
(`KERAS_HOME`), or taken from a folder (`--data-dir`), as they are or as the
archives that are named below. A download that broke off is continued.

What is downloaded is verified: by its published hash, or where none is
published by the hash of the first download, which is recorded as
`ARCHIVE.sha256` in the cache and told in a warning. Such an archive is read
to its end first, so that its own checksums are compared. The run folder
records the SHA-256 of each text in any case. A download has at most 20 GB
(`--max-download-gb`), and a compressed file, yours too, unpacks to at most
200 GB (`--max-unpacked-gb`) and 100 times its size (`--max-expansion`).

"""


def recipes_page() -> str:
    """Returns the page of the bundled recipes and the known corpora."""
    files = sorted(
        file.stem for file in schema_file().parent.glob("files/*.yaml")
    )
    lines = ["| recipe | content | for other presets |", "|---|---|---|"]
    for name in files:
        first = f"extends: {name}\nmodel:\n"
        others = sum(bundled_text(n).startswith(first) for n in derived(files))
        lines.append(f"| `{name}` | {comment(name)} | {others or ''} |")
    lines += [CORPORA_HEAD.rstrip("\n"), ""]
    lines += ["| corpus | parts | content |", "|---|---|---|"]
    lines += [
        f"| `{name}` | {', '.join(corpus.splits)} | {corpus.notes} |"
        for name, corpus in sorted(NAMED_CORPORA.items())
    ]
    lines += ["", "The archives:", ""]
    lines += ["| archive | address | hash |", "|---|---|---|"]
    archives = {
        archive: True
        for _, corpus in sorted(NAMED_CORPORA.items())
        for archive in corpus.archives()
    }
    for archive in archives:
        hash_ = f"`{archive.digest}`" if archive.digest else "not published"
        lines.append(f"| `{archive.name}` | <{archive.address}> | {hash_} |")
    return RECIPES_HEAD + "\n".join(lines) + "\n"


def derived(files: list[str]) -> list[str]:
    """Returns the names of the recipes that have no file of their own."""
    return sorted(set(bundled_names()) - set(files))


def comment(name: str) -> str:
    """Returns the comment at the head of a recipe file, in one line."""
    lines = re.match(r"(?:#.*\n)*", bundled_text(name))[0].splitlines()
    return " ".join(line.removeprefix("#").strip() for line in lines)


def plain_presets() -> dict[str, list[str] | dict[str, str]]:
    """Maps each preset to the plain model of its paper, or of its backbone.

    And lists the presets whose one-hot roles need a temperature that falls.
    """
    baselines = {
        (get_preset(name).paper, SIZE.search(name)[1]): name
        for name in list_models("*_baseline_*")
    }
    plain = {}
    for name in list_models():
        preset, size = get_preset(name), SIZE.search(name)[1]
        usual = f"{PLAIN[preset.model]}_{size}"
        plain[name] = baselines.get((preset.paper, size), usual)
    return {
        "falling_temperature": list_models("*_onehot_*"),
        "plain": {n: model for n, model in plain.items() if n != model},
    }


def files() -> dict[Path, str]:
    """Returns the content of each file that this script writes."""
    schema = recipe_schema(list_models(), (Transformer, ConvSeq2Seq))
    return {
        Path(__file__).parent / "recipe_keys.md": reference_page(),
        Path(__file__).parent / "recipes.md": recipes_page(),
        schema_file(): json.dumps(schema, indent=1, ensure_ascii=False) + "\n",
        schema_file().with_name(PLAIN_PRESETS_FILE): yaml.safe_dump(
            plain_presets(), sort_keys=False
        ),
    }


if __name__ == "__main__":
    # The page of recipes counts the presets that this file names.
    plain = schema_file().with_name(PLAIN_PRESETS_FILE)
    plain.write_text(files()[plain], encoding="utf-8")
    plain_presets_file.cache_clear()
    for file, content in files().items():
        file.write_text(content, encoding="utf-8")
        print(file)
