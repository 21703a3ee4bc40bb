"""The models of a server, by their names and by their languages."""

import contextlib
import re
from collections.abc import Callable, Sequence
from typing import Any

from keras_deepnmt.data.directions import Direction
from keras_deepnmt.errors import UserError
from keras_deepnmt.server.batch_queue import BatchQueue, Job
from keras_deepnmt.server.engine import Engine, Task
from keras_deepnmt.server.metrics import ModelMetrics
from keras_deepnmt.server.request_limits import RequestLimits
from keras_deepnmt.server.signatures import Call

_LANGUAGE = re.compile(r"[a-zA-Z]{2,3}(?:[-_][a-zA-Z0-9]{2,8})*")
_NAMED_PAIR = re.compile(r"(?:^|[._-])([a-z]{2,3})[_-]([a-z]{2,3})$")


class Version:
    """One version of a model, with the queue of its sentences.

    A batch waits for more sentences for `wait_s` seconds. Without `metrics`
    nothing counts its sentences and batches. `successor` is the version that
    has taken its place, if there is one.
    """

    successor: "Version | None" = None

    def __init__(
        self,
        number: int,
        engine: Engine,
        limits: RequestLimits,
        wait_s: float = 0.005,
        metrics: ModelMetrics | None = None,
    ):
        self.number = number
        self.engine = engine
        self._metrics = metrics
        self.queue = BatchQueue(
            self._compute,
            batch_size=engine.batch_size,
            max_waiting=limits.max_waiting,
            num_threads=engine.num_threads,
            wait_s=wait_s,
            prepare=self._warm_up,
            name=f"version {number}",
            on_batch=self._note,
        )

    @property
    def is_ready(self) -> bool:
        """Whether it is warm."""
        ready = self.queue.ready
        return ready.done() and ready.exception() is None

    def _warm_up(self, is_stopped):
        self.engine.warm_up(is_stopped)
        for name, task in self.engine.tasks.items():
            # Functions that have nothing to warm name no rows.
            if rows := getattr(task, "warm_up_rows", ()):
                # A model that cannot read them translates nonetheless.
                with contextlib.suppress(UserError):
                    self.engine.run_task(Task(name), rows)

    def submit(
        self,
        items: Sequence[Any],
        lengths: Sequence[int],
        kind: int | Call | Task,
        seconds: float,
    ) -> Job:
        """Adds the sentences of a request, as `BatchQueue.submit` does."""
        job = self.queue.submit(items, lengths, kind, seconds)
        if self._metrics is not None:
            self._metrics.note_accepted(sum(lengths))
        return job

    def _compute(
        self, kind: int | Call | Task, items: list[Any]
    ) -> Sequence[Any]:
        results = self._computed(kind, items)
        if self._metrics is not None and _translates(kind):
            self._metrics.note_translated(len(items))
        return results

    def _computed(self, kind, items):
        if isinstance(kind, Task):
            return self.engine.run_task(kind, items)
        if isinstance(kind, Call):
            return self.engine.predict(kind, items)
        return self.engine.translate(kind, items)

    def _note(self, kind, number, seconds):
        if self._metrics is not None:
            self._metrics.note_batch(number, seconds)


def _translates(kind):
    """Whether this asks for translations, not for looks at given ones."""
    if isinstance(kind, Task):
        return kind.name == "lines"
    return not (isinstance(kind, Call) and kind.signature == "score")


class ServedModel:
    """A model, of which a newer version may take the place of an older one.

    The `name` is that in addresses. `directions`, at least one, are its
    languages and their tags. `make_version` makes the `Version` of a number,
    the first time of `number`; `current` is the version that answers requests.
    """

    def __init__(
        self,
        name: str,
        directions: Sequence[Direction],
        make_version: Callable[[int], Version],
        number: int = 1,
    ):
        self.name = name
        self.directions = tuple(directions)
        self._make_version = make_version
        self.current = make_version(number)
        self._loading: int | None = None

    @property
    def is_ready(self) -> bool:
        """Whether it is warm."""
        return self.current.is_ready

    def direction_into(
        self, target: str | None, source: str | None = None
    ) -> Direction | None:
        """Returns the direction into a language; by default the first one.

        `source` chooses among several of them.
        """
        for direction in self.directions:
            if target in (None, direction.target) and (
                source in (None, direction.source)
            ):
                return direction
        return None

    def states(self) -> dict[int, str]:
        """The states of its versions, in the words of TensorFlow Serving."""
        state = "AVAILABLE" if self.is_ready else "LOADING"
        states = {self.current.number: state}
        if (loading := self._loading) is not None:
            states[loading] = "LOADING"
        return states

    def replace(self, number: int) -> None:
        """Loads another version and lets it answer once it is warm.

        The version before answers what it has been asked.
        """
        self._loading = number
        try:
            version = self._make_version(number)
            try:
                version.queue.ready.result()
            except BaseException:
                version.queue.close(drop=True)
                raise
            before, self.current = self.current, version
            # For requests that have just chosen the one before.
            before.successor = version
        finally:
            self._loading = None
        before.queue.close()


class ServedModels:
    """All models of a server.

    `by_name` has them by their names. Of several with the same languages the
    first one translates.
    """

    def __init__(self, models: Sequence[ServedModel]):
        self.by_name = {model.name: model for model in models}
        self._by_languages: dict[tuple, tuple[ServedModel, str | None]] = {}
        for model in models:
            for source, target, tag in model.directions:
                self._by_languages.setdefault((source, target), (model, tag))

    @property
    def is_ready(self) -> bool:
        """Whether all of them are."""
        return all(model.is_ready for model in self.by_name.values())

    def targets(self) -> dict[str, list[str]]:
        """The target languages of each source language."""
        found: dict[str, list[str]] = {}
        for source, target in self._by_languages:
            found.setdefault(source, []).append(target)
        return found

    def choose(
        self, source: str, target: str
    ) -> tuple[str, ServedModel, str | None] | None:
        """Returns the source, the model for two languages and its tag, if any.

        The source `auto` stands for the only language that is translated to the
        target.
        """
        found = [
            (pair[0], *chosen)
            for pair, chosen in self._by_languages.items()
            if source in ("auto", pair[0]) and pair[1] == target
        ]
        return found[0] if len(found) == 1 else None

    def close(self, drop: bool = False) -> None:
        """Ends the threads of all models, as `BatchQueue.close` does."""
        for model in self.by_name.values():
            model.current.queue.close(drop)


def pair_of_languages(text: str) -> tuple[str, str]:
    """Reads two codes of languages, such as `de-en` or `en:zh-Hant`."""
    parts = text.split(":") if ":" in text else text.split("-")
    if len(parts) != 2 or not all(map(_LANGUAGE.fullmatch, parts)):
        raise UserError(
            "`--languages` must be pairs of codes such as de-en, or en:zh-Hant "
            f"where a code has a hyphen. Received: {text}"
        )
    return parts[0], parts[1]


def languages_in_name(name: str) -> tuple[str, str] | None:
    """Returns the languages that a name ends with, as those of recipes do.

    Example:
    >>> languages_in_name("transformer_tiny.demo_de_en")
    ('de', 'en')
    >>> languages_in_name("mine") is None
    True
    """
    found = _NAMED_PAIR.search(name)
    return None if found is None else (found[1], found[2])
