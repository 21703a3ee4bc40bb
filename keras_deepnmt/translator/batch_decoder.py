"""Searches and scores rows of token ids in batches, with a compiled model."""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import keras
import numpy as np

from keras_deepnmt.data.shortlists import Shortlists
from keras_deepnmt.data.tags import without_beginning
from keras_deepnmt.decoding.few_shapes import FewShapes
from keras_deepnmt.decoding.hypotheses import longest_output
from keras_deepnmt.decoding.options import SearchOptions
from keras_deepnmt.decoding.scoring import score_targets
from keras_deepnmt.decoding.staged_search import (
    SearchPlan,
    StagedSearch,
    many_name,
    search_name,
)
from keras_deepnmt.masks import BEGIN_ID, PADDING_ID, UNKNOWN_ID
from keras_deepnmt.threads import num_cores, results_in_order
from keras_deepnmt.translator.batches import (
    BatchLimits,
    CandidateTokens,
    Shape,
    choose_shapes,
    length_batches,
    most_rows,
    padded_batch,
    padded_length,
    padded_rows,
)
from keras_deepnmt.translator.given_text import find_given, text_with_given
from keras_deepnmt.translator.requests import GivenRows
from keras_deepnmt.translator.results import (
    Asked,
    Hypothesis,
    TargetScore,
    no_probabilities,
)
from keras_deepnmt.xla import tuned
from keras_deepnmt.xla.compiled import (
    PreparedShapes,
    compile_for,
    has_plain_graphs,
)
from keras_deepnmt.xla.replicas import num_replicas


class BatchDecoder:
    """Searches and scores batches of few sizes and few lengths.

    Missing rows of a batch are filled with padding.

    Attributes:
        limits: the limits of a batch.
        batches_at_once: number of batches to compute in parallel: 2 if the
            model is compiled and runs on a processor of several cores, else 1.
            A single batch of a small model is divided into two.
        num_compilations: number of programs kept.
    """

    def __init__(
        self,
        model,
        target_tokenizer,
        limits: BatchLimits,
        max_source_length: int,
        compiled: bool = True,
        shortlists: Shortlists | None = None,
    ):
        self.model = model
        self.target_tokenizer = target_tokenizer
        self.limits = limits
        self.max_source_length = max_source_length
        self._is_compiled = compiled
        self._search = StagedSearch(model, compiled)
        self._candidates = CandidateTokens(
            shortlists, model.target_vocabulary_size
        )
        # With plain graphs every batch has the shape that it needs.
        self._has_few_shapes = compiled and num_replicas(model) == 1
        self._chosen: Mapping[int, Shape] = {}
        self._shapes = PreparedShapes(self._has_few_shapes)
        self._score_targets = compile_for(
            model, score_targets, purpose="scoring"
        )
        self._score_plain = compile_for(model, score_targets, False)
        self._scored_shapes = FewShapes()
        is_on_cpu = keras.distribution.list_devices()[0].startswith("cpu")
        self.batches_at_once = (
            min(tuned.BATCHES_AT_ONCE, num_cores())
            if self._has_few_shapes and is_on_cpu
            else 1
        )
        num_weights = sum(math.prod(x.shape) for x in model.variables)
        self._num_parts = (
            self.batches_at_once if num_weights < tuned.FEW_WEIGHTS else 1
        )

    def for_thread(self) -> "BatchDecoder":
        """Returns a decoder for another thread, with the same programs.

        It computes one batch at a time.
        """
        decoder = copy.copy(self)
        decoder.batches_at_once = decoder._num_parts = 1
        decoder._chosen = {}
        decoder._search = self._search.for_thread()
        decoder._candidates = copy.copy(self._candidates)
        decoder._scored_shapes = self._scored_shapes.copy()
        return decoder

    @property
    def num_compilations(self) -> int:
        functions = (self._search, self._score_targets, self._score_plain)
        return sum(function.num_compilations for function in functions)

    @property
    def state(self) -> dict[str, list[list]]:
        """What later searches depend on, in terms of JSON.

        `num_sentences` has for each shape its rows, its length and the
        sentences searched so far, and `shapes` those that are compiled with
        what for, see `StagedSearch`; `scored` has those of scoring.
        """
        return {
            "num_sentences": [
                [*shape, number]
                for shape, number in self._search.num_sentences.items()
            ],
            "shapes": [
                [*shape, name] for shape, name in self._search.few_shapes.used
            ],
            "scored": [
                [*shape, name] for shape, name in self._scored_shapes.used
            ],
        }

    @state.setter
    def state(self, state: Mapping[str, Sequence[Sequence]]) -> None:
        self._search.num_sentences.clear()
        self._search.num_sentences.update(
            {
                (rows, length): number
                for rows, length, number in state["num_sentences"]
            }
        )
        self._search.few_shapes.used = [
            ((rows, length), name) for rows, length, name in state["shapes"]
        ]
        # A state for searches alone changes nothing for scoring.
        if "scored" in state:
            self._scored_shapes.used = [
                (tuple(shape), name) for *shape, name in state["scored"]
            ]

    def steady_state(
        self, options: SearchOptions, given: Mapping[str, np.ndarray]
    ) -> dict[str, list[list]]:
        """A `state` that does not depend on what was searched.

        `given` are the optional arrays of the searches, for any rows.

        It is that after many sentences of each common length, in batches that
        are full; there is no room for more shapes. So a search from this state
        has the same results in every process, and few programs are kept.
        """
        name = _name(options, given)
        names = (name, many_name(name))
        largest = self.limits.batch_size
        rows = dict.fromkeys(
            padded_rows(number, largest)
            for number in (largest, largest // 2, 16, 4, 1)
            if 0 < number <= largest
        )
        lengths = dict.fromkeys(
            padded_length(length, self.max_source_length)
            for length in range(1, self.max_source_length + 1, 8)
        )
        shapes: dict[Shape, None] = {}
        for number in rows:
            for length in lengths:
                most = self._most_sources(length, options)
                shapes.setdefault(Shape(min(number, most), length))
        chosen = list(shapes)[: tuned.MOST_PROGRAMS // len(names)]
        return {
            "num_sentences": [
                [*shape, tuned.MANY_SENTENCES] for shape in chosen
            ],
            "shapes": [[*shape, each] for shape in chosen for each in names],
        }

    def translations_of(
        self,
        rows: Sequence[Sequence[int]],
        options: SearchOptions,
        asked: Asked,
        given: GivenRows,
        on_progress: Callable[[int], None] | None = None,
        finished: list[list[list[Hypothesis]]] | None = None,
    ) -> list[list[Hypothesis]]:
        """Searches source rows in batches; returns the translations of each.

        These are those `asked` for, sorted, best first. `given` has their
        prefixes, phrases and maximum lengths. `on_progress` gets the number of
        rows of each batch. The results of each batch are added to `finished`;
        for those that it has at first, nothing is searched. It must be of a
        call with the same rows.
        """
        batches = self._source_batches(rows, options, given)
        sources = [[rows[place] for place in places] for places in batches]
        if finished is None:
            finished = []
        _check_finished(finished, batches)
        if given.is_empty:
            needed = [given.of(places).token_ids() for places in batches]
            self._prepare(sources, needed, options, len(finished))
        searches = (
            self._begin(batch, options, asked, given.of(places))
            for batch, places in zip(sources, batches, strict=True)
        )
        return self._in_order_of_rows(batches, searches, on_progress, finished)

    def scores_of(
        self,
        rows: Sequence[Sequence[int]],
        labels: Sequence[Sequence[int]],
        on_progress: Callable[[int], None] | None = None,
    ) -> list[TargetScore]:
        """Scores a given target for each source row, in batches.

        `on_progress` gets the number of rows of each batch.
        """
        batches = self._pair_batches(rows, labels)
        calls = (
            self._begin_scoring(
                [rows[place] for place in places],
                [labels[place] for place in places],
            )
            for places in batches
        )
        return self._in_order_of_rows(batches, calls, on_progress, [])

    def _in_order_of_rows(self, batches, calls, on_progress, finished):
        """Calls a function for each batch; lists the results of its rows.

        The results of batches that are not in `finished` are added to it.
        """
        results = [None] * sum(map(len, batches))
        at_once = min(self.batches_at_once, max(1, len(batches)))
        known = len(finished)
        # All are begun: the later ones depend on what was begun before.
        calls = (
            partial(finished.__getitem__, number) if number < known else call
            for number, call in enumerate(calls)
        )
        by_batch = results_in_order(calls, at_once)
        for number, (places, found) in enumerate(
            zip(batches, by_batch, strict=True)
        ):
            for place, result in zip(places, found, strict=True):
                results[place] = result
            if number >= known:
                finished.append(found)
            if on_progress is not None:
                on_progress(len(places))
        return results

    def _source_batches(
        self,
        rows: Sequence[Sequence[int]],
        options: SearchOptions,
        given: GivenRows,
    ) -> list[np.ndarray]:
        """Groups source rows, given by number, for `_begin`.

        `given` has the prefixes, phrases and maximum lengths of translations.
        """
        room = np.array(given.least_room(), "int64")
        batches = length_batches(
            list(map(len, rows)),
            self._rows_of_part(len(rows)),
            self.limits.batch_tokens,
            [
                self._search_tokens(len(row), options, least)
                for row, least in zip(rows, room.tolist(), strict=True)
            ],
        )
        by_batch = [[rows[place] for place in places] for places in batches]
        if self._has_few_shapes:
            shapes = [
                self._least_shape(sources, options, int(room[places].max()))
                for sources, places in zip(by_batch, batches, strict=True)
            ]
            self._chosen = choose_shapes(
                list(zip(map(len, batches), shapes, strict=True)),
                lambda length: self._most_sources(length, options),
                self.limits.compilation_padding,
            )
        self._candidates.plan(
            by_batch, (given.of(places).token_ids() for places in batches)
        )
        return batches

    def _rows_of_part(self, num_rows):
        """The number of rows that a batch may have, of `num_rows` rows in all.

        Rows that would be a single batch are divided among the cores.
        """
        largest = self.limits.batch_size
        if num_rows > largest:
            return largest
        largest = math.ceil(largest / self._num_parts)
        return padded_rows(math.ceil(num_rows / self._num_parts), largest)

    def _pair_batches(
        self, rows: Sequence[Sequence[int]], labels: Sequence[Sequence[int]]
    ) -> list[np.ndarray]:
        """Groups pairs of rows, given by number, for `_begin_scoring`."""
        return length_batches(
            list(map(max, map(len, rows), map(len, labels))),
            self.limits.batch_size,
            self.limits.batch_tokens,
        )

    def search(
        self,
        source_ids: np.ndarray,
        options: SearchOptions,
        plan: SearchPlan | None = None,
        num_needed: int | None = None,
        **given: np.ndarray | None,
    ) -> dict[str, np.ndarray]:
        """Searches the translations of an array of ids `(B, S)`.

        `plan` and `num_needed` are as in `StagedSearch`, and `given` are the
        optional arrays of `decoding.search`. The result is that of
        `decoding.search`.
        """
        max_length = longest_output(source_ids.shape[1], options)
        max_length = max(max_length, _room_for(given))
        if plan is None:
            plan = self._search.count(source_ids, _name(options, given))
        self._shapes.wait_for(source_ids.shape)
        return self._search(
            source_ids,
            options=options,
            max_length=max_length,
            plan=plan,
            num_needed=num_needed,
            **given,
        )

    def _prepare(
        self,
        batches: Sequence[Sequence[Sequence[int]]],
        needed: Sequence[Sequence[Sequence[int]]],
        options: SearchOptions,
        num_finished: int,
    ) -> None:
        """Compiles programs for some batches while others are searched.

        The first batch to search is compiled by its own search. It is traced
        before the others, since Python traces one at a time. Those before it
        are finished. `needed` are the rows of ids that the tokens of each
        batch must contain.
        """
        calls = {}
        for number, rows in enumerate(batches):
            candidate_ids = self._candidates.of(rows, needed[number])
            shape, plan = self._plan(
                self._shape(rows, options),
                options,
                {"candidate_ids": candidate_ids},
            )
            is_finished = number < num_finished
            if plan.is_compiled and shape not in calls and not is_finished:
                calls[shape] = partial(
                    self._call_with_padding,
                    shape=shape,
                    candidate_ids=candidate_ids,
                    options=options,
                    plan=plan,
                )
        others = [
            shape
            for shape in list(calls)[1:]
            if not self._shapes.is_known(shape)
        ]
        if others:
            call_first = next(iter(calls.values()))
            call_first(self._search.trace)
        for shape in others:
            # A search of padding is over before its first step.
            self._shapes.prepare(shape, partial(calls[shape], self._search))

    def _call_with_padding(self, function, shape, candidate_ids, options, plan):
        """Calls a function of sources with padding of a shape."""
        function(
            np.full(shape, PADDING_ID, "int32"),
            candidate_ids=candidate_ids,
            options=options,
            max_length=longest_output(shape[1], options),
            plan=plan,
        )

    def _plan(self, shape, options, given, rows=()):
        """Returns the shape in which rows are searched, and how.

        `shape` is their own one, and `given` has their optional arrays.
        """
        name = _name(options, given)
        if self._is_compiled:
            shape = self._search.few_shapes.choose(shape, name)
        source_ids = padded_batch(rows, *shape)
        return shape, self._search.count(source_ids, name)

    def _begin(
        self,
        rows: Sequence[Sequence[int]],
        options: SearchOptions,
        asked: Asked,
        given: GivenRows,
    ) -> Callable[[], list[list[Hypothesis]]]:
        """Returns the search of source rows, which another thread may run.

        The search returns the translations of each row that are `asked` for,
        sorted, best first. They have the prefixes, phrases and maximum lengths
        in `given`. It raises a `UserError` if the model computes NaN, or the
        options allow no phrases. The searches must be begun in the order of
        their batches.
        """
        own = self._shape(rows, options, max(given.least_room()))
        candidate_ids = self._candidates.of(rows, given.token_ids())
        longest = self.model.max_length
        optional = {
            "candidate_ids": candidate_ids,
            **given.arrays(own.rows, longest),
        }
        shape, plan = self._plan(own, options, optional, rows)
        search = partial(
            self.search,
            padded_batch(rows, *shape),
            options,
            plan,
            asked.num_needed,
            candidate_ids=candidate_ids,
            **given.arrays(shape[0], longest),
        )

        def hypotheses():
            outputs = search()
            return [
                self._hypotheses_of(
                    {name: x[row] for name, x in outputs.items()},
                    asked,
                    given.prefixes[row],
                    given.constraints[row],
                    given.tags[row],
                )
                for row in range(len(rows))
            ]

        return hypotheses

    def _begin_scoring(
        self, rows: Sequence[Sequence[int]], labels: Sequence[Sequence[int]]
    ) -> Callable[[], list[TargetScore]]:
        """Returns the scoring of rows, which another thread may run.

        It scores a given target, which ends with the end id, for each row, and
        raises a `UserError` if the model computes NaN.
        """
        previous = [[BEGIN_ID, *row[:-1]] for row in labels]
        tokens = padded_length(max(map(len, [*rows, *labels])))
        shape = (
            padded_rows(len(rows), self._most_rows(tokens)),
            padded_length(max(map(len, rows)), self.max_source_length),
            padded_length(max(map(len, labels)), self.model.max_length),
        )
        function = self._score_plain
        if self._is_compiled:
            shape = self._scored_shapes.choose(shape, "scoring")
            has_plain = has_plain_graphs(self.model)
            if self._scored_shapes.use(shape, "scoring", has_plain):
                function = self._score_targets
        size, source_length, length = shape

        def scores():
            log_probs = function(
                padded_batch(rows, size, source_length),
                padded_batch(previous, size, length),
                padded_batch(labels, size, length),
            )
            return [
                self._target_score(row, values[: len(row)].tolist())
                for row, values in zip(labels, log_probs, strict=False)
            ]

        return scores

    def _target_score(self, row, log_probs):
        if np.isnan(log_probs).any():
            raise no_probabilities(self.model)
        tokens = tuple(self.target_tokenizer.pieces(row))
        return TargetScore(tokens, tuple(log_probs), sum(log_probs))

    def _hypotheses_of(self, outputs, asked, prefix, phrases, tag):
        """Lists the translations of a sentence: its outputs, what was given."""
        places = np.flatnonzero(np.isfinite(outputs["scores"]))
        if not len(places):
            raise no_probabilities(self.model)
        if not phrases and (asked.number == 1 or not asked.distinct):
            places = places[: asked.number]  # the texts of others are not read
        ids = [
            tuple(tokens[tokens != PADDING_ID].tolist())
            for tokens in outputs["ids"][places]
        ]
        found = [find_given(tokens, prefix, phrases) for tokens in ids]
        # The search knows ids alone: phrases may have no place for their text.
        order = sorted(range(len(ids)), key=lambda n: not found[n].is_all)
        texts = self.target_tokenizer.decode([ids[number] for number in order])
        return asked.of(
            Hypothesis(
                without_beginning(
                    self._text_of(ids[number], found[number], text), tag
                ),
                float(outputs["scores"][place]),
                float(outputs["log_probs"][place]),
                ids[number],
                bool(outputs["truncated"][place]),
                constraints_met=found[number].is_all,
                given=tuple(found[number].pieces.items()),
            )
            for number, place, text in zip(
                order, places[order], texts, strict=True
            )
        )

    def _text_of(self, ids, found, text):
        """The text of a translation, with the characters that were given."""
        if any(ids[place] == UNKNOWN_ID for place in found.pieces):
            given = found.pieces.items()
            return text_with_given(self.target_tokenizer, ids, given)
        return text

    def _search_tokens(self, length, options, least=0):
        """Tokens that a source counts as: padded, or its output if longer.

        `least` is the room that the output needs at least.
        """
        padded = padded_length(length, self.max_source_length)
        longest = max(longest_output(padded, options), padded_length(least))
        return max(padded, min(longest, self.model.max_length or longest))

    def _shape(self, rows, options, least=0):
        """The shape in which a batch of sources is searched."""
        shape = self._least_shape(rows, options, least)
        chosen = self._chosen.get(shape.length, shape)
        most = self._most_sources(chosen.length, options, least)
        return chosen if shape.rows <= chosen.rows <= most else shape

    def _least_shape(self, rows, options, least=0):
        """The shape that a batch of sources has on its own."""
        longest = max(map(len, rows))
        length = padded_length(longest, self.max_source_length)
        most = self._most_sources(longest, options, least)
        return Shape(padded_rows(len(rows), most), length)

    def _most_sources(self, length, options, least=0):
        """The number of rows that a batch of sources of a length may have."""
        return self._most_rows(self._search_tokens(length, options, least))

    def _most_rows(self, tokens):
        """The number of rows of some tokens each that a batch may have."""
        return most_rows(
            tokens, self.limits.batch_size, self.limits.batch_tokens
        )


def _check_finished(finished, batches):
    sizes = list(map(len, batches))[: len(finished)]
    if list(map(len, finished)) != sizes:
        raise ValueError(
            "`finished` must have the results of the first batches of these "
            f"sentences, {sizes}. Received: {list(map(len, finished))}"
        )


def _name(options, given):
    return search_name(options, _room_for(given), **given)


def _room_for(given):
    """The room that the optional arrays of a search need at least."""
    room = 0
    if given.get("prefix_ids") is not None:
        room = given["prefix_ids"].shape[1] + 1
    if given.get("max_lengths") is not None:
        room = max(room, padded_length(int(given["max_lengths"].max())))
    return room
