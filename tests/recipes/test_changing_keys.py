"""Each key of a recipe says whether it may change in a run that has begun.

* every key has a class, and the list of keys shows it
* keys that are known to matter to updates have not the class of those that
  do not, whatever the section
* a default that another key decides is known as such
"""

from typing import Any

import pytest

from keras_deepnmt.recipes.changing_keys import (
    Changing,
    Fixed,
    cause_of,
    changing_of,
)
from keras_deepnmt.recipes.checking import join
from keras_deepnmt.recipes.reference import reference_page, sections
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.validation import checked_dataclass, json_schema, keys_at

KEYS = [
    join(path, key)
    for path, kind in sections()
    for key in keys_at(json_schema(kind))
    if join(path, key) not in ("training", "data", "model")
]


def test_every_key_has_a_class_and_the_list_of_keys_shows_it():
    assert len(KEYS) > 100
    rows = {}
    for row in reference_page().splitlines():
        if row.startswith("| `"):
            # A corpus has a key `name` as well, further down.
            rows.setdefault(row.split("`")[1], row)
    assert not [key for key in KEYS if changing_of(key, Recipe) is None]
    for key in rows.keys() & set(KEYS):
        assert f"| {changing_of(key, Recipe).value} |" in rows[key], key
    assert len(rows.keys() & set(KEYS)) > 90


def test_a_key_without_a_class_is_noticed():
    @checked_dataclass
    class Part:
        """A part.

        Args:
            new: a key.
        """

        new: int = 0

    @checked_dataclass
    class Whole:
        """A whole.

        Args:
            part: a section.
            given: a key.
            free: a mapping.
        """

        part: Part
        given: Fixed[int] = 0
        free: Any = None

    assert changing_of("given", Whole) is Changing.FIXED
    assert changing_of("part.new", Whole) is None
    assert changing_of("free.mind", Whole) is None


@pytest.mark.parametrize(
    ("changing", "keys"),
    [
        (
            Changing.FREE,
            "training.steps training.validate_every training.checkpoint_every "
            "training.early_stopping_patience training.validation_beams "
            "training.validation_budget training.learning_rate.minimum",
        ),
        (
            Changing.FINAL,
            "training.average_checkpoints training.final_model "
            "training.early_stopping_metric decoding.num_beams "
            "decoding.batch_tokens evaluation.lowercase evaluation.metrics",
        ),
        (
            Changing.ON_REQUEST,
            "training.batch_tokens training.learning_rate.peak training.loss "
            "training.optimizer.beta_2 training.objective.r_drop.alpha "
            "training.temperature.start training.label_smoothing "
            "training.divergence.threshold training.jit_compile",
        ),
        (
            Changing.FIXED,
            "seed model.preset model.overrides.dropout data.train data.seed "
            "data.vocabulary_size training.initialize_from training.freeze "
            "training.optimizer.name training.optimizer.average_momentum",
        ),
    ],
)
def test_keys_have_the_class_of_what_depends_on_them(changing, keys):
    for key in keys.split():
        assert changing_of(key, Recipe) is changing, key


def test_defaults_that_another_key_decides_are_known():
    patience = "training.early_stopping_patience"
    assert cause_of("training.final_model", Recipe) == patience
    schedule = "training.learning_rate.schedule"
    assert cause_of("training.learning_rate.peak", Recipe) == schedule
    assert cause_of("training.loss_options", Recipe) == "training.loss"
    assert cause_of(patience, Recipe) is None
    assert cause_of("model.overrides.dropout", Recipe) is None
