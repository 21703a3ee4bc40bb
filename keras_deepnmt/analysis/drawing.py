"""Draws figures with matplotlib, and writes them as PNG, SVG and CSV."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from keras_deepnmt.analysis.figure import (
    Bars,
    Figure,
    HeatMap,
    Lines,
    Points,
    Table,
)
from keras_deepnmt.files import write_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

# Okabe and Ito (2008): distinguishable with every kind of color blindness.
COLORS = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7"),
    *("#56B4E9", "#D55E00", "#F0E442", "#000000"),
)
# So that curves and points differ in more than their colors.
LINE_STYLES = ("-", "--", "-.", ":")
MARKERS = "os^Dv*Px"
HEAT_MAP_COLORS = "cividis"
# Largest numbers of cells whose names, and whose values, are all written.
MOST_TICKS = 60
MOST_WRITTEN_CELLS = 120
# With more values than these the markers of a curve would hide it.
MOST_MARKERS = 30
PNG_DPI = 150
_LONGEST_LEVEL_NAME = 3


def draw(figure: Figure, titled: bool = True) -> "Drawing":
    """Draws a figure.

    Args:
        figure: `HeatMap`, `Lines`, `Bars` or `Points`.
        titled: Whether the title stands above it.

    Returns:
        A `matplotlib.figure.Figure`, which notebooks show.

    Raises:
        TypeError: for a figure of another type, such as a `Table`.

    Example:
    >>> from keras_deepnmt.analysis import Lines
    >>> lines = Lines(
    ...     name="loss",
    ...     title="Training",
    ...     caption="Loss of a run.",
    ...     series={"a": ([1, 2, 3], [6.0, 5.0, 4.5])},
    ...     x_label="updates",
    ...     y_label="loss (nats per token)",
    ... )
    >>> len(draw(lines).axes)
    1
    """
    import matplotlib.figure

    drawers = {
        HeatMap: _draw_heat_map,
        Lines: _draw_lines,
        Bars: _draw_bars,
        Points: _draw_points,
    }
    if type(figure) not in drawers:
        names = ", ".join(kind.__name__ for kind in drawers)
        raise TypeError(
            f"`figure` must be one of {names}. Received: "
            f"{type(figure).__name__}."
        )
    drawing = matplotlib.figure.Figure(layout="constrained")
    axes = drawing.add_subplot()
    drawers[type(figure)](figure, drawing, axes)
    if titled:
        axes.set_title(figure.title, fontsize=11)
    return drawing


def save_figures(figures: Iterable[Figure], folder: str | Path) -> list[Path]:
    """Writes each figure as PNG and SVG, and its values as CSV.

    A `Table` is only written as CSV. Files of an earlier call are replaced.

    Args:
        figures: The figures.
        folder: Folder to write to; made if it is missing.

    Returns:
        The files, in the order of the figures.

    Raises:
        OSError: if the folder cannot be written to.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for figure in figures:
        content = {"csv": csv_text(figure).encode()}
        if not isinstance(figure, Table):
            drawing = draw(figure)
            content["png"] = _image(drawing, "png", dpi=PNG_DPI)
            content["svg"] = _image(drawing, "svg")
        for extension, data in content.items():
            files.append(folder / f"{figure.name}.{extension}")
            write_bytes(files[-1], data)
    return files


def svg_text(figure: Figure, titled: bool = True) -> str:
    """Returns a drawn figure as the text of an SVG file."""
    return _image(draw(figure, titled), "svg").decode()


def csv_text(figure: Figure) -> str:
    """Returns the values of a figure as the text of a CSV file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(figure.table())
    return text.getvalue()


def _image(drawing, kind, **options):
    import matplotlib

    buffer = io.BytesIO()
    # The same values give the same file: no date, no random names.
    metadata = {"Date": None} if kind == "svg" else {}
    # Text stays text, which can be searched and copied.
    style = {"svg.hashsalt": "keras_deepnmt", "svg.fonttype": "none"}
    with matplotlib.rc_context(style):
        drawing.savefig(buffer, format=kind, metadata=metadata, **options)
    return buffer.getvalue()


def _draw_heat_map(figure, drawing, axes):
    values = np.asarray(figure.values, "float64")
    rows, columns = values.shape
    drawing.set_size_inches(
        np.clip(2.5 + 0.42 * columns, 4.0, 16.0),
        np.clip(1.6 + 0.34 * rows, 2.4, 14.0),
    )
    low, high = figure.limits or (None, None)
    image = axes.imshow(
        values, cmap=HEAT_MAP_COLORS, vmin=low, vmax=high, aspect="auto"
    )
    drawing.colorbar(image, ax=axes, label=figure.unit)
    axes.set_xlabel(figure.column_label)
    axes.set_ylabel(figure.row_label)
    if columns <= MOST_TICKS:
        _name_places(axes, range(columns), figure.column_names, 60)
    if rows <= MOST_TICKS:
        axes.set_yticks(range(rows), figure.row_names)
    axes.tick_params(labelsize=8)
    if values.size <= MOST_WRITTEN_CELLS:
        for row, column in zip(*np.nonzero(~np.isnan(values)), strict=True):
            # Dark cells get light text.
            dark = image.norm(values[row, column]) < 0.5
            axes.text(
                # Without the sign of a small negative number: -0.00.
                *(column, row, f"{round(values[row, column], 2) + 0.0:.2f}"),
                ha="center",
                va="center",
                fontsize=7,
                color="white" if dark else "black",
            )


def _draw_lines(figure, drawing, axes):
    drawing.set_size_inches(7.0, 4.2)
    for number, (name, (xs, ys)) in enumerate(figure.series.items()):
        few = len(xs) <= MOST_MARKERS
        axes.plot(
            *(xs, ys),
            color=COLORS[number % len(COLORS)],
            linestyle=LINE_STYLES[number // len(COLORS) % len(LINE_STYLES)],
            marker=MARKERS[number % len(MARKERS)] if few else None,
            markersize=4,
            label=name,
        )
    axes.set_xlabel(figure.x_label)
    axes.set_ylabel(figure.y_label)
    if all(
        float(x).is_integer() for xs, _ in figure.series.values() for x in xs
    ):
        axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(alpha=0.3)
    _add_legend(axes, len(figure.series))


def _draw_bars(figure, drawing, axes):
    number = len(figure.series)
    drawing.set_size_inches(
        np.clip(2.0 + 0.35 * number * len(figure.names), 4.5, 14.0), 4.0
    )
    width = 0.8 / number
    places = np.arange(len(figure.names))
    for index, (name, values) in enumerate(figure.series.items()):
        axes.bar(
            places + (index - (number - 1) / 2) * width,
            values,
            width,
            yerr=(figure.intervals or {}).get(name),
            capsize=3,
            color=COLORS[index % len(COLORS)],
            edgecolor="black",
            linewidth=0.5,
            label=name,
        )
    axes.axhline(0.0, color="black", linewidth=0.8)
    _name_places(axes, places, figure.names, 30)
    axes.set_xlabel(figure.x_label)
    axes.set_ylabel(figure.y_label)
    axes.grid(axis="y", alpha=0.3)
    _add_legend(axes, number)


def _draw_points(figure, drawing, axes):
    drawing.set_size_inches(6.0, 4.8)
    for number, (name, points) in enumerate(figure.groups.items()):
        axes.scatter(
            *np.asarray(points, "float64").reshape(-1, 2).T,
            s=9,
            alpha=0.6,
            color=COLORS[number % len(COLORS)],
            marker=MARKERS[number % len(MARKERS)],
            label=f"{name} ({len(points):,})",
            # Thousands of points would make a large SVG file.
            rasterized=True,
        )
    axes.set_xlabel(figure.x_label)
    axes.set_ylabel(figure.y_label)
    axes.legend(fontsize=8)


def _name_places(axes, places, names, rotation):
    """Writes names below the x axis; long ones are rotated."""
    if max(map(len, names)) <= _LONGEST_LEVEL_NAME:
        axes.set_xticks(places, names, fontsize=8)
        return
    axes.set_xticks(places, names, rotation=rotation, fontsize=8)
    for label in axes.get_xticklabels():
        label.set(horizontalalignment="right", rotation_mode="anchor")


def _add_legend(axes, number):
    if number > 1:
        axes.legend(fontsize=8, ncols=1 + number // 10)
