"""Trains a compiled model by `fit`, from its last checkpoint to the end."""

import contextlib
import logging
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import keras
import numpy as np

from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.datasets import (
    clear_data_errors,
    plan_dataset,
    training_dataset,
)
from keras_deepnmt.errors import Terminated, UserError
from keras_deepnmt.models.training_step.training_state import (
    has_values,
    update_count,
    write_back_weights,
)
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.runs.build import plan_batches, plan_validation
from keras_deepnmt.runs.callbacks import (
    UpdateCallbacks,
    check_unvalidated,
    describe_constant_temperature,
    make_callbacks,
    stopping_callbacks,
)
from keras_deepnmt.runs.changes import BATCHES, CHANGES, move_changes
from keras_deepnmt.runs.effects import (
    check_effects,
    describe_stop,
    validations_until,
    why_no_updates,
)
from keras_deepnmt.runs.initial_weights import copy_initial_weights
from keras_deepnmt.runs.objective_options import batch_transforms
from keras_deepnmt.runs.own_callbacks import (
    CallbackFailed,
    make_own_callbacks,
)
from keras_deepnmt.runs.rollback import Rollbacks
from keras_deepnmt.runs.stages import (
    StageEnd,
    stage_starts,
    training_pairs,
)
from keras_deepnmt.runs.start import ResolvedRun
from keras_deepnmt.signals import raised_on
from keras_deepnmt.terminal_text import print_line
from keras_deepnmt.training.callbacks import CheckpointCallback
from keras_deepnmt.training.divergence import Diverged
from keras_deepnmt.training.progress import EpochCounts, ThroughputProgress
from keras_deepnmt.training.strategies import Workers
from keras_deepnmt.training.temperature import check_has_temperature
from keras_deepnmt.training.weight_average import averaged_weights
from keras_deepnmt.xla.replicas import num_replicas

_logger = logging.getLogger(__name__)


class TrainingLoop:
    """Runs `model.fit` with checkpoints, validation, rollback and resume.

    `model` is compiled, and `workers` are the processes that train together.
    `callbacks` are called besides those of the recipe.

    Attributes:
        resolved_run: the run.
        stopped: why training ended before its last update, if it did.
    """

    def __init__(
        self,
        run: ResolvedRun,
        model: keras.Model,
        plan: BatchPlan,
        workers: Workers,
        quiet: bool = False,
        callbacks: Sequence[keras.callbacks.Callback] = (),
    ):
        self.resolved_run = run
        self.stopped: str | None = None
        self.run_folder = run.folder
        self.data = run.data
        self.model = model
        self.plan = plan
        self.workers = workers
        self.quiet = quiet
        recipe, data = run.recipe, run.data
        training = recipe.training
        if training.temperature is not None:
            check_has_temperature(model)
        averaged = training.average_checkpoints
        averages_best = training.final_model == "average_best"
        self.store = run.folder.checkpoints(
            keep=averaged + 1, keep_best=averaged if averages_best else 1
        )
        self._saving = CheckpointCallback(
            self.store,
            training.checkpoint_every,
            training.steps,
            self._before_save,
        )
        divergence = training.divergence
        if workers.is_distributed:
            # Each worker would roll back on its own, and all would write.
            divergence = replace(divergence, most_rollbacks=0)
        self._divergence = divergence
        self.rollbacks = None
        self._epoch_counts = None
        self._start = 0
        self._advice = "Run the same command to continue."
        self.validation = None
        self.validation_plan = plan_validation(
            recipe, data, plan, num_replicas(model)
        )
        if self.validation_plan is None:
            check_unvalidated(recipe)
        else:
            self.validation = plan_dataset(
                data.store("valid"), self.validation_plan
            )
        self.progress = ThroughputProgress(
            training.steps,
            len(plan.batch_shapes),
            plan.padding_fraction,
            quiet,
            expected_validation_compilations=self.validation_plan
            and np.count_nonzero(self.validation_plan.batches_per_shape),
        )
        self.progress.set_model(model)
        self._given = callbacks
        self._own = None

    @property
    def recipe(self) -> Recipe:
        """The recipe that trains."""
        return self.resolved_run.recipe

    @property
    def step(self) -> int:
        """Number of updates made so far."""
        return update_count(self.model)

    def restore(self, initial: Mapping[str, str] | None) -> None:
        """Gives the model the weights with which `run` begins; writes nothing.

        They are those of the last good checkpoint, or of
        `training.initialize_from`, or random ones. `initial` is what
        `initial_weights.find_initial_weights` returned when the run began. If
        it begins again, no checkpoint is read.
        """
        folder, restart = self.run_folder, self.resolved_run.restart
        if restart:
            self._advice = (
                "Run the same command without `--restart` to continue."
            )
        else:
            self._start = self.store.restore(self.model) or 0
        if self._start:
            self._print(f"Resuming at update {self._start:,}.")
            return
        if self.workers.is_chief and not restart and folder.is_finished():
            raise UserError(
                f"{folder.directory}: is a finished run without a checkpoint "
                "from which to train further. Use another run folder, or "
                "`--restart` to begin again from update 0."
            )
        if self.recipe.training.initialize_from is not None:
            report = copy_initial_weights(
                self.recipe.training.initialize_from,
                initial,
                self.model,
                self.data,
                folder.directory,
            )
            self._print(f"Initialized: {report.describe()}")

    def check_effects(self) -> None:
        """Refuses changed keys that would have no effect; writes nothing.

        Call it after `restore`. `RunFolder.check_startable` has refused all
        that can be known without the model.
        """
        changes, start = self.resolved_run.changes, self._start
        training, folder = self.recipe.training, self.run_folder
        if not changes or not start:
            return
        reason = why_no_updates(training, folder.history(), start)
        if reason is None:
            rollbacks = Rollbacks(folder, self._divergence)
            history = validations_until(folder.history(), start)
            stopped = self._reason_to_stop(rollbacks, history)
            reason = describe_stop(start, stopped)
        check_effects(
            folder.directory,
            changes,
            training,
            self.store,
            start,
            folder.is_finished(),
            reason,
        )

    def make_own_callbacks(self) -> None:
        """Makes the callbacks of the recipe, which may refuse their arguments.

        Call it before anything of an earlier run is deleted, and not for a dry
        run: a callback may open a log.
        """
        self._own = make_own_callbacks(self.recipe, self._given, self.workers)

    def run(self) -> None:
        """Trains from the update that `restore` found to the last one.

        Call it after `make_own_callbacks`. Ctrl-C and SIGTERM save a checkpoint
        and raise `KeyboardInterrupt` and `Terminated`, whose message names the
        checkpoint and how to continue.
        """
        start = self._start
        if self.workers.is_chief:
            self.store.delete_unfinished()
            self._compare_bests()
        self.rollbacks = Rollbacks(self.run_folder, self._divergence)
        self._epoch_counts = EpochCounts(self.run_folder.epoch_counts_file)
        if start:
            self.run_folder.training_began = True
            self.rollbacks.restore_state(self.model, start)
        warning = describe_constant_temperature(self.recipe, self.model)
        if warning is not None:
            _logger.warning(warning)
        try:
            while not self._train_from(start):
                start = self.step
                self._move_changes(start)
            try:
                self._own.end()
            except CallbackFailed as failure:
                raise self._callback_error(failure) from failure.error
        except BaseException as failure:
            self._own.end_after(failure)
            raise
        if self.step < self.recipe.training.steps:
            self.stopped = self._stop_reason() or self._own.stop_reason
            self._print(
                f"Stopped at update {self.step:,} of "
                f"{self.recipe.training.steps:,}: {self.stopped}"
            )

    def _compare_bests(self):
        """Compares the best checkpoints by the metric of the recipe."""
        metric = self.recipe.training.early_stopping_metric
        self.store.compare_by(
            metric,
            {
                int(logs["step"]): logs[metric]
                for _, logs in self.run_folder.history()
                if metric in logs and "step" in logs
            },
        )

    def _move_changes(self, step):
        """After a rollback, changes hold from there on."""
        resolved = self.recipe.resolved
        history = resolved.get(CHANGES, [])
        moved = move_changes(history, step, resolved[BATCHES])
        if moved == history:
            return
        self.resolved_run = self.resolved_run.with_resolved(
            {**resolved, CHANGES: moved}
        )
        self.run_folder.record(self.resolved_run.recorded)
        self.plan = plan_batches(
            self.recipe, self.data, num_replicas(self.model)
        )

    def _train_from(self, start):
        """Trains to the end; returns `False` after a rollback."""
        if self.workers.is_chief:
            self.run_folder.truncate_log(start)
            self.store.delete_best_after(start)
        # Every worker has read the checkpoint before the log is read, and the
        # log before the chief appends to it.
        self.workers.barrier()
        history = self.run_folder.history()
        self.workers.barrier()
        callbacks = make_callbacks(
            self.resolved_run,
            self.model,
            self.plan,
            self.validation_plan,
            saving=self._saving,
            rollbacks=self.rollbacks,
            progress=self.progress,
            workers=self.workers,
            history=history,
            own=self._own,
        )
        self.progress.resumed_counts = self._epoch_counts.of(start)
        try:
            with raised_on(signal.SIGTERM, Terminated), clear_data_errors():
                if start and not self._was_validated(history):
                    self._validate(callbacks)
                # The chief has logged the validation that an interrupt
                # skipped.
                self.workers.barrier()
                if not self._has_stopped():
                    self._fit(start, callbacks)
            return True
        except KeyboardInterrupt as stop:
            write_back_weights(self.model)
            _close(callbacks)
            # Ctrl-C and SIGTERM differ in the exit code alone.
            message = f"interrupted: {self._save_now()}"
            raise type(stop)(message) from None
        except CallbackFailed as failure:
            _close(callbacks)
            raise self._callback_error(failure) from failure.error
        except Diverged as divergence:
            write_back_weights(self.model)
            _close(callbacks)
            message = self.rollbacks.roll_back(
                self.model, self.store, divergence
            )
            self._print(message)
            return False
        except BaseException:
            _close(callbacks)
            raise

    def _before_save(self, step):
        """Writes the files that belong to a checkpoint besides its own."""
        self.rollbacks.save_state(step)
        self._epoch_counts.save(step, self.progress.epoch_counts)

    def _print(self, text):
        if not self.quiet:
            print_line(text)

    def _fit(self, start, callbacks):
        """Trains to the end, one stage after another."""
        pairs = training_pairs(self.recipe, self.data)
        while True:
            stage_end = self._begin_stage()
            is_over = self._fit_stage(start, pairs, [*callbacks, *stage_end])
            if is_over or not any(end.has_ended for end in stage_end):
                return
            start = self.step
            if start >= self.recipe.training.steps or self._has_stopped():
                return

    def _begin_stage(self):
        """Finds the stage by the log; returns the callback that ends it."""
        stages = self.recipe.training.stages
        if not stages:
            return []
        self.workers.barrier()
        history = self.run_folder.history()
        metric = self.recipe.training.early_stopping_metric
        starts = stage_starts(
            stages, self.plan.batches_in_epoch, history, metric
        )
        self.plan.begin(starts)
        self._print(f"Stage {self.plan.stage(self.step) + 1} of {len(stages)}.")
        self.workers.barrier()
        return [StageEnd(stages, self.plan, metric, history)]

    def _has_stopped(self):
        """Whether something else than the end of a stage has ended training."""
        stopped = self._own is not None and self._own.stop_reason
        return bool(stopped) or self._stop_reason() is not None

    def _fit_stage(self, start, pairs, callbacks):
        """Trains until `fit` is stopped; returns whether all updates are made.

        A stage that ends after a known update needs no stop: the plan knows it.
        """
        training = self.recipe.training
        transforms = batch_transforms(self.recipe, self.data, pairs, self.plan)
        for stretch in split_into_epochs(
            start, training.steps, training.validate_every
        ):
            self.model.fit(
                training_dataset(
                    pairs,
                    self.plan,
                    stretch.start_step,
                    stretch.num_steps,
                    transforms,
                ),
                steps_per_epoch=stretch.steps_per_epoch,
                initial_epoch=stretch.first_epoch,
                epochs=stretch.last_epoch,
                validation_data=self.validation,
                shuffle=False,
                callbacks=UpdateCallbacks(
                    callbacks,
                    add_history=True,
                    model=self.model,
                    verbose=0,
                    epochs=stretch.last_epoch,
                    steps=stretch.steps_per_epoch,
                ),
                verbose=0,
            )
            if self.model.stop_training:
                return False
            self._check_updates(stretch.start_step + stretch.num_steps)
        return True

    def _check_updates(self, expected):
        # `fit` ends without an error when TensorFlow raises "out of range".
        if self.step != expected:
            raise UserError(
                f"{self.run_folder.directory}: training stopped at update "
                f"{self.step} of {expected}; the checkpoints are kept. Perhaps "
                "the cache of compiled programs is damaged: run the same "
                "command with the environment variable DEEPNMT_CACHE=off to "
                "continue."
            )

    def _was_validated(self, history):
        """Whether the log has the validation due at this step, if any."""
        step, training = self.step, self.recipe.training
        if step % training.validate_every and step != training.steps:
            return True
        return bool(history) and history[-1][1].get("step") == step

    def _validate(self, callbacks):
        """Runs the validation that an interrupt skipped."""
        epoch = (self.step - 1) // self.recipe.training.validate_every
        # The log keeps its columns; values that were not measured are NaN or 0.
        logs = {"loss": float("nan"), "tokens": 0.0}
        if self.validation is not None:
            with averaged_weights(self.model):
                scores = self.model.evaluate(
                    self.validation, return_dict=True, verbose=0
                )
            logs |= {f"val_{name}": value for name, value in scores.items()}
        callback_list = keras.callbacks.CallbackList(
            callbacks, model=self.model
        )
        callback_list.on_train_begin()
        callback_list.on_epoch_begin(epoch)
        callback_list.on_epoch_end(epoch, logs)
        callback_list.on_train_end()

    def _stop_reason(self):
        """Why the validations so far end this run, or `None`."""
        return self._reason_to_stop(self.rollbacks, self.run_folder.history())

    def _reason_to_stop(self, rollbacks, history):
        self.model.stop_training = False
        reason = None
        for callback in stopping_callbacks(
            self.recipe.training, rollbacks, history
        ):
            callback.set_model(self.model)
            callback.on_train_begin()
            reason = reason or callback.reason
        return reason

    def _save_now(self):
        """Saves a checkpoint on the chief; says which one and how to go on."""
        if not self.workers.is_chief:
            return f"the chief saves update {self.step}."
        # Otherwise, and after a divergence, the run resumes from the last
        # checkpoint.
        if has_values(self.model):
            with contextlib.suppress(Diverged):
                self._save_extra(self.step)
        newest = self.store.latest()
        if newest is None:
            text = "no checkpoint was saved yet"
        else:
            text = f"the checkpoint of step {newest} is saved"
        return f"{text} in {self.run_folder.directory}. {self._advice}"

    def _callback_error(self, failure):
        """The error of a callback of the user, after a checkpoint is saved."""
        write_back_weights(self.model)
        saved = self._save_now()
        return UserError(f"{failure}. {saved[0].upper()}{saved[1:]}")

    def _save_extra(self, step):
        """Saves the checkpoint of an interrupt, unless that step has one."""
        if step and step not in self.store.steps():
            self._before_save(step)
            is_due = self._saving.is_due(step)
            self.store.save(self.model, step, extra=not is_due)


def _close(callbacks):
    """Closes the log files and the progress bar after `fit` has failed."""
    for callback in callbacks:
        if not isinstance(callback, keras.callbacks.EarlyStopping):
            callback.on_train_end()


@dataclass(frozen=True)
class EpochRange:
    """Arguments of one call of `fit`: epochs of equal length.

    Attributes:
        first_epoch: number of the first epoch, from 0.
        last_epoch: number of the epoch after the last one.
        start_step: updates made before the first epoch.
        steps_per_epoch: updates in each epoch.
    """

    first_epoch: int
    last_epoch: int
    start_step: int
    steps_per_epoch: int

    @property
    def num_steps(self) -> int:
        """Updates of all epochs together."""
        return (self.last_epoch - self.first_epoch) * self.steps_per_epoch


def split_into_epochs(start: int, total: int, every: int) -> list[EpochRange]:
    """Splits the updates `start` to `total` into epochs of `every` updates.

    An epoch ends at every multiple of `every`, so a run that resumes in the
    middle of one begins with a shorter epoch; the last one may be shorter too.
    """
    ranges = []
    while start < total:
        epoch = start // every
        if start % every == 0 and total - start >= every:
            epochs, steps = (total - start) // every, every
        else:
            epochs, steps = 1, min((epoch + 1) * every, total) - start
        ranges.append(EpochRange(epoch, epoch + epochs, start, steps))
        start += epochs * steps
    return ranges
