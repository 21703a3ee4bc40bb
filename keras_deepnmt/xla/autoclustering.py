"""Products by TensorFlow's kernels, and what is between them by XLA.

XLA's products in bfloat16 on a processor are slower than those in float32.
TensorFlow's own (oneDNN) use the instructions for bfloat16 that processors have
had since 2022: four to five times as many operations per second with AMX. But
TensorFlow computes the operations between the products one by one. With
autoclustering XLA compiles these, and only these.
"""

import contextlib
import functools
import os
from collections.abc import Iterator

import numpy as np

from keras_deepnmt.xla.processor import multiplies_bfloat16

_VARIABLE = "TF_XLA_FLAGS"
# How the user chooses clusters; then nothing here is added.
_CHOICES = ("tf_xla_auto_jit", "tf_xla_ops_to_cluster", "tf_xla_cpu_global_jit")
FLAGS = (
    # Without it nothing is clustered on a processor.
    "--tf_xla_cpu_global_jit",
    # Operations that XLA fuses with others: no products.
    "--tf_xla_ops_to_cluster=FUSIBLE",
    # Smaller clusters save less time than their compilation takes: with 10 and
    # 16 the first update of a model of 4+4 layers of 128 took 21 s, with 6 and
    # 8 it took 23 s, with 2 it took 28 s, and later updates as long (no row).
    "--tf_xla_min_cluster_size=10",
    # Otherwise the first batches of each shape would be computed without XLA
    # and rounded differently: a resumed run would not end with equal weights.
    "--tf_xla_enable_lazy_compilation=false",
)
# Why `clusters_are_compiled` may be false on such a processor.
REASON = (
    "TensorFlow looked for devices before keras_deepnmt.models was imported, "
    f"or the environment variable {_VARIABLE} has flags of autoclustering"
)
# As written, and as the kernel of oneDNN.
_PRODUCTS = ("MatMul", "_MklMatMul")


def ask_for_autoclustering() -> None:
    """Sets the flags with which `autoclustering` compiles what it should.

    TensorFlow reads them when it first looks for devices, so this is called
    when the package is imported; after that it has no effect. The flags change
    nothing outside of `autoclustering`, except for programs that switch
    TensorFlow's own autoclustering on. Nothing is set on processors without
    products in bfloat16, or where the user has chosen such flags.
    """
    flags = os.environ.get(_VARIABLE, "")
    if multiplies_bfloat16() and not any(name in flags for name in _CHOICES):
        os.environ[_VARIABLE] = " ".join([flags, *FLAGS]).strip()


@functools.cache
def clusters_are_compiled() -> bool:
    """Whether the flags hold in this process, found out by a small graph."""
    import tensorflow as tf

    v1 = tf.compat.v1
    # More operations than a cluster must have, not all of one argument, which
    # TensorFlow itself joins; and a product, which must stay outside.
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, (2, 2))
        y = x
        for _ in range(16):
            y = tf.tanh(0.5 * tf.exp(y))
        y = tf.matmul(y, y)
    options = v1.ConfigProto()
    options.graph_options.optimizer_options.global_jit_level = (
        v1.OptimizerOptions.ON_1
    )
    asked = v1.RunOptions(output_partition_graphs=True)
    seen = v1.RunMetadata()
    with v1.Session(graph=graph, config=options) as session:
        zeros = np.zeros((2, 2), "float32")
        session.run(y, {x: zeros}, options=asked, run_metadata=seen)
    kinds = {node.op for part in seen.partition_graphs for node in part.node}
    return "_XlaCompile" in kinds and not kinds.isdisjoint(_PRODUCTS)


@contextlib.contextmanager
def autoclustering() -> Iterator[None]:
    """Lets TensorFlow compile clusters of operations in the block by XLA.

    Functions that were called before outside of the block are compiled anew.
    """
    import tensorflow as tf

    before = tf.config.optimizer.get_jit()
    tf.config.optimizer.set_jit("autoclustering")
    try:
        yield
    finally:
        tf.config.optimizer.set_jit(before)
