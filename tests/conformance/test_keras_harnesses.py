"""What Keras and keras-hub check of their own layers and models holds for ours.

Their checks run as they are. What differs on purpose is listed with its reason;
a listed difference that is no longer there fails. The last test counts:

    478 of 496 properties are equal, 18 differ on purpose.
"""

import contextlib
import functools
import inspect

import catalog
import keras
import pytest
import tensorflow as tf

# The only private modules that are used. Nothing else runs these checks, and
# should one of them move, these tests must be mended and not skipped.
from keras.src import testing as keras_testing
from keras_hub.src.tests import test_case as keras_hub_testing

# XLA is left out: it takes most of the time, and other tests compile by it.
pytestmark = [
    pytest.mark.thorough,
    # Of Keras' training check: its batches come from a generator, and some
    # layers have no weights.
    pytest.mark.filterwarnings("ignore:`shuffle=True` was passed"),
    pytest.mark.filterwarnings("ignore:The model does not have any trainable"),
]

# What the checks look at, each of them for every entry of the catalogue, but
# training only for one of each class.
OF_A_LAYER = (
    *("configuration", "masking", "building", "symbolic call", "call"),
    *("mixed precision", "dtypes"),
)
OF_A_MODEL = (
    *("configuration", "call", "token embedding", "lengths", "prediction"),
    *("name", "quantization", "dtypes"),
)

# Of the classes of these layers `supports_masking` is false.
WITHOUT_MASKS = {
    "WeightNormalizedConv1D": "Its output has fewer positions, or mixes real "
    "and padded ones, as that of `keras.layers.Conv1D`.",
    "LearnedPositionEmbedding": "Its one row belongs to no sentence.",
    **dict.fromkeys(
        (
            "RotaryPositionEmbedding",
            "AttentionLinearBiases",
            "RelativePositionRepresentations",
            "RelativePositionBias",
        ),
        "Attention layers apply the masks.",
    ),
}

# What entries say that do not pass keras-hub's check of dtypes, and why.
IS_FLOAT32 = r"- float32\s+\+ float16"
HAS_FLOAT32 = r"- float16\s+\+ float32"  # in one of its layers
NO_ORTHOGONAL = "attr 'T' of bfloat16"
LOG_PROBABILITIES = "Log-probabilities are float32 under every policy."
ORTHOGONAL = (
    "In bfloat16 alone TensorFlow cannot make the orthogonal weights of "
    "`keras.layers.GRU` either."
)
OWN_TABLE = (
    "`keras.layers.ReversibleEmbedding` multiplies by its table without a "
    "cast, so that scores are float32 under mixed precision."
)
OTHER_DTYPES = {
    **dict.fromkeys(
        (
            "FineGrainedLayerAttention",
            "FineGrainedLayerAttention, scalar, norms",
        ),
        (HAS_FLOAT32, "Weights of layers and their dropout are float32."),
    ),
    **dict.fromkeys(
        (
            "SurfaceFusion, hard, attention",
            "SurfaceFusion, soft, max",
            "SurfaceFusion, gate, mean",
        ),
        (IS_FLOAT32, LOG_PROBABILITIES),
    ),
    **dict.fromkeys(
        ("RoleEncoder, of earlier tokens", "RoleInteraction"),
        (NO_ORTHOGONAL, ORTHOGONAL),
    ),
    **dict.fromkeys(
        ("transformer_tiny", "role_interaction_dense_cnn_tiny"),
        (IS_FLOAT32, OWN_TABLE),
    ),
    **dict.fromkeys(
        ("conv_seq2seq_tiny", "dense_nmt_2_tiny"),
        (IS_FLOAT32, "Scores are float32 in half precision, too."),
    ),
}

MODELS = [
    entry
    for entry in catalog.MODELS
    if entry.name
    in (
        "transformer_tiny",
        "conv_seq2seq_tiny",
        "dense_nmt_2_tiny",
        "role_interaction_dense_cnn_tiny",
    )
]
FIRST_OF_CLASS = {
    entry.name.split(",")[0]: entry for entry in reversed(catalog.LAYERS)
}


@pytest.fixture(autouse=True, scope="module")
def plain_graphs():
    """Graphs run once each, so that optimizing them takes longer than it saves.

    Numbers are no property here.
    """
    options = tf.config.optimizer.get_experimental_options()
    tf.config.optimizer.set_experimental_options(
        {"disable_meta_optimizer": True}
    )
    yield
    tf.config.optimizer.set_experimental_options(
        {"disable_meta_optimizer": False, **options}
    )


def layers():
    """One of each class; with `-m slow` all others, without training."""
    for entry in catalog.LAYERS:
        is_first = entry in FIRST_OF_CLASS.values()
        yield pytest.param(
            entry,
            is_first,
            id=catalog.identify(entry),
            marks=() if is_first else pytest.mark.slow,
        )


def of_one_dict(cls):
    """The class with inputs that may come as one dict, as `fit` has them."""

    def call(self, *inputs, **arguments):
        if inputs and isinstance(inputs[0], dict):
            inputs, arguments = (), {**inputs[0], **arguments}
        outputs = cls.__call__(self, *inputs, **arguments)
        # The generator of Keras' check takes no lists.
        return tuple(outputs) if isinstance(outputs, list) else outputs

    return type(cls.__name__, (cls,), {"__call__": call})


def of_inputs(build):
    """`build` for shapes named as the inputs are, as the check names them."""
    taken = list(inspect.signature(build).parameters)

    @functools.wraps(build)
    def build_by_inputs(*shapes, **inputs):
        if len(taken) == 1 and inputs:  # whatever its name is, as in Keras
            return build(next(iter(inputs.values())))
        named = {
            name.removesuffix("_shape") + "_shape": shape
            for name, shape in inputs.items()
        }
        return build(*shapes, **{n: named[n] for n in named if n in taken})

    return build_by_inputs


def tensors(entry):
    return keras.tree.map_structure(
        keras.ops.convert_to_tensor,
        # The generator of Keras' check takes no lists.
        keras.tree.lists_to_tuples(entry.example()),
    )


def difference(entry):
    """Asks for the failure of an entry that differs on purpose."""
    if entry.name not in OTHER_DTYPES:
        return contextlib.nullcontext()
    message, _ = OTHER_DTYPES[entry.name]
    return pytest.raises(Exception, match=message)


@pytest.mark.parametrize("entry, is_trained", list(layers()))
def test_a_layer_passes_the_check_of_keras(entry, is_trained):
    inputs = tensors(entry)
    cls = of_one_dict(type(entry.make()))

    def make(**arguments):
        layer = cls.from_config(entry.make(**arguments).get_config())
        layer.build = of_inputs(layer.build)
        layer.supports_jit = False
        return layer

    outputs = make()(**inputs, **entry.arguments)
    keras_testing.TestCase().run_layer_test(
        make,
        {},
        input_data=inputs,
        call_kwargs=entry.arguments,
        expected_output_shape=keras.tree.map_structure(
            lambda output: tuple(output.shape), outputs
        ),
        expected_output_dtype=keras.tree.map_structure(
            lambda output: "float32", outputs
        ),
        supports_masking=cls.__name__ not in WITHOUT_MASKS,
        custom_objects={cls.__name__: cls},
        run_training_check=is_trained,
    )


def test_a_layer_has_the_dtypes_that_keras_hub_asks_for(layer_entry):
    with difference(layer_entry):
        keras_hub_testing.TestCase().run_precision_test(
            layer_entry.make, {}, tensors(layer_entry)
        )


@pytest.mark.parametrize("entry", MODELS, ids=catalog.identify)
def test_a_model_passes_the_check_of_keras_hub(entry, monkeypatch):
    model = entry.make(num_encoder_layers=1)
    monkeypatch.setattr(
        type(model),
        "supports_jit",
        property(lambda model: False, lambda model, value: None),
        raising=False,
    )
    config = model.get_config()
    # The check sets the dtype, and looks for the name of the class.
    arguments = {n: config[n] for n in config if n not in ("dtype", "name")}
    # The check divides them into batches of two: one shape, one trace.
    inputs, labels = entry.example(rows=2)
    keras_hub_testing.TestCase().run_backbone_test(
        type(model),
        arguments,
        inputs,
        expected_output_shape=(*labels.shape, entry.vocabulary_sizes[1]),
        run_mixed_precision_check=False,
        run_quantization_check=False,
    )
    keras_hub_testing.TestCase().run_quantization_test(
        model, type(model), arguments, inputs
    )
    with difference(entry):
        keras_hub_testing.TestCase().run_precision_test(
            type(model), arguments, inputs
        )


@pytest.mark.thorough(each_commit=True)
def test_the_properties_are_counted():
    number = len(catalog.LAYERS) * len(OF_A_LAYER) + len(FIRST_OF_CLASS)
    number += len(MODELS) * len(OF_A_MODEL)
    differ = len(OTHER_DTYPES) + sum(
        entry.name.split(",")[0] in WITHOUT_MASKS for entry in catalog.LAYERS
    )
    assert (
        f"{number - differ} of {number} properties are equal, {differ} differ "
        "on purpose."
    ) in __doc__


def test_every_listed_difference_is_one_of_an_entry():
    names = {entry.name for entry in (*catalog.LAYERS, *MODELS)}
    assert len(MODELS) == 4
    assert set(OTHER_DTYPES) <= names
    assert set(WITHOUT_MASKS) <= set(FIRST_OF_CLASS)
