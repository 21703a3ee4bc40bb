"""Changes to the recipe of a run that has begun: which, and from which update.

They are the entry `changes` in `resolved` of recipe.yaml, oldest first, so that
they are written together with the recipe that they led to:

    - update: 300
      keys: {training.batch_tokens: {before: 1000, after: 500}}
      batches: {batch_tokens: 1000, ...}

The changes of an entry hold for the updates after `update`. `batches` are the
options of the batches before, see `build.batch_options`, if they changed.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keras_deepnmt.decoding.options import SearchOptions
from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.changing_keys import (
    Changing,
    cause_of,
    changing_of,
)
from keras_deepnmt.recipes.loading import flatten_recipe
from keras_deepnmt.recipes.schema import Recipe

CHANGES, BATCHES = "changes", "batches"
# Keys that change the BLEU of a validation, see `callbacks.make_bleu`.
_OF_BLEU = (
    "training.validation_beams",
    "training.validation_budget",
    "evaluation.tokenize",
    "evaluation.lowercase",
    *(
        f"decoding.{name}"
        for name in SearchOptions.__dataclass_fields__
        # Validations have beams of their own, in one group.
        if name not in ("num_beams", "num_groups", "diversity_penalty")
    ),
)
History = list[dict[str, Any]]

_REMEDIES = {
    "model": "A run keeps its model; `training.initialize_from: {folder}` "
    "starts another one with its weights",
    "data": "A run keeps its data; a preset folder of it (`deepnmt export`) "
    "starts another one with its weights by `--from-preset`",
    "training": "The checkpoints belong to it; `training.initialize_from: "
    "{folder}` starts another run with its weights",
    "seed": "A run keeps its order of data",
}


@dataclass(frozen=True)
class KeyChange:
    """A key of a recipe whose value differs from that of the run.

    Attributes:
        key: dotted key.
        before: value that the run has; `None` if it has no such key.
        after: value in the recipe given.
        changing: class of the key.
        is_derived: whether it is the default that another changed key decides.
    """

    key: str
    before: Any
    after: Any
    changing: Changing
    is_derived: bool = False

    @property
    def is_final(self) -> bool:
        """Whether the final model or its scores depend on the key."""
        return changing_of(self.key, Recipe) is Changing.FINAL


def find_changes(
    started: Recipe | None, given: Recipe, ignore_data: bool = False
) -> list[KeyChange]:
    """Finds the keys of a recipe that differ from the run's.

    `started` is the recipe that the run has, or `None`: nothing has changed.
    With `ignore_data` the section `data` is not compared, since a prepared
    folder gave it.
    """
    if started is None:
        return []
    here, there = flatten_recipe(started), flatten_recipe(given)
    keys = [
        key
        for key in dict.fromkeys([*here, *there])
        if here.get(key) != there.get(key)
        and not (ignore_data and key.startswith("data."))
    ]
    # A section that is absent or empty stands in the place of its keys.
    keys = [k for k in keys if not any(o.startswith(f"{k}.") for o in keys)]
    trainings = (started.training, given.training)
    plateau = any(it.learning_rate.schedule == "plateau" for it in trainings)
    # A stage with patience ends by the validations that are in the log.
    patience = any(
        stage.patience is not None
        for training in trainings
        for stage in training.stages
    )
    of_validations = []
    if plateau or patience:
        # Each validation may divide the rate, or end a stage.
        of_validations.append("training.validate_every")
        if started.training.steps % started.training.validate_every:
            # A longer run would not have had the one after the last update.
            of_validations.append("training.steps")
    training = given.training
    compares_bleu = training.early_stopping_metric == "val_bleu" and (
        patience
        or training.early_stopping_patience is not None
        or training.final_model != "average_last"
    )
    changes = []
    for key in keys:
        changing = changing_of(key, Recipe)
        if key in of_validations:
            changing = Changing.ON_REQUEST
        if compares_bleu and key in _OF_BLEU:
            # Values of earlier validations would be compared with others.
            changing = Changing.ON_REQUEST
        if patience and key == "training.early_stopping_metric":
            # Stages would have ended after other updates.
            changing = Changing.FIXED
        values = (here.get(key), there.get(key))
        if key == "training.precision" and "mixed_float16" in values:
            # Its checkpoints have the scale of the loss, and others none.
            changing = Changing.FIXED
        if key == "import" and set(started.import_) <= set(given.import_):
            changing = Changing.FREE  # a file more, perhaps with a callback
        changes.append(
            KeyChange(
                key,
                here.get(key),
                there.get(key),
                changing,
                cause_of(key, Recipe) in keys,
            )
        )
    return changes


def check_changes(
    changes: Sequence[KeyChange],
    recipe_file: Path,
    made: int,
    allow: bool,
    reason: str | None = None,
) -> None:
    """Refuses changes that cannot be made, or that were not asked for.

    `recipe_file` is that of the run, `made` the number of updates made, and
    `allow` whether changes that later updates depend on are asked for. Before
    the first update they need not be. `reason` says why no update follows, and
    what to change; see `effects.why_no_updates`.
    """
    fixed = [c for c in changes if c.changing is Changing.FIXED]
    other = "use another run folder, the recipe of this one, or `--restart`"
    if fixed:
        section = fixed[0].key.partition(".")[0]
        remedy = _REMEDIES[section].format(folder=recipe_file.parent)
        raise UserError(
            f"{recipe_file}: {_differ(fixed)}. {remedy}. Otherwise "
            f"{other} to replace this run."
        )
    asked = [
        c
        for c in changes
        if c.changing is Changing.ON_REQUEST
        # Its last update, and the validation after it, was not made.
        and not (c.key == "training.steps" and made < c.before)
    ]
    if reason is not None:
        # Nothing is compared any more; the final scores are made anew.
        asked = [c for c in asked if not c.is_final]
    if asked and made and not allow:
        remedy = ": add `--allow-changes` to change it from there on"
        if reason is not None:
            remedy = f", but {reason}, and add `--allow-changes`"
        raise UserError(
            f"{recipe_file}: {_differ(asked)}. The updates after {made:,} "
            f"depend on it{remedy}, or {other} to replace this run."
        )


def _differ(changes):
    changes = [c for c in changes if not c.is_derived] or changes
    return ", and ".join(
        f"`{c.key}` is {_text(c.before)} in this run and {_text(c.after)} in "
        "the recipe given"
        for c in changes
    )


def _text(value):
    return json.dumps(value, ensure_ascii=False)


def describe_changes(changes: Sequence[KeyChange], made: int) -> list[str]:
    """Tells in a line for each key what it is after `made` updates."""
    return [
        f"`{c.key}` is {_text(c.after)} after update {made:,}, and was "
        f"{_text(c.before)} before."
        for c in changes
    ]


def add_changes(
    history: History,
    update: int,
    changes: Sequence[KeyChange],
    before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> History:
    """Returns a history with the changes that hold after an update.

    `before` and `after` are the options of the batches.
    """
    keys = {c.key: {"before": c.before, "after": c.after} for c in changes}
    entry: dict[str, Any] = {"update": update, "keys": keys}
    if before != after:
        entry[BATCHES] = dict(before)
    return move_changes([*history, entry], update, after)


def move_changes(
    history: History, update: int, batches: Mapping[str, Any]
) -> History:
    """Returns the history of a run that goes on from an earlier update.

    Later changes hold from there on, since the updates are made again. Those
    of one update become one entry; changes before the first update are no
    history. `batches` are the present options of the batches.
    """
    moved: History = []
    for entry in history:
        entry = {**entry, "update": min(entry["update"], update)}
        if moved and moved[-1]["update"] == entry["update"]:
            entry = _joined(moved.pop(), entry)
        moved.append(entry)
    if moved and moved[-1].get(BATCHES) == batches:
        del moved[-1][BATCHES]
    return [
        entry
        for entry in moved
        if entry["update"] and (entry["keys"] or BATCHES in entry)
    ]


def _joined(first, second):
    keys = dict(first["keys"])
    for key, change in second["keys"].items():
        before = keys.get(key, change)["before"]
        keys[key] = {"before": before, "after": change["after"]}
    keys = {k: c for k, c in keys.items() if c["before"] != c["after"]}
    return {**second, **first, "keys": keys}


def batches_of(resolved: Mapping[str, Any]) -> list[tuple[int, dict]]:
    """Returns the options of the batches of each stretch of a run.

    Each is the last update that they hold for, with the options; those of the
    updates that follow are not among them.
    """
    return [
        (entry["update"], entry[BATCHES])
        for entry in resolved.get(CHANGES, [])
        if BATCHES in entry
    ]
