"""Fits a model to a recipe, from whatever update it is at."""

from dataclasses import replace

import keras

from keras_deepnmt.data.batching import BatchPlan
from keras_deepnmt.data.pipeline import (
    validation_dataset,
)
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.recipes.fit_callbacks import (
    check_unvalidated,
    make_callbacks,
)
from keras_deepnmt.recipes.initializing import initialize
from keras_deepnmt.recipes.rollback import Rollbacks
from keras_deepnmt.recipes.run_folder import RunFolder
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.training.divergence import Diverged
from keras_deepnmt.training.progress import ThroughputProgress
from keras_deepnmt.training.termination import termination_raised
from keras_deepnmt.training.update_count import update_count
from keras_deepnmt.training.workers import Workers


class Fit:
    """One run of `fit` with everything that watches it.

    Args:
        recipe: the recipe.
        run: the run's folder.
        data: the prepared corpus.
        model: the compiled model.
        plan: the batches.
        workers: the processes that train together.
        quiet: shows nothing.
    """

    def __init__(
        self,
        recipe: Recipe,
        run: RunFolder,
        data: PreparedData,
        model: keras.Model,
        plan: BatchPlan,
        workers: Workers,
        quiet: bool = False,
    ):
        self.recipe = recipe
        self.run_folder = run
        self.data = data
        self.model = model
        self.plan = plan
        self.workers = workers
        self.quiet = quiet
        training = recipe.training
        self.store = run.checkpoints(keep=training.average_checkpoints + 1)
        self.progress = ThroughputProgress(
            training.steps, len(plan.cells), plan.padding_fraction, quiet
        )
        divergence = training.divergence
        if workers.are_several:
            # Each worker would roll back by itself, and write.
            divergence = replace(divergence, most_rollbacks=0)
        self.rollbacks = Rollbacks(run, divergence)
        self.validation = None
        if "valid" in data.splits:
            self.validation = validation_dataset(
                data.store("valid"), plan.cells
            )
        else:
            check_unvalidated(recipe)

    @property
    def step(self) -> int:
        """Updates made so far."""
        return update_count(self.model)

    def go_on(self) -> None:
        """Trains from the last good checkpoint to the end.

        Raises:
            KeyboardInterrupt: on Ctrl-C, after a checkpoint was saved; says
                which, and how to continue.
            Terminated: on SIGTERM, likewise.
        """
        start = self.store.restore(self.model) or 0
        if start:
            self.rollbacks.take_up(self.model, start)
            self._say(f"Going on from update {start:,}.")
        elif self.recipe.training.initialize_from is not None:
            report = initialize(
                self.recipe, self.run_folder, self.data, self.model
            )
            self._say(f"Initialised: {report.describe()}")
        while not self._is_done(start):
            start = self.step

    def _is_done(self, start):
        """Trains to the end, or until a rollback leaves work to do."""
        if self.workers.is_chief:
            self.run_folder.forget_after(start)
        # All have read the checkpoint, and read the same log.
        self.workers.wait()
        history = self.run_folder.history()
        self.workers.wait()
        callbacks = make_callbacks(self, history)
        try:
            with termination_raised():
                if start and not self._was_validated(history):
                    self._validate(callbacks)
                if not self._has_stopped():
                    self._fit(start, callbacks)
            return True
        except KeyboardInterrupt as stop:
            _close(callbacks)
            # Ctrl-C and SIGTERM differ in the exit code alone.
            raise type(stop)(self._save_interrupted()) from None
        except Diverged as trouble:
            _close(callbacks)
            told = self.rollbacks.roll_back(self.model, self.store, trouble)
            self._say(told)
            return False
        except BaseException:
            _close(callbacks)
            raise

    def _save_interrupted(self):
        step = self.step
        if not self.workers.is_chief:
            return f"interrupted at update {step}; the first worker keeps it."
        if step and step not in self.store.steps():
            self.rollbacks.remember(step)
            self.store.save(self.model, step)
        kept = self.store.latest()
        if kept is None:
            text = "nothing was trained yet"
        else:
            text = f"the checkpoint of step {kept} is saved"
        return (
            f"interrupted: {text} in {self.run_folder.directory}. Run the same "
            "command to continue."
        )


def _close(callbacks):
    """Closes the files and the live bar of a `fit` that was broken off."""
    for callback in callbacks:
        if not isinstance(callback, keras.callbacks.EarlyStopping):
            callback.on_train_end()
