"""Reads tables whose columns have names: TSV and JSON Lines.

A cell of TSV is all that is between two tabs; there are no quotation marks
around it, and no line breaks in it. Each line of JSON Lines is an object.
"""

import json
from collections import Counter
from collections.abc import Iterator

from keras_deepnmt.data.asked_sides import Asked
from keras_deepnmt.data.bilingual_files.contents import Part, cut_lines
from keras_deepnmt.data.bilingual_files.entries import (
    Edit,
    Entry,
    Pair,
)
from keras_deepnmt.data.corpora import LineReader, decode_line
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import as_cell
from keras_deepnmt.json_files import parse_json
from keras_deepnmt.suggestions import did_you_mean

DEFAULT_TARGET_COLUMN = "translation"
_BYTE_ORDER_MARK = "\ufeff"


class _PlainPart(Part):
    """A text without codes, in a table."""

    def finished(self, translation):
        return translation


class _Table:
    def __init__(self, file: LineReader, asked: Asked):
        self.left: Counter = Counter()
        self._file = file
        self._asked = asked

    def _lines(self):
        """Yields each line, its number, and where it begins and ends.

        The line end is no part of it.
        """
        place = 0
        self._file.lines = 0
        for raw in self._file.raw_lines():
            number = self._file.lines
            line = raw.removesuffix(b"\n").removesuffix(b"\r")
            yield (
                decode_line(line, self._file.path, number),
                number,
                place,
                place + len(line),
            )
            place += len(raw)

    def _place(self, number):
        return f"{self._file.path}, line {number}"

    def _column(self, option, names, number):
        """Returns the name of a column that was asked for."""
        name = getattr(self._asked, option)
        flag = f"--{option.replace('_', '-')}"
        shown = ", ".join(names)
        if name is None:
            raise UserError(
                f"{self._place(number)}: has the columns {shown}. Name one by "
                f"`{flag}`."
            )
        if name not in names:
            raise UserError(
                f"{self._place(number)}: has no column {name} (`{flag}`)."
                f"{did_you_mean(name, names)} It has {shown}."
            )
        return name

    def _new_column(self, names, number):
        name = self._asked.target_column or DEFAULT_TARGET_COLUMN
        if name in names:
            raise UserError(
                f"{self._place(number)}: has a column {name} already, which is "
                "not replaced. Name another one by `--target-column`."
            )
        return name


class TsvFile(_Table):
    """The rows of a TSV file, see `BilingualFile`.

    The first line has the names of the columns. `asked` has at least the source
    column.
    """

    def entries(self) -> Iterator[Entry]:
        self.left, names = Counter(), None
        for line, number, _, end in self._lines():
            if names is None:
                names = self._names(line)
                source = names.index(
                    self._column("source_column", names, number)
                )
                new = f"\t{self._new_column(names, number)}"
                yield Entry(
                    number,
                    [],
                    lambda _, end=end, new=new: [Edit(end, end, new)],
                )
                continue
            text = self._cells(line, names, number)[source]
            part = _PlainPart("", text if text.strip() else None)
            yield Entry(
                number,
                [part],
                lambda new, end=end: [Edit(end, end, f"\t{as_cell(new)}")],
            )

    def pairs(self) -> Iterator[Pair]:
        self.left, names = Counter(), None
        for line, number, _, _ in self._lines():
            if names is None:
                names = self._names(line)
                sides = [
                    names.index(self._column(side, names, number))
                    for side in ("source_column", "target_column")
                ]
                continue
            cells = self._cells(line, names, number)
            yield Pair(number, *(cells[side] for side in sides))

    def _names(self, line):
        return line.removeprefix(_BYTE_ORDER_MARK).split("\t")

    def _cells(self, line, names, number):
        cells = line.split("\t")
        if len(cells) != len(names):
            raise UserError(
                f"{self._place(number)}: must have {len(names)} cells, as many "
                f"as the first line names. Received: {len(cells)}"
            )
        return cells


class JsonLinesFile(_Table):
    """The objects of a JSON Lines file, see `BilingualFile`.

    A column is a key, or keys with dots between them for objects in objects,
    such as `translation.de`. `asked` has at least the source column.
    """

    def entries(self) -> Iterator[Entry]:
        self.left = Counter()
        for values, number, line, place in self._objects():
            text = self._text("source_column", values, number)
            new = self._new_column([*values, *_all_keys(values)], number)
            # The closing bracket is the last character but for white space.
            before = line[: line.rindex("}")].rstrip()
            end = place + len(before.encode())
            lines = [
                _PlainPart(piece, piece if is_line and piece.strip() else None)
                for piece, is_line in cut_lines(text)
            ]

            def edits(inside, end=end, new=new):
                value = json.dumps(inside, ensure_ascii=False)
                name = json.dumps(new, ensure_ascii=False)
                return [Edit(end, end, f", {name}: {value}")]

            yield Entry(number, lines, edits)

    def pairs(self) -> Iterator[Pair]:
        self.left = Counter()
        for values, number, _, _ in self._objects():
            sides = [
                " ".join(self._text(side, values, number).split())
                for side in ("source_column", "target_column")
            ]
            yield Pair(number, *sides)

    def _objects(self):
        for line, number, place, _ in self._lines():
            text = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
            if not text.strip():
                continue
            values = parse_json(text, self._place(number))
            if not isinstance(values, dict) or not values:
                raise UserError(
                    f"{self._place(number)}: must be an object with keys, such "
                    'as {"text": "..."}. Each line has one.'
                )
            yield values, number, line, place

    def _text(self, option, values, number):
        name = getattr(self._asked, option)
        found = values
        if name is not None and name not in values:
            for key in name.split("."):
                found = found.get(key) if isinstance(found, dict) else None
            if not isinstance(found, str):
                self._column(option, _all_keys(values), number)
        else:
            found = values[self._column(option, list(values), number)]
        if not isinstance(found, str):
            raise UserError(
                f"{self._place(number)}: `{name}` must be text. Received: "
                f"{json.dumps(found, ensure_ascii=False)[:60]}"
            )
        return found


def _all_keys(values, before=""):
    """The keys of an object and of those in it, with dots."""
    names = []
    for key, value in values.items():
        if isinstance(value, dict):
            names += _all_keys(value, f"{before}{key}.")
        else:
            names.append(f"{before}{key}")
    return names
