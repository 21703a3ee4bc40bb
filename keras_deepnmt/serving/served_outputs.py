"""The names and types of what the signatures of an export return."""

from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

# Of each sentence.
_NBEST = {
    "text": list[str],
    "score": list[float],
    "log_prob": list[float],
    "truncated": list[bool],
    "source_truncated": bool,
}
_TYPES = {
    "serving_default": {"text": str},
    "translate_nbest": _NBEST,
    "translate_given": {**_NBEST, "constraints_met": list[bool]},
    "score": {
        "log_prob": float,
        "token_log_prob": list[float],
        "num_tokens": Annotated[int, Field(ge=0)],
        "source_truncated": bool,
    },
}


def checked_outputs(
    signature: str, answer: Any, number: int
) -> dict[str, list]:
    """Returns the outputs in the answer of a server.

    The answer is JSON in the column format, to a request with `number`
    sentences. The outputs of a signature that exports do not have are not
    checked. Raises a `ValueError` if an output is missing, has another type, or
    is not that of so many sentences.
    """
    outputs = answer.get("outputs") if isinstance(answer, dict) else None
    if not isinstance(outputs, dict):
        raise ValueError("it has no named `outputs`")
    types = _TYPES.get(signature, {})
    for name, kind in types.items():
        if name not in outputs:
            raise ValueError(f"`{name}` is missing")
        try:
            TypeAdapter(list[kind]).validate_python(outputs[name], strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = "".join(f"[{index}]" for index in first["loc"])
            raise ValueError(f"`{name}{place}`: {first['msg']}") from error
        if len(outputs[name]) != number:
            raise ValueError(
                f"`{name}` has {len(outputs[name])} values for {number} "
                "sentences"
            )
    _check_rows(outputs, types)
    return outputs


def _check_rows(outputs, types):
    """Refuses lists of one sentence that do not belong together."""
    if "token_log_prob" in types:
        rows = zip(
            outputs["token_log_prob"], outputs["num_tokens"], strict=True
        )
        if any(len(values) < length for values, length in rows):
            raise ValueError("`token_log_prob` has less than `num_tokens`")
    sizes = {
        name: list(map(len, outputs[name]))
        for name, kind in types.items()
        if kind in (list[str], list[float], list[bool]) and "text" in types
    }
    for name, lengths in sizes.items():
        if lengths != sizes["text"]:
            raise ValueError(f"`{name}` has other lengths than `text`")
