"""What a server needs of that which computes its translations."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keras_deepnmt.data.tags import own_tag, tagged_sentence
from keras_deepnmt.server.signatures import (
    ROW_INPUTS,
    Call,
    signature_definition,
)


@dataclass(frozen=True)
class Translation:
    """One translation of a sentence.

    Attributes:
        text: the translation.
        score: what the search ranks by.
        source_truncated: whether a part of the sentence was ignored, since it
            is longer than the model accepts.
    """

    text: str
    score: float
    source_truncated: bool

    @classmethod
    def of(cls, found: Any) -> "Translation":
        """Takes what a server needs of a hypothesis of any kind."""
        return cls(found.text, found.score, found.source_truncated)


@dataclass(frozen=True)
class Task:
    """What some engines compute besides translations, for the web page.

    Attributes:
        name: a key of `Engine.tasks`.
        language: code of the language of the rows, for a task that asks for it.
    """

    name: str
    language: str | None = None


# Takes rows of a kind of its own, and returns as many results. It also takes
# the language of a task that has one.
TaskFunction = Callable[..., list[Any]]


class Engine:
    """Base class of engines.

    `num_threads` threads call an engine, and any thread may call `lengths`.

    Attributes:
        most_hypotheses: the largest number of translations of a sentence.
        batch_size: the number of sentences to compute together.
        num_threads: the number of batches to compute at once.
        signatures: the names of the signatures that it runs.
        tags: those of the training text that a sentence may begin with.
        tasks: functions by the names of tasks; none where an engine has only
            the graphs of an export.
    """

    most_hypotheses: int = 1
    batch_size: int = 32
    num_threads: int = 1
    signatures: tuple[str, ...] = tuple(ROW_INPUTS)
    tags: Sequence[str] = ()
    tasks: Mapping[str, TaskFunction] = {}

    @property
    def completes(self) -> bool:
        """Whether it can translate with a given beginning."""
        return "translate_given" in self.signatures

    def warm_up(self, is_stopped: Callable[[], bool] = lambda: False) -> None:
        """Compiles and loads all that the engine needs for any request.

        It ends early when `is_stopped` says that there will be none.
        """

    def tagged(self, text: str, tag: str | None) -> str:
        """Returns a sentence with a tag before it, unless it has its own.

        One without words gets none.
        """
        if own_tag(text, self.tags) is not None:
            return text
        return tagged_sentence(text, tag)

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Returns the number of tokens of each sentence, or an estimate."""
        raise NotImplementedError

    def translate(
        self, number: int, texts: Sequence[str]
    ) -> list[list[Translation]]:
        """Returns at most `number` translations of each sentence."""
        raise NotImplementedError

    def predict(self, call: Call, rows: Sequence[tuple]) -> list[dict]:
        """Runs a signature, and returns the named outputs of each sentence."""
        raise NotImplementedError

    def run_task(self, task: Task, rows: Sequence[Any]) -> list[Any]:
        """Runs a task, and returns a result for each row."""
        raise NotImplementedError

    def signature_definitions(self) -> dict[str, Any]:
        """Returns the protocol buffers that describe the signatures."""
        return {name: signature_definition(name) for name in self.signatures}
