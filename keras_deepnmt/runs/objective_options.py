"""Turns a recipe's objective and data options into objects for `compile`."""

from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import keras
import numpy as np

from keras_deepnmt.data.batches.alignment_inputs import AlignmentInputs
from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.batch_transforms import (
    BatchTransform,
    WordDropout,
)
from keras_deepnmt.data.batches.modified_pairs import (
    Modification,
    ModifiedPairs,
)
from keras_deepnmt.data.batches.subword_sampling import SubwordSampling
from keras_deepnmt.data.context import mark_id
from keras_deepnmt.data.pair_store import PairStore
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.data.word_links import pairs_at_distances
from keras_deepnmt.errors import UserError, refused_values
from keras_deepnmt.evaluation.scores import make_metrics
from keras_deepnmt.losses import get_loss
from keras_deepnmt.models import ObjectiveTerm
from keras_deepnmt.models.training_step.objective_term import (
    make_objective_term,
)
from keras_deepnmt.own_code.loading import code_of_another_model
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.training import learn_alignment_model
from keras_deepnmt.translator.loading import Run, read_run

_TEACHER = "`training.objective.distillation.teacher`"


def check_objective(recipe: Recipe) -> None:
    """Checks the loss, the terms, the teacher and the scores of validation.

    It is called before anything is prepared.
    """
    make_loss(recipe)
    make_terms(recipe)
    _check_alignments(recipe)
    _check_drawn(recipe)
    read_teacher(recipe)
    scoring = recipe.evaluation
    with refused_values(f"recipe {recipe.name}, `evaluation`"):
        # Validation always computes BLEU.
        make_metrics(["bleu"], scoring.tokenize)
        make_metrics(scoring.metrics, scoring.tokenize)


def _check_alignments(recipe):
    """Refuses alignments that would not be used, or not fit the pairs."""
    given = [c.alignments for c in recipe.data.train if c.alignments]
    if not given:
        return
    training = recipe.training
    place = f"recipe {recipe.name}: `data.train` has alignments ({given[0]})"
    if "guided_alignment" not in training.objective:
        if any(stage.modifiers.terms for stage in training.stages):
            return
        raise UserError(
            f"{place}, which only `training.objective.guided_alignment` and "
            "the modifier `terms` of `training.stages` read. Add one of them, "
            "or leave them out."
        )
    modified = any(stage.modifiers.shares() for stage in training.stages)
    for name, is_used in (
        ("subword_sampling", training.subword_sampling is not None),
        ("stages` with `modifiers", modified),
    ):
        if is_used:
            raise UserError(
                f"{place} of the text as it is. They cannot be used with "
                f"`training.{name}`, which changes its tokens. Leave one of "
                "them out."
            )


def _check_drawn(recipe):
    """Refuses translations that would be drawn without their tags."""
    is_drawn = "minimum_risk" in recipe.training.objective
    if is_drawn and recipe.data.tag_side == "target" and recipe.data.tags():
        raise UserError(
            f"recipe {recipe.name}: `training.objective.minimum_risk` draws "
            "translations, which would not begin with the tags of "
            "`data.tag_side: target`. Use `source`, or leave the term out."
        )


def uses_given_alignments(recipe: Recipe, data: PreparedData) -> bool:
    """Whether the batches of a run have the alignments of its data."""
    is_guided = "guided_alignment" in recipe.training.objective
    return is_guided and data.links is not None


def make_loss(recipe: Recipe) -> keras.losses.Loss:
    """Makes the token loss that the recipe chooses by `training.loss`."""
    training = recipe.training
    smoothing = {}
    if training.label_smoothing is not None:
        smoothing["label_smoothing"] = training.label_smoothing

    def make(name, **options):
        return get_loss(name, **smoothing, **options)

    return _make(recipe, "loss", make, training.loss, training.loss_options)


def make_terms(
    recipe: Recipe,
    teacher: Any = None,
    alignments: Any = None,
    kept: Sequence[int] = (),
) -> list[ObjectiveTerm]:
    """Makes the terms of `training.objective`, in its order.

    `teacher` is the distillation's model, whose run folder the recipe names,
    and `alignments` the model that guides attention; `None` if batches have
    the alignments. `kept` are the ids that scheduled sampling leaves.
    """
    terms = []
    for name, options in recipe.training.objective.items():
        if is_dataclass(options):
            options = asdict(options)
        if name == "distillation":
            options = {**options, "teacher": teacher}
        if name == "guided_alignment":
            options = {**options, "alignments": alignments}
        if name == "scheduled_sampling":
            options = {**options, "kept": kept}
        terms.append(
            _make(
                recipe, f"objective.{name}", make_objective_term, name, options
            )
        )
    return terms


def _make(recipe, key, make, name, options):
    try:
        return make(name, **options)
    except (TypeError, ValueError) as error:
        message = str(error).splitlines()[0]
        raise UserError(
            f"recipe {recipe.name}, `training.{key}`: {message}"
        ) from error


def read_teacher(recipe: Recipe) -> Run | None:
    """Reads the run of the distillation's teacher, without its weights.

    Returns `None` if the recipe has no distillation.
    """
    distillation = recipe.training.objective.get("distillation")
    if distillation is None:
        return None
    try:
        return read_run(distillation.teacher)
    except UserError as error:
        raise UserError(f"recipe {recipe.name}, {_TEACHER}: {error}") from error


def compile_options(recipe: Recipe, data: PreparedData) -> dict[str, Any]:
    """Makes the arguments of `compile` that change the training objective.

    Call it in the strategy's scope: a teacher model must be made there. The
    teacher must have the tokenizers of `data`.
    """
    teacher = read_teacher(recipe)
    if teacher is not None:
        _check_tokenizers(recipe, teacher, data)
        with code_of_another_model():
            teacher = teacher.load_model()
    alignments = None
    if (
        "guided_alignment" in recipe.training.objective
        and not uses_given_alignments(recipe, data)
    ):
        # Learned again when a run goes on, with the same result.
        alignments = learn_alignment_model(
            pairs_at_distances(data.store("train")),
            data.source_tokenizer.vocabulary_size,
            data.target_tokenizer.vocabulary_size,
            mark=mark_id(data.source_tokenizer),
        )
    kept = []
    if recipe.data.tag_side == "target":
        # Searches are given the tags; other symbols a decoder writes itself.
        tokenizer, tags = data.target_tokenizer, recipe.data.tags()
        symbols = zip(
            tokenizer.user_defined_symbols, tokenizer.symbol_ids, strict=True
        )
        kept = [id_ for symbol, id_ in symbols if symbol in tags]
    return {"objective_terms": make_terms(recipe, teacher, alignments, kept)}


def batch_transforms(
    recipe: Recipe,
    data: PreparedData,
    pairs: PairStore | ModifiedPairs | None = None,
    plan: BatchPlan | None = None,
) -> list[BatchTransform]:
    """Makes the transforms that each training batch goes through, in order.

    `pairs` and `plan` are those of training, for the modifiers of its stages.
    """
    sampling = _subword_sampling(recipe, data, recipe.training.subword_sampling)
    transforms = [] if sampling is None else [sampling]
    if isinstance(pairs, ModifiedPairs):
        transforms.append(Modification(pairs, plan, recipe.seed))
    if recipe.training.word_dropout > 0:
        transforms.append(_word_dropout(recipe, data))
    if uses_given_alignments(recipe, data):
        transforms.append(AlignmentInputs(data.links, plan))
    return transforms


def _word_dropout(recipe, data):
    """Word dropout that leaves tags and other symbols of the user."""
    tokenizers = {
        "source_ids": data.source_tokenizer,
        "target_ids": data.target_tokenizer,
    }
    kept = {
        # A tokenizer of the user's own need not have such symbols.
        name: getattr(tokenizer, "symbol_ids", [])
        for name, tokenizer in tokenizers.items()
    }
    return WordDropout(recipe.training.word_dropout, recipe.seed, kept)


def planned_lengths(
    recipe: Recipe, data: PreparedData, alpha: float | None
) -> np.ndarray:
    """Returns the `(pairs, 2)` lengths that batch shapes are chosen for.

    Subword sampling, with the exponent or merge dropout `alpha`, needs more
    room than the stored segmentations.
    """
    store = data.store("train")
    sampling = _subword_sampling(recipe, data, alpha)
    return store.lengths if sampling is None else sampling.roomy_lengths(store)


def describe_sampling(
    recipe: Recipe, data: PreparedData, plan: BatchPlan
) -> list[str]:
    """Tells in one line how many sentences subword sampling cannot change.

    Without subword sampling the list is empty.
    """
    alpha = recipe.training.subword_sampling
    sampling = _subword_sampling(recipe, data, alpha)
    if sampling is None:
        return []
    share = sampling.stored_share(data.store("train"), plan)
    return [
        f"{100 * share:.1f}% of the sentences keep their stored segmentation: "
        "no sampled one fits their batch, or they have unknown words."
    ]


def _subword_sampling(recipe, data, alpha):
    if alpha is None:
        return None
    tokenizers = (data.source_tokenizer, data.target_tokenizer)
    return SubwordSampling(tokenizers, alpha, recipe.seed)


def _check_tokenizers(recipe, teacher, data):
    for side in ("source", "target"):
        name = f"{side}_tokenizer"
        if getattr(teacher, name).sha256 != getattr(data, name).sha256:
            raise UserError(
                f"recipe {recipe.name}: {_TEACHER} must have "
                f"the tokenizers of the data. Received: another {side} "
                f"tokenizer in {teacher.directory}. Train the teacher on "
                f"{data.directory}."
            )
