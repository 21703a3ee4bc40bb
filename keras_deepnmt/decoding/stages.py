"""The parts that all searches share: their start, their steps, their end."""

import keras
from keras import ops

from keras_deepnmt.decoding.caches import (
    first_cache,
    growing_parts,
    make_longer,
)
from keras_deepnmt.decoding.coverage import first_coverage
from keras_deepnmt.decoding.hypotheses import output_limits
from keras_deepnmt.decoding.phrases import (
    check_beams,
    required_phrases,
)
from keras_deepnmt.xla import tuned


def at_most(length, max_length):
    """Returns `length`, or `max_length` if that is less or not much more.

    Both are integers or scalar tensors.

    Example:
    >>> at_most(80, 100), at_most(79, 100)
    (100, 79)
    """
    if ops.is_tensor(length) or ops.is_tensor(max_length):
        most = tuned.NEARLY_ALL * ops.cast(length, "float32")
        is_near = most >= ops.cast(max_length, "float32")
        return ops.where(is_near, max_length, length)
    return max_length if tuned.NEARLY_ALL * length >= max_length else length


def with_room(outputs, number, pad):
    """Gives the ids of a search's outputs room for `number` more tokens.

    `pad` is `np.pad`, or `tf.pad` in a graph.
    """
    ids = outputs["ids"]
    widths = [(0, 0)] * (len(ids.shape) - 1) + [(0, number)]
    return {**outputs, "ids": pad(ids, widths)}


class SearchStages:
    """The stages of a search.

    A search carries a nested dict of tensors from one stage to the next. The
    leading axis of each of them except scalars is B or a multiple of it,
    sentence after sentence:

    * `memory`, `static`: of the model, see `Seq2Seq`;
    * `limits`: maximum lengths, `_num_limits` of each sentence;
    * `prefix_ids`: `(B * K, P)`, if there are any;
    * `phrases`: from `required_phrases`, if there are any;
    * `num_needed`: a scalar, if not all hypotheses are needed;
    * `state`: of the search, from `_first_state`.

    A search has the hypotheses in its state under the name `_ids`, and defines
    `_first_state`, `_is_live`, `_grow` and `outputs`. The number K of
    hypotheses of each sentence is `options.num_beams`.
    """

    _ids = "ids"
    _first_cache = staticmethod(first_cache)

    def __init__(self, model, options):
        self._model = model
        self._options = options

    @property
    def _num_limits(self):
        """The number of maximum lengths of each sentence."""
        raise NotImplementedError

    def _first_state(self, limits, length, cache):
        """Returns the state before the first step.

        It has room for `length` tokens. `limits` are the maximum lengths,
        `_num_limits` of each sentence, and `cache` has the growing parts of the
        model's cache.
        """
        raise NotImplementedError

    def _by_hypothesis(self, x):
        """Gives `(B * K, ...)` the leading axes of the state."""
        return x

    def _is_live(self, state):
        """Returns whether each hypothesis goes on, sentence after sentence."""
        raise NotImplementedError

    def _grow(self, carried, state):
        """Extends every live hypothesis by one token; returns the state."""
        raise NotImplementedError

    def outputs(self, carried):
        """Returns the result of the search, as `beam_search`."""
        raise NotImplementedError

    def begin(
        self,
        source_ids,
        max_length,
        length=None,
        *,
        prefix_ids=None,
        constraint_ids=None,
        max_lengths=None,
        num_needed=None,
    ):
        """Encodes the sources; returns the carried tensors.

        The search makes at most `max_length` steps. It has room for `length` of
        them before `advance` makes more, by default for all. `num_needed` tells
        how many of the best hypotheses are needed, by default all; a beam
        search without phrases is over when it has found these. The other
        arguments are those of `beam_search`.
        """
        options = self._options
        if constraint_ids is not None:
            check_beams(options)
        limits = output_limits(
            source_ids, max_length, options, prefix_ids, max_lengths
        )
        limits = ops.repeat(limits, self._num_limits)
        memory = self._model.encode(source_ids)
        cache = self._first_cache(
            self._model, memory, max_length, length, options.num_beams
        )
        length = max_length if length is None else length
        state = self._first_state(limits, length, growing_parts(cache))
        if options.coverage_penalty:
            coverage = first_coverage(source_ids, options.num_beams)
            state["coverage"] = self._by_hypothesis(coverage)
        carried = {
            "memory": memory,
            "static": cache["static"],
            "limits": limits,
            "state": state,
        }
        if num_needed is not None and constraint_ids is None:
            carried["num_needed"] = num_needed
        if prefix_ids is not None:
            by_hypothesis = ops.repeat(prefix_ids, options.num_beams, axis=0)
            carried["prefix_ids"] = by_hypothesis
        if constraint_ids is not None:
            carried["phrases"] = required_phrases(
                ops.repeat(constraint_ids, options.num_groups, axis=0),
                limits,
                options,
                self._model.target_vocabulary_size,
            )
        return carried

    def take(self, carried, places):
        """Takes the carried tensors of some sentences, in another order.

        `carried` is what `begin` or `advance` returned, and `places` `(B',)`
        has the numbers of the sentences.
        """
        num_sentences = carried["limits"].shape[0] // self._num_limits

        def take(x):
            if not len(x.shape):
                return x
            rows, *others = x.shape
            # Not -1 as a length: an array without elements leaves it open.
            each = rows // num_sentences
            by_sentence = ops.reshape(x, (num_sentences, each, *others))
            taken = ops.take(by_sentence, places, axis=0)
            return ops.reshape(taken, (places.shape[0] * each, *others))

        return keras.tree.map_structure(take, carried)

    def advance(self, carried, length=None, most_live=0):
        """Makes steps until few sentences go on, or there is no more room.

        `carried` is what `begin` or `advance` returned, and so is the result.
        `length` is the number of steps that there is room for, by default the
        present one. At most `most_live` sentences count as few, by default
        none.
        """
        state = carried["state"]
        if length is not None:
            state = make_longer(state, ops.shape(state[self._ids])[-1], length)
        length = ops.shape(state[self._ids])[-1]
        state = ops.while_loop(
            lambda state: ops.logical_and(
                state["step"] < length,
                ops.count_nonzero(self.is_live({"state": state})) > most_live,
            ),
            lambda state: (self._grow(carried, state),),
            (state,),
        )[0]
        return {**carried, "state": state}

    def is_live(self, carried):
        """Returns for each sentence whether its search goes on: bool `(B,)`."""
        live = self._is_live(carried["state"])
        return ops.any(ops.reshape(live, (-1, self._options.num_beams)), axis=1)
