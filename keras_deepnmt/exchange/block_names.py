"""What another toolkit calls the layers of a Transformer's block."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from keras_deepnmt.exchange.named_tensors import NamedTensors


@dataclasses.dataclass(frozen=True)
class BlockNames:
    """The names, inside of a block, of its layers.

    Attributes:
        attentions: those of `attention` and, in a decoder, `cross_attention`.
        projections: those of `query`, `key`, `value` and `output` in each.
        feed_forward: those of the layers `intermediate` and `output`.
        norms: those of the norms of each attention and of `feed_forward`.

    Example:
    >>> names = BlockNames({}, {}, {}, {"feed_forward": "norm"})
    >>> one = np.ones(3)
    >>> tensors = NamedTensors({"0.norm.weight": one, "0.norm.bias": one}, "a")
    >>> list(names.weights(tensors, "0", "encoder_block_1"))[0]
    'encoder_block_1/feed_forward_residual/layer_norm/gamma'
    """

    attentions: Mapping[str, str]
    projections: Mapping[str, str]
    feed_forward: Mapping[str, str]
    norms: Mapping[str, str]

    def weights(
        self,
        tensors: NamedTensors,
        theirs: str,
        ours: str,
        *,
        qkv_bias: bool = True,
        output_bias: bool = True,
        feed_forward_bias: bool = True,
    ) -> dict[str, np.ndarray]:
        """Returns the weights of a block by their paths here.

        `theirs` is the name of the block there, `ours` its path here. The flags
        say which layers have a bias there: queries, keys and values, the
        outputs of attentions, and both layers of the feed-forward network.
        """
        found = {}
        for name, attention in self.attentions.items():
            for part, projection in self.projections.items():
                found |= tensors.dense(
                    f"{theirs}.{attention}.{projection}",
                    f"{ours}/{name}/{part}",
                    output_bias if part == "output" else qkv_bias,
                )
        for part, layer in self.feed_forward.items():
            found |= tensors.dense(
                f"{theirs}.{layer}",
                f"{ours}/feed_forward/{part}",
                feed_forward_bias,
            )
        for name, norm in self.norms.items():
            found |= tensors.norm(
                f"{theirs}.{norm}", f"{ours}/{name}_residual/layer_norm"
            )
        return found
