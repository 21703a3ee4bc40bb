"""Clients of an export: in this process, or of TensorFlow Serving.

A client of the gRPC interface is not here: `tensorflow-serving-api` brings
more than this package needs. The signatures are the same there.
"""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from keras_deepnmt.errors import UserError
from keras_deepnmt.serving.golden import EXPORT_FILE
from keras_deepnmt.serving.verification import find_version


@dataclass(frozen=True)
class ServedHypothesis:
    """One translation of a sentence.

    Attributes:
        text: the translation.
        score: `log_prob` over the length penalty; the search ranks by it.
        log_prob: sum of the tokens' natural log-probabilities.
    """

    text: str
    score: float
    log_prob: float


@dataclass(frozen=True)
class ServedScore:
    """How probable a model finds one given translation.

    Attributes:
        log_prob: natural log-probability of the whole.
        token_log_probs: of each token, the end id last.
    """

    log_prob: float
    token_log_probs: tuple[float, ...]


class ServingClient:
    """What every client of the three signatures can do.

    A subclass writes `predict`.
    """

    def predict(
        self, signature: str, inputs: dict[str, Any]
    ) -> dict[str, list]:
        """Runs one signature.

        Args:
            signature: its name.
            inputs: lists and numbers by the names of the signature's inputs.

        Returns:
            Nested lists by the names of its outputs.
        """
        raise NotImplementedError

    def translate(self, texts: Sequence[str]) -> list[str]:
        """Translates sentences.

        Args:
            texts: One sentence each, all computed in one batch.

        Returns:
            One translation per sentence.
        """
        if not texts:
            return []
        return self.predict("serving_default", {"text": list(texts)})["text"]

    def translate_nbest(
        self,
        texts: Sequence[str],
        num_hypotheses: int | None = None,
        length_penalty: float | None = None,
    ) -> list[list[ServedHypothesis]]:
        """Gives several translations of each sentence, best first.

        Args:
            texts: One sentence each, all computed in one batch.
            num_hypotheses: At most the beams of the export, which are the
                default.
            length_penalty: Exponent of the length penalty. Defaults to that
                of the export; its offset is always that of the export.

        Returns:
            For each sentence at most `num_hypotheses`.
        """
        if not texts:
            return []
        numbers = {
            "num_hypotheses": num_hypotheses,
            "length_penalty": length_penalty,
        }
        given = {name: x for name, x in numbers.items() if x is not None}
        found = self.predict("translate_nbest", {"text": list(texts), **given})
        columns = (found[name] for name in ("text", "score", "log_prob"))
        return [
            [
                ServedHypothesis(*values)
                for values in zip(*row, strict=True)
                if isfinite(values[1])
            ]
            for row in zip(*columns, strict=True)
        ]

    def score(
        self, sources: Sequence[str], targets: Sequence[str]
    ) -> list[ServedScore]:
        """Gives the log-probabilities of given translations.

        Args:
            sources: One sentence each.
            targets: Its translation, one each.

        Returns:
            One `ServedScore` per pair.
        """
        if not sources and not targets:
            return []
        inputs = {"source": list(sources), "target": list(targets)}
        found = self.predict("score", inputs)
        columns = ("log_prob", "token_log_prob", "num_tokens")
        return [
            ServedScore(log_prob, tuple(token_log_probs[:num_tokens]))
            for log_prob, token_log_probs, num_tokens in zip(
                *(found[name] for name in columns), strict=True
            )
        ]


class SavedModelClient(ServingClient):
    """Runs an export in this process, with TensorFlow and TensorFlow-Text.

    A SavedModel stores the defaults of `translate_nbest`, and TensorFlow
    Serving fills them in, but TensorFlow's Python loader demands every input:
    this client takes them from the description beside the model.

    Args:
        directory: A version folder, or a model folder: then its newest one.

    Raises:
        UserError: if the folder is no export.

    Example:
    >>> SavedModelClient("served/demo").translate(["a little dog"])
    ['ein kleiner Hund']
    """

    def __init__(self, directory: str | Path):
        import tensorflow as tf
        import tensorflow_text  # noqa: F401  registers Sentencepiece*

        self.version_dir = find_version(directory)
        text = (self.version_dir / EXPORT_FILE).read_text(encoding="utf-8")
        self.description = json.loads(text)
        # Kept, since the signatures do not hold the variables.
        self._loaded = tf.saved_model.load(str(self.version_dir))

    def predict(
        self, signature: str, inputs: dict[str, Any]
    ) -> dict[str, list]:
        import tensorflow as tf

        if signature == "translate_nbest":
            inputs = {
                "num_hypotheses": self.description["num_beams"],
                "length_penalty": self.description["length_penalty"],
                **inputs,
            }
        function = self._loaded.signatures[signature]
        specs = function.structured_input_signature[1]
        try:
            outputs = function(
                **{
                    name: tf.constant(value, specs[name].dtype)
                    for name, value in inputs.items()
                }
            )
        except tf.errors.InvalidArgumentError as error:
            raise UserError(
                f"{self.version_dir}: {_reason(error.message)}"
            ) from error
        return {name: _plain(x.numpy()) for name, x in outputs.items()}


class RestClient(ServingClient):
    """Asks TensorFlow Serving through its REST interface.

    Args:
        url: The model's address, for instance
            `http://localhost:8501/v1/models/demo`; with `/versions/3` after
            it, that version's.
        timeout_s: Seconds to wait for an answer.

    Raises:
        UserError: by its methods, if the server cannot be reached or refuses.

    Example:
    >>> client = RestClient("http://localhost:8501/v1/models/demo")
    >>> client.translate(["a little dog"])
    ['ein kleiner Hund']
    """

    def __init__(self, url: str, timeout_s: float = 60.0):
        self.url = url.rstrip("/")
        self.timeout_s = timeout_s

    def predict(
        self, signature: str, inputs: dict[str, Any]
    ) -> dict[str, list]:
        request = urllib.request.Request(
            f"{self.url}:predict",
            # By columns ("inputs"), since rows cannot hold a scalar.
            json.dumps(
                {"signature_name": signature, "inputs": inputs}
            ).encode(),
            {"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(
                request, timeout=self.timeout_s
            ) as answer:
                return json.load(answer)["outputs"]
        except urllib.error.HTTPError as error:
            with error:
                message = error.read().decode("utf-8", "replace")
            raise UserError(
                f"{self.url}: the server refused ({error.code}): "
                f"{_reason(message)}"
            ) from error
        except OSError as error:
            raise UserError(
                f"{self.url}: no server answers ({error})."
            ) from error


def _plain(values):
    rows = values.tolist()
    if values.dtype != object:
        return rows
    if values.ndim == 1:
        return [text.decode() for text in rows]
    return [[text.decode() for text in row] for row in rows]


def _reason(message):
    # TensorFlow names the failed check among the nodes of the graph.
    failed = re.search("assertion failed: .*", message)
    if failed:
        return failed[0]
    return (message.strip().splitlines() or ["no message"])[0]
