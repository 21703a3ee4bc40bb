"""Limits of translations and batches, from the command line and recipes."""

import pytest

from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes import load_recipe

RECIPE = "transformer_tiny.demo_de_en"
OPTIONS = {
    "max_length_ratio": 2.5,
    "max_extra_tokens": 7,
    "batch_size": 5,
    "batch_tokens": 999,
}


def test_options_reach_the_search(deepnmt, monkeypatch):
    seen = []

    def see(run, **options):
        seen.append({name: options.get(name) for name in OPTIONS})
        raise UserError("seen")

    monkeypatch.setattr("keras_deepnmt.translator.Translator.load", see)
    monkeypatch.setattr(
        "keras_deepnmt.runs.test_translations.translate_runs", see
    )
    words = [
        word
        for name, value in OPTIONS.items()
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]
    for verb in (["translate"], ["evaluate"]):
        assert deepnmt(*verb, "run", *words).code == 2
    assert seen == [OPTIONS] * 2


def test_a_recipe_takes_them():
    changes = {f"decoding.{name}": value for name, value in OPTIONS.items()}
    decoding = load_recipe(RECIPE, changes).decoding
    assert {name: getattr(decoding, name) for name in OPTIONS} == OPTIONS
    plain = load_recipe(RECIPE).decoding
    assert (plain.max_length_ratio, plain.max_extra_tokens) == (1.0, 50)
    assert plain.batch_tokens is None


@pytest.mark.parametrize(
    "changes, said",
    [
        (
            {"decoding.max_length_ratio": 0, "decoding.max_extra_tokens": 0},
            "must not both be 0",
        ),
        (
            {"decoding.max_length_ratio": -1},
            "decoding.max_length_ratio` must be",
        ),
        ({"decoding.batch_tokens": 0}, "batch_tokens.* an integer from 1 to"),
    ],
)
def test_wrong_limits_of_a_recipe_are_named(changes, said):
    with pytest.raises(UserError, match=said):
        load_recipe(RECIPE, changes)


def test_a_wrong_ratio_is_named(refused):
    line = refused("translate", "run", "--max-length-ratio", "-1")
    assert "`--max-length-ratio`" in line
