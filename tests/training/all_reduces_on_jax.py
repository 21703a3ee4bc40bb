"""Makes many all-reduces between two devices of JAX; prints how many devices.

Run as a program with `KERAS_BACKEND=jax`. The products are large enough for
XLA to divide each among the threads of its pool, and the updates are started
without waiting for the ones before.
"""

import json

import jax
import numpy as np
from jax import numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from keras_deepnmt.training import make_strategy

WIDTH, ROWS, UPDATES = 256, 512, 300


@jax.jit
def update(kernel, x):
    def loss(kernel):
        h = x
        for _ in range(6):
            h = jnp.tanh(h @ kernel)
        return jnp.mean(h**2)

    return kernel - 0.1 * jax.grad(loss)(kernel)


if __name__ == "__main__":
    strategy = make_strategy("mirrored", 2)
    mesh = Mesh(np.array(jax.devices()), ("rows",))
    rng = np.random.default_rng(5)
    kernel = rng.normal(0.0, 0.05, (WIDTH, WIDTH)).astype("float32")
    x = rng.normal(size=(ROWS, WIDTH)).astype("float32")
    kernel = jax.device_put(kernel, NamedSharding(mesh, PartitionSpec()))
    x = jax.device_put(x, NamedSharding(mesh, PartitionSpec("rows")))
    for _ in range(UPDATES):
        kernel = update(kernel, x)
    found = {
        "devices": strategy.num_replicas_in_sync,
        "finite": bool(jnp.all(jnp.isfinite(kernel))),
    }
    print(json.dumps(found))
