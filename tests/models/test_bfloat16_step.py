"""Updates in bfloat16 whose products TensorFlow's kernels compute."""

import keras
import numpy as np
import pytest

from keras_deepnmt.models import RDrop, Transformer
from keras_deepnmt.xla.autoclustering import clusters_are_compiled

pytestmark = pytest.mark.thorough(each_commit=True)
STEP = "keras_deepnmt.models.training_step.tensorflow_step"


@pytest.fixture(autouse=True)
def fast_processor(monkeypatch):
    """Whatever the processor is: without the instructions it takes longer."""
    monkeypatch.setattr(f"{STEP}.multiplies_bfloat16", lambda: True)
    if not clusters_are_compiled():
        pytest.skip("TF_XLA_FLAGS has other flags of autoclustering.")


def make_model(dtype="mixed_bfloat16", **options):
    keras.utils.set_random_seed(7)
    model = Transformer(31, 31, 16, 32, 2, 1, 1, dropout=0.1, dtype=dtype)
    model.compile(keras.optimizers.Adam(0.01), **options)
    return model


def batches(number, rows=4):
    random = np.random.default_rng(3)
    for _ in range(number):
        shape = (3, rows, 6)
        source, target, labels = random.integers(4, 31, shape).astype("int32")
        yield {"source_ids": source, "target_ids": target}, labels


def weights_of(model):
    return [np.asarray(w) for w in model.trainable_weights]


@pytest.mark.parametrize(
    "options",
    [
        {"gradient_accumulation_steps": 2, "activation_checkpointing": True},
        {"objective_terms": [RDrop(1.0)]},
    ],
    ids=["checkpointed-parts", "r-drop"],
)
def test_an_update_is_that_of_xla_in_bfloat16(options, monkeypatch):
    models = []
    for is_fast in (True, False):
        monkeypatch.setattr(f"{STEP}.multiplies_bfloat16", lambda x=is_fast: x)
        models.append(make_model(**options))
    fast, slow = models
    assert fast.is_autoclustered and not slow.is_autoclustered
    for batch in batches(3):
        losses = [m.train_on_batch(*batch, return_dict=True) for m in models]
        # A unit of bfloat16 is 2^-8 of a value.
        assert losses[0]["loss"] == pytest.approx(losses[1]["loss"], rel=2**-8)
    moved = 0.0
    for start, one, other in zip(
        weights_of(make_model()), *map(weights_of, models), strict=True
    ):
        # Adam's first updates depend on the sign of a gradient alone, so few
        # weights with gradients near zero move elsewhere.
        assert np.mean(np.abs(one - other) > 0.005) < 0.1
        moved = max(moved, np.abs(one - start).max())
    assert moved > 0.02


def test_updates_after_a_resume_are_the_same_bits():
    """The first update of a process is compiled like all others."""
    whole, resumed = make_model(), make_model()
    given = list(batches(4))
    for batch in given[:2]:
        whole.train_on_batch(*batch)
    for variables in (
        [m.variables for m in (whole, resumed)],
        [m.optimizer.variables for m in (whole, resumed)],
    ):
        for one, other in zip(*variables, strict=True):
            other.assign(one)
    for batch in given[2:]:
        for model in (whole, resumed):
            model.train_on_batch(*batch)
    assert int(resumed.optimizer.iterations) == 4
    for one, other in zip(*map(weights_of, (whole, resumed)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_each_batch_shape_has_a_graph_of_its_own(monkeypatch):
    """With open shapes twice as many clusters would be compiled for each."""
    seen = []
    step = Transformer.train_step

    def noted(self, data):
        seen.append(tuple(data[0]["source_ids"].shape))
        return step(self, data)

    monkeypatch.setattr(Transformer, "train_step", noted)
    import tensorflow as tf

    given = [batch for rows in (4, 2, 4) for batch in batches(1, rows)]
    spec = keras.tree.map_structure(
        lambda ids: tf.TensorSpec((None, None), ids.dtype), given[0]
    )
    dataset = tf.data.Dataset.from_generator(
        lambda: iter(given), output_signature=spec
    )
    number = tf.data.experimental.assert_cardinality(len(given))
    make_model().fit(dataset.apply(number), verbose=0)
    assert seen == [(4, 6), (2, 6)]


def test_a_strategy_with_one_replica_makes_the_same_updates():
    from keras_deepnmt.training import make_strategy

    models = [make_model()]
    with make_strategy("mirrored", 1).scope():
        models.append(make_model())
    assert all(model.is_autoclustered for model in models)
    for batch in batches(2):
        for model in models:
            model.train_on_batch(*batch)
    for one, same in zip(*map(weights_of, models), strict=True):
        # Only without a strategy XLA compiles the update: it is rounded
        # otherwise. An update moves a weight by up to 0.01.
        np.testing.assert_allclose(one, same, rtol=0, atol=1e-3)


def test_evaluation_is_that_of_float32_within_a_unit():
    model = make_model()
    (batch,) = batches(1)
    exact = make_model("float32")
    exact.set_weights(model.get_weights())
    expected = exact.test_on_batch(*batch, return_dict=True)
    found = model.test_on_batch(*batch, return_dict=True)
    assert found["loss"] == pytest.approx(expected["loss"], rel=2**-8)
    assert found["tokens"] == expected["tokens"]


def test_float32_and_steps_without_xla_are_as_before():
    assert not make_model("float32").is_autoclustered
    assert not make_model(jit_compile=False).is_autoclustered
    # Someone wants to see the values of tensors: no graph at all.
    assert not make_model(run_eagerly=True).is_autoclustered
