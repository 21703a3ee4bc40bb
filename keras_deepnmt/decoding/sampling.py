"""Sampling: translations drawn at random from the model's distribution."""

from keras import ops

from keras_deepnmt.decoding.candidates import blockwise_top_k
from keras_deepnmt.decoding.greedy import IndependentSearch
from keras_deepnmt.decoding.hypotheses import (
    IMPOSSIBLE,
    flatten_beams,
    gather_beams,
    loop_length,
)
from keras_deepnmt.decoding.options import SearchOptions
from keras_deepnmt.layers.dropout import mix_bits


def sample_search(
    model,
    source_ids,
    prefix_ids=None,
    max_lengths=None,
    *,
    max_length,
    options=None,
    **search_options,
):
    """Draws translations of each sentence, `num_beams` of them.

    Each next token is drawn from the model's distribution, raised to the power
    `1 / sampling_temperature` and normalized again, of which only the
    `sampling_top_k` most probable tokens are left (Fan et al., 2018), and of
    these the fewest whose probabilities sum to at least `sampling_top_p`
    (Holtzman et al., 2020). The token is that with the largest sum of its
    log-probability and Gumbel noise, which has the same distribution.

    The noise of a token depends on the sentence, on the number of the sample,
    on the step and on `sampling_seed` alone: a sentence has the same
    translations in every batch, and on every device up to rounding.

    Args:
        model: a model of this package, of which only the methods that every
            model has are used.
        source_ids: int tensor `(B, S)`, each row ends with id 3, then 0s. A
            row of 0s only fills up the batch and has no translation.
        prefix_ids: int tensor `(B, P)`: the tokens that each translation begins
            with, filled up with 0s. A maximum length that has no room for them
            and the end id is raised, to `max_length` at most. Defaults to none.
        max_lengths: int tensor `(B,)`: maximum length of each translation, the
            end id included, in place of the one that follows from its source;
            0 where there is no other. Defaults to none.
        max_length: int or int scalar tensor. Maximum number of steps.
        options: `SearchOptions`. Defaults to `SearchOptions()`.
        **search_options: fields of `SearchOptions` that replace those of
            `options`.

    Returns:
        As `beam_search`: the samples sorted by their score, best first. Equal
        samples are repeated. `log_probs` are the model's, without temperature.

    Raises:
        ValueError: if `max_length` or a search option is too small, or
            `source_ids` does not have two dimensions.

    Example:
    >>> outputs = sample_search(model, source_ids, max_length=9, num_beams=2)
    >>> outputs["ids"].shape
    TensorShape([3, 2, 9])
    """
    options = (options or SearchOptions()).updated(**search_options)
    search = SampleSearch(model, options)
    max_length = loop_length(model, max_length)
    carried = search.begin(
        source_ids, max_length, prefix_ids=prefix_ids, max_lengths=max_lengths
    )
    return search.outputs(search.advance(carried))


class SampleSearch(IndependentSearch):
    """The stages of sampling.

    `token_ids` `(V,)` has the token of each number of the model's target
    vocabulary. Without it these are the numbers themselves.
    """

    def __init__(self, model, options, token_ids=None):
        super().__init__(model, options)
        if token_ids is None:
            token_ids = ops.arange(model.target_vocabulary_size, dtype="int32")
        self._token_ids = ops.cast(token_ids, "int32")

    def begin(self, source_ids, *arguments, **named):
        """Encodes the sources, as `SearchStages.begin`."""
        options = self._options
        keys = _sample_keys(
            source_ids, options.num_beams, options.sampling_seed
        )
        carried = super().begin(source_ids, *arguments, **named)
        return {**carried, "keys": keys}

    def choose(self, carried, log_probs, step):
        kept = _kept_log_probs(log_probs, self._options)
        noise = _gumbel_noise(carried["keys"], step, self._token_ids)
        # An impossible token stays impossible: noise is at most 22.
        return ops.cast(ops.argmax(kept + noise, axis=-1), "int32")

    def outputs(self, carried):
        """Returns the samples, best first."""
        samples = super().outputs(carried)
        scores = ops.maximum(samples["scores"], IMPOSSIBLE)
        _, order = ops.top_k(scores, self._options.num_beams)
        return {name: gather_beams(x, order) for name, x in samples.items()}


def _kept_log_probs(log_probs, options):
    """Log-probabilities `(R, V)` at the temperature of the tokens to draw from.

    The others are `IMPOSSIBLE`.
    """
    is_possible = log_probs > IMPOSSIBLE / 2
    kept = ops.where(
        is_possible, log_probs / options.sampling_temperature, IMPOSSIBLE
    )
    vocabulary_size = kept.shape[-1]
    if 0 < options.sampling_top_k < vocabulary_size:
        smallest = blockwise_top_k(kept, options.sampling_top_k)[0][:, -1:]
        kept = ops.where(kept >= smallest, kept, IMPOSSIBLE)
    return ops.cond(
        ops.less(options.sampling_top_p, 1.0),
        lambda: _nucleus(kept, options.sampling_top_p),
        lambda: kept,
    )


def _nucleus(log_probs, top_p):
    """Keeps the fewest tokens whose probabilities sum to at least `top_p`."""
    probs = ops.softmax(log_probs, axis=-1)
    falling = -ops.sort(-probs, axis=-1)
    before = ops.cumsum(falling, axis=-1) - falling
    is_needed = before < top_p
    smallest = ops.min(
        ops.where(is_needed, falling, 1.0), axis=-1, keepdims=True
    )
    return ops.where(probs >= smallest, log_probs, IMPOSSIBLE)


def _sample_keys(source_ids, num_samples, seed):
    """A number for each sample `(B * K,)`, from its sentence and the seed."""
    source_ids = ops.cast(source_ids, "int32")
    positions = ops.arange(ops.shape(source_ids)[1], dtype="int32")
    # Padding adds 0, whatever the length of the batch.
    by_token = mix_bits(mix_bits(source_ids) + positions[None])
    by_token = ops.where(ops.equal(source_ids, 0), 0, by_token)
    sentences = mix_bits(ops.sum(by_token, axis=1) + ops.cast(seed, "int32"))
    samples = ops.arange(num_samples, dtype="int32")
    return flatten_beams(mix_bits(sentences[:, None] + samples[None]))


def _gumbel_noise(keys, step, token_ids):
    """Standard Gumbel noise `(R, V)` from a hash of key, step and token."""
    keys = mix_bits(ops.bitwise_xor(keys, mix_bits(step + 1)))[:, None]
    bits = mix_bits(ops.bitwise_xor(mix_bits(token_ids[None] + keys), keys))
    # Uniform in (0, 1], and precise near 0, where the noise is large.
    uniform = (ops.abs(ops.cast(bits, "float32")) + 0.5) / 2.0**31
    return -ops.log(-ops.log1p(-ops.minimum(uniform, 1.0 - 2.0**-24)))
