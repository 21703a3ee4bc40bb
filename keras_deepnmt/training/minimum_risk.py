"""Minimum risk training: the expected cost of translations as a loss."""

import math

import keras
from keras import ops

from keras_deepnmt.decoding import SearchOptions, sample_search
from keras_deepnmt.masks import BEGIN_ID, padding_mask
from keras_deepnmt.models import ObjectiveTerm, register_objective_term
from keras_deepnmt.training.sentence_bleu import sentence_bleu

# The length of the search is the limit.
_NO_LIMIT = 100_000


class MinimumRisk(ObjectiveTerm):
    """Trains on the expected cost of the model's own translations.

    Candidates S of each source are drawn from the model, and the reference is
    one of them (Shen et al., 2016, Equations 9 and 10):

        Q(y) = P(y | x)^alpha / sum_{y' in S} P(y' | x)^alpha
        risk = sum_{y in S} Q(y) cost(y),  cost = 1 - BLEU(y, reference)

    with the smoothed BLEU of the sentence (`training.sentence_bleu`). Each
    candidate counts once. The loss of a token is

        loss = (1 - weight) CE + weight * risk of its sentence

    Training starts from a model that has been trained as usual, with a small
    learning rate (`training.initialize_from`, `train --from-preset`).
    Differs from the paper: n-grams are those of subword tokens; longer
    sentences weigh more, by their number of tokens, so that the loss does not
    depend on how a batch is divided; the candidates are drawn anew in each
    update, without dropout, and scored with it.
    Cost: a search of `num_samples` translations, and a forward and backward
    pass of so many and the reference. Lower `batch_tokens` accordingly.

    Args:
        num_samples: int, at least 1. Translations that are drawn for each
            source. Defaults to `8`.
        alpha: float above 0. Sharpness of Q. Defaults to `0.005`.
        weight: float in [0, 1]. Weight of the risk. Defaults to `1.0`.
        temperature: float above 0. Sampling temperature. Defaults to `1.0`.
        max_length_ratio: float above 0. The longest translation that is drawn,
            relative to the longest reference of a batch. Defaults to `1.5`.

    Raises:
        ValueError: if an argument is out of range.

    Example:
    >>> MinimumRisk(num_samples=4).alpha
    0.005

    Reference:
        - [Shen et al., 2016](https://arxiv.org/abs/1512.02433).
    """

    def __init__(
        self,
        num_samples=8,
        alpha=0.005,
        weight=1.0,
        temperature=1.0,
        max_length_ratio=1.5,
    ):
        for name, value, is_right, rule in (
            ("num_samples", num_samples, num_samples >= 1, "be at least 1"),
            ("alpha", alpha, 0.0 < alpha < math.inf, "be above 0"),
            ("weight", weight, 0.0 <= weight <= 1.0, "lie in [0, 1]"),
            (
                "temperature",
                temperature,
                0.0 < temperature < math.inf,
                "be above 0",
            ),
            (
                "max_length_ratio",
                max_length_ratio,
                0.0 < max_length_ratio < math.inf,
                "be above 0",
            ),
        ):
            if not is_right:
                raise ValueError(
                    f"`{name}` must {rule}. Received: {name}={value}."
                )
        self.num_samples = num_samples
        self.alpha = alpha
        self.weight = weight
        self.temperature = temperature
        self.max_length_ratio = max_length_ratio

    def prepare(self, model, inputs):
        return inputs["source_ids"]

    def change_losses(self, model, labels, log_probs, losses, prepared):
        risk = ops.expand_dims(self.risk(model, prepared, labels), 1)
        return (1.0 - self.weight) * losses + self.weight * risk

    def draw(self, model, source_ids, references, seed):
        """Draws translations of each source.

        Args:
            model: the compiled `models.Seq2Seq`.
            source_ids: int tensor `(B, S)`.
            references: int tensor `(B, T)` of labels.
            seed: int or int scalar tensor; each draws other translations.

        Returns:
            Int32 tensor `(B, K, M)`, without gradient.
        """
        longest = _longest(ops.shape(references)[1], self.max_length_ratio)
        # Nothing of the search takes part in the gradient.
        values = [
            (variable, ops.stop_gradient(variable.value))
            for variable in model.variables
        ]
        with keras.StatelessScope(values):
            found = sample_search(
                model,
                source_ids,
                max_length=longest,
                options=SearchOptions(
                    num_beams=self.num_samples,
                    sampling=True,
                    sampling_temperature=self.temperature,
                    max_length_ratio=0,
                    max_extra_tokens=_NO_LIMIT,
                ),
                sampling_seed=seed,
            )
        return ops.stop_gradient(found["ids"])

    def risk(self, model, source_ids, references):
        """Computes the risk of each sentence.

        Args:
            model: the compiled `models.Seq2Seq`.
            source_ids: int tensor `(B, S)`.
            references: int tensor `(B, T)` of labels.

        Returns:
            Float32 tensor `(B,)` in [0, 1].
        """
        seed = ops.cast(model.updates_made(), "int32")
        drawn = self.draw(model, source_ids, references, seed)
        candidates = _with_reference(drawn, references)  # (B, K + 1, M)
        cost = 1.0 - sentence_bleu(candidates, references)
        number = self.num_samples + 1
        labels = ops.reshape(candidates, (-1, ops.shape(candidates)[2]))
        attention = model.attention_to_source
        scores = model.forward_again(
            {
                "source_ids": ops.repeat(source_ids, number, axis=0),
                "target_ids": _inputs(labels),
            }
        )
        # That of the references is for the other terms.
        model.attention_to_source = attention
        log_probs = ops.take_along_axis(
            model.log_probs(scores), ops.expand_dims(labels, -1), axis=-1
        )[..., 0]
        log_probs = ops.where(padding_mask(labels), log_probs, 0.0)
        logits = self.alpha * ops.reshape(
            ops.sum(log_probs, axis=-1), (-1, number)
        )
        logits = ops.where(_is_repeated(candidates), -1e9, logits)
        return ops.sum(ops.softmax(logits, axis=-1) * cost, axis=-1)


register_objective_term("minimum_risk", MinimumRisk)


def _longest(length, ratio):
    """Returns the longest translation to draw; an int for an int, as on JAX."""
    if isinstance(length, int):
        return max(int(length * ratio), 1)
    longest = ops.cast(ops.cast(length, "float32") * ratio, "int32")
    return ops.maximum(longest, 1)


def _inputs(labels):
    """Returns the target inputs of labels `(B, T)`."""
    before = ops.pad(labels[:, :-1], [(0, 0), (1, 0)], constant_values=BEGIN_ID)
    return ops.where(padding_mask(labels), before, 0)


def _with_reference(drawn, references):
    """Adds the references as the first candidates: `(B, K + 1, M)`."""
    drawn = ops.cast(drawn, references.dtype)
    lengths = [ops.shape(references)[1], ops.shape(drawn)[2]]
    are_known = all(isinstance(length, int) for length in lengths)
    longest = max(lengths) if are_known else ops.maximum(*lengths)
    references = ops.pad(references, [(0, 0), (0, longest - lengths[0])])
    drawn = ops.pad(drawn, [(0, 0), (0, 0), (0, longest - lengths[1])])
    return ops.concatenate([ops.expand_dims(references, 1), drawn], axis=1)


def _is_repeated(candidates):
    """Whether an earlier candidate is the same: bool `(B, K + 1)`."""
    same = ops.all(
        ops.equal(
            ops.expand_dims(candidates, 1), ops.expand_dims(candidates, 2)
        ),
        axis=-1,
    )
    number = candidates.shape[1]
    earlier = ops.arange(number)[None] < ops.arange(number)[:, None]
    return ops.any(same & earlier, axis=-1)
