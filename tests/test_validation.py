"""What must be true of dataclasses whose values are checked.

* they are frozen, equal by value, hashable, and can be changed and pickled
* all mistakes are reported, each with its rule, without pydantic's texts
* whole numbers are integers, whatever their type; booleans are not numbers
* their JSON Schema holds bounds, defaults and the texts of the docstring
"""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

from keras_deepnmt.errors import UserError, UserErrors
from keras_deepnmt.validation import (
    Count,
    Flag,
    Fraction,
    checked_dataclass,
    json_schema,
    number,
)


@checked_dataclass
class Shape:
    """A shape of a sheet.

    Args:
        rows: number of rows.
        ratio: height over width.
        margin: share of the height; null for none.
        ruled: whether it has lines.
    """

    rows: Count = 4
    ratio: number(gt=0) = dataclasses.field(
        default=1.5, metadata={"remedy": "1.5 is usual."}
    )
    margin: Fraction | None = None
    ruled: Flag = False

    def __post_init__(self):
        if self.ruled and self.rows == 3:
            raise ValueError("`rows` must not be 3 with `ruled`.")


def test_it_is_a_frozen_dataclass():
    shape = Shape(7, margin=0.25)
    assert shape == Shape(rows=7, margin=0.25) != Shape()
    assert hash(shape) == hash(Shape(7, margin=0.25))
    assert dataclasses.replace(shape, rows=5) == Shape(5, margin=0.25)
    assert pickle.loads(pickle.dumps(shape)) == copy.deepcopy(shape) == shape
    assert Shape.rows == 4
    with pytest.raises(dataclasses.FrozenInstanceError):
        shape.rows = 3


@pytest.mark.parametrize(
    "wrong, error, said",
    [
        ({"rows": 0}, UserError, "`rows` must be an integer from 1 to 2,147"),
        ({"rows": 2.5}, UserError, "Received: 2.5"),
        ({"rows": 2**31}, UserError, "Received: 2147483648"),
        ({"rows": True}, TypeError, "`rows` must be an integer"),
        ({"rows": "4"}, TypeError, "Received: '4'"),
        ({"rows": None}, TypeError, "Received: None"),
        ({"ratio": 0}, UserError, "a finite number above 0. Received: 0. 1.5"),
        ({"ratio": float("inf")}, UserError, "a finite number above 0"),
        ({"ratio": float("nan")}, UserError, "a finite number above 0"),
        ({"ratio": True}, TypeError, "`ratio` must be a finite number"),
        ({"margin": 1}, UserError, r"a finite number in \[0, 1\) or null"),
        ({"ruled": 1}, TypeError, "`ruled` must be true or false"),
        ({"rows": 3, "ruled": True}, UserError, "^`rows` must not be 3 with"),
        ({"rowz": 3}, TypeError, "rowz"),
    ],
)
def test_a_wrong_value_is_refused_with_its_rule(wrong, error, said):
    with pytest.raises(error, match=said) as info:
        Shape(**wrong)
    assert "\n" not in str(info.value)
    assert "pydantic" not in str(info.value)
    with pytest.raises(error, match=said):
        dataclasses.replace(Shape(), **wrong)


def test_all_mistakes_are_told():
    with pytest.raises(UserErrors) as info:
        Shape(-1, margin=2)
    assert [line.split()[0] for line in info.value.lines] == [
        "`rows`",
        "`margin`",
    ]
    with pytest.raises(TypeError, match="too many positional"):
        Shape(1, 2, 3, True, 5)


@pytest.mark.parametrize(
    "given", [7.0, np.int64(7), np.float32(7), np.array(7)[()]]
)
def test_whole_numbers_are_integers(given):
    shape = Shape(given, given)
    assert type(shape.rows) is int and type(shape.ratio) is float
    assert shape == Shape(7, 7.0)


def test_a_number_may_be_text_as_yaml_reads_it():
    assert Shape(ratio="1e-9").ratio == 1e-9


def test_the_schema_holds_what_is_checked_and_said():
    schema = json_schema(Shape)
    assert schema["title"] == "A shape of a sheet."
    assert schema["additionalProperties"] is False
    assert schema["properties"]["rows"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 2**31 - 1,
        "default": 4,
        "description": "number of rows.",
    }
