"""Several models that translate together as one."""

import math

from keras import ops

MEANS = ("arithmetic", "geometric")


class Ensemble:
    """Several models with the same vocabularies, used as one for searches.

    The probability of the next token is the weighted mean of the models'
    probabilities:

        p(y) = sum_m w_m p_m(y)                         arithmetic
        p(y) = prod_m p_m(y)^w_m / sum_v prod_m p_m(v)^w_m    geometric

    The weights w_m sum to 1. The arithmetic mean trusts a model that is sure of
    a token; the geometric one, a sum of log-probabilities, needs all of them to
    agree. The models may have different architectures and sizes. Searches,
    scoring and `Translator` use an ensemble like a model; it cannot be trained.

    Args:
        models: models of this package, with the same vocabularies.
        weights: Positive numbers, one for each model, of which only the ratios
            count. Defaults to equal ones.
        mean: `"arithmetic"` or `"geometric"`.

    Raises:
        ValueError: if there is no model, the vocabularies differ in size, a
            weight is not positive, or `mean` is unknown.

    Example:
    >>> build = keras_deepnmt.models.Transformer
    >>> members = [build(11, 13, 8, 16, 2, depth, 1) for depth in (1, 2)]
    >>> ensemble = keras_deepnmt.models.Ensemble(members, weights=[1, 3])
    >>> ensemble.weights_of_models
    [0.25, 0.75]
    """

    def __init__(self, models, weights=None, mean="arithmetic"):
        self.models = list(models)
        _check_vocabularies(self.models)
        self.weights_of_models = _normalized(weights, len(self.models))
        if mean not in MEANS:
            raise ValueError(
                f"`mean` must be one of {', '.join(map(repr, MEANS))}. "
                f"Received: mean={mean!r}"
            )
        self.mean = mean
        first = self.models[0]
        self.source_vocabulary_size = first.source_vocabulary_size
        self.target_vocabulary_size = first.target_vocabulary_size

    @property
    def max_length(self):
        """The shortest position range of the models, if any has one."""
        lengths = (model.max_length for model in self.models)
        return min((n for n in lengths if n is not None), default=None)

    @property
    def variables(self):
        """The variables of all models."""
        return [v for model in self.models for v in model.variables]

    @property
    def weights(self):
        """The variables of all models that are saved, as `Model.weights`."""
        return [v for model in self.models for v in model.weights]

    def count_params(self):
        """Returns the number of parameters of all models."""
        return sum(model.count_params() for model in self.models)

    def encode(self, source_ids):
        """Encodes the source with every model, as `Seq2Seq.encode`.

        Returns:
            The memory of each model, by its number.
        """
        return {
            str(number): model.encode(source_ids)
            for number, model in enumerate(self.models)
        }

    def init_cache(self, memory, max_length, num_beams=1):
        """Makes the caches of all models, as `Seq2Seq.init_cache`."""
        caches = {
            str(number): model.init_cache(
                memory[str(number)], max_length, num_beams
            )
            for number, model in enumerate(self.models)
        }
        return _by_part(caches)

    def decode(self, target_ids, memory, cache=None, index=None):
        """Returns the log-probabilities of the next token under the mean.

        Args:
            target_ids: int tensor `(B, T)`; with a cache `(B*K, 1)`.
            memory: dict from `encode`.
            cache: dict from `init_cache`.
            index: int scalar tensor. Position of this step.

        Returns:
            Log-probabilities `(B, T, V)`; with a cache `(log_probs, cache)`.
        """
        log_probs, caches = [], {}
        for number, model in enumerate(self.models):
            name = str(number)
            if cache is None:
                scores = model.decode(target_ids, memory[name])
            else:
                own = {
                    part: caches_of[name]
                    for part, caches_of in cache.items()
                    if name in caches_of
                }
                scores, caches[name] = model.decode(
                    target_ids, memory[name], own, index
                )
            log_probs.append(model.log_probs(scores))
        mean = self._mean(log_probs)
        return mean if cache is None else (mean, _by_part(caches))

    def log_probs(self, scores):
        """Returns `scores` unchanged: `decode` returns log-probabilities."""
        return scores

    def _mean(self, log_probs):
        pairs = list(zip(self.weights_of_models, log_probs, strict=True))
        if self.mean == "geometric":
            return ops.log_softmax(sum(w * x for w, x in pairs), axis=-1)
        weighted = [x + math.log(w) for w, x in pairs]
        return ops.logsumexp(ops.stack(weighted), axis=0)


def _by_part(caches):
    """Turns caches by model into a cache by part, with one entry per model."""
    # A model may lack a part.
    parts = {part: None for cache in caches.values() for part in cache}
    return {
        part: {
            name: cache[part] for name, cache in caches.items() if part in cache
        }
        for part in parts
    }


def _check_vocabularies(models):
    if not models:
        raise ValueError("`models` must have at least one model.")
    for side in ("source", "target"):
        sizes = [getattr(m, f"{side}_vocabulary_size") for m in models]
        if len(set(sizes)) > 1:
            raise ValueError(
                "The models of an ensemble must have the same vocabularies. "
                f"Received: {side} vocabularies of {sizes} tokens."
            )


def _normalized(weights, number):
    weights = [1.0] * number if weights is None else list(weights)
    if len(weights) != number or not all(0 < w < math.inf for w in weights):
        raise ValueError(
            f"`weights` must be {number} positive numbers, one for each model. "
            f"Received: weights={weights}"
        )
    return [weight / sum(weights) for weight in weights]
