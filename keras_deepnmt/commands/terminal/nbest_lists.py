"""N-best lists: one hypothesis a line, in one of three formats."""

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from keras_deepnmt.commands.terminal.input_lines import (
    input_name,
    standard_input,
    stream_lines,
    windows_of,
)
from keras_deepnmt.commands.terminal.input_pairs import Pair
from keras_deepnmt.data.corpora import LineReader, decode_line
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import as_line
from keras_deepnmt.json_files import parse_json

if TYPE_CHECKING:
    from keras_deepnmt.data.tokenizers import Tokenizer
    from keras_deepnmt.translator.results import Hypothesis

Format = Literal["plain", "moses", "json"]
DESCRIPTION = (
    "plain: `number ||| text ||| score`; moses: `number ||| text ||| Name= "
    "value ... ||| score`, as the decoder Moses; json: an object, which has "
    "the tokens, too. Numbers count the sentences from 0"
)
# A separator has white space around it; texts may have other bars.
_SEPARATOR = re.compile(r"(?:^|(?<=\s))\|\|\|(?=\s|$)")
_LINKS = re.compile(r"\s*(\d+-\d+(\s+\d+-\d+)*)?\s*")


def nbest_lines(
    nbest: Sequence[Sequence["Hypothesis"]],
    first: int,
    kind: Format,
    tokenizer: "Tokenizer",
    names: Sequence[str] = (),
) -> Iterator[str]:
    """Yields the lines of a list, without line ends.

    `first` is the number of the first sentence, and `tokenizer` that of the
    target side. `names` are those of the features that the hypotheses have.
    """
    for number, found in enumerate(nbest, start=first):
        for hypothesis in found:
            features = {
                "LogProb": hypothesis.log_prob,
                "Length": len(hypothesis.ids),
                **dict(zip(names, hypothesis.features, strict=False)),
            }
            if kind == "json":
                yield _as_json(number, hypothesis, features, tokenizer)
                continue
            fields = [str(number), as_line(hypothesis.text)]
            if kind == "moses":
                fields.append(" ".join(_feature(*x) for x in features.items()))
            yield " ||| ".join([*fields, f"{hypothesis.score:.6f}"])


def _as_json(number, hypothesis, features, tokenizer):
    content = {
        "sentence": number,
        "text": hypothesis.text,
        "score": round(hypothesis.score, 6),
        "log_prob": round(hypothesis.log_prob, 6),
        "pieces": tokenizer.pieces(hypothesis.ids),
        "truncated": hypothesis.truncated,
    }
    others = {
        name: round(value, 6)
        for name, value in features.items()
        if name not in ("LogProb", "Length")
    }
    return _dumped(content | ({"features": others} if others else {}))


@dataclass(frozen=True)
class ListedHypothesis:
    """A line of a list.

    Attributes:
        number: The number of its sentence, from 0.
        text: The translation.
        pieces: Its tokens, if the list has them.
        features: Its features as the line has them: a text, or the object of
            JSON.
        before: What the line has before them, in JSON everything.
        after: What it has after them.
    """

    number: int
    text: str
    pieces: tuple[str, ...] | None = None
    features: str | Mapping[str, Any] = ""
    before: str | Mapping[str, Any] = ""
    after: str = ""

    def has_feature(self, name: str) -> bool:
        """Whether there is a feature of this name."""
        if isinstance(self.features, str):
            return f"{name}=" in self.features.split()
        return name in self.features

    def with_feature(self, name: str, value: float) -> str:
        """Returns the line with one more feature, without line end."""
        if isinstance(self.before, str):
            features = f"{self.features} {_feature(name, value)}".strip()
            return " ||| ".join([self.before, features, self.after])
        # JSON has no NaN.
        number = round(value, 6) if value == value else None
        return _dumped(
            {**self.before, "features": {**self.features, name: number}}
        )


def read_hypothesis(line: str) -> ListedHypothesis:
    """Reads a line of any of the formats; a `ValueError` says why it is none.

    A list of Moses may have word alignments behind the score. A text may hold
    ` ||| `, unless what follows there looks like features.
    """
    if line.startswith("{"):
        return _read_json(line)
    number, *fields = _SEPARATOR.split(line)
    if not number.strip().isdecimal():
        raise ValueError("its first field is not a number")
    place = len(fields) - 1
    while place > 1 and _LINKS.fullmatch(fields[place]):
        place -= 1
    if place < 1 or not _is_number(fields[place].strip()):
        raise ValueError("it has no score after a text")
    after = " ||| ".join(field.strip() for field in fields[place:])
    features = ""
    if place > 1 and _are_features(fields[place - 1]):
        place -= 1
        features = " ".join(fields[place].split())
    text = " ||| ".join(field.strip() for field in fields[:place]).strip()
    before = f"{number.strip()} ||| {text}"
    return ListedHypothesis(int(number), text, None, features, before, after)


def read_list(
    file: str,
    source: str,
    batch_size: int,
    on_end: Callable[[list[int]], None] | None = None,
) -> Iterator[list[tuple[Pair, ListedHypothesis]]]:
    """Yields the hypotheses of a list with their sources, in windows.

    `file` is the path of the list and `source` that of the sentences, plain or
    compressed; one of them may be `-` for standard input. The windows are
    those of `input_pairs.read_pairs`. At the end of a list that has lines,
    `on_end` is called with the numbers of the sentences that have no
    translation in it. The hypotheses before an error are yielded
    first.
    """
    sources = [
        line
        for window in (
            stream_lines(standard_input(), batch_size)
            if source == "-"
            else [LineReader(source)]
        )
        for line in window
    ]
    windows = (
        stream_lines(standard_input(), batch_size)
        if file == "-"
        else windows_of(LineReader(file), batch_size)
    )
    name, numbers = input_name(file), itertools.count(1)
    seen = set()
    for lines in windows:
        window = []
        for line, place in zip(lines, numbers, strict=False):
            text = decode_line(line, Path(name), place)
            try:
                found = read_hypothesis(text)
            except ValueError as error:
                raise UserError(
                    f"{name}, line {place}: not a line of an n-best list, such "
                    f"as `0 ||| text ||| -1.5`: {error}."
                ) from error
            if found.number >= len(sources):
                raise UserError(
                    f"{name}, line {place}: is a translation of sentence "
                    f"{found.number}, but {input_name(source)} has "
                    f"{len(sources)} lines, which count from 0."
                )
            seen.add(found.number)
            window.append((_with_source(sources[found.number], found), found))
        yield window
    if on_end is not None and seen:
        on_end([n for n in range(len(sources)) if n not in seen])


def _with_source(source, found):
    try:
        return Pair(source.decode("utf-8"), found.text)
    except UnicodeDecodeError:
        return Pair("", "", "the source is not UTF-8; not scored.")


def _read_json(line):
    content = parse_json(line, "its JSON")
    number, text = content.get("sentence"), content.get("text")
    if type(number) is not int or number < 0 or not isinstance(text, str):
        raise ValueError("it lacks `sentence`, a number, or `text`")
    pieces = content.get("pieces")
    features = content.get("features", {})
    if not isinstance(features, dict):
        raise ValueError("its `features` are not an object")
    found = ListedHypothesis(number, text, None, features, content)
    if pieces is None:
        return found
    if not isinstance(pieces, list) or not all(
        isinstance(piece, str) for piece in pieces
    ):
        raise ValueError("its `pieces` are not a list of strings")
    return replace(found, pieces=tuple(pieces))


def _feature(name, value):
    shown = value if isinstance(value, int) else f"{value:.6f}"
    return f"{name}= {shown}"


def check_feature_name(name: str) -> None:
    """Refuses a name that is empty, or has white space, `=` or `|`."""
    if not name or re.search(r"[\s=|]", name):
        raise UserError(
            "`--feature`: must be a name without white space, = and |. "
            f"Received: {name!r}"
        )


def _are_features(field):
    """Whether a field has names with `=` and numbers, or numbers alone."""
    words = field.split()
    return bool(words) and all(
        _is_number(word) or (len(word) > 1 and word.endswith("="))
        for word in words
    )


def _is_number(word):
    try:
        float(word)
    except ValueError:
        return False
    return True


def _dumped(content):
    return json.dumps(content, ensure_ascii=False)
