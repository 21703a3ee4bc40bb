"""A tokenizer as TensorFlow operations, for `tf.data` and exported graphs."""

from collections.abc import Sequence

import tensorflow as tf
import tensorflow_text

from keras_deepnmt.data.text_steps import TextStep
from keras_deepnmt.files import bytes_sha256


class GraphTokenizer(tf.Module):
    """Does in a graph what a `Tokenizer` does in Python.

    Args:
        proto: a serialized SentencePiece model.
        steps: what is done to a text before and after it.

    Example:
    >>> in_graph = GraphTokenizer(tokenizer.proto, tokenizer.steps)
    >>> in_graph.detokenize(in_graph.tokenize(tf.constant(["ein Hund"])))
    <tf.Tensor: shape=(1,), dtype=string, numpy=array([b'ein Hund'], ...)>
    """

    def __init__(self, proto: bytes, steps: Sequence[TextStep]):
        super().__init__(name="tokenizer")
        self._steps = tuple(steps)
        # TensorFlow caches the kernels of loaded functions by node name: with
        # equal names the second tokenizer of a process would be the first one.
        self._sentencepiece = tensorflow_text.SentencepieceTokenizer(
            model=proto,
            out_type=tf.int32,
            name=f"sentencepiece_{bytes_sha256(proto)}",
        )

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Segments texts `(B,)` into rows of ids, without special ids.

        A single text `()` gives a tensor of ids.
        """
        for step in self._steps:
            texts = step.before_in_graph(texts)
        return self._sentencepiece.tokenize(texts)

    def detokenize(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """Converts rows of ids without special ids to texts `(B,)`."""
        texts = self._sentencepiece.detokenize(ids)
        for step in reversed(self._steps):
            texts = step.after_in_graph(texts)
        return texts
