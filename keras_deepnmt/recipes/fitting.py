"""Fits a model to a recipe, from whatever update it is at."""

import sys
from dataclasses import replace

import keras

from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.data.batches.datasets import (
    training_dataset,
    validation_dataset,
)
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.fit_callbacks import (
    check_unvalidated,
    make_callbacks,
    stopping_callbacks,
)
from keras_deepnmt.recipes.initializing import initialize
from keras_deepnmt.recipes.robust_training import batch_transforms
from keras_deepnmt.recipes.rollback import Rollbacks
from keras_deepnmt.recipes.run_folder import RunFolder
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.recipes.stretches import stretches
from keras_deepnmt.training.divergence import Diverged
from keras_deepnmt.training.progress import ThroughputProgress
from keras_deepnmt.training.termination import termination_raised
from keras_deepnmt.training.update_count import update_count
from keras_deepnmt.training.weight_average import averaged_weights
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
            training.steps, len(plan.batch_shapes), plan.padding_fraction, quiet
        )
        divergence = training.divergence
        if workers.are_several:
            # Each worker would roll back by itself, and write.
            divergence = replace(divergence, most_rollbacks=0)
        self.rollbacks = Rollbacks(run, divergence)
        self.validation = None
        if "valid" in data.splits:
            self.validation = validation_dataset(
                data.store("valid"), plan.batch_shapes
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
            self._take_back_weights()
            _close(callbacks)
            # Ctrl-C and SIGTERM differ in the exit code alone.
            raise type(stop)(self._save_interrupted()) from None
        except Diverged as trouble:
            self._take_back_weights()
            _close(callbacks)
            told = self.rollbacks.roll_back(self.model, self.store, trouble)
            self._say(told)
            return False
        except BaseException:
            _close(callbacks)
            raise

    def _take_back_weights(self):
        # On JAX `fit` holds them aside, and an error leaves them there.
        if hasattr(self.model, "jax_state_sync"):
            self.model.jax_state_sync()

    def _say(self, text):
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def _fit(self, start, callbacks):
        training = self.recipe.training
        train = self.data.store("train")
        transforms = batch_transforms(self.recipe, self.data)
        for stretch in stretches(
            start, training.steps, training.validate_every
        ):
            self.model.fit(
                training_dataset(
                    train,
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
                callbacks=callbacks,
                verbose=0,
            )
            if self.model.stop_training:
                return
            self._check_updates(stretch.start_step + stretch.num_steps)

    def _check_updates(self, expected):
        # An error that TensorFlow calls "out of range" ends `fit` in silence.
        if self.step != expected:
            raise UserError(
                f"{self.run_folder.directory}: training broke off at update "
                f"{self.step} of {expected}; the checkpoints are kept. Delete "
                "the folder xla_cache in it, which may be damaged, and run "
                "the same command to continue."
            )

    def _was_validated(self, history):
        """Whether the epoch that ends at this step, if one does, is logged."""
        every = self.recipe.training.validate_every
        return self.step % every or (
            history and history[-1][0] == self.step // every - 1
        )

    def _validate(self, callbacks):
        """Makes up for a validation that Ctrl-C broke off."""
        epoch = self.step // self.recipe.training.validate_every - 1
        # The columns of the log stay; what was not measured is no number.
        logs = {"loss": float("nan"), "tokens": 0.0}
        if self.validation is not None:
            with averaged_weights(self.model):
                scores = self.model.evaluate(
                    self.validation, return_dict=True, verbose=0
                )
            logs |= {f"val_{name}": value for name, value in scores.items()}
        watchers = keras.callbacks.CallbackList(callbacks, model=self.model)
        watchers.on_train_begin()
        watchers.on_epoch_begin(epoch)
        watchers.on_epoch_end(epoch, logs)
        watchers.on_train_end()

    def _has_stopped(self):
        """Whether the validations made so far have already ended this run."""
        self.model.stop_training = False
        # The chief has written down the validation made up for.
        self.workers.wait()
        for callback in stopping_callbacks(self, self.run_folder.history()):
            callback.set_model(self.model)
            callback.on_train_begin()
        return self.model.stop_training

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
