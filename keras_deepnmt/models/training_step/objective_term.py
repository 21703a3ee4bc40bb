"""The interface of one term of the training objective, and its registry."""

import inspect

import keras

from keras_deepnmt.own_code.loading import new_registry
from keras_deepnmt.own_code.lookup import find_own, make_own, own_names
from keras_deepnmt.suggestions import did_you_mean

_TERMS = new_registry()


class ObjectiveTerm:
    """Base class of terms that change the training objective.

    The loss of a batch is computed in five steps. A term overrides the methods
    of the steps that it changes; every method of this class leaves its step
    as it is.

    1. The model reads the batch. `change_inputs` may replace the inputs, for
       example by predictions; the model then reads the new inputs, and the
       first scores are not used for anything else.
    2. `prepare` computes what the term needs once per batch, for example a
       teacher's distributions.
    3. The compiled loss gives one value per token, which `change_losses` may
       change.
    4. If a term sets `needs_second_forward`, the model reads the same inputs
       again, with other dropout, and step 3 is applied to the new scores.
       `compare_forwards` then gives one more value per token. It is added to
       the sum of both forwards' losses, and the total is halved.
    5. The values of the real tokens are summed and divided by the number of
       real tokens in the global batch.

    The methods run inside the compiled step, on TensorFlow and on JAX: use
    `keras.ops`. If several terms are given, each step calls them in order.

    A term is used by name in a recipe (`training.objective`) after
    `register_objective_term`, or as an object in `Seq2Seq.compile(
    objective_terms=[...])`. A term has no weights. To be saved with a model, it
    must be registered, and keep every argument of its constructor in an
    attribute of the same name.

    Attributes:
        needs_second_forward: whether `compare_forwards` is called. Defaults
            to `False`.
        needs_attention: whether `change_losses` reads
            `model.attention_to_source`, the attention weights `(B, N, T, S)`
            of the decoder blocks, in order, in the forward that gave its
            `log_probs`. Defaults to `False`.
        needs_random_numbers: whether the model gets a
            `keras.random.SeedGenerator`, `model.sampling_generator`, from which
            the term must draw. Defaults to `False`.
        is_saved: whether the term is saved in the model's compile
            configuration. Defaults to `True`.

    Example:
    >>> class LengthBonus(keras_deepnmt.models.ObjectiveTerm):
    ...     def __init__(self, weight=0.1):
    ...         self.weight = weight
    ...
    ...     def change_losses(self, model, labels, log_probs, losses, prepared):
    ...         return losses - self.weight
    >>> model.compile("adam", objective_terms=[LengthBonus(0.2)])
    """

    needs_second_forward = False
    needs_attention = False
    needs_random_numbers = False
    is_saved = True

    def check(self, model):
        """Raises a `ValueError` if the term cannot be used with the model.

        Called by `compile`.

        Args:
            model: `models.Seq2Seq`, not compiled yet.
        """

    def change_inputs(self, model, inputs, scores):
        """Returns the inputs that the model must read instead (step 1).

        Args:
            model: the compiled `models.Seq2Seq`; `model.updates_made()` is the
                number of updates before this one.
            inputs: dict `{"source_ids": (B, S), "target_ids": (B, T)}`.
            scores: float tensor `(B, T, V)` of the first forward.

        Returns:
            Dict of the same shapes; `inputs` itself for no change.
        """
        return inputs

    def prepare(self, model, inputs):
        """Computes what `change_losses` needs, once per batch (step 2).

        Args:
            model: the compiled `models.Seq2Seq`.
            inputs: dict `{"source_ids": (B, S), "target_ids": (B, T)}`.

        Returns:
            Anything; passed to `change_losses` as `prepared`.
        """
        return None

    def change_losses(self, model, labels, log_probs, losses, prepared):
        """Changes the losses of the tokens of one forward (step 3).

        Args:
            model: the compiled `models.Seq2Seq`.
            labels: int tensor `(B, T)`; 0 is padding.
            log_probs: float32 tensor `(B, T, V)`, natural logarithms.
            losses: float32 tensor `(B, T)` in nats.
            prepared: what `prepare` returned.

        Returns:
            Float32 tensor `(B, T)`. Values at padding are ignored.
        """
        return losses

    def compare_forwards(self, model, labels, first, second):
        """Compares the distributions of two forwards (step 4).

        Args:
            model: the compiled `models.Seq2Seq`.
            labels: int tensor `(B, T)`; 0 is padding.
            first: float32 tensor `(B, T, V)`, natural logarithms.
            second: the same of the second forward.

        Returns:
            Float32 tensor `(B, T)`, added to the sum of both forwards' losses.
        """
        raise NotImplementedError

    def get_config(self):
        """Returns the constructor's arguments, for saving."""
        arguments = inspect.signature(type(self)).parameters
        return {name: getattr(self, name) for name in arguments}

    @classmethod
    def from_config(cls, config):
        """Makes a term from the dict that `get_config` returned."""
        return cls(**config)


def register_objective_term(name, term_class):
    """Makes a term available to recipes under a name, and to saved models.

    A recipe then names it with its options:
    `training: {objective: {length_bonus: {weight: 0.2}}}`.

    Args:
        name: string. The name in recipes.
        term_class: subclass of `models.ObjectiveTerm`.

    Raises:
        ValueError: if another class has the name, or `term_class` is not a
            subclass of `models.ObjectiveTerm`.

    Example:
    >>> class LengthBonus(keras_deepnmt.models.ObjectiveTerm):
    ...     def change_losses(self, model, labels, log_probs, losses, prepared):
    ...         return losses - 0.1
    >>> keras_deepnmt.models.register_objective_term("bonus_doc", LengthBonus)
    """
    if not (
        isinstance(term_class, type) and issubclass(term_class, ObjectiveTerm)
    ):
        raise ValueError(
            "`term_class` must be a subclass of `models.ObjectiveTerm`. "
            f"Received: term_class={term_class!r}."
        )
    known = _TERMS.get(name, term_class)
    # The same class defined again, as in a notebook, replaces the old one.
    paths = [f"{c.__module__}.{c.__qualname__}" for c in (known, term_class)]
    if paths[0] != paths[1]:
        raise ValueError(
            f"`name` must not be taken. Received: name={name!r}, which is "
            f"{paths[0]}. Use another name."
        )
    _TERMS[name] = term_class
    # A class that was registered with Keras before keeps its saved name.
    if keras.saving.get_registered_name(term_class) == term_class.__name__:
        keras.saving.register_keras_serializable(
            package="keras_deepnmt.objective", name=name
        )(term_class)


def make_objective_term(name, /, **options):
    """Makes a term from its name and its constructor's arguments.

    The name is a registered one, or that of a class in a file of the user.
    Raises a `ValueError` for an unknown name and names the nearest one.
    """
    own = find_own(name, ObjectiveTerm, _TERMS)
    if own is not None:
        return make_own(own, options)
    if name not in _TERMS:
        hint = did_you_mean(name, [*_TERMS, *own_names(ObjectiveTerm)])
        hint = hint or " Register it by `models.register_objective_term`."
        raise ValueError(f'Unknown objective term "{name}".{hint}')
    return _TERMS[name](**options)
