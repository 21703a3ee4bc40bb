"""Translates for a server with CTranslate2, from a folder of an export."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keras_deepnmt.errors import UserError
from keras_deepnmt.exchange.engine_folders import check_engine_files
from keras_deepnmt.server.engine import Engine, Translation
from keras_deepnmt.server.signatures import Call, nbest_row


@dataclass(frozen=True)
class Hypothesis:
    """A translation that CTranslate2 has found.

    Attributes:
        text: the translation.
        score: by which the hypotheses of a sentence are sorted.
        log_prob: the logarithm of its probability.
        truncated: whether it was broken off at its maximum length.
        source_truncated: whether the sentence was too long for the model.
    """

    text: str
    score: float
    log_prob: float
    truncated: bool
    source_truncated: bool


class CTranslate2Engine(Engine):
    """Translates with CTranslate2.

    It has no graphs of TensorFlow, so that prefixes, phrases and maximum
    lengths (`translate_given`) cannot be given.

    The folder is one that `deepnmt export --format ctranslate2` wrote. As many
    `threads` compute with it; 0 lets CTranslate2 decide.
    """

    signatures = ("serving_default", "translate_nbest", "score")

    def __init__(
        self,
        directory: str | Path,
        batch_size: int | None = None,
        threads: int = 0,
    ):
        from keras_deepnmt.exchange.ctranslate2_program import Model

        check_engine_files(Path(directory))
        self._model = Model(directory, threads)
        self.most_hypotheses = self._model.options["beam_size"]
        self.batch_size = batch_size or type(self).batch_size

    def warm_up(self, is_stopped: Callable[[], bool] = lambda: False) -> None:
        self.translate(self.most_hypotheses, ["a"])

    def lengths(self, texts: Sequence[str]) -> list[int]:
        return [len(self._model.pieces(text)) + 1 for text in texts]

    def translate(
        self, number: int, texts: Sequence[str]
    ) -> list[list[Translation]]:
        return [
            list(map(Translation.of, found))
            for found in self.nbest(texts, number)
        ]

    def predict(self, call: Call, rows: Sequence[tuple]) -> list[dict]:
        if call.signature == "score":
            return self._score(*zip(*rows, strict=True))
        number = call.num_hypotheses or self.most_hypotheses
        if call.signature == "serving_default":
            number = 1
        changes = {}
        if call.length_penalty is not None:
            changes["length_penalty"] = call.length_penalty
        nbest = self.nbest([row[0] for row in rows], number, **changes)
        return [nbest_row(call, found, number) for found in nbest]

    def nbest(
        self, texts: Sequence[str], number: int, **changes: Any
    ) -> list[list[Hypothesis]]:
        """Lists at most `number` hypotheses of each text.

        `changes` are other arguments of the search than those of the export, as
        `exchange.ctranslate2_export.search_arguments` gives them.
        """
        too_long = [n > self._model.longest for n in self.lengths(texts)]
        nbest = self._model.translate_nbest(list(texts), number, **changes)
        return [
            [Hypothesis(**each, source_truncated=is_long) for each in found]
            for found, is_long in zip(nbest, too_long, strict=True)
        ]

    def _score(self, sources, targets):
        longest = self._model.longest
        too_long = [n > longest for n in self.lengths(sources)]
        for target in targets:
            number = self._model.num_target_tokens(target)
            if number > longest:
                raise UserError(
                    f"A target must have at most {longest} tokens, its end "
                    f"included. Received: {number}"
                )
        rows = self._model.token_scores(sources, targets)
        return [
            {
                "log_prob": sum(scores),
                "num_tokens": len(scores),
                "token_log_prob": scores,
                "source_truncated": is_long,
            }
            for scores, is_long in zip(rows, too_long, strict=True)
        ]
