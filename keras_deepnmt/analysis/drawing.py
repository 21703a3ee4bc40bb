"""Draws figures with matplotlib, and writes them as PNG, SVG and CSV."""

import csv
import html
import io
import math
import textwrap
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
# The widths of figures in inches: of one, two and three columns of a page. All
# have one size of type, whatever their width.
WIDTHS = (3.9, 8.05, 12.2)
TYPE_SIZE = 8  # points
# Largest numbers of cells whose names, and whose values, are all written, and
# the narrowest cell with a value.
MOST_TICKS = 60
MOST_WRITTEN_CELLS = 120
_NARROWEST_WRITTEN_CELL = 0.33
# With more values than these the markers of a curve would hide it.
MOST_MARKERS = 30
# With more values than these a page does not show each under the pointer.
MOST_SHOWN_VALUES = 1_500
PNG_DPI = 200
_BEGINS_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_LONGEST_LEVEL_NAME = 3
_LINE_OF_NAME = 24  # letters of a long name below a bar
_LETTER = 0.062  # mean width of a letter, in inches
_STYLE = {
    "font.size": TYPE_SIZE,
    **{f"{part}.labelsize": TYPE_SIZE for part in ("axes", "xtick", "ytick")},
    "figure.titlesize": TYPE_SIZE,
    "legend.fontsize": TYPE_SIZE,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.3,
    # A name with a dollar sign is no formula.
    "text.parse_math": False,
    # The same values give the same file: no random names.
    "svg.hashsalt": "keras_deepnmt",
    # Text stays text, which can be searched and copied.
    "svg.fonttype": "none",
}


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
    import matplotlib
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
    with matplotlib.rc_context(_STYLE):
        drawing = matplotlib.figure.Figure(layout="constrained")
        axes = drawing.add_subplot()
        drawers[type(figure)](figure, drawing, axes)
        if titled:
            # Escaped, since matplotlib 3.11 parses wrapped text in any case.
            title = figure.title.replace("$", r"\$")
            drawing.suptitle(
                title, fontweight="bold", wrap=True, parse_math=True
            )
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


def page_svg(figure: Figure, prefix: str) -> str:
    """Returns a figure as an `<svg>` of a page.

    Each value is shown where the pointer is. The figure has no title, which the
    page has, and its names begin with `prefix`, so that no other has them.
    """
    drawing = draw(figure, titled=False)
    text = _image(drawing, "svg").decode()
    # Without the XML declaration, which HTML does not have.
    text = text[text.index("<svg") :]
    for before in (' id="', 'href="#', "url(#"):
        text = text.replace(before, f"{before}{prefix}-")
    label = html.escape(f"{figure.title}. {figure.caption}")
    text = text.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    areas = "".join(
        f'<rect class="hit" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}"><title>{html.escape(value)}</title></rect>'
        for x, y, width, height, value in _value_areas(figure, drawing)
    )
    return text.replace("</svg>", f"{areas}</svg>")


def _value_areas(figure, drawing):
    """Where each value is drawn: x, y, width, height, all in points, text."""
    if isinstance(figure, Points):
        return
    axes = drawing.axes[0]
    scale = 72 / drawing.dpi
    height = drawing.get_figheight() * 72

    def area(corner, opposite, text):
        (x, low), (right, top) = (
            axes.transData.transform(point) * scale
            for point in (corner, opposite)
        )
        return min(x, right), height - top, abs(right - x), top - low, text

    if isinstance(figure, HeatMap):
        values = np.asarray(figure.values, "float64")
        if values.size > MOST_SHOWN_VALUES:
            return
        for row, column in zip(*np.nonzero(~np.isnan(values)), strict=True):
            yield area(
                (column - 0.5, row + 0.5),
                (column + 0.5, row - 0.5),
                f"{figure.row_names[row]}, {figure.column_names[column]}: "
                f"{values[row, column]:.4g}",
            )
    elif isinstance(figure, Bars):
        low, top = axes.get_ylim()
        for (name, values), bars in zip(
            figure.series.items(),
            _series_of_bars(len(figure.series), len(figure.names)),
            strict=True,
        ):
            errors = (figure.intervals or {}).get(name)
            for place, (value, (left, right)) in enumerate(
                zip(values, bars, strict=True)
            ):
                if math.isnan(value):
                    continue
                text = f"{figure.names[place]}: {value:.4g}"
                if len(figure.series) > 1:
                    text = f"{name}, {text}"
                if errors is not None and not math.isnan(errors[place]):
                    text += f" ± {errors[place]:.2g}"
                yield area((left, low), (right, top), text)
    elif sum(len(xs) for xs, _ in figure.series.values()) <= MOST_SHOWN_VALUES:
        for name, (xs, ys) in figure.series.items():
            for x, y in zip(xs, ys, strict=True):
                if math.isfinite(y):
                    text = f"{name}, {x:,.10g}: {y:.4g}"
                    left, up, *_ = area((x, y), (x, y), text)
                    yield left - 4, up - 4, 8, 8, text


def csv_text(figure: Figure) -> str:
    """Returns the values of a figure as the text of a CSV file."""
    text = io.StringIO()
    rows = (map(_no_formula, row) for row in figure.table())
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _no_formula(cell):
    """A cell that a spreadsheet does not compute: ' goes before such texts."""
    if not isinstance(cell, str) or not cell.startswith(_BEGINS_FORMULA):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def _image(drawing, kind, **options):
    import matplotlib

    buffer = io.BytesIO()
    # The same values give the same file: no date.
    metadata = {"Date": None} if kind == "svg" else {}
    with matplotlib.rc_context(_STYLE):
        drawing.savefig(buffer, format=kind, metadata=metadata, **options)
    return buffer.getvalue()


def num_columns(figure: Figure) -> int:
    """Returns how many columns of a page a drawn figure is wide."""
    return WIDTHS.index(_width(figure)) + 1


def _width(figure):
    """The least of `WIDTHS` that the figure needs."""
    needed = WIDTHS[0]
    if isinstance(figure, HeatMap):
        needed = _beside_cells(figure) + 0.13 * np.shape(figure.values)[1]
    elif isinstance(figure, Bars):
        number = len(figure.series) * len(figure.names)
        needed = 0.8 + 0.13 * number + 0.05 * len(figure.names)
    return next((width for width in WIDTHS if width >= needed), WIDTHS[-1])


def _beside_cells(figure):
    """Width of what stands beside the cells of a heat map, in inches."""
    return 1.0 + _LETTER * max(map(len, figure.row_names))


def _draw_heat_map(figure, drawing, axes):
    values = np.asarray(figure.values, "float64")
    rows, columns = values.shape
    longest = max(map(len, figure.column_names))
    width = _width(figure)
    drawing.set_size_inches(
        width, np.clip(1.0 + 0.18 * rows + 0.05 * longest, 2.4, 14.0)
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
    cell = (width - _beside_cells(figure)) / columns
    if values.size <= MOST_WRITTEN_CELLS and cell >= _NARROWEST_WRITTEN_CELL:
        for row, column in zip(*np.nonzero(~np.isnan(values)), strict=True):
            # Dark cells get light text.
            dark = image.norm(values[row, column]) < 0.5
            axes.text(
                # Without the sign of a small negative number: -0.00.
                *(column, row, f"{round(values[row, column], 2) + 0.0:.2f}"),
                ha="center",
                va="center",
                color="white" if dark else "black",
            )


def _draw_lines(figure, drawing, axes):
    for number, (name, (xs, ys)) in enumerate(figure.series.items()):
        few = len(xs) <= MOST_MARKERS
        axes.plot(
            *(xs, ys),
            color=COLORS[number % len(COLORS)],
            linestyle=LINE_STYLES[number // len(COLORS) % len(LINE_STYLES)],
            marker=MARKERS[number % len(MARKERS)] if few else None,
            markersize=3,
            label=name,
        )
    axes.set_xlabel(figure.x_label)
    axes.set_ylabel(figure.y_label)
    if all(
        float(x).is_integer() for xs, _ in figure.series.values() for x in xs
    ):
        axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(alpha=0.3)
    _set_size(figure, drawing, 2.6, list(figure.series))


def _draw_bars(figure, drawing, axes):
    number = len(figure.series)
    for index, ((name, values), places) in enumerate(
        zip(
            figure.series.items(),
            _series_of_bars(number, len(figure.names)),
            strict=True,
        )
    ):
        shared = {
            "yerr": (figure.intervals or {}).get(name),
            "capsize": 2,
            "color": COLORS[index % len(COLORS)],
            "label": name,
        }
        centers = places.mean(axis=1)
        if figure.as_points:
            marker = MARKERS[index % len(MARKERS)]
            axes.errorbar(centers, values, fmt=marker, markersize=5, **shared)
        else:
            axes.bar(
                centers,
                values,
                places[:, 1] - places[:, 0],
                error_kw={"linewidth": 0.8},
                edgecolor="black",
                linewidth=0.5,
                **shared,
            )
    if figure.as_points:
        axes.set_xlim(-0.6, len(figure.names) - 0.4)
    else:
        axes.axhline(0.0, color="black", linewidth=0.8)
    names = [textwrap.fill(name, _LINE_OF_NAME) for name in figure.names]
    longest = max(len(line) for name in names for line in name.split("\n"))
    # As many names as have room.
    most = (_width(figure) - 0.6) / (0.08 + _LETTER * min(longest, 3))
    step = math.ceil(len(names) / most)
    _name_places(axes, range(len(names)), names, 30, step)
    axes.set_xlabel(figure.x_label)
    axes.set_ylabel(figure.y_label)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    # Slanted names take room below the bars.
    height = 2.4 + 0.5 * _LETTER * longest
    _set_size(figure, drawing, height, list(figure.series))


def _series_of_bars(number, places):
    """Where the bars of each series begin and end: arrays `(places, 2)`."""
    width = 0.8 / number
    for index in range(number):
        left = np.arange(places) - 0.4 + index * width
        yield np.stack([left, left + width], axis=1)


def _draw_points(figure, drawing, axes):
    names = []
    for number, (name, points) in enumerate(figure.groups.items()):
        names.append(f"{name} ({len(points):,})")
        axes.scatter(
            *np.asarray(points, "float64").reshape(-1, 2).T,
            s=7,
            alpha=0.6,
            color=COLORS[number % len(COLORS)],
            marker=MARKERS[number % len(MARKERS)],
            label=names[-1],
            # Thousands of points would make a large SVG file.
            rasterized=True,
        )
    axes.set_xlabel(figure.x_label)
    axes.set_ylabel(figure.y_label)
    _set_size(figure, drawing, 3.0, names, least=1)


def _name_places(axes, places, names, rotation, step=1):
    """Writes names below the x axis, each `step`-th; long ones are rotated."""
    names, places = names[::step], places[::step]
    if max(map(len, names)) <= _LONGEST_LEVEL_NAME:
        axes.set_xticks(places, names)
        return
    axes.set_xticks(places, names, rotation=rotation)
    for label in axes.get_xticklabels():
        label.set(horizontalalignment="right", rotation_mode="anchor")


def _set_size(figure, drawing, height, names, least=2):
    """Sets the size, with room for a legend below: it hides no value."""
    width = _width(figure)
    if len(names) >= least:
        entry = 0.5 + _LETTER * max(map(len, names))
        columns = int(np.clip((width - 0.2) // entry, 1, len(names)))
        drawing.legend(loc="outside lower left", ncols=columns, frameon=False)
        height += 0.17 * math.ceil(len(names) / columns)
    drawing.set_size_inches(width, height)
