"""Groups of runs that have the same recipe and different seeds."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keras_deepnmt.recipes.loading import flatten_recipe
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.runs.run_folder import RunFolder

# Keys without effect on the training.
_LABELS = ("name", "seed")
# Keys that name files. What is in the files counts: `resolved` has its hashes.
_FILES = (
    "import",
    *("data.train", "data.valid", "data.test"),
    *("data.tokenizer_source", "data.tokenizer_target"),
    "data.user_defined_symbols_file",
    "training.initialize_from",
    "training.objective.distillation.teacher",
)
# The keys of a corpus that is not one of a list.
_OF_HELD_OUT = ("data.valid.", "data.test.")
# Entries of `resolved` that say where and with what a run was made, not how.
# The manifest has paths in it; its corpora and tokenizers are compared.
_CIRCUMSTANCES = (
    *("prepared", "manifest_sha256", "from_preset", "versions", "commit"),
    "replaces_finished_model",
)
_OF_CORPUS = ("split", "sha256", "rows", "weight", "tag")
# Not `origin`, the path of the user's own file.
_OF_CODE = ("file", "module", "sha256")
# Keys that tell two recipes of one name apart, at most.
_MOST_KEYS = 3


@dataclass(frozen=True)
class SeedGroup:
    """The runs of one recipe.

    Attributes:
        name: The recipe's name, with the keys that tell it from others of
            that name.
        seeds: The seed of each run, by its folder.
    """

    name: str
    seeds: dict[str, int]

    @property
    def runs(self) -> dict[int, str]:
        """For each seed the folder of its run; of several the first."""
        found: dict[int, str] = {}
        for run, seed in self.seeds.items():
            found.setdefault(seed, run)
        return found

    @property
    def repeated(self) -> list[str]:
        """The runs whose seed another one has, which do not count again."""
        return [run for run in self.seeds if run not in self.runs.values()]


def group_by_recipe(run_dirs: Sequence[str]) -> list[SeedGroup]:
    """Groups runs by recipe, in the order in which the recipes appear.

    An imported model, which has none, is a group of its own.
    """
    groups: dict[str, list] = {}
    for run_dir in run_dirs:
        recipe = RunFolder.find(run_dir).started()
        name, seed, values, key = run_dir, 0, {}, f"only {run_dir}"
        if recipe is not None:
            name, seed, values = recipe.name, recipe.seed, recipe_values(recipe)
            # Without hashes it is not known whether the data are the same.
            key = _text(values) if recipe.resolved else key
        groups.setdefault(key, []).append((run_dir, name, seed, values))
    first = [members[0] for members in groups.values()]
    names = _names(
        [name for _, name, _, _ in first],
        [values for _, _, _, values in first],
    )
    return [
        SeedGroup(name, {run: seed for run, _, seed, _ in members})
        for name, members in zip(names, groups.values(), strict=True)
    ]


def recipe_values(recipe: Recipe) -> dict[str, Any]:
    """Returns what makes two runs ones of the same recipe, by dotted key.

    These are all values of the recipe but its name, its seed and names of
    files, and what its `resolved` records: the hashes of the corpora, the
    tokenizers, the user's own code and the initial weights, the batch that was
    found, changes that were made on the way. Versions, commit and machine are
    left out.
    """
    values = {
        key: value
        for key, value in flatten_recipe(recipe).items()
        if key not in (*_LABELS, *_FILES) and not key.startswith(_OF_HELD_OUT)
    }
    for key, value in recipe.resolved.items():
        if key == "corpora":
            value = [
                {name: corpus.get(name) for name in _OF_CORPUS}
                for corpus in value
            ]
        elif key == "code":
            value = [
                {name: code.get(name) for name in _OF_CODE} for code in value
            ]
        elif key == "initialize_from":
            value = value.get("weights_sha256")
        elif key in _CIRCUMSTANCES:
            continue
        values[f"resolved.{key}"] = value
    return values


def _names(names: Sequence[str], values: Sequence[Mapping[str, Any]]):
    """The names of groups; equal ones get the keys that differ."""
    made = []
    for name, own in zip(names, values, strict=True):
        others = [v for n, v in zip(names, values, strict=True) if n == name]
        keys = [
            key
            for key in dict.fromkeys(key for other in others for key in other)
            if len({_text(other.get(key)) for other in others}) > 1
        ]
        plain = [key for key in keys if not key.startswith("resolved.")]
        told = [
            f"{key.rpartition('.')[2]}={own.get(key)}"
            for key in plain[:_MOST_KEYS]
        ]
        if keys and not plain and own is not others[0]:
            told = [f"other {keys[0].removeprefix('resolved.')}"]
        made.append(f"{name} ({', '.join(told)})" if told else name)
    return _numbered(made)


def _numbered(names):
    """Names that are still equal get numbers."""
    return [
        f"{name} #{names[: place + 1].count(name)}"
        if names.count(name) > 1
        else name
        for place, name in enumerate(names)
    ]


def _text(value):
    return json.dumps(value, sort_keys=True, default=str)
