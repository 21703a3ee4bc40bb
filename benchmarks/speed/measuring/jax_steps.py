"""Our training step on JAX; nothing here needs TensorFlow."""

import itertools
import time

from benchmarks.speed.measuring.training_steps import (
    SEED,
    make_transformer,
    random_batch,
)


def jax_steps(sizes, dtype="float32"):
    """Returns a function that runs our training step on Keras' JAX backend.

    The step is the compiled function that `fit` calls for a batch. The function
    `updates` takes a number of steps and waits for the last one.
    """
    import jax
    import keras

    keras.utils.set_random_seed(SEED)
    model = make_transformer(sizes, dtype)
    model.compile(keras.optimizers.Adam(1e-4))
    model.optimizer.build(model.trainable_variables)
    model.make_train_function()
    source, target, labels = map(jax.device_put, random_batch(sizes))
    inputs = {"source_ids": source, "target_ids": target}
    batches = itertools.repeat((inputs, labels))
    # `fit` too keeps the values outside the model, as the step reuses their
    # memory.
    state = tuple(
        [variable.value for variable in variables]
        for variables in (
            model.trainable_variables,
            model.non_trainable_variables,
            model.optimizer.variables,
            model.metrics_variables,
        )
    )

    def updates(count):
        nonlocal state
        for _ in range(count):
            logs, state = model.train_function(state, batches)
        jax.block_until_ready(state)
        return float(logs["loss"])

    return {"updates": updates}


def product_speed(size, count=10):
    """Returns a function that measures square matrix products in bfloat16.

    It returns operations per second: the best of five measurements of `count`
    products.
    """
    import jax
    import jax.numpy as jnp

    shape = (size, size)
    matrix = jax.random.normal(jax.random.key(SEED), shape, jnp.bfloat16)
    product = jax.jit(lambda a: a @ a)
    product(matrix).block_until_ready()  # compiles

    def seconds():
        start = time.perf_counter()
        for _ in range(count):
            result = product(matrix)
        result.block_until_ready()
        return time.perf_counter() - start

    return lambda: 2 * size**3 * count / min(seconds() for _ in range(5))
