"""Settles all values of a run before anything is built."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.batch_shapes import (
    BATCH_SHAPES_VERSION,
    shapes_for_updates,
)
from keras_deepnmt.data.manifest import (
    MANIFEST_FILE,
    describe_manifest,
    read_manifest,
)
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.data.preparation.prepare_corpus import prepare_corpus
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.data.scripts import detect_script
from keras_deepnmt.errors import UserError, refused_values
from keras_deepnmt.evaluation.scores import make_metrics
from keras_deepnmt.evaluation.word_tokenizers import (
    default_tokenizer,
    tokenizer_of_language,
    unfit_tokenizer,
)
from keras_deepnmt.files import file_sha256
from keras_deepnmt.own_code.loading import code_of_another_model
from keras_deepnmt.recipes.loading import (
    fine_tuned_model,
    flatten_recipe,
    load_recipe,
    prepared_data_options,
)
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.runs import provenance
from keras_deepnmt.runs.batch_size import find_batch, with_found_parts
from keras_deepnmt.runs.build import batch_options, check_model
from keras_deepnmt.runs.changes import (
    BATCHES,
    CHANGES,
    KeyChange,
    add_changes,
    describe_changes,
    find_changes,
)
from keras_deepnmt.runs.initial_weights import find_initial_weights, fine_tuning
from keras_deepnmt.runs.objective_options import (
    describe_sampling,
    read_teacher,
)
from keras_deepnmt.runs.precision import fastest_precision
from keras_deepnmt.runs.run_code import keep_code, settle_code
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.teacher_translations import with_translations
from keras_deepnmt.terminal_text import print_line
from keras_deepnmt.zoo.registry import PRESET_VERSION, get_preset

_log = logging.getLogger(__name__)
_TEACHER = "training.objective.distillation"


@dataclass(frozen=True)
class ResolvedRun:
    """The values that describe a run, settled once; training only reads them.

    Attributes:
        folder: the run folder.
        recipe: the recipe that trains. Nothing in it is left open: the data are
            those that are used, the batch and the number of batch shapes are
            numbers, and `resolved` has the versions and hashes.
        recorded: the recipe as `recipe.yaml` has it, where `batch_tokens: auto`
            stays.
        data: the prepared corpus.
        restart: whether the run begins again from update 0.
        started: the recipe that a resumed run has had.
    """

    folder: RunFolder
    recipe: Recipe
    recorded: Recipe
    data: PreparedData
    restart: bool = False
    started: Recipe | None = None

    @property
    def changes(self) -> list[KeyChange]:
        """The keys that the run has had with other values."""
        return find_changes(self.started, self.recorded, ignore_data=True)

    def with_resolved(self, resolved: Mapping[str, Any]) -> "ResolvedRun":
        """Returns the run with other entries in `resolved`."""
        return replace(
            self,
            recipe=replace(self.recipe, resolved=dict(resolved)),
            recorded=replace(self.recorded, resolved=dict(resolved)),
        )

    def with_kept_code(self) -> "ResolvedRun":
        """Copies the files of `import`; returns the run with the copies."""
        entries, records = keep_code(self.folder, self.recorded)
        if not records:
            return self
        recipes = {
            name: replace(getattr(self, name), import_=entries)
            for name in ("recipe", "recorded")
        }
        resolved = {**self.recorded.resolved, "code": records}
        return replace(self, **recipes).with_resolved(resolved)

    def describe(self, plan: BatchPlan) -> str:
        """Describes in several lines the data and the batches."""
        steps = self.recipe.training.steps
        updates = (
            f"{steps:,} updates of {plan.target_tokens_per_batch:,.0f} target "
            f"tokens on average, {steps / plan.batches_per_epoch:.1f} epochs."
        )
        if self.recipe.training.stages:
            # Their epochs differ.
            updates = f"{steps:,} updates."
        return "\n".join(
            [
                describe_manifest(self.data.manifest),
                plan.describe(),
                updates,
                *describe_sampling(self.recipe, self.data, plan),
            ]
        )


def settle_recipe(
    recipe: Recipe | str | Path,
    folder: RunFolder,
    *,
    prepared_dir: str | Path | None = None,
    from_preset: str | Path | None = None,
    extend_vocabulary: int | None = None,
    restart: bool = False,
    say: Callable[[str], None] = print,
) -> Recipe:
    """Settles the values of a recipe that other folders decide.

    Writes nothing. The data are those that `prepared_dir` was prepared with. A
    run that starts from a preset folder has its tokenizers and weights, and
    says so in `resolved`. `max_shapes: null` becomes the number that this run
    has; a new run, or one that begins again, gets the number that follows from
    its updates. `precision: auto` becomes that of this run, or the fastest one
    here. `evaluation.tokenize: null` becomes that of this run or of the target
    language, if there is one.

    `recipe` may also be a name or a file, and the run folder need not exist.
    With `restart` the run begins again from update 0. `say` prints a line.
    """
    started = None if restart else folder.started()
    model = fine_tuned_model(folder.directory, from_preset, restart)
    if not isinstance(recipe, Recipe):
        recipe = load_recipe(recipe, prepared_dir=prepared_dir, model=model)
    recipe = settle_code(recipe, started, from_preset)
    _check_preset(recipe)
    data = recipe.data
    if prepared_dir is not None:
        data = _prepared_with(recipe, prepared_dir, say)
    tuning = fine_tuning(
        recipe,
        data,
        started,
        from_preset,
        prepared_dir is not None,
        extend_vocabulary,
    )
    evaluation = recipe.evaluation
    if evaluation.tokenize is None:
        # Known now: a tokenizer that cannot be used is refused at once.
        language = tuning.data.target_language
        tokenize = tokenizer_of_language(language)
        if started is not None:
            tokenize = started.evaluation.tokenize
        evaluation = replace(evaluation, tokenize=tokenize)
    number = recipe.training.max_shapes
    if number is None and started is not None:
        number = started.training.max_shapes
    precision = recipe.training.precision
    if precision == "auto":
        precision = _settle_precision(started, say)
    return replace(
        recipe,
        model=tuning.model,
        data=tuning.data,
        training=replace(
            recipe.training,
            initialize_from=tuning.initialize_from,
            max_shapes=number or shapes_for_updates(recipe.training.steps),
            precision=precision,
        ),
        evaluation=evaluation,
        resolved=tuning.resolved,
    )


def _settle_precision(started, say):
    if started is not None:
        return started.training.precision
    precision, reason = fastest_precision()
    say(f"training.precision: auto is {precision} here: {reason}.")
    return precision


def _check_preset(recipe):
    try:
        get_preset(recipe.model.preset)
    except ValueError as error:
        raise UserError(
            f"recipe {recipe.name}, `model.preset`: {error}"
        ) from error


def _prepared_with(recipe, prepared_dir, say) -> PrepareOptions:
    """Returns the options of a prepared folder; says how they differ."""
    data = prepared_data_options(prepared_dir)
    given, used = map(flatten_recipe, (recipe, replace(recipe, data=data)))
    keys = [key for key in given | used if given.get(key) != used.get(key)]
    if keys:
        say(
            f"{prepared_dir}: was prepared with other values of "
            f"{', '.join(keys)} than the recipe's; its own are used and "
            "recorded."
        )
    return data


def resolve_run(
    recipe: Recipe,
    folder: RunFolder,
    data: PreparedData,
    *,
    restart: bool = False,
    say: Callable[[str], None] = print,
) -> ResolvedRun:
    """Settles the rest: batch, initial weights, tokenizer of BLEU, hashes.

    On a resume they are those that were recorded at the start. `recipe` is what
    `settle_recipe` returned, and `data` what `open_data` returned. With
    `restart` the run begins again from update 0. `say` prints a line.
    """
    recipe = _with_tokenizer(recipe, data, say)
    started = None if restart else folder.started()
    recorded = None if started is None else started.resolved
    changes = find_changes(started, recipe, ignore_data=True)
    batch = find_batch(recipe, recorded, data, say, changes)
    resolved = _resolve(recipe, folder, data, batch, recorded, changes)
    whole = replace(recipe, resolved=resolved)
    return ResolvedRun(
        folder, with_found_parts(whole), whole, data, restart, started
    )


def join_run(
    recipe: Recipe,
    folder: RunFolder,
    prepared_dir: str | Path | None,
    restart: bool,
) -> ResolvedRun:
    """Returns the run that the chief of several workers has resolved."""
    try:
        data = PreparedData(prepared_dir or folder.data_dir)
    except UserError as error:
        raise UserError(
            f"{error} The run folder and the prepared folder must be on a "
            "file system that all workers read."
        ) from error
    started = None if restart else folder.started()
    if started is not None:
        recipe = replace(recipe, resolved=started.resolved)
    recipe = _with_tokenizer(recipe, data)
    return ResolvedRun(folder, recipe, recipe, data, restart, started)


def record_changes(
    run: ResolvedRun,
    num_replicas: int,
    allow: bool = False,
    say: Callable[[str], None] = print,
) -> ResolvedRun:
    """Adds to `resolved` the options of the batches, and what has changed.

    A resumed run goes on from its last checkpoint: changes hold for the
    updates after it. `num_replicas` is the number of devices that train, and
    `allow` whether changes that updates depend on are asked for. `say` prints
    a line for each.
    """
    resolved, changes = dict(run.recipe.resolved), run.changes
    after = batch_options(run.recipe, num_replicas)
    if run.started is not None:
        before = resolved.get(BATCHES)
        if before is None:  # a run of an earlier version
            before = batch_options(with_found_parts(run.started), num_replicas)
        history = resolved.get(CHANGES, [])
        if changes or history or before != after:
            made = run.folder.checkpoints().latest() or 0
            keeps = run.recipe.training.stages and (
                before["batch_multiple"] != after["batch_multiple"]
            )
            if made and before != after and (keeps or not allow):
                raise _other_devices(run.folder, before, after, made, keeps)
            for line in describe_changes(changes, made):
                say(line)
            resolved[CHANGES] = add_changes(
                history, made, changes, before, after
            )
    if resolved:  # not of a worker in a new run, which records nothing
        resolved[BATCHES] = after
    return run.with_resolved(resolved)


def _other_devices(folder, before, after, made, keeps_batches):
    remedy = (
        "Continue on as many devices, or add `--allow-changes` to change the "
        f"updates after {made:,}."
    )
    if keeps_batches:
        remedy = (
            "A run with `training.stages` keeps its batches: continue with as "
            "many devices and `training.gradient_accumulation_steps`, or use "
            "another run folder."
        )
    before, after = (options["batch_multiple"] for options in (before, after))
    return UserError(
        f"{folder.directory}: the number of rows of a batch is a multiple of "
        f"{before} in this run and of {after} on the devices that are here. "
        f"{remedy}"
    )


def _with_tokenizer(recipe, data, say=lambda line: None):
    """Settles `evaluation.tokenize` by the script of a held-out text."""
    splits = [split for split in ("valid", "test") if split in data.splits]
    if not splits:
        return recipe
    _, references = data.texts(splits[0])
    tokenize = recipe.evaluation.tokenize
    if tokenize is not None:
        if fault := unfit_tokenizer(tokenize, references):
            _log.warning("recipe %s, `evaluation`: %s", recipe.name, fault)
        return recipe
    tokenize = default_tokenizer(references)
    with refused_values(f"recipe {recipe.name}, `evaluation`"):
        make_metrics(["bleu"], tokenize)
    if script := detect_script(references):
        say(
            f"The {splits[0]} references are in {script}, so that BLEU has "
            f"`tokenize: {tokenize}`. `data.target_language` is not given."
        )
    return replace(
        recipe, evaluation=replace(recipe.evaluation, tokenize=tokenize)
    )


def open_data(
    recipe: Recipe,
    folder: RunFolder,
    data_dir: str | Path | None = None,
    prepared_dir: str | Path | None = None,
    restart: bool = False,
    quiet: bool = False,
    translations: Path | None = None,
    may_translate: bool = True,
) -> PreparedData:
    """Opens the prepared corpus of a run.

    Without `prepared_dir` the recipe's corpora are prepared into the run
    folder first; `data_dir` is a folder with copies of named corpora. With
    `restart` other data that were prepared there are replaced; they come back
    if the start is refused. Corpora that teachers translate are translated
    first, unless `may_translate` is false, in the folder `translations`, by
    default that of the run. A run that goes on does not need its teachers.
    """
    if prepared_dir is not None:
        return PreparedData(prepared_dir)
    if not folder.data_dir.exists():
        # Preparing may take hours, so all that can be refused is refused before
        # it.
        check_model(recipe)
    is_translated = any(corpus.translated_by for corpus in recipe.data.train)
    if is_translated and not restart and folder.has_recorded_data():
        # Teachers may have changed since, or be gone.
        return PreparedData(folder.data_dir, verify=True)

    with code_of_another_model():
        data = with_translations(
            recipe.data,
            translations or folder.translations_dir,
            data_dir,
            (lambda line: None) if quiet else print_line,
            may_translate,
        )

    options = {"data_dir": data_dir, "progress": not quiet}
    try:
        prepare_corpus(data, folder.data_dir, **options)
    except UserError:
        # Other files than prepared data are not replaced.
        if not (restart and (folder.data_dir / MANIFEST_FILE).is_file()):
            raise
        new = folder.data_dir.with_name("data.new")
        prepare_corpus(data, new, overwrite=True, **options)
        folder.replace_data(new)
    return PreparedData(folder.data_dir)


def _resolve(
    recipe: Recipe,
    folder: RunFolder,
    data: PreparedData,
    batch: Mapping[str, int] | None,
    recorded: Mapping[str, Any] | None,
    changes: Sequence[KeyChange],
) -> dict[str, Any]:
    """Returns the hashes and versions that `recipe.yaml` records."""
    resolved = {
        "prepared": str(data.directory.resolve()),
        **_hashes(data.directory, data.manifest),
        "corpora": data.manifest["corpora"],
        "preset_version": PRESET_VERSION,
        "batch_shapes_version": BATCH_SHAPES_VERSION,
        "versions": provenance.versions(),
        "commit": provenance.commit(),
    }
    teacher = read_teacher(recipe)
    if teacher is not None:
        resolved["teacher_sha256"] = teacher.weights_sha256
    if batch is not None:
        resolved["batch"] = batch
    if recorded is not None:
        present = {
            key: resolved[key]
            for key in ("batch", "teacher_sha256")
            if key in resolved
        }
        if any(c.key.startswith(_TEACHER) for c in changes):
            # Another teacher, or none.
            others = dict(recorded)
            others.pop("teacher_sha256", None)
            recorded = others | present
        _check_data(folder, data.directory, resolved, recorded)
        _check_teacher(folder, teacher, resolved, recorded)
        # The data may have been moved.
        return {**recorded, **present, "prepared": resolved["prepared"]}
    if recipe.training.initialize_from is not None:
        resolved["initialize_from"] = find_initial_weights(recipe, data)
    if "from_preset" in recipe.resolved:
        # The entries that `initial_weights.fine_tuning` has added.
        for name in ("from_preset", "preset_version"):
            resolved[name] = recipe.resolved[name]
    return resolved


def check_same_data(folder: RunFolder, prepared_dir: str | Path) -> None:
    """Refuses a prepared folder that a run was not started with.

    One that is not there any more is not compared: a finished run needs none.
    """
    started, directory = folder.started(), Path(prepared_dir)
    if started is not None and (directory / MANIFEST_FILE).is_file():
        found = _hashes(directory, read_manifest(directory))
        _check_data(folder, directory, found, started.resolved)


def _hashes(directory, manifest):
    """What `recipe.yaml` records of prepared data to know them again."""
    return {
        "manifest_sha256": file_sha256(directory / MANIFEST_FILE),
        "tokenizer": dict(manifest["tokenizer"]),
    }


def _check_data(folder, directory, found, recorded):
    for key, what in (
        ("tokenizer", "tokenizers"),
        ("manifest_sha256", "prepared data"),
    ):
        if recorded.get(key) and recorded[key] != found[key]:
            before = recorded.get("prepared", "another folder")
            raise UserError(
                f"{directory}: holds other {what} than those that "
                f"{folder.directory} was started with, in {before}. Use those, "
                "another run folder, or `--restart` to begin again."
            )


def _check_teacher(folder, teacher, resolved, recorded):
    if recorded.get("teacher_sha256") != resolved.get("teacher_sha256"):
        raise UserError(
            f"{teacher.directory}: its weights are not those "
            f"{folder.recipe_file} was started with. Use that teacher, or "
            "another run folder."
        )
