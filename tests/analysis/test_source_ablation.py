"""What must be true of source ablation."""

import keras
import numpy as np

import keras_deepnmt
from keras_deepnmt.analysis import source_ablation

V = 17


class Copying(keras.Model):
    """Predicts the source word at the same place with probability 0.9."""

    def call(self, inputs, training=None):
        source = inputs["source_ids"]
        length = inputs["target_ids"].shape[1]
        words = keras.ops.one_hot(source[:, :length], V)
        return keras.ops.log(0.9 * words + 0.1 / V)

    def log_probs(self, scores):
        return scores


def test_a_copied_word_needs_its_source_word_only():
    source = np.array([[5, 6, 7, 3], [8, 9, 3, 0]])
    inputs = {"source_ids": source, "target_ids": np.full((2, 3), 2)}
    labels = np.array([[5, 6, 7], [8, 9, 0]])
    losses = source_ablation(Copying(), inputs, labels)
    lost = np.log(0.9 + 0.1 / V) - np.log(0.1 / V)
    expected = np.zeros((2, 3, 4))
    expected[0, [0, 1, 2], [0, 1, 2]] = lost
    expected[1, [0, 1], [0, 1]] = lost
    np.testing.assert_allclose(losses, expected, atol=1e-5)


def test_it_is_the_difference_of_two_scores_of_a_model():
    model = keras_deepnmt.models.Transformer(V, V, 8, 16, 2, 1, 1, dropout=0.5)
    inputs = {
        "source_ids": np.array([[5, 6, 3]]),
        "target_ids": np.array([[2, 7]]),
    }
    labels = np.array([[7, 3]])
    losses = source_ablation(model, inputs, labels)

    def score(source):
        scores = model({**inputs, "source_ids": np.array([source])})
        log_probs = keras.ops.convert_to_numpy(model.log_probs(scores))
        return log_probs[0, [0, 1], [7, 3]]

    np.testing.assert_allclose(
        losses[0, :, 1], score([5, 6, 3]) - score([5, 1, 3]), atol=1e-5
    )
