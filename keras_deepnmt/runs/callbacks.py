"""The callbacks of a training run."""

import importlib.util

import keras

from keras_deepnmt.data.batches.batch_plan import BatchPlan
from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation.bleu_callback import BleuCallback
from keras_deepnmt.evaluation.sentence_budget import SentenceBudget
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.recipes.training_schema import TrainingRecipe
from keras_deepnmt.runs.own_callbacks import OwnCallbacks
from keras_deepnmt.runs.rollback import Rollbacks
from keras_deepnmt.runs.start import ResolvedRun
from keras_deepnmt.training.callbacks import (
    BestCheckpointCallback,
    CheckpointCallback,
    EarlyStopping,
)
from keras_deepnmt.training.compilation_limit import CompilationLimit
from keras_deepnmt.training.plateau import DivideOnPlateau
from keras_deepnmt.training.progress import ThroughputProgress
from keras_deepnmt.training.strategies import Workers
from keras_deepnmt.training.temperature import (
    TemperatureDecay,
    temperature_weights,
)
from keras_deepnmt.training.weight_average import (
    ValidateAverage,
    averaged_weights,
)
from keras_deepnmt.translator import Translator
from keras_deepnmt.xla.replicas import num_replicas

History = list[tuple[int, dict[str, float]]]


class UpdateCallbacks(keras.callbacks.CallbackList):
    """Calls callbacks after an update without waiting for its result.

    Keras converts the logs of each update to numbers, which waits until the
    device has computed them. Here callbacks get scalar tensors, so that the
    next update starts at once, unless one of them reads a value. The logs of
    an epoch are numbers.
    """

    def on_train_batch_end(self, batch, logs=None):
        for callback in self.callbacks:
            callback.on_train_batch_end(batch, logs=logs)

    def on_test_batch_end(self, batch, logs=None):
        for callback in self.callbacks:
            callback.on_test_batch_end(batch, logs=logs)


class EpochTensorBoard(keras.callbacks.TensorBoard):
    """Writes the numbers of epochs for TensorBoard, and none of updates.

    Keras calls its writer for each number after each update, also when nothing
    is to be written then. In small models that takes some percent of the time.
    """

    def on_train_batch_end(self, batch, logs=None):
        """Does nothing."""


def make_callbacks(
    run: ResolvedRun,
    model: keras.Model,
    plan: BatchPlan,
    validation: BatchPlan | None,
    *,
    saving: CheckpointCallback,
    rollbacks: Rollbacks,
    progress: ThroughputProgress,
    workers: Workers,
    history: History,
    own: OwnCallbacks,
) -> list[keras.callbacks.Callback]:
    """Makes the callbacks of a run, in the order in which they are called.

    `plan` and `validation` are the batches of training and validation. Of
    several processes only the chief gets those that write files. `own` are
    those of the user, `saving` is the last one, and `history` what
    `RunFolder.history` returned.
    """
    folder, training = run.folder, run.recipe.training
    callbacks = [
        _note_first_update(folder),
        ValidateAverage(),
        CompilationLimit(
            plan.batch_shapes, validation and validation.batch_shapes
        ),
        rollbacks.detector,
    ]
    if training.temperature is not None:
        decay = training.temperature
        callbacks.append(
            TemperatureDecay(decay.start, decay.factor, decay.minimum)
        )
    if "valid" in run.data.splits:
        bleu = make_bleu(
            run,
            model,
            workers.is_distributed,
        )
        callbacks += [bleu, log_time_of(bleu)]
    if workers.is_chief:
        # A validation in the log is complete, its checkpoint included.
        callbacks.append(
            BestCheckpointCallback(saving.store, training.early_stopping_metric)
        )
    callbacks.append(progress)
    stopping = stopping_callbacks(training, rollbacks, history)
    if not workers.is_chief:
        return [*callbacks, *stopping, own]
    callbacks.append(
        keras.callbacks.LambdaCallback(on_epoch_end=folder.append_log)
    )
    # Keras writes for TensorBoard by TensorFlow, on each backend.
    if importlib.util.find_spec("tensorflow") is not None:
        callbacks.append(
            EpochTensorBoard(str(folder.tensorboard_dir), write_graph=False)
        )
    return [*callbacks, *stopping, own, saving]


def describe_constant_temperature(
    recipe: Recipe, model: keras.Model
) -> str | None:
    """Says that a temperature will not fall, or returns `None`."""
    weights = temperature_weights(model)
    if recipe.training.temperature is not None or not weights:
        return None
    value = float(keras.ops.convert_to_numpy(weights[0]))
    return (
        f"the temperature of relaxed samples stays {value:g}, because "
        "the recipe has no `training.temperature`, so that one-hot roles are "
        "never nearly one-hot in training. For the schedule of Weissenborn et "
        "al. (2019), from 5 down to 0.5, add `training.temperature: {}`, or "
        "train with --set training.temperature={}."
    )


def stopping_callbacks(
    training: TrainingRecipe, rollbacks: Rollbacks, history: History
) -> list[keras.callbacks.Callback]:
    """Makes the callbacks that may end a run before its last update."""
    rate = training.learning_rate
    callbacks = []
    if rate.schedule == "plateau":
        callbacks.append(
            DivideOnPlateau(
                rate.divide_by,
                rate.minimum,
                keep_dividing=rate.keep_dividing,
                history=history,
                first_factor=rollbacks.rate_factor,
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


def check_unvalidated(recipe: Recipe) -> None:
    """Refuses a recipe that needs a validation set; called if there is none."""
    training = recipe.training
    wrong = None
    if training.final_model != "average_last":
        wrong = f"final_model: {training.final_model}"
    if training.early_stopping_patience is not None:
        wrong = "early_stopping_patience"
    if training.learning_rate.schedule == "plateau":
        wrong = "learning_rate.schedule: plateau"
    for number, stage in enumerate(training.stages):
        if stage.patience is not None:
            wrong = f"stages.{number}.patience: {stage.patience}"
    if wrong is not None:
        raise UserError(
            f"recipe {recipe.name}: `training.{wrong}` needs a validation set; "
            "`data` has none."
        )


def make_bleu(
    run: ResolvedRun,
    model: keras.Model,
    is_distributed: bool,
) -> BleuCallback:
    """Makes the callback that measures the BLEU of the validation set.

    With several worker processes (`is_distributed`) it always translates all
    sentences: each worker would measure other times, but all of them must
    translate the same sentences.
    """
    recipe, data = run.recipe, run.data
    sources, references = data.texts("valid")
    training = recipe.training
    tokens = recipe.decoding.batch_tokens
    translator = Translator(
        model,
        data.source_tokenizer,
        data.target_tokenizer,
        tag_side=recipe.data.tag_side,
        # A validation text needs no tag.
        training_tags=[*recipe.data.tags(), None],
        options=recipe.decoding.search_options(),
        num_beams=training.validation_beams,
        num_groups=1,
        # Each replica translates `batch_size` sentences.
        batch_size=recipe.decoding.batch_size * num_replicas(model),
        batch_tokens=tokens and tokens * num_replicas(model),
        compiled=training.jit_compile,
    )
    budget = None
    if training.validation_budget is not None and not is_distributed:
        budget = SentenceBudget(
            training.validation_budget,
            training.validate_every,
            recipe.seed,
            run.folder.validation_file,
        )

    def translate(texts):
        with averaged_weights(model):
            return translator.translate(texts)

    return BleuCallback(
        translate,
        sources,
        references,
        tokenize=recipe.evaluation.tokenize,
        lowercase=recipe.evaluation.lowercase,
        verbose=0,
        budget=budget,
    )


def log_time_of(bleu: BleuCallback) -> keras.callbacks.Callback:
    """Logs the seconds of each BLEU, and its share of the training time.

    The callback returned must come after `bleu`.
    """

    def on_epoch_end(epoch, logs):
        logs["bleu_seconds"] = bleu.seconds
        logs["bleu_share"] = bleu.share

    return keras.callbacks.LambdaCallback(on_epoch_end=on_epoch_end)


def _note_first_update(folder):
    def note(batch, logs):
        folder.training_began = True

    return keras.callbacks.LambdaCallback(on_train_batch_end=note)
