"""Guided alignment: attention to the source that follows word alignments."""

import math

import numpy as np
from keras import ops

from keras_deepnmt.layers.recording import usual_alignment_block
from keras_deepnmt.masks import BEGIN_ID, END_ID
from keras_deepnmt.models.training_step.objective_term import ObjectiveTerm

# Smaller attention counts as this value, so that no loss is infinite.
_LEAST = 1e-9


class GuidedAlignment(ObjectiveTerm):
    """Teaches the attention of one decoder block to align words.

    With the probability a[t, s] that source word s and target word t are
    translations of each other, and the attention w[t, s] of a decoder block to
    the source, the mean of its heads (Chen et al., 2016),

        loss[t] = CE[t] - weight sum_s a[t, s] log w[t, s]

    It is the attention that `analysis.align_words` reads, and with it all that
    needs alignments: replaced unknown words, kept markup, hover in the page.
    Differs from the paper: the links may also be the probabilities of a model
    that is learned from the training text. Garg et al. (2019) guide one head;
    here it is the mean, which is what alignments are read from.
    Cost: no further forward pass.

    Args:
        alignments: `models.AlignmentModel`, or an object with such a method
            `posteriors(source_ids, labels)`. `None` if the inputs have them:
            `alignments`, `(B, T, S)`, of which a target token's links share
            its probability, sum_s a[t, s] = 1, or are none.
        weight: float, at least 0. Defaults to `0.05`.
        layer: int. Decoder block, from 1. Defaults to the one that
            `align_words` reads: the last but one, or the last of two.

    Raises:
        ValueError: if `weight` is negative or not finite; by `compile`, if the
            model has no such block or no attention to the source; by `fit`, if
            `alignments` is `None` and the inputs have none either.

    Example:
    >>> from keras_deepnmt.training import learn_alignment_model
    >>> pairs = [([4, 5], [6, 7]), ([4], [6])]
    >>> alignments = learn_alignment_model(pairs, 8, 8)
    >>> GuidedAlignment(alignments, weight=0.1).weight
    0.1

    Reference:
        - [Chen et al., 2016](https://arxiv.org/abs/1607.01628).
        - [Garg et al., 2019](https://arxiv.org/abs/1909.02074).
    """

    is_saved = False
    needs_attention = True

    def __init__(self, alignments=None, weight=0.05, layer=None):
        if not 0.0 <= weight < math.inf:
            raise ValueError(
                "`weight` must be finite and not negative. Received: "
                f"weight={weight}."
            )
        self.alignments = alignments
        self.weight = weight
        self.layer = layer

    def check(self, model):
        ids = np.array([[BEGIN_ID, END_ID]], "int32")
        with model.attention_recorder():
            model({"source_ids": ids, "target_ids": ids}, training=False)
        self._block(model)

    def prepare(self, model, inputs):
        return inputs

    def change_losses(self, model, labels, log_probs, losses, prepared):
        links = self._links(prepared, labels)
        weights = ops.cast(self._block(model), "float32")
        # Over the heads, and the branches of an attention that has some.
        axes = tuple(range(1, len(weights.shape) - 2))
        mean = ops.mean(weights, axis=axes)  # (B, T, S)
        surprise = -ops.log(ops.maximum(mean, _LEAST))
        guide = ops.sum(ops.stop_gradient(links) * surprise, axis=-1)
        return losses + self.weight * guide

    def _links(self, inputs, labels):
        """Returns the probability of each link, `(B, T, S)`."""
        if self.alignments is not None:
            return self.alignments.posteriors(inputs["source_ids"], labels)
        if "alignments" not in inputs:
            raise ValueError(
                "`GuidedAlignment` needs `alignments`, or inputs with them: "
                '{"source_ids", "target_ids", "alignments"}. Received: '
                f"alignments=None and inputs {sorted(inputs)}."
            )
        links = ops.cast(inputs["alignments"], "float32")
        number = ops.sum(links, axis=-1, keepdims=True)
        return links / ops.maximum(number, 1.0)

    def _block(self, model):
        attention = model.attention_to_source
        layer = self.layer
        if layer is None:
            layer = usual_alignment_block(len(attention))
        if not 1 <= layer <= len(attention):
            raise ValueError(
                "`GuidedAlignment` needs a decoder block with attention to the "
                f"source, `layer` 1 to {len(attention)}. Received: "
                f"layer={layer}, {type(model).__name__} with "
                f"{len(attention)} such blocks."
            )
        return attention[layer - 1]
