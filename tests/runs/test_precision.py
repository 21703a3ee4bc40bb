"""`training.precision: auto`: chosen once, and kept."""

import pytest

from keras_deepnmt.recipes import load_recipe
from keras_deepnmt.runs import precision, start
from keras_deepnmt.runs.run_folder import RunFolder

AUTO = {"training.precision": "auto"}


@pytest.fixture
def fastest(monkeypatch):
    """Sets what is fastest on this machine."""

    def choose(value):
        found = (value, "a reason")
        monkeypatch.setattr(start, "fastest_precision", lambda: found)

    return choose


@pytest.mark.thorough
def test_a_run_keeps_what_it_began_with(train_in, fastest, tmp_path, capsys):
    changes = {**AUTO, "training.steps": 2, "data.valid": None}
    fastest("float32")
    train_in(changes, quiet=False)
    said = "training.precision: auto is float32 here: a reason."
    assert said in capsys.readouterr().err
    run = tmp_path / "run"
    assert load_recipe(run / "recipe.yaml").training.precision == "float32"
    # Resumed on another machine.
    fastest("mixed_bfloat16")
    resumed = train_in({**changes, "training.steps": 3}, quiet=False)
    assert resumed["steps"] == 3
    assert "precision" not in capsys.readouterr().err
    assert RunFolder(run).started().training.precision == "float32"


@pytest.mark.parametrize(
    "multiplies, are_compiled, expected",
    [
        (True, True, "mixed_bfloat16"),
        (True, False, "float32"),
        (False, True, "float32"),
    ],
)
def test_bfloat16_is_chosen_where_its_products_are_fast(
    monkeypatch, multiplies, are_compiled, expected
):
    from keras_deepnmt.xla import autoclustering

    monkeypatch.setattr(precision, "multiplies_bfloat16", lambda: multiplies)
    monkeypatch.setattr(
        autoclustering, "clusters_are_compiled", lambda: are_compiled
    )
    found, reason = precision.fastest_precision()
    assert found == expected and reason


@pytest.mark.parametrize(
    "capability, expected",
    [
        ((7, 0), "float32"),
        ((8, 0), "mixed_bfloat16"),
        ((9, 0), "mixed_bfloat16"),
    ],
)
def test_gpus_since_ampere_compute_in_bfloat16(
    monkeypatch, capability, expected
):
    import tensorflow as tf

    gpus = ["GPU:0"]
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: gpus)
    monkeypatch.setattr(
        tf.config.experimental,
        "get_device_details",
        lambda gpu: {"compute_capability": capability},
    )
    assert precision.fastest_precision()[0] == expected
