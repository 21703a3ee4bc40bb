"""Figures as values with the names of their axes, before they are drawn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from keras_deepnmt.terminal_text import escape_controls

Rows = list[list[Any]]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """The attributes that all figures have.

    Attributes:
        name: Name of the files, without extension.
        title: Short title.
        caption: What is shown, with its source; a sentence or two.
    """

    name: str
    title: str
    caption: str

    def __post_init__(self):
        # Names of runs, and words, may come from strangers.
        for field in fields(self):
            value = _without_controls(getattr(self, field.name))
            object.__setattr__(self, field.name, value)

    def table(self) -> Rows:
        """Returns the values as rows, the first one with the column names."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class HeatMap(Figure):
    """A matrix of values.

    Attributes:
        name, title, caption: See `Figure`.
        values: Float array `(rows, columns)`; `nan` is left empty.
        row_names: A name for each row, the first one at the top.
        column_names: A name for each column.
        row_label: What the rows are.
        column_label: What the columns are.
        unit: What the values are, with their unit.
        limits: Values of the first and the last color. Defaults to those that
            occur.
    """

    values: np.ndarray
    row_names: Sequence[str]
    column_names: Sequence[str]
    row_label: str
    column_label: str
    unit: str
    limits: tuple[float, float] | None = None

    def table(self) -> Rows:
        rows = [[self.row_label, *self.column_names]]
        for name, values in zip(self.row_names, self.values, strict=True):
            rows.append([name, *map(_number, values)])
        return rows


@dataclass(frozen=True, kw_only=True)
class Lines(Figure):
    """Curves of numbers over numbers.

    Attributes:
        name, title, caption: See `Figure`.
        series: For each curve its x and y values.
        x_label: What x is, with its unit.
        y_label: What y is, with its unit.
    """

    series: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    x_label: str
    y_label: str

    def table(self) -> Rows:
        rows: Rows = [["series", self.x_label, self.y_label]]
        for name, (xs, ys) in self.series.items():
            rows += [
                [name, _number(x), _number(y)]
                for x, y in zip(xs, ys, strict=True)
            ]
        return rows


@dataclass(frozen=True, kw_only=True)
class Bars(Figure):
    """A number for each of some names, for one or several series.

    Attributes:
        name, title, caption: See `Figure`.
        names: The names, from left to right.
        series: A value for each name; `nan` is left empty.
        y_label: What the values are, with their unit.
        intervals: Half the width of each value's interval. Defaults to none.
        x_label: What the names are.
        as_points: Whether points are drawn instead of bars, on an axis that
            need not begin at 0.
    """

    names: Sequence[str]
    series: Mapping[str, Sequence[float]]
    y_label: str
    intervals: Mapping[str, Sequence[float]] | None = None
    x_label: str = ""
    as_points: bool = False

    def table(self) -> Rows:
        intervals = self.intervals or {}
        header = [self.x_label or "name"]
        columns = []
        for name, values in self.series.items():
            header.append(name)
            columns.append(values)
            if name in intervals:
                header.append(f"{name}, interval ±")
                columns.append(intervals[name])
        rows: Rows = [header]
        for name, *values in zip(self.names, *columns, strict=True):
            rows.append([name, *map(_number, values)])
        return rows


@dataclass(frozen=True, kw_only=True)
class Points(Figure):
    """A scatter plot of several groups.

    Attributes:
        name, title, caption: See `Figure`.
        groups: For each group an array `(n, 2)`.
        x_label: What the first coordinate is.
        y_label: What the second coordinate is.
    """

    groups: Mapping[str, np.ndarray]
    x_label: str
    y_label: str

    def table(self) -> Rows:
        rows: Rows = [["group", self.x_label, self.y_label]]
        for name, points in self.groups.items():
            rows += [[name, *map(_number, point)] for point in points]
        return rows


@dataclass(frozen=True, kw_only=True)
class Table(Figure):
    """Rows of texts and numbers; not drawn, only written.

    Attributes:
        name, title, caption: See `Figure`.
        header: Names of the columns.
        rows: The rows.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def table(self) -> Rows:
        return [list(self.header), *([*row] for row in self.rows)]


def _number(value):
    """A number as it is written: six digits, nothing for `nan`."""
    return "" if np.isnan(value) else float(f"{float(value):.6g}")


def _without_controls(value):
    """A value whose texts have escapes instead of control characters."""
    if isinstance(value, str):
        return escape_controls(value)
    if isinstance(value, Mapping):
        return {_without_controls(k): value[k] for k in value}
    if isinstance(value, list | tuple):
        return type(value)(map(_without_controls, value))
    return value
