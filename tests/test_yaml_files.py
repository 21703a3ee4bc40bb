"""YAML means what users write, such as 1e-5, and a mistake is one line."""

import pytest

from keras_deepnmt.commands.options.overrides import read_overrides
from keras_deepnmt.errors import UserError
from keras_deepnmt.yaml_files import parse_yaml, yaml_value


@pytest.mark.parametrize(
    "text, value",
    [
        ("1e-5", 1e-5),
        ("-2E+3", -2e3),
        ("1.e6", 1e6),
        ("1.5e-9", 1.5e-9),
        ("7", 7),
        ("0x1f", 31),
        # A part of a hash, a version and a name stay text.
        ("1e5f", "1e5f"),
        ("1.2.3", "1.2.3"),
        ("e5", "e5"),
        ("'1e-5'", "1e-5"),
    ],
)
def test_a_number_with_an_exponent_needs_no_point(text, value):
    found, _ = parse_yaml(f"a: {text}", "a.yaml")
    assert found == {"a": value} and type(found["a"]) is type(value)
    assert yaml_value(text) == value
    assert read_overrides([f"a.b={text}"]) == {"a.b": value}


@pytest.mark.parametrize("text", ["2024-13-01", "[1", "a: b: c", "[" * 3000])
def test_what_is_not_yaml_is_told_in_a_line(text):
    with pytest.raises(ValueError):
        yaml_value(text)
    with pytest.raises(UserError, match="the value of a must be YAML"):
        read_overrides([f"a={text}"])
