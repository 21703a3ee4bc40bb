"""Fits a model to a recipe, from whatever update it is at."""

import sys

import keras

from keras_deepnmt.data.batching import BatchPlan
from keras_deepnmt.data.pipeline import training_dataset, validation_dataset
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.decoding.replicas import num_replicas
from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation.bleu_callback import BleuCallback
from keras_deepnmt.recipes.initializing import initialize
from keras_deepnmt.recipes.robust_training import batch_transforms
from keras_deepnmt.recipes.run_folder import RunFolder
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.recipes.stretches import stretches
from keras_deepnmt.training.callbacks import CheckpointCallback, EarlyStopping
from keras_deepnmt.training.plateau import DivideOnPlateau
from keras_deepnmt.training.progress import ThroughputProgress
from keras_deepnmt.training.temperature import TemperatureDecay
from keras_deepnmt.training.termination import termination_raised
from keras_deepnmt.training.update_count import update_count
from keras_deepnmt.training.weight_average import (
    ValidateAverage,
    averaged_weights,
)
from keras_deepnmt.training.workers import Workers
from keras_deepnmt.translator import Translator


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
        self.validation = None
        if "valid" in data.splits:
            self.validation = validation_dataset(
                data.store("valid"), plan.cells
            )
        else:
            _check_unvalidated(recipe)

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
            self._say(f"Going on from update {start:,}.")
        elif self.recipe.training.initialize_from is not None:
            report = initialize(
                self.recipe, self.run_folder, self.data, self.model
            )
            self._say(f"Initialised: {report.describe()}")
        if self.workers.is_chief:
            self.run_folder.forget_after(start)
        # All have read the checkpoint, and read the same log.
        self.workers.wait()
        history = self.run_folder.history()
        self.workers.wait()
        callbacks = self._callbacks(history)
        try:
            with termination_raised():
                if start and not self._was_validated(history):
                    self._validate(callbacks)
                if not self._has_stopped():
                    self._fit(start, callbacks)
        except KeyboardInterrupt as stop:
            _close(callbacks)
            # Ctrl-C and SIGTERM differ in the exit code alone.
            raise type(stop)(self._save_interrupted()) from None
        except BaseException:
            _close(callbacks)
            raise

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

    def _callbacks(self, history):
        training, run = self.recipe.training, self.run_folder
        callbacks = [ValidateAverage()]
        if training.temperature is not None:
            decay = training.temperature
            callbacks.append(
                TemperatureDecay(decay.start, decay.factor, decay.minimum)
            )
        if self.validation is not None:
            bleu = self._bleu()
            callbacks += [bleu, _report_time_of(bleu)]
        callbacks.append(self.progress)
        if self.workers.is_chief:
            callbacks += [
                keras.callbacks.CSVLogger(str(run.log_file), append=True),
                keras.callbacks.TensorBoard(
                    str(run.tensorboard_dir), write_graph=False
                ),
            ]
        callbacks += self._stopping(history)
        if self.workers.is_chief:
            callbacks.append(
                CheckpointCallback(
                    self.store, training.checkpoint_every, training.steps
                )
            )
        return callbacks

    def _stopping(self, history):
        """Makes the callbacks that may end the run before its last update."""
        training = self.recipe.training
        rate = training.learning_rate
        callbacks = []
        if rate.schedule == "plateau":
            callbacks.append(
                DivideOnPlateau(
                    rate.divide_by,
                    rate.minimum,
                    keep_dividing=rate.keep_dividing,
                    history=history,
                )
            )
        if training.early_stopping_patience is not None:
            callbacks.append(
                EarlyStopping(
                    training.early_stopping_metric,
                    training.early_stopping_patience,
                    history=history,
                )
            )
        return callbacks

    def _bleu(self):
        sources, references = self.data.texts("valid")
        translator = Translator(
            self.model,
            self.data.source_tokenizer,
            self.data.target_tokenizer,
            num_beams=self.recipe.training.validation_beams,
            length_penalty=self.recipe.decoding.length_penalty,
            # Every replica searches a batch of its own.
            batch_size=self.recipe.decoding.batch_size
            * num_replicas(self.model),
            compiled=self.recipe.training.jit_compile,
        )

        def translate(texts):
            with averaged_weights(self.model):
                return translator.translate(texts)

        return BleuCallback(
            translate,
            sources,
            references,
            tokenize=self.recipe.evaluation.tokenize,
            lowercase=self.recipe.evaluation.lowercase,
            verbose=0,
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
        for callback in self._stopping(self.run_folder.history()):
            callback.set_model(self.model)
            callback.on_train_begin()
        return self.model.stop_training

    def _say(self, text):
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def _save_interrupted(self):
        step = self.step
        if not self.workers.is_chief:
            return f"interrupted at update {step}; the first worker keeps it."
        if step and step not in self.store.steps():
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


def _check_unvalidated(recipe):
    """Refuses what a recipe without validation data cannot have."""
    training = recipe.training
    wrong = None
    if training.early_stopping_patience is not None:
        wrong = "early_stopping_patience"
    if training.learning_rate.schedule == "plateau":
        wrong = "learning_rate.schedule: plateau"
    if wrong is not None:
        raise UserError(
            f"recipe {recipe.name}: `training.{wrong}` needs a validation set; "
            "`data` has none."
        )


def _report_time_of(bleu):
    """Adds the seconds of a BLEU, and the share of all of them, to the logs."""

    def on_epoch_end(epoch, logs):
        logs["bleu_seconds"] = bleu.seconds
        logs["bleu_share"] = bleu.share

    return keras.callbacks.LambdaCallback(on_epoch_end=on_epoch_end)


def _close(callbacks):
    """Closes the files and the live bar of a `fit` that was broken off."""
    for callback in callbacks:
        if not isinstance(callback, keras.callbacks.EarlyStopping):
            callback.on_train_end()
