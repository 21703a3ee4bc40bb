"""What must be true of pairs longer than a model has positions.

* at the start of training they are counted, in one line per split
* where all pairs fit, nothing is said
"""

import pytest

from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs.build import (
    build_for_training,
    build_model,
    describe_long_pairs,
)
from keras_deepnmt.training.strategies import make_strategy


@pytest.fixture(scope="module")
def data(prepared_dir):
    return PreparedData(prepared_dir)


@pytest.fixture
def warnings_of(recipe_file, data):
    def describe(max_length):
        changes = {"model.overrides.max_length": max_length}
        model = build_model(load_recipe(recipe_file, changes), data.manifest)
        return describe_long_pairs(model, data)

    return describe


def test_pairs_longer_than_the_positions_of_the_model_are_counted(
    warnings_of, data
):
    longest = data.store("train").lengths.max(axis=1)
    train, valid = warnings_of(6)
    count = int((longest > 6).sum())
    assert train.startswith(f"{count} of {len(longest)} pairs of `tr")
    assert f"(the longest has {longest.max()})" in train
    assert "pairs of `valid` are longer than the model" in valid


def test_nothing_is_said_of_pairs_that_fit(warnings_of, data):
    longest = max(
        int(data.store(split).lengths.max()) for split in ("train", "valid")
    )
    assert warnings_of(longest) == []


def test_training_begins_with_the_warning(recipe_file, data, caplog):
    """Also with --quiet."""
    build_for_training(
        load_recipe(recipe_file, {"model.overrides.max_length": 6}),
        data,
        make_strategy("one_device", None),
        say=lambda text: None,
    )
    warned = [record.levelname for record in caplog.records]
    assert warned == ["WARNING", "WARNING"]
    assert "are longer than the model's `max_length` of 6" in caplog.text
