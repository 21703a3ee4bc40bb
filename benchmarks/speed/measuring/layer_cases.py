"""The cases of `layer_speed.py`: each paper's layer and what it replaces."""

from benchmarks.speed.measuring.convolutional_cases import conv_cases
from benchmarks.speed.measuring.layer_case import Case

ONE_BRANCH = {"branches": ("global",)}


def attention_layer(layer, **options):
    """Returns a function of the sizes that creates an attention layer."""

    def make(sizes):
        return _layer_class(layer)(sizes["num_heads"], **options)

    return make


def in_slots(layer, *slots, **options):
    """Returns a function of the sizes that puts a layer into slots of a model.

    `layer` is a class name, `slots` the names of the slots, `options` the
    layer's arguments; an argument that is a function is called with the sizes.
    """

    def make(sizes):
        values = {
            name: value(sizes) if callable(value) else value
            for name, value in options.items()
        }
        return {slot: _layer_class(layer)(**values) for slot in slots}

    return make


def _layer_class(layer):
    # Imported late, so that `--list` and `--help` do not load TensorFlow.
    import keras_deepnmt.layers

    return getattr(keras_deepnmt.layers, layer)


def size(name):
    """Returns a function that reads one of the sizes."""
    return lambda sizes: sizes[name]


def hybrid_cases():
    """Four branches, compared with one and with multi-head attention."""
    for fusion in ("sum", "concat", "gated_sum"):
        four = attention_layer("HybridSelfAttention", fusion=fusion)
        yield Case(
            "HybridSelfAttention",
            f"{fusion}, 4 branches",
            "1 branch",
            "layer",
            four,
            attention_layer("HybridSelfAttention", fusion=fusion, **ONE_BRANCH),
            target=1.6,
        )
        yield Case(
            "HybridSelfAttention",
            f"{fusion}, 4 branches",
            "MultiHeadAttention",
            "layer",
            four,
            attention_layer("MultiHeadAttention"),
        )


def aggregation_cases():
    """Aggregation and multi-layer attention, compared with a plain encoder."""
    for strategy in ("dense", "linear", "iterative", "hierarchical"):
        yield Case(
            "LayerAggregation",
            strategy,
            "encoder without it",
            "encoder",
            in_slots(
                "LayerAggregation",
                "encoder_aggregation",
                strategy=strategy,
                num_heads=size("num_heads"),
            ),
            target=1.15,
            of_multiply_adds=True,
        )
    yield Case(
        "MultiLayerAttention",
        "2 layers",
        "encoder without it",
        "encoder",
        in_slots(
            "MultiLayerAttention",
            "encoder_self_attention",
            num_heads=size("num_heads"),
        ),
    )
    yield Case(
        "LayerDiversity",
        "both stacks",
        "training step without it",
        "model",
        in_slots("LayerDiversity", "layer_diversity"),
    )


def fusion_cases():
    """Fusion of encoder layers and of the source surface, in a model."""
    for kind, width in (("model", 256), ("base model", 512)):
        yield Case(
            "FineGrainedLayerAttention",
            f"fine, width {width}",
            "training step without it",
            kind,
            in_slots(
                "FineGrainedLayerAttention",
                "encoder_fusion",
                num_decoder_layers=size("num_layers"),
            ),
            target=1.05,
        )
    for mode in ("hard", "soft"):
        yield Case(
            "SurfaceFusion",
            mode,
            "training step without it",
            "model",
            in_slots("SurfaceFusion", "output_fusion", mode=mode),
        )


def role_cases():
    """Role interaction on the source side."""
    for assignment in ("dense", "softmax"):
        yield Case(
            "RoleInteraction",
            f"{assignment}, 20 roles",
            "encoder without it",
            "encoder",
            in_slots(
                "RoleInteraction",
                "source_embedding_layer",
                num_roles=20,
                assignment=assignment,
            ),
        )


CASES = [
    *hybrid_cases(),
    *aggregation_cases(),
    *fusion_cases(),
    *role_cases(),
    *conv_cases(),
]
