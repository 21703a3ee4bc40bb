"""Translates for a server with a run, or a model of the package."""

from collections.abc import Mapping, Sequence

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

    Args:
        translator: the translator.
        max_tokens: the number of tokens of the longest sentence.
        tasks: functions by the names of tasks; each is called with the
            translator and rows. Defaults to none.
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
        self._translator = translator
        self._max_tokens = min(max_tokens, translator.max_source_length)
        self.most_hypotheses = translator.num_beams
        # A translator computes two batches at a time where it has two cores.
        self.batch_size = 2 * translator.batch_size
        self._state = translator.search_state
        self._graph = None

    def warm_up(self) -> None:
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
        if keras.config.backend() == "tensorflow":
            # The graphs of an export, for what is asked for more rarely.
            self._graph = ServingGraph(translator)
            self.predict(Call("score"), [("a", "a")])
            self.predict(Call("translate_given"), [("a", "a", ("",), 0)])

    def _search_padding(self, rows, length):
        # It is over before its first step.
        padding = np.full((rows, length), PADDING_ID, "int32")
        self._translator.search(padding)

    def lengths(self, texts: Sequence[str]) -> list[int]:
        translator = self._translator
        ids = translator.source_tokenizer.encode(translator.tagged(texts))
        return [len(row) + 1 for row in ids]

    def translate(
        self, number: int, texts: Sequence[str]
    ) -> list[list[Translation]]:
        translator = self._translator
        translator.search_state = self._state
        nbest = translator.translate_nbest(list(texts), number)
        return [list(map(Translation.of, found)) for found in nbest]

    def predict(self, call: Call, rows: Sequence[tuple]) -> list[dict]:
        if call.signature not in ("serving_default", "translate_nbest"):
            return self._run_graph(call, rows)
        number = call.num_hypotheses or self.most_hypotheses
        if call.signature == "serving_default":
            number = 1
        translator = self._translator
        options = translator.options
        if call.length_penalty is not None:
            # It needs no other program.
            translator.options = options.updated(
                length_penalty=call.length_penalty
            )
        try:
            translator.search_state = self._state
            nbest = translator.translate_nbest([row[0] for row in rows], number)
        finally:
            translator.options = options
        return [nbest_row(call, found, number) for found in nbest]

    def run_task(self, task: Task, rows: Sequence) -> list:
        self._translator.search_state = self._state
        return self.tasks[task.name](self._translator, rows)

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
