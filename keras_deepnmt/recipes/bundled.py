"""The recipes of the package: those with a file, and those of other presets.

A recipe `PLAIN.CORPUS` of a plain model, such as `transformer_tiny.demo_de_en`,
can be used with every preset that is compared with this model: there is a
recipe `PRESET.CORPUS` for each of them. If it has no file of its own, it is the
plain model's with another preset, and for one-hot roles with a temperature that
falls, which they need: in a short run faster than in the paper. The file
`plain_presets.yaml` names the plain model of each preset and the presets with
one-hot roles; `docs/write_recipe_keys.py` writes it from the registry of
presets.
"""

import functools
from importlib import resources

import yaml

PLAIN_PRESETS_FILE = "plain_presets.yaml"


def bundled_names() -> list[str]:
    """Returns the names of all recipes of the package, in order."""
    corpora = {}
    for name in _file_names():
        preset, corpus = name.split(".", 1)
        corpora.setdefault(preset, []).append(corpus)
    names = set(_file_names())
    for preset, plain in plain_presets().items():
        names |= {f"{preset}.{corpus}" for corpus in corpora.get(plain, ())}
    return sorted(names)


def bundled_text(name: str) -> str:
    """Returns the YAML text of a recipe of the package."""
    if name in _file_names():
        file = resources.files(__package__) / "files" / f"{name}.yaml"
        return file.read_text(encoding="utf-8")
    preset, corpus = name.split(".", 1)
    plain = plain_presets()[preset]
    text = f"extends: {plain}.{corpus}\nmodel:\n  preset: {preset}\n"
    if preset in plain_presets_file()["falling_temperature"]:
        updates = _updates(f"{plain}.{corpus}")
        text += f"training:\n  temperature: {_temperature(updates)}\n"
    return text


def plain_presets() -> dict[str, str]:
    """Maps each preset to the plain model whose recipes it can use.

    That is the plain model of its paper in its size, or else the
    `transformer_*` or `conv_seq2seq_*` of its size. Plain models are left out.
    """
    return plain_presets_file()["plain"]


def _updates(name):
    """The updates of a recipe with a file, or of the one that it extends."""
    content = yaml.safe_load(bundled_text(name))
    steps = content.get("training", {}).get("steps")
    return steps or _updates(content["extends"])


def _temperature(updates):
    """Returns the section `temperature` for a number of updates, as YAML.

    The paper's factor, the default, takes 4,600 updates from the temperature 5
    to 0.5. In a run that is too short for that, the factor takes three quarters
    of the updates.
    """
    factor = 0.1 ** (1 / (0.75 * updates))
    return "{}" if factor >= 0.9995 else f"{{factor: {factor:.4f}}}"


@functools.cache
def plain_presets_file() -> dict[str, list[str] | dict[str, str]]:
    """Reads the file `plain_presets.yaml`, once."""
    file = resources.files(__package__) / PLAIN_PRESETS_FILE
    return yaml.safe_load(file.read_text(encoding="utf-8"))


@functools.cache
def _file_names():
    files = [f.name for f in (resources.files(__package__) / "files").iterdir()]
    return frozenset(
        name.removesuffix(".yaml") for name in files if name.endswith(".yaml")
    )
