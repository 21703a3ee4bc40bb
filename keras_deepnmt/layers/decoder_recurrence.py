"""What layers share that replace a decoder's self-attention by a state."""

import keras
from keras import ops


class DecoderRecurrence(keras.layers.Layer):
    """Base class of layers whose cache is one vector of each hypothesis.

    Each position updates the state of the position before, so that a decoding
    step has one cost, wherever it is. `build` of a subclass sets `width`, the
    number of channels of the state.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        # The state stays in float32 from step to step under every policy.
        self.autocast = False
        self.supports_masking = True

    def check_causal(self, use_causal_mask):
        """Raises a `ValueError` unless only earlier positions are read."""
        if not use_causal_mask:
            raise ValueError(
                f"`use_causal_mask` must be True: {type(self).__name__} reads "
                "earlier positions alone. Received: use_causal_mask=False. In "
                "an encoder use MultiHeadAttention."
            )

    def init_cache(self, batch_size, max_length):
        """Creates an empty cache for incremental decoding.

        Args:
            batch_size: int or scalar tensor. Number of hypotheses.
            max_length: ignored: a cache has one size at all positions.

        Returns:
            Dict `{"state"}` of zeros `(B, 1, D)`, float32.
        """
        shape = (batch_size, 1, self.width)
        return {"state": ops.zeros(shape, dtype="float32")}

    def compute_output_shape(self, query_shape):
        return query_shape

    def get_config(self):
        # Keras' own, which a layer without arguments would otherwise lack.
        return {**super().get_config()}
