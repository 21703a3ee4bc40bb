"""Classes in files of the user are found by name, and mistakes say where.

* a class is named alone or with its file; unclear names are refused
* an error in the file names the file and the line
* a file that changed is run again, the same file only once
* code that the user has never asked to run is refused, wherever it lies
* a saved model with a layer of the file loads when the file is imported
"""

import shutil

import keras
import numpy as np
import pytest
from own_code_process import LAYER, new_process

from keras_deepnmt import UserError, create_model, import_code
from keras_deepnmt.commands.terminal.failures import explain
from keras_deepnmt.layers import MultiHeadAttention
from keras_deepnmt.own_code.loading import given_code, latest_modules, use_code
from keras_deepnmt.own_code.lookup import find_own

SLOT = "encoder_self_attention"
SIZES = {
    "hidden_dim": 8,
    "intermediate_dim": 8,
    "num_heads": 2,
    "num_encoder_layers": 1,
    "num_decoder_layers": 1,
}
BATCH = {
    "source_ids": np.array([[5, 6, 3]]),
    "target_ids": np.array([[2, 7, 8, 4]]),
}


@pytest.fixture(autouse=True)
def folder(tmp_path):
    """The current folder, with my_layers.py."""
    (tmp_path / "my_layers.py").write_text(LAYER)
    with new_process(tmp_path / "home", tmp_path):
        yield tmp_path


def model_with(value):
    return create_model("transformer_tiny", 11, 13, **SIZES, **{SLOT: value})


def refused(value, message):
    with pytest.raises(ValueError, match=message) as found:
        model_with(value)
    return str(found.value)


@pytest.mark.parametrize(
    "name", ["ScaledSelfAttention", "my_layers.ScaledSelfAttention"]
)
def test_a_layer_is_named_alone_or_with_its_file(name):
    import_code("my_layers.py")
    model = model_with({name: {"scale": 0.5}})
    layer = model.encoder_blocks[0].attention
    assert (layer.scale, layer.num_heads) == (0.5, 2)


def test_a_class_of_an_installed_package_is_named_with_its_module():
    found = find_own("keras.layers.Dense", keras.layers.Layer)
    assert found is keras.layers.Dense


def test_a_misspelt_name_is_answered_with_the_nearest(folder):
    import_code("my_layers.py")
    refused("ScaledSelfAttentio", 'mean "ScaledSelfAttention"')
    refused("my_layers.ScaledAttention", 'mean "ScaledSelfAttention"')
    refused("my_layer.ScaledSelfAttention", "No module named 'my_layer'")


def test_a_layer_in_a_slot_that_it_does_not_name_is_refused():
    import_code("my_layers.py")
    with pytest.raises(ValueError, match="other slots: encoder_self_att"):
        create_model(
            "transformer_tiny",
            11,
            13,
            decoder_self_attention="ScaledSelfAttention",
        )


def test_one_name_in_two_files_is_refused_unless_the_file_is_named(folder):
    shutil.copy("my_layers.py", "others.py")
    import_code("my_layers.py", "others.py")
    refused(
        "ScaledSelfAttention",
        "is in my_layers and in others. Name yours "
        "my_layers.ScaledSelfAttention or others.ScaledSelfAttention",
    )
    assert model_with("others.ScaledSelfAttention")


def test_the_name_of_a_layer_of_the_package_is_refused(folder):
    name = "HybridSelfAttention"
    text = LAYER.replace("ScaledSelfAttention", name)
    (folder / "my_layers.py").write_text(text)
    import_code("my_layers.py")
    refused(name, "in my_layers and in keras_deepnmt. Name yours my_layers.")
    assert model_with(f"my_layers.{name}")


def test_two_files_of_one_name_are_refused(folder):
    (folder / "b").mkdir()
    shutil.copy("my_layers.py", "b")
    with pytest.raises(UserError, match="have the same name, my_layers"):
        import_code("my_layers.py", "b/my_layers.py")


@pytest.mark.parametrize(
    ("owner", "package"),
    [("keras_deepnmt.layers", "keras_deepnmt"), ("first", "first")],
)
def test_a_name_that_is_registered_already_is_refused(folder, owner, package):
    name = "RoleInteraction" if package == "keras_deepnmt" else "Mine"
    text = (
        "import keras\n"
        f"@keras.saving.register_keras_serializable(package={package!r})\n"
        f"class {name}(keras.layers.Layer): pass\n"
    )
    files = ["second.py"] if name != "Mine" else ["first.py", "second.py"]
    for file in files:
        (folder / file).write_text(text)
    known = keras.saving.get_registered_object(f"{package}>{name}")
    with pytest.raises(
        UserError, match=f"second.py: .*{package}>{name}.*{owner}"
    ):
        import_code(*files)
    if known is not None:
        assert keras.saving.get_registered_object(f"{package}>{name}") is known


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\ny = = 2\n", "bad.py, line 2: invalid syntax"),
        ("def f():\n    return 1 / 0\nf()\n", "bad.py, line 2: ZeroDivision"),
        ("import missing_module\n", "bad.py, line 1: ModuleNotFoundError: No"),
        ("import sys\nsys.exit(3)\n", "bad.py, line 2: SystemExit: 3"),
        ("import helper\n", "import it, too, before bad.py.*helper.py"),
    ],
)
def test_an_error_in_the_file_names_its_line(folder, text, message):
    (folder / "bad.py").write_text(text)
    (folder / "helper.py").touch()
    with pytest.raises(UserError, match=message):
        import_code("bad.py")
    (folder / "bad.py").write_text("RIGHT = 1\n")
    assert import_code("bad.py")[0].RIGHT == 1


def test_a_file_may_import_one_that_is_named_before_it(folder):
    (folder / "helper.py").write_text("WIDTH = 7\n")
    (folder / "bad.py").write_text("from helper import WIDTH\n")
    assert import_code("helper.py", "bad.py")[1].WIDTH == 7


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("missing.py", "missing.py: no such file"),
        ("missing_module", "neither a file that ends with .py nor an inst"),
        ("json.py", "an installed module `json` already. Rename"),
        ("numpy.py", "an installed module `numpy` already. Rename"),
        ("my-layers.py", "one that Python can import. Received: my-layers"),
    ],
)
def test_a_file_that_cannot_be_imported_is_refused(folder, entry, message):
    for name in ("json.py", "numpy.py", "my-layers.py"):
        (folder / name).touch()
    with pytest.raises(UserError, match=message):
        import_code(entry)


def test_a_changed_file_is_run_again_and_the_same_one_is_not(folder):
    file = folder / "counted.py"
    file.write_text("import pathlib\nN = [1]\n")
    first = import_code("counted.py")[0]
    assert import_code("counted.py")[0] is first
    file.write_text("import pathlib\nN = [2]\n")  # same size and second
    assert import_code("counted.py")[0].N == [2]


def test_a_changed_file_is_run_again_with_a_class_that_it_registers(folder):
    text = (
        "import keras\n"
        "@keras.saving.register_keras_serializable(package='mine')\n"
        "class Scaled(keras.layers.Layer): scale = 1\n"
    )
    for scale in (1, 2):
        (folder / "scaled.py").write_text(text.replace("1", str(scale)))
        kind = import_code("scaled.py")[0].Scaled
        assert kind.scale == scale
        assert keras.saving.get_registered_object("mine>Scaled") is kind


def test_a_file_is_run_again_if_one_before_it_changed(folder):
    files = ["helper.py", "user.py"]
    (folder / "helper.py").write_text("WIDTH = 7\n")
    (folder / "user.py").write_text("from helper import WIDTH\n")
    first = import_code(*files)[1]
    (folder / "helper.py").write_text("WIDTH = 9\n")
    (folder / "user.py").write_text("1 / 0\n")
    with pytest.raises(UserError, match="ZeroDivision"):
        import_code(*files)
    (folder / "user.py").write_text("from helper import WIDTH\n")
    second = import_code(*files)[1]
    assert (first.WIDTH, second.WIDTH) == (7, 9)
    assert import_code(*files)[1] is second


def test_a_file_is_run_again_after_a_mistake_in_it_is_mended(folder):
    file = folder / "my_layers.py"
    file.write_text("WIDTH = 7\n")
    import_code("my_layers.py")
    file.write_text("WIDTH = = 9\n")
    with pytest.raises(UserError, match="line 1: invalid syntax"):
        import_code("my_layers.py")
    assert latest_modules()["my_layers"].WIDTH == 7
    file.write_text("WIDTH = 9\n")
    assert import_code("my_layers.py")[0].WIDTH == 9


def test_a_file_that_failed_is_not_run_by_later_calls(folder):
    (folder / "bad.py").write_text("x = = 2\n")
    with pytest.raises(UserError, match="bad.py, line 1"):
        import_code("bad.py")
    import_code("my_layers.py")
    assert list(latest_modules()) == ["my_layers"]


def test_code_of_others_is_refused_until_the_user_names_it(folder):
    home = folder / "home"
    with pytest.raises(UserError, match="consent.*--import .*my_layers.py"):
        use_code([str(folder / "my_layers.py")])
    import_code("my_layers.py")
    # The same bytes elsewhere, in a later process of this user.
    (folder / "run").mkdir()
    copy = str(shutil.copy("my_layers.py", "run"))
    with new_process(home):
        use_code([copy])
    with new_process(folder / "home of another"), pytest.raises(UserError):
        use_code([copy])
    with open(copy, "a") as file:
        file.write("# one more line\n")
    with new_process(home), pytest.raises(UserError, match="consent"):
        use_code([copy])


def test_a_consent_that_others_may_have_noted_does_not_count(folder):
    home = folder / "home"
    import_code("my_layers.py")
    noted = home / "keras_deepnmt"
    for place in (noted, noted / "allowed_code"):
        assert place.stat().st_mode & 0o777 == 0o700
        place.chmod(0o777)
        with (
            new_process(home),
            pytest.raises(UserError, match=f"do not count: .*{place}. Del"),
        ):
            use_code(["my_layers.py"])
        place.chmod(0o700)
        with new_process(home):
            use_code(["my_layers.py"])


def test_without_a_home_the_consent_holds_for_the_process(folder):
    (folder / "file").touch()
    with new_process(folder / "file"):
        import_code("my_layers.py")
        assert model_with("ScaledSelfAttention")


def test_code_given_on_the_command_line_ends_with_the_command():
    with given_code(["my_layers.py"]):
        use_code([])
        assert find_own("ScaledSelfAttention", object) is not None
    with given_code([]):
        use_code([])
    with pytest.raises(ValueError, match="needs your consent"):
        with new_process("elsewhere"):
            use_code(["my_layers.py"])


def test_a_saved_model_loads_once_the_file_is_imported(folder):
    import_code("my_layers.py")
    model = model_with({"ScaledSelfAttention": {"scale": 0.3}})
    expected = np.asarray(model(BATCH))
    model.save("model.keras")
    with new_process(folder / "home"):
        with pytest.raises(TypeError, match="my_layers>ScaledSelfAttention"):
            keras.saving.load_model("model.keras")
        import_code("my_layers.py")
        loaded = keras.saving.load_model("model.keras")
        assert loaded.encoder_blocks[0].attention.scale == 0.3
        np.testing.assert_allclose(np.asarray(loaded(BATCH)), expected)


def test_an_error_while_a_layer_runs_names_its_line(folder):
    text = LAYER.replace("self.scale\n", "self.missing\n", 1)
    text = text.replace("* self.scale", "* self.missing")
    (folder / "my_layers.py").write_text(text)
    import_code("my_layers.py")
    with pytest.raises(AttributeError) as found:
        model_with("ScaledSelfAttention")(BATCH)
    assert explain(found.value) == (
        "my_layers.py, line 12, in call: AttributeError: "
        "'ScaledSelfAttention' object has no attribute 'missing'"
    )


def test_an_error_in_the_package_is_no_error_of_the_user():
    import_code("my_layers.py")
    with pytest.raises(TypeError) as found:
        MultiHeadAttention(num_heads=2)(None)
    assert explain(found.value) is None
