"""Beam search: the K best translations of each sentence of a batch.

One loop with caches of fixed size, written once for compiled TensorFlow, plain
TensorFlow graphs (export) and JAX. It keeps two sets of K hypotheses for each
sentence:

* live: still growing, ranked by their sum of log-probabilities;
* finished: ended with the end id, ranked by their score.

Each step takes the K best one-token extensions of the live hypotheses. Those
that end with the end id move to the finished set if their score is among its K
best; the others are the next live hypotheses. The next step's extensions fill
the places of those that ended, so a search with one beam is greedy search.
"""

from keras import ops

from keras_deepnmt.decoding.caches import growing_parts, reorder_cache
from keras_deepnmt.decoding.candidates import extend_hypotheses
from keras_deepnmt.decoding.coverage import (
    add_coverage_score,
    decode_and_cover,
)
from keras_deepnmt.decoding.hypotheses import (
    IMPOSSIBLE,
    flatten_beams,
    gather_beams,
    loop_length,
    unflatten_beams,
    write_step,
)
from keras_deepnmt.decoding.next_tokens import next_token_log_probs
from keras_deepnmt.decoding.options import SearchOptions, check_groups
from keras_deepnmt.decoding.phrases import (
    contains_all,
    follow_phrases,
    forbid_early_end,
    of_group,
)
from keras_deepnmt.decoding.ranking import (
    best_places,
    is_possible,
    keep_finished,
    score_divisor,
    still_live,
)
from keras_deepnmt.decoding.stages import SearchStages
from keras_deepnmt.masks import BEGIN_ID, END_ID, PADDING_ID


def beam_search(
    model,
    source_ids,
    prefix_ids=None,
    constraint_ids=None,
    max_lengths=None,
    *,
    max_length,
    options=None,
    **search_options,
):
    """Finds the best translations of each sentence, best first.

    The maximum length of a translation follows from the real length of its
    source, see `max_length_ratio` of `SearchOptions` (by default that length +
    50, with the end ids), and is never more than `max_length` or the model's
    position range. At that limit only the end id is allowed; it counts with
    the log-probability that the model gives to it. The translation is marked
    as truncated if the model gives another token a higher probability there.
    The padding and begin ids are never produced. The loop stops when no live
    hypothesis of any sentence can reach a better score than the worst finished
    hypothesis that is kept, or enough have finished (`patience`).

    With `constraint_ids` a hypothesis that lacks a phrase ends only at its
    limit, or where no other token may follow, or where none of its missing
    phrases has room for its remaining tokens before the limit. Hypotheses that
    lack fewer phrases rank first; among equals the better score does. So a
    phrase that has no room in a translation, or is forbidden by an option,
    changes nothing but `constraints_met`. The beams are divided among
    hypotheses that have more and fewer tokens of the phrases (Post and Vilar,
    2018).

    Args:
        model: a model of this package, of which only the methods that every
            model has are used.
        source_ids: int tensor `(B, S)`, each row ends with id 3, then 0s. A
            row of 0s only fills up the batch and has no translation.
        prefix_ids: int tensor `(B, P)`: the tokens that each translation begins
            with, filled up with 0s. A maximum length that has no room for them
            and the end id is raised, to `max_length` at most. Defaults to none.
        constraint_ids: int tensor `(B, C, P)`: phrases that each translation
            contains, somewhere and in any order, filled up with 0s. They may
            overlap in it; a phrase that is given twice occurs twice. Defaults
            to none.
        max_lengths: int tensor `(B,)`: maximum length of each translation, the
            end id included, in place of the one that follows from its source;
            0 where there is no other. Defaults to none.
        max_length: int or int scalar tensor. Maximum number of steps.
        options: `SearchOptions`. Defaults to `SearchOptions()`.
        **search_options: fields of `SearchOptions`, such as `num_beams=4` and
            `length_penalty=0.6`, that replace those of `options`.

    Returns:
        A dict, best hypothesis first along K:
        `ids` int32 `(B, K, max_length)`: tokens, the end id 3, then 0s;
        `scores` float32 `(B, K)`: see `SearchOptions`;
        `log_probs` float32 `(B, K)`: sum over the tokens and the end id;
        `truncated` bool `(B, K)`: whether it ends only because of its limit;
        and, with `constraint_ids`, `constraints_met` bool `(B, K)`: whether it
        contains all phrases.
        If fewer than K translations exist (tiny vocabularies), and in rows of
        0s, the ids are 0, the scores and sums minus infinity, and `truncated`
        is `False`.

    Raises:
        ValueError: if `max_length` or a search option is too small, or
            `source_ids` does not have two dimensions.
        UserError: if `num_groups` does not divide `num_beams`, there are
            phrases and a group has a single beam, or there is a coverage
            penalty and the model has no attention to the source.

    Example:
    >>> outputs = beam_search(model, source_ids, num_beams=2, max_length=9)
    >>> outputs["ids"].shape, outputs["scores"].shape
    (TensorShape([3, 2, 9]), TensorShape([3, 2]))
    """
    options = (options or SearchOptions()).updated(**search_options)
    search = BeamSearch(model, options)
    max_length = loop_length(model, max_length)
    carried = search.begin(
        source_ids,
        max_length,
        prefix_ids=prefix_ids,
        constraint_ids=constraint_ids,
        max_lengths=max_lengths,
    )
    return search.outputs(search.advance(carried))


class BeamSearch(SearchStages):
    """The stages of a beam search.

    Each of the G groups of beams of a sentence has a maximum length, and is
    treated like a sentence of its own.
    """

    _ids = "live_ids"

    def __init__(self, model, options):
        super().__init__(model, options)
        check_groups(options)
        self._group_size = options.num_beams // options.num_groups

    @property
    def _num_limits(self):
        return self._options.num_groups

    def _first_state(self, limits, length, cache):
        return _first_state(limits, self._group_size, length, cache)

    def _by_hypothesis(self, x):
        return unflatten_beams(x, self._group_size)

    def _is_live(self, state):
        return is_possible(state["live_log_probs"])

    def outputs(self, carried):
        """Returns the result of `beam_search`."""
        state, phrases = carried["state"], carried.get("phrases")
        found = {
            "ids": state["finished_ids"],
            "scores": _or_minus_infinity(state["finished_scores"]),
            "log_probs": _or_minus_infinity(state["finished_log_probs"]),
            "truncated": state["finished_truncated"],
        }
        if phrases is not None:
            found["constraints_met"] = ops.logical_and(
                contains_all(phrases, found["ids"]),
                is_possible(state["finished_scores"]),
            )
        num_groups = self._options.num_groups
        if num_groups == 1:
            return found
        if phrases is not None:
            phrases = of_group(phrases, 0, num_groups)
        return _join_groups(found, self._options.num_beams, phrases)

    def _grow(self, carried, state):
        """Extends every live hypothesis by one token."""
        options, limits = self._options, carried["limits"]
        scores, cache, coverage = decode_and_cover(
            self._model,
            state,
            ops.reshape(state["last_ids"], (-1, 1)),
            carried["memory"],
            {"static": carried["static"], **state["cache"]},
            state["step"],
        )  # (B * K, 1, V)
        log_probs, cut_off = next_token_log_probs(
            self._model.log_probs(scores)[:, 0],
            flatten_beams(state["live_ids"]),
            state["step"],
            ops.repeat(limits <= state["step"] + 1, self._group_size),
            options,
            carried.get("prefix_ids"),
        )  # (B * K, V), (B * K,)
        totals, parents, new_ids = self._extend(carried, state, log_probs)
        ids = gather_beams(state["live_ids"], parents)  # (B, K, M)
        cut_off = unflatten_beams(cut_off, self._group_size)
        grown = {
            "step": state["step"] + 1,
            "ids": write_step(ids, state["step"], new_ids),
            "log_probs": totals,
            "ended": ops.equal(new_ids, END_ID),
            "truncated": gather_beams(cut_off, parents),
        }
        coverage = {
            name: gather_beams(x, parents) for name, x in coverage.items()
        }
        grown["scores"] = add_coverage_score(
            totals / self._divisor(grown["step"]),
            coverage,
            options.coverage_penalty,
        )
        phrases = carried.get("phrases")
        finished = keep_finished(state, grown, phrases)
        return {
            **coverage,
            "step": grown["step"],
            "last_ids": new_ids,
            "live_ids": grown["ids"],
            "live_log_probs": still_live(
                grown,
                finished,
                limits,
                self._divisor,
                options.patience * self._group_size,
                phrases,
                carried.get("num_needed"),
            ),
            **finished,
            "cache": reorder_cache(
                growing_parts(cache),
                _parents_in_sentence(parents, options.num_groups),
                state["step"],
            ),
        }

    def _extend(self, carried, state, log_probs):
        """Chooses among the tokens that may follow, as `extend_hypotheses`."""
        phrases, followed = carried.get("phrases"), None
        step = state["step"]
        if phrases is not None:
            followed = follow_phrases(phrases, state["live_ids"], step)
            log_probs = forbid_early_end(
                log_probs, followed, step, carried["limits"]
            )
        return extend_hypotheses(
            state["live_ids"],
            state["live_log_probs"],
            log_probs,
            self._options,
            followed,
        )

    def _divisor(self, lengths):
        options = self._options
        return score_divisor(
            lengths, options.length_penalty, options.length_offset
        )


def _join_groups(found, num_beams, phrases):
    """Sorts the hypotheses of all groups of a sentence, best first."""
    found = {
        name: ops.reshape(x, (-1, num_beams, *ops.shape(x)[2:]))
        for name, x in found.items()
    }
    scores = ops.maximum(found["scores"], IMPOSSIBLE)
    order = best_places(scores, found["ids"], num_beams, phrases)
    return {name: gather_beams(x, order) for name, x in found.items()}


def _parents_in_sentence(parents, num_groups):
    """Turns beams of each group `(B * G, K / G)` into beams `(B, K)`."""
    if num_groups == 1:
        return parents
    group_size = parents.shape[1]
    by_group = ops.reshape(parents, (-1, num_groups, group_size))
    first = ops.arange(num_groups, dtype="int32")[:, None] * group_size
    return ops.reshape(by_group + first, (-1, num_groups * group_size))


def _or_minus_infinity(log_probs):
    return ops.where(is_possible(log_probs), log_probs, -float("inf"))


def _first_state(limits, num_beams, max_length, cache):
    """One live hypothesis in beam 0 of each sentence, nothing finished."""
    batch_size = ops.shape(limits)[0]
    by_beam = (batch_size, num_beams)

    no_ids = ops.full((*by_beam, max_length), PADDING_ID, dtype="int32")
    impossible = ops.full(by_beam, IMPOSSIBLE, dtype="float32")
    is_first = ops.equal(ops.arange(num_beams), 0)[None]  # (1, K)
    is_live = ops.logical_and(is_first, (limits > 0)[:, None])  # (B, K)
    return {
        # Number of tokens produced so far: scalar.
        "step": ops.convert_to_tensor(0, dtype="int32"),
        # Last token of each live hypothesis: (B, K).
        "last_ids": ops.full(by_beam, BEGIN_ID, dtype="int32"),
        # Live hypotheses and their sums. A place is empty if its sum is
        # IMPOSSIBLE, a sentence is over if all its sums are:
        # (B, K, M), (B, K).
        "live_ids": no_ids,
        "live_log_probs": ops.where(is_live, 0.0, impossible),
        # How many hypotheses have finished, also those not kept: (B,).
        "num_finished": ops.zeros((batch_size,), dtype="int32"),
        # Finished hypotheses, best score first: (B, K, M), then (B, K).
        "finished_ids": no_ids,
        "finished_scores": impossible,
        "finished_log_probs": impossible,
        "finished_truncated": ops.zeros(by_beam, dtype="bool"),
        # Cache of the model, without its static part. With a coverage penalty
        # there is also the attention to each source token: (B, K, S).
        "cache": cache,
    }
