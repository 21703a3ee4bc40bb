"""What must be true of `compile` and `fit`: a tiny model learns its pairs, an
update depends on real tokens alone, layers' losses count as means, and
`val_loss` is the plain loss of a token over the whole set."""

import gc

import catalog
import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_deepnmt.losses import LabelSmoothedCrossEntropy
from keras_deepnmt.models import Seq2Seq
from keras_deepnmt.models.training_step.training_state import update_count

ENTRY = catalog.MODELS[1]
ONE_LAYER = {"num_encoder_layers": 1, "num_decoder_layers": 1}


@keras.saving.register_keras_serializable(package="test_training_step")
class ConstantLoss(keras.layers.Layer):
    """Diversity slot whose loss has a gradient that is known: one."""

    def build(self, layer_states_shape):
        self.value = self.add_weight(name="value", shape=())

    def call(self, layer_states, padding_mask=None):
        self.add_loss(keras.ops.cast(self.value, "float32"))
        return layer_states[-1]


@keras.saving.register_keras_serializable(package="test_training_step")
class ConstantSum(ConstantLoss):
    """Adds its constant once for each real position, and is told the side."""

    def __init__(self, reduction="mean", positions=None, **kwargs):
        super().__init__(**kwargs)
        self.reduction = reduction
        self.positions = positions

    def call(self, layer_states, padding_mask=None):
        real = keras.ops.sum(keras.ops.cast(padding_mask, "float32"))
        self.add_loss(self.value * real)
        return layer_states[-1]

    def get_config(self):
        options = {"reduction": self.reduction, "positions": self.positions}
        return {**super().get_config(), **options}


def small(**options):
    """A model without dropout, and with a layer a side unless said."""
    return ENTRY.make(**{"dropout": 0.0, **ONE_LAYER, **options})


def compiled(optimizer="sgd", weights=None, run_eagerly=True, **options):
    """A model that trains operation by operation, unless asked otherwise."""
    model = small(**options)
    if weights is not None:
        model.set_weights(weights)
    model.compile(optimizer, run_eagerly=run_eagerly)
    return model


def padded(batch, more_source, more_target, more_rows):
    inputs, labels = batch
    rows = (0, more_rows)
    inputs = {
        "source_ids": np.pad(inputs["source_ids"], (rows, (0, more_source))),
        "target_ids": np.pad(inputs["target_ids"], (rows, (0, more_target))),
    }
    return inputs, np.pad(labels, (rows, (0, more_target)))


def dataset_of(*batches):
    ids = tf.TensorSpec((None, None), tf.int32)
    dataset = tf.data.Dataset.from_generator(
        lambda: iter(batches),
        output_signature=({"source_ids": ids, "target_ids": ids}, ids),
    )
    return dataset.apply(tf.data.experimental.assert_cardinality(len(batches)))


def token_losses(model, batch):
    inputs, labels = batch
    log_probs = np.asarray(model.log_probs(model(inputs)))
    picked = np.take_along_axis(log_probs, labels[..., None], -1)[..., 0]
    return -picked[labels != 0]


@pytest.mark.thorough
def test_a_tiny_model_learns_eight_pairs():
    inputs, labels = ENTRY.example(rows=8, seed=5)
    model = ENTRY.make(dropout=0.0, hidden_dim=32, intermediate_dim=64)
    model.compile(
        keras.optimizers.Adam(0.01),
        loss=LabelSmoothedCrossEntropy(0.0),
        # Compiling would take longer than all updates.
        jit_compile=False,
    )
    history = model.fit(inputs, labels, batch_size=8, epochs=80, verbose=0)
    assert history.history["loss"][-1] < 0.1
    assert model.num_compilations == 1


def test_an_update_is_the_same_compiled_and_operation_by_operation():
    batch = ENTRY.example()
    eager = compiled(keras.optimizers.SGD(0.5))
    compared = compiled(
        keras.optimizers.SGD(0.5), eager.get_weights(), run_eagerly=False
    )
    first, second = (
        model.fit(
            dataset_of(batch), validation_data=dataset_of(batch), verbose=0
        ).history
        for model in (eager, compared)
    )
    assert first.keys() == second.keys()
    for name, values in first.items():
        np.testing.assert_allclose(values, second[name], rtol=1e-5)
    for one, other in zip(
        eager.get_weights(), compared.get_weights(), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-6)


def num_graphs():
    gc.collect()
    return sum(
        isinstance(found, tf.__internal__.FuncGraph)
        for found in gc.get_objects()
    )


@pytest.mark.thorough
def test_the_graph_of_a_step_is_freed_with_its_model():
    def graphs_with_and_after_a_model():
        model = small()
        model.compile("sgd", jit_compile=False)
        model.fit(dataset_of(ENTRY.example()), verbose=0)
        found = num_graphs()
        del model
        return found, num_graphs()

    # The first model of a process also makes objects that stay for all.
    _, before = graphs_with_and_after_a_model()
    with_model, after = graphs_with_and_after_a_model()
    assert with_model > before
    assert after <= before


def test_padding_does_not_change_an_update():
    batch = ENTRY.example()
    first = compiled(keras.optimizers.SGD(0.5))
    second = compiled(keras.optimizers.SGD(0.5), first.get_weights())
    first.fit(dataset_of(batch), verbose=0)
    second.fit(dataset_of(padded(batch, 4, 3, 2)), verbose=0)
    for one, other in zip(
        first.get_weights(), second.get_weights(), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_an_update_is_the_gradient_of_the_mean_over_real_tokens():
    inputs, labels = ENTRY.example()
    model = compiled(keras.optimizers.SGD(1.0))
    before = [np.array(weight) for weight in model.trainable_variables]
    with tf.GradientTape() as tape:
        log_probs = model.log_probs(model(inputs, training=True))
        losses = LabelSmoothedCrossEntropy(0.1).call(labels, log_probs)
        mean = tf.reduce_sum(losses) / np.count_nonzero(labels)
    gradients = tape.gradient(mean, model.trainable_variables)
    model.fit(inputs, labels, batch_size=len(labels), verbose=0)
    for old, new, gradient in zip(
        before, model.trainable_variables, gradients, strict=True
    ):
        expected = old - tf.convert_to_tensor(gradient)
        np.testing.assert_allclose(new, expected, atol=1e-5)


@pytest.mark.parametrize("loss_layer", [ConstantLoss, ConstantSum])
def test_the_losses_of_layers_count_as_means(loss_layer):
    model = compiled(keras.optimizers.SGD(0.25), layer_diversity=loss_layer())
    layers = [model.encoder_diversity, model.decoder_diversity]
    before = [float(layer.value) for layer in layers]
    model.fit(dataset_of(ENTRY.example()), verbose=0)
    for layer, value in zip(layers, before, strict=True):
        np.testing.assert_allclose(layer.value, value - 0.25, atol=1e-6)


def test_val_loss_is_the_plain_loss_of_a_token_over_the_whole_set():
    batches = [
        ENTRY.example(rows=4, source_length=7, target_length=5, seed=1),
        ENTRY.example(rows=2, source_length=5, target_length=11, seed=2),
    ]
    model = compiled("adam")
    history = model.fit(
        dataset_of(batches[0]), validation_data=dataset_of(*batches), verbose=0
    ).history
    losses = np.concatenate([token_losses(model, batch) for batch in batches])
    np.testing.assert_allclose(
        history["val_loss"][-1], losses.mean(), rtol=1e-5
    )
    assert history["val_tokens"][-1] == len(losses)


def test_the_logged_loss_is_smoothed_and_a_mean_over_tokens():
    inputs, labels = batch = ENTRY.example()
    model = compiled(keras.optimizers.SGD(0.0))
    history = model.fit(dataset_of(batch, batch), verbose=0).history
    log_probs = np.asarray(model.log_probs(model(inputs)))
    losses = LabelSmoothedCrossEntropy(0.1).call(labels, log_probs)
    expected = np.sum(losses) / np.count_nonzero(labels)
    np.testing.assert_allclose(history["loss"][0], expected, rtol=1e-5)
    assert history["tokens"][0] == 2 * np.count_nonzero(labels)


def test_a_loss_with_its_own_call_is_trained_on_as_it_says():
    class Doubled(LabelSmoothedCrossEntropy):
        def call(self, labels, log_probs):
            return 2.0 * super().call(labels, log_probs)

    inputs, labels = ENTRY.example()
    model = small()
    scores = model(inputs)
    sums = []
    for loss in (Doubled(0.1), LabelSmoothedCrossEntropy(0.1)):
        model.compile("sgd", loss)
        sums.append(float(model.sum_token_losses(labels, scores, True)[0]))
    assert sums[0] == pytest.approx(2.0 * sums[1], rel=1e-5)


def test_compilations_are_counted_by_shape():
    batch = ENTRY.example()
    model = compiled("sgd")
    model.fit(
        dataset_of(batch, padded(batch, 2, 0, 0), batch), epochs=2, verbose=0
    )
    assert model.num_compilations == 2
    assert int(model.optimizer.iterations) == 6


def test_compile_alone_is_complete():
    model = small()
    model.compile("adam")
    assert model.token_loss.label_smoothing == 0.1
    model.compile("adam", loss=LabelSmoothedCrossEntropy(0.0))
    assert model.token_loss.label_smoothing == 0.0


def test_clipping_acts_on_the_mean_gradient():
    inputs, labels = ENTRY.example()
    model = compiled(keras.optimizers.SGD(1.0, global_clipnorm=1e-3))
    before = model.get_weights()
    model.fit(inputs, labels, batch_size=len(labels), verbose=0)
    moved = [
        np.square(new - old).sum()
        for new, old in zip(model.get_weights(), before, strict=True)
    ]
    np.testing.assert_allclose(np.sqrt(np.sum(moved)), 1e-3, rtol=1e-2)


def test_a_model_without_encode_says_so():
    with pytest.raises(NotImplementedError):
        Seq2Seq.encode(None, None)


def test_accumulated_gradients_make_the_update_of_the_whole_batch():
    batch = ENTRY.example(rows=7)
    first = compiled(keras.optimizers.SGD(0.5))
    second = small()
    second.set_weights(first.get_weights())
    second.compile(
        keras.optimizers.SGD(0.5),
        run_eagerly=True,
        gradient_accumulation_steps=3,
    )
    for model in (first, second):
        history = model.fit(dataset_of(batch), epochs=2, verbose=0).history
        assert history["tokens"] == [np.count_nonzero(batch[1])] * 2
        assert int(model.optimizer.iterations) == 2
    for one, other in zip(
        first.get_weights(), second.get_weights(), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_accumulation_is_saved_with_the_model(tmp_path):
    model = small()
    model.compile("sgd", gradient_accumulation_steps=3)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.gradient_accumulation_steps == 3


def test_the_other_options_of_compile_are_saved_with_the_model(tmp_path):
    model = small(dtype="mixed_float16")
    model.compile("sgd", run_eagerly=True, auto_scale_loss=False)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.run_eagerly
    assert isinstance(again.optimizer, keras.optimizers.SGD)


@pytest.mark.thorough
def test_the_loss_scale_and_the_counts_are_saved_with_the_model(tmp_path):
    model = small(dtype="mixed_float16")
    model.compile("adam", run_eagerly=True)
    model.fit(*ENTRY.example(), epochs=3, verbose=0)
    model.optimizer.dynamic_scale.assign(64.0)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert update_count(again) == update_count(model) == 3
    for old, new in zip(
        model.optimizer.variables, again.optimizer.variables, strict=True
    ):
        np.testing.assert_array_equal(old, new, err_msg=old.path)


def test_a_model_that_is_compiled_again_goes_on_counting():
    model = compiled("sgd", dtype="mixed_float16")
    model.optimizer.batch_count.assign(3)
    model.optimizer.dynamic_scale.assign(64.0)
    number = len(model.optimizer.variables)
    model.compile(model.optimizer, run_eagerly=True)
    assert update_count(model) == 3
    assert float(model.optimizer.dynamic_scale) == 64.0
    assert len(model.optimizer.variables) == number
    # Keras makes another scale for an optimizer that is given without one.
    optimizer = model.optimizer.inner_optimizer
    optimizer.iterations.assign(2)
    model.compile(optimizer, run_eagerly=True)
    assert update_count(model) == 2


@pytest.mark.parametrize("has_scale", [False, True])
def test_an_optimizer_that_accumulates_is_refused(has_scale):
    optimizer = keras.optimizers.SGD(0.1, gradient_accumulation_steps=2)
    if has_scale:
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    config = keras.optimizers.serialize(optimizer)
    model = small()
    for given in (optimizer, config):
        with pytest.raises(
            ValueError, match=r"of the optimizer .* `compile\(grad.*=2\)`"
        ):
            model.compile(given)
    assert not model.compiled


def test_accumulation_over_less_than_one_part_is_refused():
    with pytest.raises(ValueError, match="gradient_accumulation_steps=0"):
        small().compile("sgd", gradient_accumulation_steps=0)


def test_the_last_rows_of_arrays_are_trained_in_the_shape_of_the_others():
    inputs, labels = ENTRY.example(rows=7)
    model = compiled("sgd")
    history = model.fit(
        inputs,
        labels,
        batch_size=3,
        validation_data=(inputs, labels),
        verbose=0,
    ).history
    assert model.num_compilations == 1
    assert int(model.optimizer.iterations) == 3
    assert history["tokens"] == history["val_tokens"]
    assert history["tokens"] == [np.count_nonzero(labels)]


def test_the_last_rows_of_arrays_can_be_split_off_for_validation():
    inputs, labels = batch = ENTRY.example(rows=7)
    model = compiled("sgd")
    history = model.fit(
        inputs, labels, batch_size=3, validation_split=0.3, verbose=0
    ).history
    assert history["tokens"] == [np.count_nonzero(labels[:4])]
    assert history["val_tokens"] == [np.count_nonzero(labels[4:])]
    with pytest.raises(ValueError, match="validation_split=0.3"):
        model.fit([batch], validation_split=0.3, verbose=0)


@pytest.mark.parametrize(
    "kind, method",
    [
        # Replaced in tensorflow_step.py and tensorflow_replicas.py of
        # models/training_step, and called in training/weight_average.py.
        (keras.Model, "_maybe_symbolic_build"),
        (keras.optimizers.Optimizer, "_all_reduce_sum_gradients"),
        (keras.optimizers.Optimizer, "_get_variable_index"),
    ],
)
def test_keras_still_has_the_private_methods_that_are_replaced(kind, method):
    assert callable(getattr(kind, method))
