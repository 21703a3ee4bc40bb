"""A model that prepares its projection to logits for the steps of a search."""

from keras_deepnmt.models.ensemble import Ensemble
from keras_deepnmt.models.seq2seq import Seq2Seq


def prepare_projection(model, num_states):
    """Prepares the projection to logits once for all steps of a search.

    Each step projects `num_states` states; `None` if their number is not known.
    A search uses the result like the model, with the same probabilities.
    """
    if isinstance(model, Ensemble):
        members = [prepare_projection(m, num_states) for m in model.models]
        return Ensemble(members, model.weights_of_models, model.mean)
    if not isinstance(model, Seq2Seq):
        return model
    project = model.repeated_projection(num_states)
    return model if project is None else ProjectedModel(model, project)


class ProjectedModel:
    """The methods of a model that searches call, with another projection.

    `project` maps decoder states `(..., D)` to logits.
    """

    def __init__(self, model, project):
        self._model = model
        self._project = project
        self.source_vocabulary_size = model.source_vocabulary_size
        self.target_vocabulary_size = model.target_vocabulary_size
        self.max_length = model.max_length
        self.encode = model.encode
        self.log_probs = model.log_probs

    def init_cache(self, memory, max_length, num_beams=1):
        """Makes the cache, as `Seq2Seq.init_cache`."""
        return self._model.init_cache(
            memory, max_length, num_beams, project=self._project
        )

    def decode(self, target_ids, memory, cache=None, index=None):
        """Scores the next tokens, as `Seq2Seq.decode`."""
        return self._model.decode(
            target_ids, memory, cache, index, project=self._project
        )
