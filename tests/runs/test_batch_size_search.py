"""What must be true of `batch_tokens: auto`.

* the fewest parts that fit are found, in few trials
* a trial that needs more memory than there is, is stopped; one that is killed
  or out of memory does not fit; any other failure is reported
* an object that only this process knows is refused before any trial
* a run records the number of parts found and trains with it; a resumed run uses
  it again without trials
"""

import keras
import pytest

from keras_deepnmt import losses
from keras_deepnmt.data.batches.batch_shapes import BatchShape
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError
from keras_deepnmt.losses import LabelSmoothedCrossEntropy
from keras_deepnmt.models import ObjectiveTerm
from keras_deepnmt.models.training_step import objective_term
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs import batch_size as batch_search
from keras_deepnmt.runs import build
from keras_deepnmt.runs.batch_size import (
    available_memory,
    fewest_parts,
    find_batch,
    find_parts,
    run_trial,
)
from keras_deepnmt.runs.batch_trial import largest_batch_shapes
from keras_deepnmt.runs.changes import find_changes
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.zoo import registry

AUTO = {
    "training.batch_tokens": "auto",
    "training.effective_batch_tokens": 90,
}
MIB = 2**20


@pytest.mark.parametrize("most", [1, 2, 7, 16, 37])
def test_the_fewest_parts_are_found_as_by_trying_all(most):
    for smallest in range(1, most + 3):
        tried = []

        def fits(parts, smallest=smallest, tried=tried):
            assert 1 <= parts <= most
            tried.append(parts)
            return parts >= smallest

        everything = [p for p in range(1, most + 1) if p >= smallest]
        assert fewest_parts(fits, most) == (everything or [None])[0]
        assert len(tried) == len(set(tried)) <= 2 * most.bit_length()


def python(code):
    return ["-c", code]


def test_a_trial_that_takes_too_much_is_stopped():
    # It would go on for a minute.
    greedy = "import time; kept = b'x' * (200 << 20); time.sleep(60)"
    assert run_trial(python(greedy), limit=100 * MIB) is None


def test_a_trial_that_fits_tells_its_peak():
    code = "import time; kept = b'x' * (100 << 20); time.sleep(0.5)"
    peak = run_trial(python(code), limit=4096 * MIB)
    assert 100 * MIB < peak < 200 * MIB


@pytest.mark.parametrize(
    "code",
    [
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        f"raise SystemExit({batch_search.DOES_NOT_FIT})",
        "raise SystemExit('RESOURCE_EXHAUSTED: out of memory')",
        "raise SystemExit('std::bad_alloc')",
    ],
)
def test_a_trial_that_died_of_memory_does_not_fit(code):
    assert run_trial(python(code), limit=4096 * MIB) is None


def test_a_trial_that_fails_otherwise_is_told():
    failed = "trial of a batch failed: .*no such"
    with pytest.raises(RuntimeError, match=failed):
        run_trial(python("raise ValueError('no such')"), limit=4096 * MIB)
    mistake = "from keras_deepnmt.errors import UserError; "
    mistake += "raise UserError('no such')"
    with pytest.raises(UserError, match=failed):
        run_trial(python(mistake), limit=4096 * MIB)


def test_the_largest_batch_shapes_are_those_of_most_tokens_scores_and_length():
    many, long = BatchShape(100, 9, 9), BatchShape(10, 80, 8)
    scores = BatchShape(60, 3, 25)
    assert largest_batch_shapes(
        [BatchShape(9, 9, 9), many, long, scores]
    ) == sorted([many, long, scores])
    assert largest_batch_shapes([many, BatchShape(100, 9, 8)]) == [many]


def test_this_machine_has_some_memory():
    assert available_memory() > 0


@pytest.mark.thorough
def test_a_recipe_is_tried_in_a_process_of_its_own(recipe_file, prepared_dir):
    recipe = load_recipe(recipe_file, AUTO)
    said = []
    assert find_parts(recipe, prepared_dir, 4, said.append) == 1
    assert said[0].startswith("Trying 90 tokens in 1 part: fits; ")
    assert said[-1] == "Batches of 90 tokens are computed in 1 part."


def test_where_nothing_fits_it_is_told_in_one_line(
    recipe_file, prepared_dir, monkeypatch
):
    # Python alone takes more.
    monkeypatch.setattr(batch_search, "available_memory", lambda: MIB)
    recipe, said = load_recipe(recipe_file, AUTO), []
    with pytest.raises(
        UserError, match="need too much memory even in 2 parts"
    ) as info:
        find_parts(recipe, prepared_dir, 2, said.append)
    assert "\n" not in str(info.value)
    assert said == [
        "Trying 90 tokens in 1 part: too large for 0.0 GiB.",
        "Trying 90 tokens in 2 parts: too large for 0.0 GiB.",
    ]


@keras.saving.register_keras_serializable("test_batch_size_search")
class OwnFusion(keras.layers.Layer):
    """A layer of a user's own, in a slot."""


class OwnTerm(ObjectiveTerm):
    """A term of the objective of a user's own."""


class OwnLoss(LabelSmoothedCrossEntropy):
    """A loss of a user's own."""


def own_model(source_vocabulary_size, target_vocabulary_size, **overrides):
    """A preset of a user's own."""


@pytest.mark.parametrize(
    "key, change",
    [
        ("training.objective", {"training.objective": {"own_term": {}}}),
        ("training.loss", {"training.loss": "own_loss"}),
        ("model.preset", {"model.preset": "own_model"}),
        (
            "model.overrides",
            {
                "model.overrides.encoder_fusion": {
                    "test_batch_size_search>OwnFusion": {}
                }
            },
        ),
    ],
)
def test_what_only_this_process_knows_is_refused_before_any_trial(
    key, change, recipe_file, prepared_dir, monkeypatch
):
    monkeypatch.setitem(losses._LOSSES, "own_loss", OwnLoss)
    monkeypatch.setitem(objective_term._TERMS, "own_term", OwnTerm)
    monkeypatch.setitem(registry._PRESETS, "own_model", own_model)
    monkeypatch.setattr(batch_search, "run_trial", None)
    recipe = load_recipe(recipe_file, {**AUTO, **change})
    message = f"`{key}` with .*[Oo]wn.*, which"
    with pytest.raises(UserError, match=message) as info:
        find_batch(recipe, None, PreparedData(prepared_dir), print)
    assert "which test_batch_size_search defines" in str(info.value)
    assert "\n" not in str(info.value)


def test_what_was_found_is_looked_for_again_if_updates_need_other_memory(
    recipe_file, prepared_dir, monkeypatch
):
    monkeypatch.setattr(batch_search, "find_parts", lambda *given: 8)
    recipe, data = load_recipe(recipe_file, AUTO), PreparedData(prepared_dir)
    tokens = recipe.training.effective_batch_tokens
    found = {"batch_tokens": tokens, "gradient_accumulation_steps": 2}

    def parts(**changed):
        changes = {f"training.{key}": value for key, value in changed.items()}
        given = load_recipe(recipe_file, {**AUTO, **changes})
        made = find_changes(recipe, given)
        made = find_batch(given, {"batch": found}, data, print, made)
        return made["gradient_accumulation_steps"]

    assert parts() == parts(label_smoothing=0.3) == 2
    assert parts(activation_checkpointing=True) == 8
    assert parts(objective={"r_drop": {"alpha": 1.0}}) == 8


@pytest.mark.thorough
def test_a_run_keeps_what_was_found(
    train_in, without_search, tmp_path, monkeypatch
):
    peaks = {1: None, 2: None, 3: 7, 4: 7}

    def trial(command, limit):
        recipe = load_recipe(command[-2])
        assert recipe.training.batch_tokens == 90
        return peaks[recipe.training.gradient_accumulation_steps]

    monkeypatch.setattr(batch_search, "run_trial", trial)
    compiled = []
    compile_model = build.compile_model

    def compile_noted(recipe, model, **options):
        compiled.append(recipe.training.gradient_accumulation_steps)
        return compile_model(recipe, model, **options)

    monkeypatch.setattr(build, "compile_model", compile_noted)
    train_in({**AUTO, "training.steps": 3})
    recipe = RunFolder(tmp_path / "run").recipe()
    assert recipe.training.batch_tokens == "auto"
    assert recipe.resolved["batch"] == {
        "batch_tokens": 90,
        "gradient_accumulation_steps": 3,
    }
    # A resumed run tries nothing.
    monkeypatch.setattr(batch_search, "run_trial", None)
    assert train_in(AUTO)["steps"] == 6
    assert compiled == [3, 3]


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"training.batch_tokens": "auto"}, "must be given with"),
        ({"training.effective_batch_tokens": 9}, "belongs to `batch_tokens"),
        (
            {**AUTO, "training.gradient_accumulation_steps": 2},
            "is found by `batch_tokens: auto`",
        ),
        ({"training.batch_tokens": 0}, "must be an integer from 1 to"),
        ({"training.batch_tokens": "most"}, "training.batch_tokens` must be"),
    ],
)
def test_keys_that_do_not_go_together_are_refused(recipe_file, changes, said):
    with pytest.raises(UserError, match=said):
        load_recipe(recipe_file, changes)
