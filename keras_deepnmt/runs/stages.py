"""The stages of a run: what is drawn in each, and when the next one begins.

Everything follows from the recipe and the log of the validations, so that a
run that was killed goes on in the same stage, with the same batches.
"""

import math
from collections.abc import Callable, Sequence

import keras
import numpy as np

from keras_deepnmt.data.batches.modified_pairs import ModifiedPairs
from keras_deepnmt.data.batches.staged_plan import StagedPlan
from keras_deepnmt.data.manifest import (
    row_weights,
    training_corpora,
)
from keras_deepnmt.data.pair_store import PairStore
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.data.terms import check_has_term_marks
from keras_deepnmt.errors import UserError
from keras_deepnmt.models.training_step.training_state import update_count
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.recipes.stage_schema import StageRecipe
from keras_deepnmt.training.checkpoints import mode_of

History = Sequence[tuple[int, dict[str, float]]]
# Validations: the update that each follows, and its value.
Values = list[tuple[int, float]]


def training_pairs(
    recipe: Recipe, data: PreparedData
) -> PairStore | ModifiedPairs:
    """Returns the training pairs, and changed ones if a stage asks for any."""
    store = data.store("train")
    used = {
        name
        for stage in recipe.training.stages
        for name in stage.modifiers.shares()
    }
    if not used:
        return store
    if recipe.training.subword_sampling is not None:
        raise UserError(
            f"recipe {recipe.name}: `training.stages` with `modifiers` cannot "
            "be used with `training.subword_sampling`. Leave one of them out."
        )
    if "merge" in used and recipe.data.context:
        raise UserError(
            f"recipe {recipe.name}: the modifier `merge` cannot be used with "
            f"`data.context`. Received: {recipe.data.context}. Leave one of "
            "them out."
        )
    if "terms" in used:
        _check_terms(recipe, data)
    ends = [corpus["rows"][1] for corpus in training_corpora(data.manifest)]
    return ModifiedPairs(
        store,
        (data.source_tokenizer, data.target_tokenizer),
        sorted(used),
        [end for end in ends if end],
        # The end token is not counted there.
        1 + data.manifest["options"].get("max_tokens", 0),
        recipe.data.tags(),
        data.links,
    )


def _check_terms(recipe, data):
    place = f"recipe {recipe.name}: the modifier `terms`"
    if data.links is None:
        raise UserError(
            f"{place} needs the alignments of the words. Received: "
            f"{data.directory}, which has none. Give a corpus "
            "`data.train[].alignments`, or leave it out."
        )
    check_has_term_marks(data.source_tokenizer, place)


def stage_weights(
    recipe: Recipe, data: PreparedData, pairs: PairStore | ModifiedPairs
) -> list[np.ndarray]:
    """Returns the weights of the training pairs in each stage."""
    found = []
    for number, stage in enumerate(recipe.training.stages):
        weights = _row_weights(recipe, data, number, stage)
        if isinstance(pairs, ModifiedPairs):
            weights = pairs.weights(weights, stage.modifiers.shares())
        found.append(weights)
    return found


def _row_weights(recipe, data, number, stage):
    corpora = training_corpora(data.manifest)
    weights = row_weights(data.manifest)
    if weights is None:
        weights = np.ones(corpora[-1]["rows"][1], "float32")
    names = list(dict.fromkeys(corpus["name"] for corpus in corpora))
    place = f"recipe {recipe.name}: `training.stages.{number}.weights`"
    for name, weight in stage.weights.items():
        if name not in names:
            raise UserError(
                f"{place} must name corpora of `data.train`: "
                f"{', '.join(names)}. Received: {name}"
            )
        for corpus in corpora:
            if corpus["name"] == name:
                weights[slice(*corpus["rows"])] = weight
    if not weights.any():
        raise UserError(
            f"{place} must leave a corpus with a weight above 0. Received: "
            f"{dict(stage.weights)}"
        )
    return weights


def stage_starts(
    stages: Sequence[StageRecipe],
    batches_in_epoch: Callable[[int], int],
    history: History,
    metric: str,
) -> list[int]:
    """Returns the number of updates before each stage that has begun.

    Stages that will begin are there too, as far as their updates are known.
    `batches_in_epoch` returns the number of batches in an epoch of a stage;
    `history` has `(epoch, logs)` of the validations so far; `metric` is the
    value by which a stage with `patience` ends.
    """
    values = [
        (int(logs["step"]), logs.get(metric, math.nan))
        for _, logs in history
        if "step" in logs
    ]
    starts = [0]
    for number, stage in enumerate(stages[:-1]):
        if stage.epochs is not None:
            end = starts[-1] + stage.epochs * batches_in_epoch(number)
        elif stage.until_update is not None:
            end = max(starts[-1], stage.until_update)
        else:
            end = end_of_gain(
                [v for v in values if v[0] > starts[-1]],
                stage.patience,
                mode_of(metric),
            )
            if end is None:
                break
        starts.append(end)
    return starts


def end_of_gain(values: Values, patience: int, mode: str) -> int | None:
    """Returns the update after which there was no gain, if there is one.

    `values` are the validations of a stage, `(update, value)`, `patience` how
    many of them without a better value end it, and `mode` is `"max"` or
    `"min"`.
    """
    best, waited = None, 0
    for step, value in values:
        is_better = not math.isnan(value) and (
            best is None or (value > best if mode == "max" else value < best)
        )
        best, waited = (value, 0) if is_better else (best, waited + 1)
        if waited >= patience:
            return step
    return None


class StageEnd(keras.callbacks.Callback):
    """Ends `fit` when a stage has no more gain, so that the next one begins.

    `plan` knows the stages that have begun, `metric` must improve, and
    `history` has `(epoch, logs)` of the validations so far. `has_ended` tells
    whether the stage has.
    """

    def __init__(
        self,
        stages: Sequence[StageRecipe],
        plan: StagedPlan,
        metric: str,
        history: History,
    ):
        super().__init__()
        self._stages, self._plan, self._metric = stages, plan, metric
        self._history = list(history)
        self.has_ended = False

    def on_epoch_end(self, epoch, logs=None):
        # The log has the same value.
        logs = {"step": update_count(self.model), **(logs or {})}
        self._history.append((epoch, logs))
        known = len(
            stage_starts(
                self._stages,
                self._plan.batches_in_epoch,
                self._history,
                self._metric,
            )
        )
        if known > len(self._plan.starts):
            self.has_ended = self.model.stop_training = True
