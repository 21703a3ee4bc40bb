"""What must be true of runs that average their weights as they train.

* the average is validated and is the final model; the raw weights train
* a run interrupted anywhere ends bit-identical
* an average of averages is refused
"""

import numpy as np
import pytest
from broken_runs import arrays, checkpoint, fails_at, translate_by_weights

from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs.build import build_model, compile_model
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.train import train
from keras_deepnmt.translator import Translator

pytestmark = pytest.mark.thorough

AVERAGED = {
    "training.optimizer.average_momentum": 0.75,
    "training.average_checkpoints": 1,
}


@pytest.fixture(scope="module")
def averaged(recipe_file, prepared_dir, tmp_path_factory):
    """A run of six updates that nothing disturbed."""
    run_dir = tmp_path_factory.mktemp("runs") / "averaged"
    recipe = load_recipe(recipe_file, AVERAGED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Translator, "translate", translate_by_weights)
        train(recipe, run_dir, prepared_dir=prepared_dir, quiet=True)
    return run_dir


def restored(run):
    """The model of a run's last checkpoint."""
    sizes = {f"{side}_vocabulary_size": 20 for side in ("source", "target")}
    model = build_model(run.recipe(), sizes)
    compile_model(run.recipe(), model)
    run.checkpoints().restore(model)
    return model


def test_the_final_model_is_the_average(averaged):
    run = RunFolder(averaged)
    model = restored(run)
    raw = [variable.numpy() for variable in model.trainable_variables]
    averages = [variable.numpy() for variable in model.optimizer.averages]
    final = Translator.load(averaged).model.trainable_variables
    for one, other in zip(final, averages, strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.all(averages[0][4:] != raw[0][4:])
    saved = arrays(averaged / "model/model.weights.h5")
    assert not [name for name in saved if name.startswith("optimizer")]
    assert run.read_summary()["averaged_steps"] == [6]


def test_the_average_is_validated_and_raw_weights_train(averaged, finished_run):
    raw, kept = checkpoint(finished_run, 6), checkpoint(averaged, 6)
    for name in raw:
        if not name.startswith("optimizer"):
            np.testing.assert_array_equal(raw[name], kept[name])
    ours, plain = RunFolder(averaged), RunFolder(finished_run)
    for (_, one), (_, other) in zip(
        ours.history(), plain.history(), strict=True
    ):
        assert one["loss"] == other["loss"]
        assert one["val_loss"] != other["val_loss"]


def test_a_run_broken_off_goes_on_with_its_average(
    averaged, train_in, without_search, tmp_path, monkeypatch
):
    # In a validation's search, and while the checkpoint after one is written.
    seen = []

    def interrupt(translator, texts):
        seen.extend(translator.model.get_weights())
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Translator, "translate", interrupt)
        with pytest.raises(KeyboardInterrupt):
            train_in(AVERAGED)
    saved = restored(RunFolder(tmp_path / "run"))
    np.testing.assert_equal(seen, saved.optimizer.averages)
    assert np.all(seen[0][4:] != saved.get_weights()[0][4:])
    fails_at(monkeypatch, 6, RuntimeError("killed"))
    with pytest.raises(RuntimeError, match="killed"):
        train_in(AVERAGED)
    train_in(AVERAGED)
    whole, broken = checkpoint(averaged, 6), checkpoint(tmp_path / "run", 6)
    assert whole.keys() == broken.keys()
    for name, value in whole.items():
        np.testing.assert_array_equal(value, broken[name], err_msg=name)
    one, other = RunFolder(averaged), RunFolder(tmp_path / "run")
    assert (
        one.read_summary()["weights_sha256"]
        == other.read_summary()["weights_sha256"]
    )
    for name in ("val_loss", "val_bleu"):
        assert [logs[name] for _, logs in one.history()] == [
            logs[name] for _, logs in other.history()
        ]


def test_an_average_of_averages_is_refused(recipe_file):
    with pytest.raises(UserError, match="average_checkpoints` must be 1"):
        load_recipe(
            recipe_file, {**AVERAGED, "training.average_checkpoints": 2}
        )
