"""One curve of `learning_curves.py`: a model, trained and validated."""

import time

import keras
import tensorflow as tf

from benchmarks.quality.measuring.small_corpora import fit
from keras_deepnmt import create_model
from keras_deepnmt.losses import LabelSmoothedCrossEntropy
from keras_deepnmt.training import Nesterov

# As Shen et al. (2018), before the rate is lowered.
MOMENTUM = 0.99
CLIPNORM = 0.1


def train_curve(corpus, preset, seed, settings, overrides):
    """Trains one preset at a constant rate.

    Args:
        corpus: a `SmallCorpus`.
        preset: str.
        seed: int. Of the weights, of dropout and of the order of batches.
        settings: dict `{"updates", "validate_every", "learning_rate"}`.
        overrides: dict of arguments that replace the preset's.

    Returns:
        Tuple of a list of pairs `(update, validation loss)`, in nats a token
        without smoothing; the number of parameters; and the seconds.
    """
    start = time.monotonic()
    keras.utils.set_random_seed(seed)
    model = create_model(preset, *corpus.vocabulary_sizes, **overrides)
    model.compile(
        Nesterov(
            settings["learning_rate"],
            momentum=MOMENTUM,
            global_clipnorm=CLIPNORM,
        ),
        loss=LabelSmoothedCrossEntropy(0.0),
    )
    first = model.evaluate(corpus.validation(), return_dict=True, verbose=0)
    every = settings["validate_every"]
    history = fit(corpus, model, seed, settings["updates"], every)
    losses = [first["loss"], *history.history["val_loss"]]
    curve = [(number * every, loss) for number, loss in enumerate(losses)]
    return curve, model.count_params(), time.monotonic() - start


def device():
    """Names what the models are trained on."""
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return "CPU"
    details = tf.config.experimental.get_device_details(gpus[0])
    return details.get("device_name", "GPU")
