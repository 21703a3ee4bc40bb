"""Translates for a server with a run, or a model of the package."""

import contextlib
import math
import queue
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np

from keras_deepnmt.errors import UserError
from keras_deepnmt.masks import PADDING_ID
from keras_deepnmt.server.engine import (
    Engine,
    Task,
    TaskFunction,
    Translation,
)
from keras_deepnmt.server.signatures import (
    Call,
    as_inputs,
    as_rows,
    nbest_row,
)
from keras_deepnmt.server.warm_up_shapes import warm_up_shapes
from keras_deepnmt.serving.clients import run_signature
from keras_deepnmt.serving.serving_graph import ServingGraph
from keras_deepnmt.translator import Translator
from keras_deepnmt.xla import tuned


class TranslatorEngine(Engine):
    """Translates with a run, a preset folder or a model of the package.

    `max_tokens` is the number of tokens of the longest sentence. `tasks` has
    functions by the names of tasks; each is called with the translator, rows,
    and the language of the task, if it has one.
    """

    def __init__(
        self,
        translator: Translator,
        max_tokens: int,
        tasks: Mapping[str, TaskFunction] | None = None,
    ):
        # Those of a request are marked, or refused, instead of a warning.
        translator = translator.replaced(on_truncated=lambda numbers: None)
        # All programs are compiled before: padding would save nothing.
        translator.compilation_padding = 0
        self.tasks = tasks or {}
        self.tags = translator.training_tags
        self._translator = translator
        self._max_tokens = min(max_tokens, translator.max_source_length)
        self.most_hypotheses = translator.num_beams
        self.batch_size = translator.batch_size
        # Each computes one batch at a time.
        translators = translator.for_threads()
        self.num_threads = len(translators)
        self._free: queue.SimpleQueue = queue.SimpleQueue()
        for each in translators:
            self._free.put(each)
        self._state = translator.search_state
        self._graph = None

    @property
    def completes(self) -> bool:
        # By a graph of TensorFlow.
        return keras.config.backend() == "tensorflow"

    def warm_up(self, is_stopped: Callable[[], bool] = lambda: False) -> None:
        translator, batch_size = self._translator, self._translator.batch_size
        shapes = []
        if translator.compiled:
            shapes = warm_up_shapes(
                batch_size, self._max_tokens, tuned.MOST_PROGRAMS
            )
        # As after many sentences: those that are over leave a batch.
        counts = [[*shape, tuned.MANY_SENTENCES] for shape in shapes]
        used = []
        for shape in shapes:
            if is_stopped():
                return
            # Each has a program, though some count as two.
            translator.search_state = {"num_sentences": counts, "shapes": []}
            self._search_padding(*shape)
            used += translator.search_state["shapes"]
        # No place is left for another program: clients would wait while it is
        # compiled.
        unused = [[0, 0, ""]] * (tuned.MOST_PROGRAMS - len(used))
        self._state = {"num_sentences": counts, "shapes": [*used, *unused]}
        translator.search_state = self._state
        # Too many rows for any program: the plain graph, which translations of
        # unusual length need, too.
        self._search_padding(2 * batch_size, 8)
        self.translate(self.most_hypotheses, ["a"])
        if shapes:
            # As under load: the memory that this takes is kept.
            self._search_at_once(max(shapes, key=math.prod))
        if keras.config.backend() == "tensorflow":
            # The graphs of an export, for what is asked for more rarely.
            self._graph = ServingGraph(translator)
            self.predict(Call("score"), [("a", "a")])
            self.predict(Call("translate_given"), [("a", "a", ("",), 0)])

    def _search_padding(self, rows, length):
        # It is over before its first step.
        padding = np.full((rows, length), PADDING_ID, "int32")
        self._translator.search(padding)

    def _search_at_once(self, shape):
        def search(_):
            with self._free_translator() as translator:
                translator.search(np.full(shape, PADDING_ID, "int32"))

        with ThreadPoolExecutor(self.num_threads) as threads:
            list(threads.map(search, range(self.num_threads)))

    @contextlib.contextmanager
    def _free_translator(self):
        """Gives a translator to one thread."""
        translator = self._free.get()
        try:
            # Each batch is searched as if it were the first one.
            translator.search_state = self._state
            yield translator
        finally:
            self._free.put(translator)

    def lengths(self, texts: Sequence[str]) -> list[int]:
        translator = self._translator
        ids = translator.source_tokenizer.encode(translator.tagged(texts))
        return [len(row) + 1 for row in ids]

    def translate(
        self, number: int, texts: Sequence[str]
    ) -> list[list[Translation]]:
        with self._free_translator() as translator:
            nbest = translator.translate_nbest(list(texts), number)
        return [list(map(Translation.of, found)) for found in nbest]

    def predict(self, call: Call, rows: Sequence[tuple]) -> list[dict]:
        if call.signature not in ("serving_default", "translate_nbest"):
            return self._run_graph(call, rows)
        number = call.num_hypotheses or self.most_hypotheses
        if call.signature == "serving_default":
            number = 1
        with self._free_translator() as translator:
            options = translator.options
            if call.length_penalty is not None:
                # It needs no other program.
                translator.options = options.updated(
                    length_penalty=call.length_penalty
                )
            try:
                nbest = translator.translate_nbest(
                    [row[0] for row in rows], number
                )
            finally:
                translator.options = options
        return [nbest_row(call, found, number) for found in nbest]

    def run_task(self, task: Task, rows: Sequence) -> list:
        given = () if task.language is None else (task.language,)
        with self._free_translator() as translator:
            return self.tasks[task.name](translator, rows, *given)

    def _run_graph(self, call, rows):
        if self._graph is None:
            raise UserError(
                f"{call.signature} needs Keras on TensorFlow. Received: "
                f"KERAS_BACKEND={keras.config.backend()}"
            )
        inputs = as_inputs(call, rows)
        if call.signature == "translate_given":
            inputs = {
                "num_hypotheses": self.most_hypotheses,
                "length_penalty": self._translator.length_penalty,
                **inputs,
            }
        function = self._graph.signatures[call.signature]
        specs = {spec.name: spec for spec in function.input_signature}
        return as_rows(run_signature(function, specs, inputs, call.signature))
