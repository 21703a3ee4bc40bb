"""A model that translates with some of its target tokens."""

from keras import ops

from keras_deepnmt.models.ensemble import Ensemble
from keras_deepnmt.models.projected_model import ProjectedModel


def restrict_vocabulary(model, target_ids):
    """Returns a model, or an ensemble, with a part of the target vocabulary.

    `target_ids` `(W,)` are the remaining tokens, each once; the first four are
    the special ids 0 to 3.

    A search uses the result like the model. Its target ids are indices into
    `target_ids`. Its probabilities are those of the model, given that the next
    token is one of them. If the model fuses two distributions, both are
    restricted before they are fused.
    """
    shape = tuple(target_ids.shape)
    if len(shape) != 1 or shape[0] < 5:
        raise ValueError(
            "`target_ids` must have the shape (number of tokens,), with the "
            "ids 0 to 3 and at least one more. Received: shape "
            f"{shape}"
        )
    if isinstance(model, Ensemble):
        return Ensemble(
            [_Restricted(member, target_ids) for member in model.models],
            model.weights_of_models,
            model.mean,
        )
    return _Restricted(model, target_ids)


class _Restricted(ProjectedModel):
    """A single model with a part of the target vocabulary."""

    def __init__(self, model, target_ids):
        self._target_ids = ops.cast(target_ids, "int32")
        # Once for all steps of a search.
        super().__init__(model, model.projection_to(self._target_ids))
        self.target_vocabulary_size = target_ids.shape[0]

    def decode(self, target_ids, memory, cache=None, index=None):
        ids = ops.take(self._target_ids, target_ids, axis=0)
        return super().decode(ids, memory, cache, index)
