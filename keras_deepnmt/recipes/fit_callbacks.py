"""Everything that watches a run of `fit`."""

import keras

from keras_deepnmt.data.batches.datasets import validation_plan
from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.bleu_watch import make_bleu, report_time_of
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.training.callbacks import CheckpointCallback, EarlyStopping
from keras_deepnmt.training.compilation_limit import CompilationLimit
from keras_deepnmt.training.plateau import DivideOnPlateau
from keras_deepnmt.training.temperature import TemperatureDecay
from keras_deepnmt.training.weight_average import ValidateAverage

History = list[tuple[int, dict[str, float]]]


def make_callbacks(fit, history: History) -> list[keras.callbacks.Callback]:
    """Makes the callbacks of a run, in the order in which they act.

    Only the chief of several processes gets those that write.

    Args:
        fit: the `Fit`.
        history: the validations made so far, as `(epoch, logs)`.

    Returns:
        The callbacks.
    """
    training, run = fit.recipe.training, fit.run_folder
    callbacks = [
        ValidateAverage(),
        _compilation_limit(fit),
        fit.rollbacks.detector,
    ]
    if training.temperature is not None:
        decay = training.temperature
        callbacks.append(
            TemperatureDecay(decay.start, decay.factor, decay.minimum)
        )
    if fit.validation is not None:
        bleu = make_bleu(
            fit.recipe, run, fit.data, fit.model, fit.workers.are_several
        )
        callbacks += [bleu, report_time_of(bleu)]
    callbacks.append(fit.progress)
    if not fit.workers.is_chief:
        return callbacks + stopping_callbacks(fit, history)
    return [
        *callbacks,
        keras.callbacks.CSVLogger(str(run.log_file), append=True),
        keras.callbacks.TensorBoard(
            str(run.tensorboard_dir), write_graph=False
        ),
        *stopping_callbacks(fit, history),
        CheckpointCallback(
            fit.store,
            training.checkpoint_every,
            training.steps,
            fit.rollbacks.remember,
        ),
    ]


def stopping_callbacks(fit, history: History) -> list[keras.callbacks.Callback]:
    """Makes the callbacks that may end a run before its last update.

    Args:
        fit: the `Fit`.
        history: the validations made so far.

    Returns:
        The callbacks.
    """
    training = fit.recipe.training
    rate = training.learning_rate
    callbacks = []
    if rate.schedule == "plateau":
        callbacks.append(
            DivideOnPlateau(
                rate.divide_by,
                rate.minimum,
                keep_dividing=rate.keep_dividing,
                history=history,
                first_factor=fit.rollbacks.rate_factor,
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
    """Refuses what a recipe without validation data cannot have.

    Args:
        recipe: the recipe.

    Raises:
        UserError: if something in it watches the validation.
    """
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


def _compilation_limit(fit):
    if fit.validation is None:
        return CompilationLimit(fit.plan.batch_shapes)
    lengths = fit.data.store("valid").lengths
    plan = validation_plan(lengths, fit.plan.batch_shapes)
    return CompilationLimit(fit.plan.batch_shapes, plan.batch_shapes)
