"""What a Keras user may expect of `compile`, `fit` and their relatives.

* Keras' cross-entropy, by name or as an object, is this package's
* a loss may be a function; one that misreads log-probabilities is refused
* one batch trains, is tested and predicted as in `fit` and `evaluate`, on
  every backend and number of devices, with given alignments in parts, too
* the hooks of a `PyDataset` are called around each pass
* weights, missing labels and an unknown number of batches are refused in one
  sentence
"""

import backend_program
import catalog
import keras
import numpy as np
import pytest
import tensorflow as tf
from test_training_step import dataset_of, small

from keras_deepnmt.losses import negative_log_likelihood
from keras_deepnmt.models.training_step.tensorflow_batches import (
    countable_dataset,
)

ENTRY = catalog.MODELS[1]
INPUTS, LABELS = BATCH = ENTRY.example(rows=4)
WEIGHTS = np.ones(len(LABELS))


@pytest.fixture(scope="module")
def model():
    return small()


def compiled(model, **options):
    model.compile(keras.optimizers.SGD(0.5), jit_compile=False, **options)
    return model


@pytest.mark.parametrize(
    "loss",
    [
        "sparse_categorical_crossentropy",
        "cross_entropy",
        keras.losses.sparse_categorical_crossentropy,
        keras.losses.SparseCategoricalCrossentropy(),
        keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, ignore_class=0
        ),
        negative_log_likelihood,
    ],
)
def test_cross_entropy_in_any_form_is_the_plain_loss_of_a_token(model, loss):
    compiled(model, loss=loss)
    found, tokens = model.sum_token_losses(LABELS, model(INPUTS), True)
    expected, _ = model.sum_token_losses(LABELS, model(INPUTS), False)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert tokens == np.count_nonzero(LABELS)


@pytest.mark.parametrize(
    "loss",
    [
        "kl_divergence",
        "mse",
        keras.losses.MeanSquaredError(),
        keras.losses.CategoricalCrossentropy(from_logits=True),
        lambda labels, log_probs: keras.ops.mean(log_probs),
    ],
)
def test_a_loss_that_is_not_of_tokens_is_refused(model, loss):
    with pytest.raises(ValueError, match="`loss` must compute one value per"):
        compiled(model, loss=loss)


def test_several_steps_in_one_call_are_refused(model):
    with pytest.raises(ValueError, match="steps_per_execution=2. Leave it"):
        compiled(model, steps_per_execution=2)


def test_another_class_than_padding_cannot_be_ignored(model):
    loss = keras.losses.SparseCategoricalCrossentropy(ignore_class=3)
    with pytest.raises(ValueError, match="Received: ignore_class=3. Leave"):
        compiled(model, loss=loss)


def test_a_misspelt_loss_names_the_nearest(model):
    with pytest.raises(ValueError, match='Did you mean "cross_entropy"'):
        compiled(model, loss="cross_entropi")


@keras.saving.register_keras_serializable(package="test_keras_habits")
def doubled(labels, log_probs):
    return 2.0 * negative_log_likelihood(labels, log_probs)


def test_a_loss_that_is_a_function_is_saved_with_the_model(model, tmp_path):
    compiled(model, loss=doubled).save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.token_loss.function is doubled


@pytest.mark.thorough
def test_one_batch_is_trained_and_tested_as_in_fit_and_evaluate(model):
    before = model.get_weights()
    history = compiled(model).fit(dataset_of(BATCH), verbose=0).history
    trained, tested = model.get_weights(), model.evaluate(*BATCH, verbose=0)
    model.set_weights(before)
    found = compiled(model).train_on_batch(*BATCH)
    np.testing.assert_allclose(found, [history["loss"][0], *tested[1:]])
    for one, other in zip(trained, model.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    as_dict = model.test_on_batch(*BATCH, return_dict=True)
    np.testing.assert_allclose(as_dict["loss"], tested[0], rtol=1e-5)
    assert as_dict["tokens"] == np.count_nonzero(LABELS)


@pytest.mark.parametrize("name", ["sample_weight", "class_weight"])
def test_weights_are_refused_in_one_sentence(model, name):
    weights = {name: WEIGHTS if name == "sample_weight" else {3: 2.0}}
    compiled(model)
    calls = [model.fit, model.train_on_batch]
    if name == "sample_weight":
        calls += [model.evaluate, model.test_on_batch]
    for call in calls:
        with pytest.raises(ValueError, match=f"`{name}` is not supported"):
            call(*BATCH, **weights)


@pytest.mark.parametrize(
    "data",
    [
        [(*BATCH, WEIGHTS)],
        (batch for batch in [(*BATCH, WEIGHTS)]),
        tf.data.Dataset.from_tensors((*BATCH, WEIGHTS)),
    ],
)
def test_weights_in_batches_are_refused(model, data):
    with pytest.raises(ValueError, match="`sample_weight` is not supported"):
        compiled(model).fit(data, steps_per_epoch=1, verbose=0)


def test_weights_of_validation_data_are_refused_not_dropped(model):
    with pytest.raises(ValueError, match="`sample_weight` is not supported"):
        compiled(model).fit(*BATCH, validation_data=(*BATCH, WEIGHTS))


def test_other_inputs_than_the_two_ids_are_refused(model):
    compiled(model)
    for wrong in ([list(INPUTS.values()), LABELS], [INPUTS, None]):
        for call in (model.fit, model.evaluate, model.test_on_batch):
            with pytest.raises(ValueError, match="`x` must be a dict"):
                call(*wrong)
    with pytest.raises(ValueError, match="Received: 1 elements"):
        model.fit([(INPUTS,)])


def test_a_model_that_is_not_compiled_says_so():
    with pytest.raises(ValueError, match="`compile` must be called before `fi"):
        ENTRY.make().fit(*BATCH)


@pytest.mark.thorough
def test_a_dataset_of_unknown_length_is_not_trained_but_evaluated(model):
    unknown = dataset_of(BATCH, BATCH).filter(lambda *batch: True)
    compiled(model)
    with pytest.raises(ValueError, match="Received: x of unknown cardinality"):
        model.fit(unknown, verbose=0)
    model.fit(unknown.repeat(), steps_per_epoch=3, verbose=0)
    assert int(model.optimizer.iterations) == 3
    # Without a warning; but there is one about too few batches.
    tokens = model.evaluate(unknown, verbose=0)[1]
    assert tokens == 2 * np.count_nonzero(LABELS)
    with pytest.warns(UserWarning, match="Your input ran out of data"):
        model.evaluate(unknown, steps=3, verbose=0)


def test_a_generator_needs_a_number_of_batches(model):
    compiled(model)
    for method in (model.fit, model.evaluate):
        with pytest.raises(
            ValueError, match="or `steps` of `evaluate`.* of type generator"
        ):
            method((batch for batch in [BATCH]), verbose=0)


def test_a_list_is_read_on_and_begins_again_after_its_end(model):
    compiled(model, run_eagerly=True)
    model.fit([BATCH] * 2, epochs=3, steps_per_epoch=1, verbose=0)
    assert int(model.optimizer.iterations) == 3


class Shuffled(keras.utils.PyDataset):
    """Two batches, which the end of an epoch puts in another order, in place.

    It keeps what is read and called; the labels say which batch it is.
    """

    def __init__(self, log):
        super().__init__()
        self.log = log
        self.labels = np.stack([LABELS, np.where(LABELS, 7, 0)])

    def __len__(self):
        return 2

    def __getitem__(self, number):
        self.log.append(number)
        return INPUTS, self.labels[number]

    def on_epoch_begin(self):
        self.log.append("begin")

    def on_epoch_end(self):
        self.log.append("end")
        self.labels[:] = self.labels[::-1].copy()


def test_the_hooks_of_a_dataset_are_called_in_each_epoch():
    log = []
    batches = countable_dataset(Shuffled(log))
    epochs = [[labels.numpy() for _, labels in batches] for _ in range(2)]
    # The first batch is checked before training.
    assert log == [0, *["begin", 0, 1, "end"] * 2]
    assert [int(labels[0, 0]) for labels in epochs[0]] == [LABELS[0, 0], 7]
    np.testing.assert_array_equal(epochs[0], epochs[1][::-1])


def test_a_dataset_may_say_its_number_of_batches_as_keras_asks():
    class Numbered(Shuffled):
        __len__ = None
        num_batches = 2

    log = []
    assert len(list(countable_dataset(Numbered(log)))) == 2
    assert log == [0, "begin", 0, 1, "end"]


def test_keras_has_no_fused_attention_on_tensorflow():
    # When this fails, `MultiHeadAttention` could use it on GPUs.
    states = np.ones((2, 4, 2, 8), "float32")
    with pytest.raises(ValueError, match="not supported in tensorflow"):
        keras.ops.dot_product_attention(
            states, states, states, flash_attention=True
        )


@pytest.mark.thorough
@pytest.mark.parametrize(
    "strategy, backend",
    [("mirrored", "tensorflow"), ("mirrored", "jax"), ("one_device", "jax")],
)
def test_single_batches_and_lists_of_them_are_those_of_fit(strategy, backend):
    script = str(backend_program.FOLDER / "models" / "one_batch_on_backends.py")
    found = backend_program.found_by(script, strategy, backend)
    assert found["refused"] == 5
    assert found["predicted"] == [5, 5, 13]
    assert found["tokens"] == [19.0] * 4
    np.testing.assert_allclose(*found["losses"], rtol=1e-5)
    np.testing.assert_allclose(*found["plain losses"], rtol=1e-5)
    assert found["updates"] == [5, 5]
    assert found["weights"] < 1e-6
    assert found["weights in parts"] < 1e-6
