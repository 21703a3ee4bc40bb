"""Watches BLEU while a recipe trains, within its share of the time."""

import keras

from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.decoding.replicas import num_replicas
from keras_deepnmt.evaluation.bleu_callback import BleuCallback
from keras_deepnmt.evaluation.sentence_budget import SentenceBudget
from keras_deepnmt.recipes.run_folder import RunFolder
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.training.weight_average import averaged_weights
from keras_deepnmt.translator import Translator


def make_bleu(
    recipe: Recipe,
    run: RunFolder,
    data: PreparedData,
    model: keras.Model,
    are_several: bool,
) -> BleuCallback:
    """Makes the callback that measures the BLEU of the validation set.

    Args:
        recipe: the recipe.
        run: the run's folder, which keeps the choice of sentences.
        data: the prepared corpus; it has a validation set.
        model: the model that trains.
        are_several: whether several processes train it: all of them must
            search the same sentences, so they take no budget of time.

    Returns:
        The callback.
    """
    sources, references = data.texts("valid")
    training = recipe.training
    translator = Translator(
        model,
        data.source_tokenizer,
        data.target_tokenizer,
        num_beams=training.validation_beams,
        length_penalty=recipe.decoding.length_penalty,
        length_offset=recipe.decoding.length_offset,
        # Every replica searches a batch of its own.
        batch_size=recipe.decoding.batch_size * num_replicas(model),
        compiled=training.jit_compile,
    )
    budget = None
    if training.validation_budget is not None and not are_several:
        budget = SentenceBudget(
            training.validation_budget,
            training.validate_every,
            recipe.seed,
            run.validation_file,
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


def report_time_of(bleu: BleuCallback) -> keras.callbacks.Callback:
    """Adds the seconds of a BLEU, and the share of all of them, to the logs.

    Args:
        bleu: what measures it; it comes before.

    Returns:
        A callback.
    """

    def on_epoch_end(epoch, logs):
        logs["bleu_seconds"] = bleu.seconds
        logs["bleu_share"] = bleu.share

    return keras.callbacks.LambdaCallback(on_epoch_end=on_epoch_end)
