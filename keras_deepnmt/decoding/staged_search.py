"""Searches a batch in stages: finished sentences leave it after each stage."""

import collections
import copy
from typing import NamedTuple

import keras
import numpy as np
from keras import ops

from keras_deepnmt.decoding.few_shapes import FewShapes
from keras_deepnmt.decoding.search_by_options import search, search_stages
from keras_deepnmt.decoding.stages import at_most, with_room
from keras_deepnmt.xla import tuned
from keras_deepnmt.xla.compiled import (
    compile_for,
    compiled_options,
    has_plain_graphs,
)
from keras_deepnmt.xla.replicas import num_replicas


def first_stage(source_length, max_length):
    """Returns the number of steps of a search's first stage.

    It is 1.5 times the number of source tokens, plus 8, or `max_length` where
    that is less or not much more. Nearly all searches finish within these
    steps, so that few batches need a second program.
    """
    length = int(tuned.FIRST_STAGE_FACTOR * source_length)
    return at_most(length + tuned.FIRST_STAGE_EXTRA, max_length)


def growing_lengths(length):
    """Returns the numbers of steps that a search has room for, one by one.

    Example:
    >>> growing_lengths(32), growing_lengths(56), growing_lengths(146)
    ((16, 32), (16, 56), (16, 64, 146))
    """
    lengths, short = [], tuned.SHORT_LENGTH
    while at_most(short, length) < length:
        lengths.append(short)
        short *= tuned.ROOM_GROWTH
    return (*lengths, length)


def fewer_rows(rows):
    """Returns the numbers of rows that a search goes on with, one by one.

    Example:
    >>> fewer_rows(32), fewer_rows(12), fewer_rows(8)
    ((16, 8), (8,), ())
    """
    numbers = []
    while rows > tuned.LEAST_ROWS:
        rows = max(-(-rows // 2), tuned.LEAST_ROWS)
        numbers.append(rows)
    return tuple(numbers)


def next_stage(length, max_length):
    """Returns the number of steps up to the end of the next stage.

    It is `tuned.STAGE_GROWTH` times the present one, or `max_length` where that
    is less or not much more.
    """
    return at_most(tuned.STAGE_GROWTH * length, max_length)


class SearchPlan(NamedTuple):
    """How a batch is searched.

    Attributes:
        is_compiled: whether by programs for its shape.
        rows: numbers of rows that its stages have; empty until there were many
            sentences of its shape.
        compiles_later: whether later stages may be compiled for it.
    """

    is_compiled: bool
    rows: list[int]
    compiles_later: bool


def search_name(options, room=0, **given):
    """Returns the name, for `FewShapes`, of the programs of a search.

    `room` is the least room for a translation, whatever its source. `given` has
    the optional arrays of a search, or `None` in place of one.
    """
    sizes = [
        (name, x.shape if name == "candidate_ids" else x.shape[1:])
        for name, x in sorted(given.items())
        if x is not None
    ]
    compiled = compiled_options(options=options)
    return repr((compiled, options.max_length_ratio, room, sizes))


def many_name(name):
    """Returns the name of the programs after many sentences of a shape."""
    return f"many: {name}"


class StagedSearch:
    """A compiled search in stages, with the result of `search`.

    The caches of the first stage have room for translations of common length.
    Sentences that are not finished then go on in the next stage, without the
    others and with more room. Each stage is compiled for a few numbers of rows
    only. After `MANY_SENTENCES` in batches of one shape, a larger program takes
    the place of the first stage: it starts with room for `SHORT_LENGTH` steps,
    and whenever only half of its rows go on, it continues with these alone.

    Without compilation, and under a strategy with several replicas, there is
    one stage. A plain graph, which serves all shapes, also searches what
    `few_shapes` has no room for: batches of other shapes, and then all that the
    first stage of a batch does not finish.

    Attributes:
        num_sentences: `Counter` of the sentences searched so far, by shape of
            their batches. A search that has the counts of another one goes on
            with the programs that the other one would use.
        few_shapes: the `FewShapes` that are compiled. The same holds for them.
    """

    def __init__(self, model, compiled=True):
        self._model = model
        self._has_stages = compiled and num_replicas(model) == 1
        self._whole, self._first, self._next = (
            compile_for(model, function, compiled, "search")
            for function in (search, _run_first_stage, _run_next_stage)
        )
        has_plain = has_plain_graphs(model)
        self._plain = compile_for(model, _search_all, False, "search")
        self._is_compiled, self._has_plain = compiled, has_plain
        self.num_sentences = collections.Counter()
        self.few_shapes = FewShapes()

    def for_thread(self):
        """Returns a search for another thread, with the same programs."""
        search = copy.copy(self)
        search.num_sentences = self.num_sentences.copy()
        search.few_shapes = self.few_shapes.copy()
        return search

    @property
    def num_compilations(self):
        """The number of programs that are kept."""
        functions = (self._whole, self._first, self._next, self._plain)
        return sum(function.num_compilations for function in functions)

    def __call__(
        self,
        source_ids,
        prefix_ids=None,
        constraint_ids=None,
        max_lengths=None,
        candidate_ids=None,
        num_needed=None,
        *,
        options,
        max_length,
        plan=None,
    ):
        """Translates a batch; returns a dict of arrays, as `search`.

        The arguments are those of `search`, as arrays. Another `num_needed`
        needs no other program. `plan` is what `count` has returned for the
        batch; without it the batch is counted now.
        """
        needed = options.num_beams if num_needed is None else num_needed
        given = (
            *(prefix_ids, constraint_ids, max_lengths, candidate_ids),
            np.int32(needed),
        )
        if plan is None:
            name = search_name(options, max_length)
            plan = self.count(source_ids, name)
        max_length = self._most_steps(max_length)
        if not plan.is_compiled:
            return self._search_plain(source_ids, given, options, max_length)
        program, arrays, keywords = self._first_program(
            source_ids, given, plan.rows, options, max_length
        )
        if program is self._whole:
            return program(*arrays, **keywords)
        return self._finish(
            source_ids,
            given,
            program.tensors(*arrays, **keywords),
            plan,
            options=options,
            length=keywords["lengths"][-1],
            max_length=max_length,
        )

    def _most_steps(self, max_length):
        limits = (max_length, self._model.max_length)
        return min(limit for limit in limits if limit is not None)

    def _search_plain(self, source_ids, given, options, max_length):
        return self._plain(
            source_ids, *given, np.int32(max_length), options=options
        )

    def _finish(
        self,
        source_ids,
        given,
        first,
        plan,
        *,
        options,
        length,
        max_length,
    ):
        """Searches the sentences that the first stage did not finish.

        `first` is its result, `given` are the optional arrays, and `length` is
        the number of steps that there is room for. The other arguments and the
        result are those of a call.
        """
        found, is_live, carried = first
        found = _as_arrays(found, max_length)
        rows = np.flatnonzero(keras.ops.convert_to_numpy(is_live))
        step = int(carried["state"]["step"])
        if len(rows) and step < max_length and not plan.compiles_later:
            *of_rows, candidate_ids, needed = given
            of_rows = [None if x is None else x[rows] for x in of_rows]
            outputs = self._search_plain(
                source_ids[rows],
                (*of_rows, candidate_ids, needed),
                options,
                max_length,
            )
            for name, values in outputs.items():
                found[name][rows] = values
            return found
        candidate_ids = given[-2]
        stage_rows = plan.rows
        taken = np.arange(len(source_ids))
        # Sentences go on at the end only if the model computes NaN.
        while len(rows) and step < max_length:
            # A stage may also end because few sentences go on.
            if step >= length:
                length = next_stage(length, max_length)
            half = -(-len(source_ids) // 2)
            # Not fewer than half of them, which would need more programs.
            numbers = stage_rows or [len(source_ids), half]
            number = min(n for n in numbers if len(rows) <= n <= len(taken))
            places = _filled(rows, len(taken), number)
            taken = taken[places]
            # Only the shape of the sources is used, for the report.
            outputs, is_live, carried = self._next.tensors(
                source_ids[taken],
                places.astype("int32"),
                carried,
                candidate_ids,
                _largest_below(stage_rows, number),
                options=options,
                length=length,
            )
            step = int(carried["state"]["step"])
            outputs = _as_arrays(outputs, max_length)
            for name, values in outputs.items():
                found[name][taken[: len(rows)]] = values[: len(rows)]
            is_live = keras.ops.convert_to_numpy(is_live)
            # The rows that fill up the batch had finished before.
            rows = np.flatnonzero(is_live[: len(rows)])
        return found

    def trace(
        self, source_ids, candidate_ids=None, *, options, max_length, plan
    ):
        """Traces the first program of a search, which later only compiles it.

        `source_ids` have the shape to search. The other arguments are those of
        the search.
        """
        needed = np.int32(options.num_beams)
        given = (None, None, None, candidate_ids, needed)
        program, arrays, keywords = self._first_program(
            source_ids, given, plan.rows, options, self._most_steps(max_length)
        )
        program.trace(*arrays, **keywords)

    def _first_program(
        self, source_ids, given, stage_rows, options, max_length
    ):
        """Returns the first program of a search, its arrays and options."""
        arrays = (source_ids, *given)
        keywords = {"options": options, "max_length": max_length}
        length = first_stage(source_ids.shape[1], max_length)
        if self._has_stages and stage_rows:
            keywords["lengths"] = growing_lengths(length)
            keywords["rows"] = fewer_rows(len(source_ids))
            return self._first, arrays, keywords
        if not self._has_stages or length == max_length:
            return self._whole, arrays, keywords
        return self._first, arrays, {**keywords, "lengths": (length,)}

    def count(self, source_ids, name):
        """Counts a batch; returns how it is searched, for a call.

        Its later stages have all rows, or a quarter of them, once many
        sentences of this shape have been counted. Batches that several threads
        search must be counted in their order, by one thread: otherwise other
        programs, with other rounding, would search them each time. `name` is
        what `search_name` returns for the batch.
        """
        rows, shape = len(source_ids), source_ids.shape
        if not self._is_compiled:
            return SearchPlan(not self._has_plain, [], True)
        if not self.few_shapes.use(shape, name, self._has_plain):
            return SearchPlan(False, [], False)
        fewer = max(rows // tuned.LIVE_SHARE, tuned.LEAST_ROWS)
        if self.num_sentences[shape] < tuned.MANY_SENTENCES:
            # Rows of padding are searched only to have a program compiled.
            self.num_sentences[shape] += int(source_ids.any(axis=1).sum())
        elif fewer < rows and self.few_shapes.use(shape, many_name(name)):
            return SearchPlan(True, [rows, fewer], True)
        is_full = self._has_plain and self.few_shapes.is_full
        return SearchPlan(True, [], not is_full)


def _search_all(
    model,
    source_ids,
    prefix_ids,
    constraint_ids,
    max_lengths,
    candidate_ids,
    num_needed,
    max_length,
    *,
    options,
):
    return search(
        model,
        source_ids,
        prefix_ids,
        constraint_ids,
        max_lengths,
        candidate_ids,
        num_needed,
        max_length=max_length,
        options=options,
    )


def _run_first_stage(
    model,
    source_ids,
    prefix_ids,
    constraint_ids,
    max_lengths,
    candidate_ids,
    num_needed,
    *,
    options,
    lengths,
    max_length,
    rows=(),
):
    """Searches with room for some lengths, then with fewer rows.

    `rows` are numbers of rows, one smaller than the other: as soon as not more
    sentences go on, the others leave. If too many of them go on at the last of
    the `lengths`, the search ends there, and none of them has left.
    """
    num_sentences = source_ids.shape[0]
    stages = search_stages(model, options, candidate_ids, num_sentences)
    begun = stages.begin(
        source_ids,
        max_length,
        lengths[0],
        prefix_ids=prefix_ids,
        constraint_ids=constraint_ids,
        max_lengths=max_lengths,
        num_needed=num_needed,
    )
    carried = begun
    for length in lengths:
        carried = stages.advance(carried, length, rows[0] if rows else 0)
    found, is_live = stages.outputs(carried), stages.is_live(carried)
    if not rows:
        return found, is_live, carried
    goes_on = ops.count_nonzero(is_live) > rows[0]
    found = with_room(found, max_length - lengths[-1], ops.pad)
    found = _finish_with_fewer_rows(
        stages, carried, found, rows, max_length, goes_on
    )
    return found, ops.logical_and(is_live, goes_on), carried


def _finish_with_fewer_rows(stages, carried, found, rows, max_length, goes_on):
    """Returns the result of a search that sentences leave when they are over.

    `found` is that of the sentences so far, and no step is made if `goes_on`.
    """
    places = ops.arange(ops.shape(found["scores"])[0], dtype="int32")
    for number, most_live in zip(rows, (*rows[1:], 0), strict=True):
        is_over = ops.logical_not(stages.is_live(carried))
        taken = _first_places(is_over, number)
        places = ops.take(places, taken, axis=0)
        carried = stages.take(carried, taken)
        most_live = ops.where(goes_on, number, most_live)
        carried = stages.advance(carried, max_length, most_live)
        outputs = stages.outputs(carried)
        found = {
            name: ops.scatter_update(values, places[:, None], outputs[name])
            for name, values in found.items()
        }
    return found


def _first_places(is_last, number):
    """Returns the places of some rows, those that are not last first."""
    size = is_last.shape[0]
    rank = ops.arange(size, dtype="int32")
    rank = rank + size * ops.cast(is_last, "int32")
    return ops.cast(ops.argsort(rank), "int32")[:number]


def _run_next_stage(
    model,
    source_ids,
    places,
    carried,
    candidate_ids,
    most_live,
    *,
    options,
    length,
):
    num_sentences = places.shape[0]
    stages = search_stages(model, options, candidate_ids, num_sentences)
    carried = stages.take(carried, places)
    carried = stages.advance(carried, length, most_live)
    return stages.outputs(carried), stages.is_live(carried), carried


def _largest_below(numbers, limit):
    """Returns the largest of some numbers that is below a limit, or 0."""
    return np.int32(max((n for n in numbers if n < limit), default=0))


def _filled(rows, num_rows, number):
    """Adds finished rows until there are `number` rows."""
    others = np.setdiff1d(np.arange(num_rows), rows)
    return np.concatenate([rows, others[: number - len(rows)]])


def _as_arrays(outputs, length):
    """Returns outputs as arrays, with room for `length` ids."""
    found = keras.tree.map_structure(
        lambda x: np.array(keras.ops.convert_to_numpy(x)), outputs
    )
    return with_room(found, length - found["ids"].shape[-1], np.pad)
