"""What must be true of figures that are drawn and written.

* the drawing holds the values, under their names, with labels and units
* PNG, SVG and a CSV with the same values are written, always the same bytes
* a table is only a CSV
* a page shows the values, and no legend hides any
"""

import csv
import dataclasses
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from matplotlib.text import Text

from keras_deepnmt.analysis import (
    Bars,
    HeatMap,
    Lines,
    Points,
    Table,
    draw,
    save_figures,
)
from keras_deepnmt.analysis.drawing import (
    TYPE_SIZE,
    WIDTHS,
    num_columns,
    page_svg,
)

TEXTS = {"title": "A title", "caption": "What is shown."}
HEAT_MAP = HeatMap(
    name="map",
    values=np.array([[0.25, np.nan, 1.0], [0.5, 0.75, 0.0]]),
    row_names=["top", "bottom"],
    column_names=["a", "b", "c"],
    row_label="query",
    column_label="key",
    unit="weight (share)",
    **TEXTS,
)
LINES = Lines(
    name="curves",
    series={"one": ([1, 2], [3.0, 4.0]), "two": ([1, 3], [5.0, np.nan])},
    x_label="updates",
    y_label="loss (nats)",
    **TEXTS,
)
BARS = Bars(
    name="bars",
    names=["first name", "second name"],
    series={"one": [1.0, 2.0], "two": [-1.0, np.nan]},
    intervals={"one": [0.1, 0.2]},
    y_label="BLEU",
    x_label="branch",
    **TEXTS,
)
POINTS = Points(
    name="points",
    groups={"source": np.array([[0.0, 1.0], [2.0, 3.0]])},
    x_label="first",
    y_label="second",
    **TEXTS,
)
TABLE = Table(name="words", header=["a", "b"], rows=[["x, y", 1]], **TEXTS)
DRAWN = [HEAT_MAP, LINES, BARS, POINTS]


def test_a_heat_map_shows_its_values_in_their_places():
    drawing = draw(HEAT_MAP)
    axes, colors = drawing.axes
    np.testing.assert_array_equal(
        np.ma.filled(axes.images[0].get_array(), np.nan), HEAT_MAP.values
    )
    ticks = [
        [label.get_text() for label in labels]
        for labels in (axes.get_yticklabels(), axes.get_xticklabels())
    ]
    assert ticks == [["top", "bottom"], ["a", "b", "c"]]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("key", "query")
    assert colors.get_ylabel() == "weight (share)"
    written = {t.get_position(): t.get_text() for t in axes.texts}
    assert written[0, 0] == "0.25" and written[2, 1] == "0.00"
    assert (1, 0) not in written  # nothing is known there


def test_curves_differ_in_more_than_color():
    drawing = draw(LINES)
    (axes,) = drawing.axes
    first, second = axes.lines
    assert first.get_color() != second.get_color()
    assert first.get_marker() != second.get_marker()
    np.testing.assert_array_equal(second.get_ydata(), [5.0, np.nan])
    (legend,) = drawing.legends
    assert [t.get_text() for t in legend.get_texts()] == ["one", "two"]


def test_bars_stand_beside_each_other_with_their_intervals():
    (axes,) = draw(BARS).axes
    bars = [bar for group in axes.containers[1::2] for bar in group]
    heights = [bar.get_height() for bar in axes.patches]
    np.testing.assert_array_equal(heights, [1.0, 2.0, -1.0, np.nan])
    places = sorted(bar.get_x() for bar in axes.patches)
    assert len(set(places)) == 4 and bars


@pytest.mark.thorough
@pytest.mark.parametrize("figure", DRAWN, ids=lambda figure: figure.name)
def test_all_files_are_written_and_the_same_each_time(figure, tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        files = save_figures([figure], folder)
        assert {file.name for file in files} == {
            f"{figure.name}.{kind}" for kind in ("csv", "png", "svg")
        }
    for file in files:
        assert (folders[0] / file.name).read_bytes() == file.read_bytes()
    root = ElementTree.parse(tmp_path / "one" / f"{figure.name}.svg").getroot()
    assert root.tag.endswith("}svg")
    assert "A title" in "".join(root.itertext())
    png = (tmp_path / "one" / f"{figure.name}.png").read_bytes()
    assert png.startswith(b"\x89PNG") and len(png) > 3_000


def test_the_csv_has_the_values(tmp_path):
    def rows_of(figure):
        save_figures([figure], tmp_path)
        with open(tmp_path / f"{figure.name}.csv", newline="") as file:
            return list(csv.reader(file))

    assert rows_of(HEAT_MAP) == [
        ["query", "a", "b", "c"],
        ["top", "0.25", "", "1.0"],
        ["bottom", "0.5", "0.75", "0.0"],
    ]
    assert rows_of(LINES)[1:] == [
        ["one", "1.0", "3.0"],
        ["one", "2.0", "4.0"],
        ["two", "1.0", "5.0"],
        ["two", "3.0", ""],
    ]
    assert rows_of(BARS) == [
        ["branch", "one", "one, interval ±", "two"],
        ["first name", "1.0", "0.1", "-1.0"],
        ["second name", "2.0", "0.2", ""],
    ]
    assert rows_of(POINTS)[1:] == [
        ["source", "0.0", "1.0"],
        ["source", "2.0", "3.0"],
    ]


@pytest.mark.parametrize("figure", [LINES, BARS], ids=["lines", "bars"])
def test_a_legend_hides_no_value(figure):
    drawing = draw(figure)
    drawing.draw_without_rendering()
    (axes,), (legend,) = drawing.axes, drawing.legends
    # Nor the names of the axes.
    assert not axes.get_tightbbox().overlaps(legend.get_window_extent())


def test_all_figures_have_one_size_of_type_and_few_widths():
    wide = dataclasses.replace(
        BARS,
        names=[f"name {number}" for number in range(40)],
        series={"one": [1.0] * 40},
        intervals=None,
    )
    assert [num_columns(figure) for figure in (*DRAWN, wide)] == [1] * 4 + [2]
    for figure in (*DRAWN, wide):
        drawing = draw(figure)
        assert drawing.get_figwidth() == WIDTHS[num_columns(figure) - 1]
        drawing.draw_without_rendering()
        texts = drawing.findobj(lambda a: isinstance(a, Text) and a.get_text())
        assert {text.get_fontsize() for text in texts} == {TYPE_SIZE}


def shown_values(svg):
    """The texts of the values that an SVG shows, with their boxes."""
    return {
        rect.find("{*}title").text: [
            float(rect.get(side)) for side in ("x", "y", "width", "height")
        ]
        for rect in ElementTree.fromstring(svg).iter()
        if rect.get("class") == "hit"
    }


def test_a_page_shows_each_value_where_it_is_drawn():
    values = shown_values(page_svg(BARS, "a"))
    assert set(values) == {
        *("one, first name: 1 ± 0.1", "one, second name: 2 ± 0.2"),
        "two, first name: -1",
    }
    left, right = (
        values[text]
        for text in ("one, first name: 1 ± 0.1", "two, first name: -1")
    )
    assert left[0] + left[2] == pytest.approx(right[0], abs=0.2)
    values = shown_values(page_svg(HEAT_MAP, "a"))
    assert len(values) == 5  # nothing where nothing is known
    top, bottom = values["top, a: 0.25"], values["bottom, a: 0.5"]
    assert top[0] == bottom[0]
    assert top[1] + top[3] == pytest.approx(bottom[1], abs=0.2)
    assert "one, 2: 4" in shown_values(page_svg(LINES, "a"))
    assert shown_values(page_svg(POINTS, "a")) == {}


def test_names_in_a_page_are_those_of_one_figure():
    one, other = (page_svg(BARS, name) for name in ("a", "b"))
    names = [set(re.findall(r' id="([^"]+)"', svg)) for svg in (one, other)]
    assert names[0] and not names[0] & names[1]
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', one))
    assert used <= names[0]
    assert 'role="img" aria-label="A title. What is shown."' in one


def test_a_table_is_only_a_csv(tmp_path):
    assert save_figures([TABLE], tmp_path) == [tmp_path / "words.csv"]
    assert (tmp_path / "words.csv").read_text() == 'a,b\n"x, y",1\n'
    with pytest.raises(TypeError, match="Received: Table"):
        draw(TABLE)


def test_a_spreadsheet_computes_no_name(tmp_path):
    names = ["=1+1", "+a", "-b", "@c", "\td", "-3.5", "+1e4", "e=", "", " f"]
    rows = [[name, -1.5, 7] for name in names]
    figure = dataclasses.replace(TABLE, header=["=x", "y", "z"], rows=rows)
    save_figures([figure], tmp_path)
    with open(tmp_path / "words.csv", newline="") as file:
        header, *found = csv.reader(file)
    assert header == ["'=x", "y", "z"]
    assert [name for name, _, _ in found] == [
        *("'=1+1", "'+a", "'-b", "'@c", "'\td"),
        *("-3.5", "+1e4", "e=", "", " f"),
    ]
    assert all(row[1:] == ["-1.5", "7"] for row in found)


STRANGE = "$a_$ \x1b[31m$\\frac{$ {b} 10$"


@pytest.mark.parametrize(
    "figure",
    [
        dataclasses.replace(
            HEAT_MAP, row_names=[STRANGE] * 2, column_names=[STRANGE] * 3
        ),
        dataclasses.replace(
            LINES, series={STRANGE: ([1], [2.0]), "b": ([], [])}
        ),
        dataclasses.replace(
            BARS,
            names=[STRANGE] * 2,
            series={STRANGE: [1.0, 2.0]},
            intervals=None,
        ),
        dataclasses.replace(POINTS, groups={STRANGE: np.ones((2, 2))}),
    ],
    ids=lambda figure: figure.name,
)
def test_names_are_drawn_as_they_are(figure, tmp_path):
    label = {"title": STRANGE, "name": "strange"}
    figure = dataclasses.replace(figure, **label)
    save_figures([figure], tmp_path)
    root = ElementTree.parse(tmp_path / "strange.svg").getroot()
    words = "".join("".join(root.itertext()).split())
    shown = "".join(STRANGE.replace("\x1b", r"\x1b").split())
    # In the title, and as a name.
    assert words.count(shown) >= 2
    ElementTree.fromstring(page_svg(figure, "a"))
