"""Clients of an export: in this process, or through TensorFlow Serving.

The client of gRPC, which needs more packages, is in `grpc_client.py`.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from numbers import Integral
from pathlib import Path
from typing import Any, overload

from keras_deepnmt.errors import UserError
from keras_deepnmt.serving.rest_call import (
    check_api_key,
    check_url,
    post_json,
)
from keras_deepnmt.serving.served_outputs import checked_outputs
from keras_deepnmt.serving.verification import find_version, read_description
from keras_deepnmt.translator.requests import (
    as_pairs,
    as_sentences,
    refuse_one_sentence,
)


@dataclass(frozen=True)
class ServedHypothesis:
    """One translation of a sentence.

    Attributes:
        text: the translation.
        score: `log_prob` divided by the length penalty; the search ranks by it.
        log_prob: sum of the natural log-probabilities of its tokens.
        truncated: whether it ends only because the maximum length was reached.
        source_truncated: whether the source was longer than the export allows
            and the rest of it was ignored.
        constraints_met: whether its text begins with the prefix and contains
            all phrases that were required.
    """

    text: str
    score: float
    log_prob: float
    truncated: bool
    source_truncated: bool
    constraints_met: bool = True


@dataclass(frozen=True)
class ServedScore:
    """The log-probability of one given translation.

    Attributes:
        log_prob: natural log-probability of the translation.
        token_log_probs: that of each token, the end id last.
        source_truncated: whether the source was longer than the export allows
            and the rest of it was ignored.
    """

    log_prob: float
    token_log_probs: tuple[float, ...]
    source_truncated: bool


class ServingClient:
    """Base class of clients, with methods for all signatures.

    A subclass implements `predict`.
    """

    def predict(
        self, signature: str, inputs: dict[str, Any]
    ) -> dict[str, list]:
        """Runs one signature on named inputs and returns its named outputs.

        Inputs are lists and numbers, outputs are nested lists.
        """
        raise NotImplementedError

    @overload
    def translate(
        self,
        texts: str,
        prefixes: str | None = None,
        constraints: Iterable[str] | None = None,
        max_lengths: int | None = None,
    ) -> str: ...

    @overload
    def translate(
        self,
        texts: Iterable[str],
        prefixes: Iterable[str] | None = None,
        constraints: Iterable[Iterable[str]] | None = None,
        max_lengths: Iterable[int] | None = None,
    ) -> list[str]: ...

    def translate(self, texts, **given):
        """Translates sentences.

        Args:
            texts: Sentences, translated as one batch, or one sentence as a
                string.
            **given: requirements on each translation, a list with one value for
                each sentence, or the value for a string: `prefixes`, texts that
                translations must begin with, empty for any; `constraints`,
                lists of phrases that they must contain; `max_lengths`, maximum
                numbers of tokens, the end token included, 0 for that of the
                export. Older exports have no signature for
                them.

        Returns:
            One translation per sentence; of a string, the translation alone.

        Raises:
            TypeError: if a sentence is not a string, or what is given has
                another type.
            UserError: if the number of prefixes, constraints or lengths is not
                that of the sentences.
        """
        sentences, is_one = as_sentences(texts)
        if not sentences:
            return []
        inputs = _given_inputs(len(sentences), is_one, **given)
        if inputs:
            inputs |= {"text": sentences, "num_hypotheses": 1}
            outputs = self.predict("translate_given", inputs)["text"]
            outputs = [row[0] for row in outputs]
        else:
            inputs = {"text": sentences}
            outputs = self.predict("serving_default", inputs)["text"]
        return outputs[0] if is_one else outputs

    @overload
    def translate_nbest(
        self,
        texts: str,
        num_hypotheses: int | None = None,
        length_penalty: float | None = None,
        prefixes: str | None = None,
        constraints: Iterable[str] | None = None,
        max_lengths: int | None = None,
    ) -> list[ServedHypothesis]: ...

    @overload
    def translate_nbest(
        self,
        texts: Iterable[str],
        num_hypotheses: int | None = None,
        length_penalty: float | None = None,
        prefixes: Iterable[str] | None = None,
        constraints: Iterable[Iterable[str]] | None = None,
        max_lengths: Iterable[int] | None = None,
    ) -> list[list[ServedHypothesis]]: ...

    def translate_nbest(
        self, texts, num_hypotheses=None, length_penalty=None, **given
    ):
        """Returns several translations of each sentence, best first.

        Args:
            texts: Sentences, translated as one batch, or one sentence as a
                string.
            num_hypotheses: Number of translations per sentence, at most the
                export's number of beams, which is the default.
            length_penalty: Exponent of the length penalty. Defaults to that
                of the export; its offset is always that of the export.
            **given: as in `translate`.

        Returns:
            A list of at most `num_hypotheses` translations for each sentence;
            of a string, its list alone.

        Raises:
            TypeError, UserError: as in `translate`.
        """
        texts, is_one = as_sentences(texts)
        if not texts:
            return []
        numbers = {
            "num_hypotheses": num_hypotheses,
            "length_penalty": length_penalty,
        }
        inputs = {name: x for name, x in numbers.items() if x is not None}
        asked = _given_inputs(len(texts), is_one, **given)
        outputs = self.predict(
            "translate_given" if asked else "translate_nbest",
            {"text": texts, **inputs, **asked},
        )
        nbest = [
            _served_hypotheses(
                {name: values[row] for name, values in outputs.items()},
                is_truncated,
            )
            for row, is_truncated in enumerate(outputs["source_truncated"])
        ]
        return nbest[0] if is_one else nbest

    @overload
    def score(self, sources: str, targets: str) -> ServedScore: ...

    @overload
    def score(
        self, sources: Iterable[str], targets: Iterable[str]
    ) -> list[ServedScore]: ...

    def score(self, sources, targets):
        """Computes the log-probabilities of given translations.

        Args:
            sources: Sentences, or one sentence as a string.
            targets: One translation for each source, or one as a string.

        Returns:
            One `ServedScore` per pair; of two strings, the `ServedScore`
            alone.

        Raises:
            TypeError: if a sentence is not a string, or only one of `sources`
                and `targets` is a string.
        """
        sources, targets, is_one = as_pairs(sources, targets)
        if not sources and not targets:
            return []
        inputs = {"source": sources, "target": targets}
        outputs = self.predict("score", inputs)
        names = ("log_prob", "token_log_prob", "num_tokens", "source_truncated")
        scores = [
            ServedScore(log_prob, tuple(token_log_probs[:length]), is_truncated)
            for log_prob, token_log_probs, length, is_truncated in zip(
                *(outputs[name] for name in names), strict=True
            )
        ]
        return scores[0] if is_one else scores


class SavedModelClient(ServingClient):
    """Runs an export in this process, with TensorFlow and TensorFlow-Text.

    TensorFlow Serving fills in inputs that are left out, but TensorFlow's
    Python loader requires every input: this client reads the numbers from the
    description stored with the model.

    Args:
        directory: A version folder, or a model folder, whose newest version is
            used.

    Raises:
        UserError: if the folder is not an export.

    Example:
    >>> SavedModelClient("served/demo").translate(["a little dog"])
    ['ein kleiner Hund']
    """

    def __init__(self, directory: str | Path):
        import tensorflow as tf
        import tensorflow_text  # noqa: F401  registers Sentencepiece*

        self.version_dir = find_version(directory)
        self.description = read_description(self.version_dir)
        # A reference is kept: the signatures alone do not hold the variables.
        self._loaded = tf.saved_model.load(str(self.version_dir))

    def predict(
        self, signature: str, inputs: dict[str, Any]
    ) -> dict[str, list]:
        if signature not in self._loaded.signatures:
            raise UserError(
                f"{self.version_dir}: has no signature {signature}, which "
                "prefixes, constraints and maximum lengths need. Export the "
                "model again."
            )
        if signature in ("translate_nbest", "translate_given"):
            inputs = {
                "num_hypotheses": self.description["num_beams"],
                "length_penalty": self.description["length_penalty"],
                **inputs,
            }
        if signature == "translate_given":
            nothing = {"prefix": [], "constraints": [[]], "max_length": []}
            inputs = {**nothing, **inputs}
        function = self._loaded.signatures[signature]
        specs = function.structured_input_signature[1]
        return run_signature(function, specs, inputs, self.version_dir)


class RestClient(ServingClient):
    """Calls TensorFlow Serving through its REST interface.

    Args:
        url: The model's address, for instance
            `http://localhost:8501/v1/models/demo`, or with `/versions/3` at
            the end for that version.
        timeout_s: Seconds for each call, until its answer is complete.
        max_answer_bytes: Largest answer that is read.
        api_key: The key that the server asks for, if it does.

    Raises:
        UserError: if `url` is not such an address, a number is not positive or
            the key has characters that no header can hold; by its methods, if
            the server cannot be reached, rejects the request, refers to another
            address, or its answer is late, too large or not that of an export.

    Example:
    >>> client = RestClient("http://localhost:8501/v1/models/demo")
    >>> client.translate(["a little dog"])
    ['ein kleiner Hund']
    """

    def __init__(
        self,
        url: str,
        timeout_s: float = 60.0,
        max_answer_bytes: int = 2**28,
        api_key: str | None = None,
    ):
        check_url(url)
        check_api_key(api_key)
        limits = {"timeout_s": timeout_s, "max_answer_bytes": max_answer_bytes}
        for name, value in limits.items():
            if not (isinstance(value, int | float) and 0 < value < inf):
                raise UserError(
                    f"`{name}` must be a positive number. Received: {value}"
                )
        self.url = url.rstrip("/")
        self.timeout_s = timeout_s
        self.max_answer_bytes = max_answer_bytes
        self._api_key = api_key

    def predict(
        self, signature: str, inputs: dict[str, Any]
    ) -> dict[str, list]:
        # The column format ("inputs"), since rows cannot hold a scalar.
        content = {"signature_name": signature, "inputs": inputs}
        answer = post_json(
            f"{self.url}:predict",
            content,
            self.timeout_s,
            self.max_answer_bytes,
            self._api_key,
        )
        number = len(inputs.get("text", inputs.get("source", ())))
        try:
            return checked_outputs(signature, answer, number)
        except ValueError as error:
            raise UserError(
                f"{self.url}: the answer is not that of an export ({error})."
            ) from error


def run_signature(
    function: Callable,
    specs: Mapping[str, Any],
    inputs: Mapping[str, Any],
    place: object,
) -> dict[str, list]:
    """Runs a signature in this process on lists and numbers.

    `specs` has the `tf.TensorSpec` of each input; `place` names the model in
    errors. Returns the named outputs as nested lists. Raises a `UserError` if
    the function refuses a value.
    """
    import tensorflow as tf

    try:
        outputs = function(
            **{
                name: tf.constant(value, specs[name].dtype)
                for name, value in inputs.items()
            }
        )
    except tf.errors.InvalidArgumentError as error:
        raise UserError(f"{place}: {_error_cause(error.message)}") from error
    return {name: as_lists(x.numpy()) for name, x in outputs.items()}


def _given_inputs(
    number, is_one, prefixes=None, constraints=None, max_lengths=None
):
    """Returns the inputs of `translate_given` for what is given."""
    given = {
        "prefix": prefixes,
        "constraints": constraints,
        "max_length": max_lengths,
    }
    inputs = {
        name: _CHECKS[name]([value] if is_one else value)
        for name, value in given.items()
        if value is not None
    }
    for name, values in inputs.items():
        if len(values) != number:
            argument = {"prefix": "prefixes", "max_length": "max_lengths"}
            raise UserError(
                f"`{argument.get(name, name)}` must have one value for each "
                f"sentence. Received: {len(values)} for {number} sentences"
            )
    if "constraints" in inputs:
        rows = inputs["constraints"]
        # At least one column: TensorFlow Serving refuses an empty list.
        most = max(1, *map(len, rows))
        inputs["constraints"] = [
            [*row, *[""] * (most - len(row))] for row in rows
        ]
    return inputs


def _texts(prefixes):
    return as_sentences(prefixes, "prefixes")[0]


def _phrases(constraints):
    refuse_one_sentence(constraints, "constraints")
    if not isinstance(constraints, Iterable):
        constraints = [constraints]
    rows = []
    for phrases in constraints:
        refuse_one_sentence(phrases, "constraints")
        rows.append(as_sentences(phrases, "constraints")[0])
    return rows


def _lengths(max_lengths):
    is_list = isinstance(max_lengths, Iterable)
    lengths = list(max_lengths) if is_list else [max_lengths]
    for length in lengths:
        is_integer = isinstance(length, Integral)
        if not is_list or not is_integer or isinstance(length, bool):
            raise TypeError(
                "`max_lengths` must hold integers, one for each sentence. "
                f"Received: {max_lengths!r}"
            )
    return [int(length) for length in lengths]


_CHECKS = {"prefix": _texts, "constraints": _phrases, "max_length": _lengths}


def _served_hypotheses(outputs, source_truncated):
    names = ("text", "score", "log_prob", "truncated")
    columns = [outputs[name] for name in names]
    met = outputs.get("constraints_met", [True] * len(columns[0]))
    return [
        ServedHypothesis(*values, source_truncated, is_met)
        for *values, is_met in zip(*columns, met, strict=True)
        if isfinite(values[1])
    ]


def as_lists(values: Any) -> list:
    """Returns an output array as nested lists, with texts for bytes."""
    rows = values.tolist()
    if values.dtype != object:
        return rows
    if values.ndim == 1:
        return [text.decode() for text in rows]
    return [[text.decode() for text in row] for row in rows]


def _error_cause(message):
    # TensorFlow's message lists graph nodes around the failed assertion.
    failed = re.search("assertion failed: .*", message)
    if failed:
        return failed[0]
    return (message.strip().splitlines() or ["no message"])[0]
