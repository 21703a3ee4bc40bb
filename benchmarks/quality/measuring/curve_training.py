"""Trains and validates one model for `learning_curves.py`."""

import time

import keras
import tensorflow as tf

from benchmarks.quality.measuring.small_corpora import fit
from keras_deepnmt import create_model
from keras_deepnmt.losses import LabelSmoothedCrossEntropy
from keras_deepnmt.training import Nesterov

# As in Shen et al. (2018), before they lower the learning rate.
MOMENTUM = 0.99
CLIPNORM = 0.1


def train_curve(corpus, preset, seed, settings, overrides):
    """Trains one preset at a constant learning rate.

    The seed determines the weights, the dropout and the order of batches.
    Returns a list of pairs `(update, validation loss)`, in nats per token
    without label smoothing, the number of parameters, and the seconds.
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
    """Returns the name of the device that the models are trained on."""
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return "CPU"
    details = tf.config.experimental.get_device_details(gpus[0])
    return details.get("device_name", "GPU")
