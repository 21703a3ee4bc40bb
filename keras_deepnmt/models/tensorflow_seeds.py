"""Random seeds that differ between the replicas of a strategy."""

import tensorflow as tf

from keras_deepnmt.models.seed_variables import seed_variables

# Odd, so that no two replicas' multiples of it meet (mod 2^32).
_STRIDE = 0x9E3779B9


def spread_seeds(model):
    """Moves each replica's seeds away from the first replica's.

    Under a strategy a seed is mirrored, and all replicas would drop the same
    activations. Replica r gets the first one's seed plus r times a constant;
    all count on alike, so saving the first replica's is enough.

    Args:
        model: a built Keras model whose replicas have equal seeds.

    Example:
    >>> spread_seeds(keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1))
    """
    strategy = model.distribute_strategy
    seeds = seed_variables(model)

    @tf.function(autograph=False)
    def spread():
        context = tf.distribute.get_replica_context()
        replica = tf.cast(context.replica_id_in_sync_group, tf.int64)
        shift = tf.stack([replica * _STRIDE, 0])
        for seed in seeds:
            seed.assign(seed.value + tf.cast(shift, seed.dtype))

    if strategy.num_replicas_in_sync > 1:
        strategy.run(spread)
