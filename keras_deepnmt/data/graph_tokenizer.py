"""A tokenizer as TensorFlow operations, for `tf.data` and exported graphs."""

import copy
from collections.abc import Sequence

import tensorflow as tf
import tensorflow_text
from sentencepiece import sentencepiece_model_pb2 as model_pb2

from keras_deepnmt.data.model_files import size_of_model
from keras_deepnmt.data.text_steps import TextStep, separator_of
from keras_deepnmt.files import bytes_sha256
from keras_deepnmt.masks import PADDING_ID, UNKNOWN_ID

# A character that no text has, see `text_steps.DropNull`.
_UNKNOWN_MARK = "\0"


class GraphTokenizer(tf.Module):
    """Does in a graph what a `Tokenizer` does in Python.

    `proto` is a serialized SentencePiece model, and `steps` are what is done to
    a text before and after it.
    """

    def __init__(self, proto: bytes, steps: Sequence[TextStep]):
        super().__init__(name="tokenizer")
        self._steps = tuple(steps)
        self._model = model_pb2.ModelProto.FromString(proto)
        self._size = size_of_model(proto)
        self._words_are_pieces = separator_of(self._steps) != ""
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
        if self._words_are_pieces:
            ids = tf.ragged.map_flat_values(
                self._sentencepiece.string_to_id,
                self.tokenize_to_pieces(texts),
            )
        else:
            ids = self._sentencepiece.tokenize(self._before(texts))
        return tf.ragged.map_flat_values(self._in_vocabulary, ids)

    def tokenize_to_pieces(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Segments texts `(B,)` into rows of pieces.

        The piece of an unknown token is its characters.
        """
        texts = self._before(texts)
        if self._words_are_pieces:
            return _words(texts)
        to_pieces = copy.copy(self._sentencepiece)  # of the same model
        to_pieces.out_type = tf.string
        return to_pieces.tokenize(texts)

    def tokenize_parts(
        self, texts: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        """Segments parts of sentences `(B,)` into rows of ids and of pieces.

        See `Tokenizer.encode_parts`.
        """
        following = "".join(step.following for step in self._steps)
        if not following:
            return self.tokenize(texts), self.tokenize_to_pieces(texts)
        texts = tf.concat([tf.strings.join([texts, following]), [following]], 0)
        rows = self.tokenize(texts), self.tokenize_to_pieces(texts)
        return tuple(map(_without_last, rows))

    def detokenize(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """Converts rows of ids without special ids to texts `(B,)`."""
        return self._after(self._sentencepiece.detokenize(ids))

    def detokenize_given(self, ids: tf.Tensor, given: tf.Tensor) -> tf.Tensor:
        """Converts rows of ids to texts, where strings stand for tokens.

        `ids` is int32 `(B, M)`, and its special ids are left out; `given` is
        strings `(B, M)`, empty where the token is meant. The texts, `(B,)`, are
        as SentencePiece would join the pieces.
        """
        spec = self._model.normalizer_spec
        surface = self._model.trainer_spec.unk_surface
        kinds = model_pb2.ModelProto.SentencePiece
        invisible = [PADDING_ID] + [
            number
            for number, piece in enumerate(self._model.pieces)
            if piece.type == kinds.CONTROL
        ]
        is_invisible = tf.reduce_any(ids[..., None] == invisible, axis=-1)
        pieces = self._sentencepiece.id_to_string(ids)
        pieces = tf.where(is_invisible, "", pieces)
        pieces = tf.where(ids == UNKNOWN_ID, _UNKNOWN_MARK, pieces)
        pieces = tf.where(given != "", given, pieces)
        texts = tf.strings.reduce_join(pieces, axis=-1)
        texts = tf.strings.regex_replace(texts, "▁", " ")
        if spec.remove_extra_whitespaces:
            texts = tf.strings.regex_replace(texts, "^ +", "")
        elif spec.add_dummy_prefix:
            texts = tf.strings.regex_replace(texts, "^ ", "")
        escaped = surface.replace("\\", r"\\")
        return self._after(tf.strings.regex_replace(texts, r"\x00", escaped))

    def _in_vocabulary(self, ids):
        if self._size == len(self._model.pieces):
            return ids
        return tf.where(ids < self._size, ids, UNKNOWN_ID)

    def _before(self, texts):
        for step in self._steps:
            texts = step.before_in_graph(texts)
        return texts

    def _after(self, texts):
        for step in reversed(self._steps):
            texts = step.after_in_graph(texts)
        return texts


def _words(texts):
    """Splits texts at each space, with the mark of a space before each word."""
    rows = tf.strings.split(tf.reshape(texts, [-1]), sep=" ")
    has_some = tf.repeat(tf.reshape(texts, [-1]) != "", rows.row_lengths())
    rows = tf.ragged.boolean_mask(rows, rows.with_flat_values(has_some))
    rows = rows.with_flat_values(tf.strings.join(["▁", rows.flat_values]))
    return rows if texts.shape.rank else rows.flat_values


def _without_last(rows):
    """Leaves out the last row, and as many values as it has of each other."""
    lengths = rows.row_lengths()[:-1]
    left = lengths - rows.row_lengths()[-1]
    rows = rows[:-1]
    places = tf.ragged.range(lengths).flat_values
    values = tf.boolean_mask(
        rows.flat_values, places < tf.repeat(left, lengths)
    )
    return tf.RaggedTensor.from_row_lengths(values, left)
