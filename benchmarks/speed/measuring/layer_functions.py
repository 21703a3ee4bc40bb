"""The compiled functions that `layer_speed.py` times, for each kind of case."""

WAYS = ("forward", "training")


def layer_functions(layer, sizes):
    """Returns the two functions of a layer that attends to one sequence."""
    import tensorflow as tf

    shape = (sizes["batch_size"], sizes["length"], sizes["hidden_dim"])
    layer.build(shape)
    x, cotangent = _random(shape), _random(shape)
    mask = tf.ones((shape[0], 1, shape[1]), tf.bool)

    def forward(x):
        return layer(x, attention_mask=mask)

    return _compile_forward_and_training(
        forward, [x], cotangent, layer.trainable_variables
    )


def call_functions(call, sizes):
    """Returns the two functions of a layer that takes other arguments."""
    tensors = [_random(shape) for shape in call.shapes]
    # The first call builds the layer.
    cotangent = _random(call.run(call.layer, *tensors).shape)

    def forward(*tensors):
        return call.run(call.layer, *tensors)

    variables = call.layer.trainable_variables
    return _compile_forward_and_training(forward, tensors, cotangent, variables)


def encoder_functions(slots, sizes):
    """Returns the two functions of an encoder with layers in its slots."""
    model = _transformer(slots, sizes, num_decoder_layers=1)
    shape = (sizes["batch_size"], sizes["length"])
    ids = _random_ids(shape, sizes)
    cotangent = _random((*shape, sizes["hidden_dim"]))

    def forward(ids):
        return model.encode(ids)["output"]

    return _compile_forward_and_training(
        forward, [ids], cotangent, model.trainable_variables
    )


def model_functions(slots, sizes):
    """Returns the two functions of a whole model with layers in its slots."""
    model = _transformer(slots, sizes, num_decoder_layers=sizes["num_layers"])
    return _compile_forward_and_step(model, sizes)


def preset_functions(name, sizes):
    """Returns the forward pass and the training step of a preset."""
    from keras_deepnmt.zoo import create_model

    size = sizes["vocabulary_size"]
    model = create_model(name, size, size, **sizes.get("overrides", {}))
    return _compile_forward_and_step(model, sizes)


FUNCTIONS = {
    "layer": layer_functions,
    "encoder": encoder_functions,
    "model": model_functions,
    "base model": model_functions,
    "call": call_functions,
    "preset": preset_functions,
}


def _compile_forward_and_step(model, sizes):
    import keras
    import tensorflow as tf

    model.compile(keras.optimizers.Adam(1e-4))
    shape = (sizes["batch_size"], sizes["length"])
    source, target, labels = (_random_ids(shape, sizes) for _ in range(3))
    inputs = {"source_ids": source, "target_ids": target}
    forward = tf.function(
        lambda inputs: model.log_probs(model(inputs, training=False)),
        jit_compile=True,
        autograph=False,
    )
    train_step = tf.function(model.train_step, autograph=False)
    return {
        "forward": lambda: forward(inputs).numpy(),
        "training": lambda: float(train_step((inputs, labels))["loss"]),
    }


def _compile_forward_and_training(forward, inputs, cotangent, variables):
    import tensorflow as tf

    def training(cotangent, *inputs):
        sources = [each for each in inputs if each.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            # A plain sum has a constant gradient, which XLA could fold away.
            loss = tf.reduce_sum(forward(*inputs) * cotangent)
        gradients = tape.gradient(loss, [*sources, *variables])
        # The decoder's variables have no gradients; those of embeddings are
        # sparse.
        return [tf.convert_to_tensor(g) for g in gradients if g is not None]

    options = dict(jit_compile=True, autograph=False)
    forward_compiled = tf.function(forward, **options)
    training_compiled = tf.function(training, **options)
    return {
        "forward": lambda: forward_compiled(*inputs).numpy(),
        "training": lambda: training_compiled(cotangent, *inputs)[0].numpy(),
    }


def _transformer(slots, sizes, num_decoder_layers):
    from keras_deepnmt.models import Transformer

    return Transformer(
        sizes["vocabulary_size"],
        sizes["vocabulary_size"],
        sizes["hidden_dim"],
        sizes["intermediate_dim"],
        sizes["num_heads"],
        sizes["num_layers"],
        num_decoder_layers,
        **slots,
    )


def _random(shape):
    import tensorflow as tf

    return tf.random.stateless_normal(shape, (0, len(shape)))


def _random_ids(shape, sizes):
    import tensorflow as tf

    return tf.random.stateless_uniform(
        shape, (1, 2), 4, sizes["vocabulary_size"], tf.int32
    )
