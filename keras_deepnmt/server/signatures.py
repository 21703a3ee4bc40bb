"""The signatures of exports, and their inputs as rows, one for each sentence.

Rows of several requests can be computed together, and the outputs of each given
back alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

NUMBERS = {"num_hypotheses": int, "length_penalty": float}
# Of each signature: its inputs with a value for each sentence.
ROW_INPUTS = {
    "serving_default": ("text",),
    "translate_nbest": ("text",),
    "translate_given": ("text", "prefix", "constraints", "max_length"),
    "score": ("source", "target"),
}
# Those whose tokens are limited.
_SENTENCES = ("text", "prefix", "source", "target")
# The sentences of a batch have room for the phrases of the one with the most
# and longest, and the memory that they need grows with the square of both.
MOST_PHRASES, LONGEST_PHRASE = 16, 200
_WITH_NUMBERS = ("translate_nbest", "translate_given")
# What stands for an input that a request leaves out.
_NOTHING = {"prefix": "", "constraints": (), "max_length": 0}
_NBEST_OUTPUTS = ("text", "score", "log_prob", "truncated")
# Of each signature: its outputs with a value for each sentence.
OUTPUTS = {
    "serving_default": ("text", "score", "truncated", "source_truncated"),
    "translate_nbest": (*_NBEST_OUTPUTS, "source_truncated"),
    "translate_given": (
        *_NBEST_OUTPUTS,
        "constraints_met",
        "source_truncated",
    ),
    "score": ("log_prob", "num_tokens", "token_log_prob", "source_truncated"),
}
# Values of a hypothesis that does not exist.
_MISSING = {
    "text": "",
    "score": -inf,
    "log_prob": -inf,
    "truncated": False,
    "constraints_met": False,
}
_LARGEST = 2**31 - 1


@dataclass(frozen=True)
class Call:
    """What is asked for of some sentences; those of equal calls share batches.

    Attributes:
        signature: name of the signature.
        num_hypotheses: number of hypotheses; `None` for that of the model.
        length_penalty: `None` for that of the model.
    """

    signature: str
    num_hypotheses: int | None = None
    length_penalty: float | None = None


def read_inputs(
    signature: str, inputs: Mapping[str, Any], most_hypotheses: int
) -> tuple[Call, list[tuple]]:
    """Returns the call and the rows that named inputs stand for.

    `signature` is the name of a signature of exports, and `most_hypotheses` the
    number of beams of the model. Raises a `ValueError` if an input is unknown,
    missing, or has a wrong value.

    Example:
    >>> read_inputs("serving_default", {"text": ["a", "b"]}, 4)
    (Call(signature='serving_default', ...), [('a',), ('b',)])
    """
    names = ROW_INPUTS[signature]
    allowed = {*names, *(NUMBERS if signature in _WITH_NUMBERS else ())}
    if unknown := sorted(set(inputs) - allowed):
        raise ValueError(
            f"input {unknown[0]} is not one of {signature}: "
            f"{', '.join(sorted(allowed))}"
        )
    columns: dict[str, list] = {}
    for name in names:
        if name in inputs:
            columns[name] = _column(name, inputs[name])
        elif name not in _NOTHING:
            raise ValueError(f"input {name} is missing")
    number = len(columns[names[0]])
    for name in names:
        column = columns.get(name, [])
        # An empty list asks for nothing.
        if name in _NOTHING and not any(map(_has_size, column)):
            columns[name] = [_NOTHING[name]] * number
        elif len(column) != number:
            raise ValueError(
                f"{name} must have one value for each of {number} sentences. "
                f"Received: {len(column)}"
            )
    numbers = {
        name: _number(name, inputs[name], kind)
        for name, kind in NUMBERS.items()
        if name in inputs
    }
    asked = numbers.get("num_hypotheses", most_hypotheses)
    if not 1 <= asked <= most_hypotheses:
        raise ValueError(
            f"num_hypotheses must lie in 1..{most_hypotheses}. Received: "
            f"{asked}"
        )
    if not 0 <= numbers.get("length_penalty", 0) < inf:
        raise ValueError("length_penalty must be at least 0.")
    rows = zip(*(columns[name] for name in names), strict=True)
    return Call(signature, **numbers), list(rows)


def sentences_of(signature: str, rows: Sequence[tuple]) -> list[list[str]]:
    """Returns the sentences of rows: sources, and prefixes or targets.

    Example:
    >>> sentences_of("score", [("a", "b"), ("c", "d")])
    [['a', 'c'], ['b', 'd']]
    """
    return [
        [row[place] for row in rows]
        for place, name in enumerate(ROW_INPUTS[signature])
        if name in _SENTENCES
    ]


def _has_size(value):
    return value != [] and value != ()


def _column(name, values):
    if not isinstance(values, list):
        # A text without an axis is a batch of one.
        values = [values]
    if name == "constraints":
        for phrases in values:
            if not isinstance(phrases, list):
                raise ValueError("constraints must be a list of lists of text")
        if len({len(phrases) for phrases in values}) > 1:
            raise ValueError(
                "constraints must have rows of equal length, filled up with "
                "empty strings"
            )
        if (most := max(map(len, values), default=0)) > MOST_PHRASES:
            raise ValueError(
                f"constraints must have at most {MOST_PHRASES} phrases for "
                f"each sentence. Received: {most:,}"
            )
        return [
            tuple(_phrase(name, phrase) for phrase in phrases)
            for phrases in values
        ]
    if name == "max_length":
        return [_number(name, value, int) for value in values]
    return [_text(name, value) for value in values]


def _text(name, value):
    if not isinstance(value, str):
        raise ValueError(f"{name} must be text. Received: {_shown(value)}")
    return value


def _phrase(name, value):
    # A token has at least one byte.
    size = len(_text(name, value).encode())
    if size > LONGEST_PHRASE:
        raise ValueError(
            f"{name} must have phrases of at most {LONGEST_PHRASE} bytes. "
            f"Received: {size:,} bytes"
        )
    return value


def _number(name, value, kind):
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # JSON may have numbers that are infinite here, such as 1e999.
    if is_number and not abs(value) <= _LARGEST:
        raise ValueError(f"{name} is too large.")
    if not is_number or (kind is int and value != int(value)):
        raise ValueError(
            f"{name} must be {'an integer' if kind is int else 'a number'}. "
            f"Received: {_shown(value)}"
        )
    return kind(value)


def _shown(value):
    text = repr(value)
    return text if len(text) < 60 else f"{text[:57]}..."


def as_inputs(call: Call, rows: Sequence[tuple]) -> dict[str, Any]:
    """Returns the named inputs that rows stand for; of `read_inputs` the other.

    Numbers that the call leaves to the model are left out.

    Example:
    >>> as_inputs(Call("serving_default"), [("a",), ("b",)])
    {'text': ['a', 'b']}
    """
    names = ROW_INPUTS[call.signature]
    inputs: dict[str, Any] = {
        name: [row[place] for row in rows] for place, name in enumerate(names)
    }
    if "constraints" in inputs:
        most = max(1, *map(len, inputs["constraints"]))
        inputs["constraints"] = [
            [*phrases, *[""] * (most - len(phrases))]
            for phrases in inputs["constraints"]
        ]
    for name in NUMBERS:
        if getattr(call, name) is not None:
            inputs[name] = getattr(call, name)
    return inputs


def as_rows(outputs: Mapping[str, Sequence]) -> list[dict[str, Any]]:
    """Returns the outputs of each sentence.

    Example:
    >>> as_rows({"text": ["a", "b"], "score": [-1, -2]})
    [{'text': 'a', 'score': -1}, {'text': 'b', 'score': -2}]
    """
    return [
        dict(zip(outputs, values, strict=True))
        for values in zip(*outputs.values(), strict=True)
    ]


def as_outputs(call: Call, rows: Sequence[Mapping]) -> dict[str, list]:
    """Returns the named outputs of the sentences of one request.

    Example:
    >>> rows = [{"text": "a", "score": -1}, {"text": "b", "score": -2}]
    >>> as_outputs(Call("serving_default"), rows)
    {'text': ['a', 'b'], 'score': [-1, -2]}
    """
    names = rows[0] if rows else OUTPUTS[call.signature]
    outputs = {name: [row[name] for row in rows] for name in names}
    if "token_log_prob" in outputs:
        # A table `(B, T)`, as TensorFlow has it: the rows were computed in
        # batches of which each had its own longest target.
        longest = max(outputs["num_tokens"], default=0)
        outputs["token_log_prob"] = [
            [*values, *[0.0] * (longest - len(values))][:longest]
            for values in outputs["token_log_prob"]
        ]
    return outputs


def nbest_row(
    call: Call, hypotheses: Sequence[Any], number: int
) -> dict[str, Any]:
    """Returns the outputs of a sentence that a translator has searched.

    The hypotheses are given best first. `number` of them were asked for; those
    that do not exist are empty and have the score minus infinity.
    """
    if call.signature == "serving_default":
        return {
            name: getattr(hypotheses[0], name)
            for name in OUTPUTS[call.signature]
        }
    row: dict[str, Any] = {}
    for name in OUTPUTS[call.signature]:
        if name == "source_truncated":
            row[name] = hypotheses[0].source_truncated
            continue
        values = [getattr(hypothesis, name) for hypothesis in hypotheses]
        row[name] = [*values, *[_MISSING[name]] * (number - len(values))]
    return row


def signature_definition(signature: str) -> Any:
    """Makes the protocol buffer that describes a signature of a run.

    An export has its own in its file.
    """
    from tensorflow.core.framework import types_pb2
    from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef

    types = {
        str: types_pb2.DT_STRING,
        float: types_pb2.DT_FLOAT,
        int: types_pb2.DT_INT32,
        bool: types_pb2.DT_BOOL,
    }
    made = SignatureDef(method_name="tensorflow/serving/predict")
    inputs = ROW_INPUTS[signature]
    if signature in _WITH_NUMBERS:
        inputs = (*inputs, *NUMBERS)
    several = signature in _WITH_NUMBERS
    for side, names in (
        (made.inputs, inputs),
        (made.outputs, OUTPUTS[signature]),
    ):
        for name in names:
            info = side[name]
            info.name = f"{signature}_{name}:0"
            info.dtype = types[_type(name)]
            # Without this a scalar would have no shape at all.
            info.tensor_shape.SetInParent()
            for _ in range(_num_axes(name, several and side is made.outputs)):
                info.tensor_shape.dim.add(size=-1)
    return made


def _type(name):
    if name in ("score", "log_prob", "token_log_prob", "length_penalty"):
        return float
    if name in ("num_hypotheses", "num_tokens", "max_length"):
        return int
    if name in ("truncated", "source_truncated", "constraints_met"):
        return bool
    return str


def _num_axes(name, has_hypotheses):
    if name in NUMBERS:
        return 0
    if name in ("constraints", "token_log_prob"):
        return 2
    return 2 if has_hypotheses and name != "source_truncated" else 1
