"""A toy model with attention to the source, by the last token."""

from types import SimpleNamespace

import numpy as np
from keras import ops
from toy_model import ToyModel

from keras_deepnmt.layers.recording import record
from keras_deepnmt.masks import padding_mask


class AttentiveToyModel(ToyModel):
    def encode(self, source_ids):
        mask = ops.cast(padding_mask(source_ids), "float32")
        states = ops.take(self.source_table, source_ids, axis=0)
        return {**super().encode(source_ids), "states": states, "mask": mask}

    def decode(self, target_ids, memory, cache=None, index=None):
        embedded = ops.take(self.target_table, target_ids, axis=0)
        width = ops.shape(embedded)[-1]
        batch_size = ops.shape(memory["states"])[0]
        queries = ops.reshape(embedded, (batch_size, -1, width))
        logits = ops.einsum("bkd,bsd->bks", queries, memory["states"])
        weights = ops.softmax(logits + 1e9 * (memory["mask"][:, None] - 1), -1)
        layer = SimpleNamespace(path="decoder_block_1/cross_attention")
        record(layer, "weights", weights[:, None])
        return super().decode(target_ids, memory, cache, index)

    def reference_coverage(self, source, target):
        """The sum of logarithms of `target`, one number at a time."""
        source_table, target_table, _ = (
            np.asarray(variable, "float64") for variable in self.variables
        )
        states = source_table[source[source != 0]]
        attended = 0.0
        for token in [2, *target[:-1]]:
            p = np.exp(states @ target_table[token])
            attended = attended + p / p.sum()
        return np.log(np.minimum(attended, 1.0)).sum()
