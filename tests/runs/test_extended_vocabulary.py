"""What must be true of a run that extends the vocabulary of a preset folder.

* new characters and words get pieces; it is said how many, and how many unknown
  tokens are left
* it begins with the folder's weights, and a killed run goes on as it was, with
  and without the option
* its preset folder is one like any, also a folder prepared with the extension
* what cannot be is refused in one line
"""

import shutil

import numpy as np
import pytest
import yaml
from broken_runs import arrays, fails_at

from keras_deepnmt import cli
from keras_deepnmt.data import PreparedData, Tokenizer
from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs.preset_folder import save_run_to_preset
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.runs.train import train
from keras_deepnmt.translator import Translator


@pytest.fixture
def new_recipe(recipe_file, tmp_path):
    """A recipe for text with characters and words that are new."""
    content = yaml.safe_load(recipe_file.read_text())
    del content["model"]
    lines = {"source": "", "target": ""}
    for number in range(60):
        dose = " ".join("abcdefgh"[int(d)] for d in f"{number:o}")
        lines["source"] += f"{dose} 5 µg Łukazin\n"
        lines["target"] += f"Łukazin µg 5 {dose}\n"
    for side, text in lines.items():
        (tmp_path / f"new.{side}").write_text(text, encoding="utf-8")
    files = {side: str(tmp_path / f"new.{side}") for side in lines}
    content["data"]["train"] = [files]
    content["training"] |= {
        "learning_rate": {"schedule": "constant", "peak": 0.01},
        "steps": 2,
        "validate_every": 1,
        "average_checkpoints": 1,
    }
    file = tmp_path / "new.yaml"
    file.write_text(yaml.safe_dump(content))
    return file


def new_pieces(before, after):
    pieces = after.pieces(range(after.vocabulary_size))
    assert pieces[: before.vocabulary_size] == before.pieces(
        range(before.vocabulary_size)
    )
    return pieces[before.vocabulary_size :]


def command(recipe, run_dir, *options):
    return ["train", str(recipe), "--run-dir", str(run_dir), *options]


@pytest.mark.thorough
def test_new_words_get_pieces_and_are_known(
    preset_dir, new_recipe, without_search, tmp_path, capsys
):
    run_dir = tmp_path / "run"
    options = "--from-preset", str(preset_dir), "--extend-vocabulary", "20"
    assert cli.main(command(new_recipe, run_dir, *options)) == 0
    said = capsys.readouterr().err
    data = PreparedData(run_dir / "data")
    before = Tokenizer(preset_dir / "tokenizer/target.model")
    pieces = new_pieces(before, data.target_tokenizer)
    assert len(pieces) == 20 and {"Ł", "5", "▁Łukazin"} <= set(pieces)
    assert pieces == new_pieces(
        Tokenizer(preset_dir / "tokenizer/source.model"), data.source_tokenizer
    )
    ids = data.store("train").read(range(60))
    assert data.target_tokenizer.decode([ids[9][1]])[0].startswith("Łukazin µg")
    added = data.manifest["extension"]["target"]
    assert (
        f"({added['characters']} characters, {added['merges']} merges)" in said
    )
    assert "0 unknown tokens are left in the training text" in said
    assert "has 20 new rows" in said
    # The run records the extension, and is one like any.
    recipe = RunFolder(run_dir).recipe()
    assert recipe.data.extend_vocabulary == 20
    resolved = recipe.resolved
    assert resolved["from_preset"] == str(preset_dir.resolve())
    assert resolved["initialize_from"]["tokenizer"] == {
        side: Tokenizer(preset_dir / f"tokenizer/{side}.model").sha256
        for side in ("source", "target")
    }
    assert resolved["tokenizer"]["target"] == data.target_tokenizer.sha256
    summary = RunFolder(run_dir).read_summary()
    assert summary["target_vocabulary_size"] == before.vocabulary_size + 20
    preset = save_run_to_preset(run_dir, tmp_path / "larger")
    assert Translator.load(preset, compiled=False).target_tokenizer.sha256 == (
        data.target_tokenizer.sha256
    )
    # Again, without the option and with another one.
    assert cli.main(command(new_recipe, run_dir)) == 0
    assert "this run is finished" in capsys.readouterr().err
    options = *options[:3], "19"
    assert cli.main(command(new_recipe, run_dir, *options)) == 2
    assert "`data.extend_vocabulary` is 20 in this run and 19" in (
        capsys.readouterr().err
    )


@pytest.mark.thorough
def test_the_run_begins_with_the_weights_of_the_folder(
    preset_dir, new_recipe, without_search, tmp_path
):
    content = yaml.safe_load(new_recipe.read_text())
    content["training"]["learning_rate"]["peak"] = 1e-30
    new_recipe.write_text(yaml.safe_dump(content))
    train(
        new_recipe,
        tmp_path / "run",
        from_preset=preset_dir,
        extend_vocabulary=9,
        quiet=True,
    )
    before = arrays(preset_dir / "model.weights.h5")
    after = arrays(tmp_path / "run" / "model" / "model.weights.h5")
    grown = 0
    for name, value in before.items():
        if value.shape != after[name].shape:
            grown += 1
            assert after[name].shape == (value.shape[0] + 9, value.shape[1])
        np.testing.assert_array_equal(after[name][: len(value)], value)
    assert grown == 1  # one matrix for both sides and the output


@pytest.mark.thorough
def test_a_killed_run_goes_on_as_it_was(
    preset_dir, new_recipe, without_search, tmp_path, monkeypatch, capsys
):
    start = {"from_preset": preset_dir, "extend_vocabulary": 20, "quiet": True}
    whole = train(new_recipe, tmp_path / "whole", **start)
    for number, options in enumerate(
        (
            [],
            ["--from-preset", str(preset_dir)],
            ["--from-preset", str(preset_dir), "--extend-vocabulary", "20"],
            ["--extend-vocabulary", "20"],
        )
    ):
        run_dir = tmp_path / f"run{number}"
        with monkeypatch.context() as patch:
            # Before any checkpoint, so that rows are made again.
            fails_at(patch, 1 + number % 2, RuntimeError("killed"))
            with pytest.raises(RuntimeError, match="killed"):
                train(new_recipe, run_dir, **start)
            assert cli.main(command(new_recipe, run_dir, *options)) == 0
        received = RunFolder(run_dir).read_summary()
        assert received["weights_sha256"] == whole["weights_sha256"]


@pytest.mark.thorough
def test_data_prepared_with_the_extension_are_the_same(
    preset_dir, new_recipe, without_search, tmp_path
):
    start = {"from_preset": preset_dir, "quiet": True}
    whole = train(new_recipe, tmp_path / "whole", **start, extend_vocabulary=20)
    content = yaml.safe_load(new_recipe.read_text())
    content["data"] |= {
        "tokenizer_source": str(preset_dir / "tokenizer/source.model"),
        "tokenizer_target": str(preset_dir / "tokenizer/target.model"),
        "extend_vocabulary": 20,
    }
    content["model"] = {"preset": "transformer_tiny"}
    file = tmp_path / "prepare.yaml"
    file.write_text(yaml.safe_dump(content))
    prepared = tmp_path / "prepared"
    prepare = ["prepare", "--recipe", str(file), "-q", "-o", str(prepared)]
    assert cli.main(prepare) == 0
    # The same once more: nothing is to be done.
    assert cli.main(prepare) == 0
    received = train(
        new_recipe, tmp_path / "run", prepared_dir=prepared, **start
    )
    assert received["weights_sha256"] == whole["weights_sha256"]
    # A run folder gives its weights, too.
    content["model"] = load_recipe(tmp_path / "run" / "recipe.yaml").model
    content["model"] = {
        "preset": content["model"].preset,
        "overrides": content["model"].overrides,
    }
    content["training"]["initialize_from"] = str(preset_dir)
    file.write_text(yaml.safe_dump(content))
    received = train(file, tmp_path / "other", quiet=True)
    assert received["weights_sha256"] == whole["weights_sha256"]


@pytest.mark.thorough
def test_separate_vocabularies_stay_separate(
    recipe_file, new_recipe, without_search, tmp_path
):
    """Also if they become as large as each other, or were so by chance."""
    content = yaml.safe_load(recipe_file.read_text())
    content["data"] |= {"joint": False, "vocabulary_size": 18}
    content["model"]["overrides"]["share_embeddings"] = False
    content["training"]["steps"] = 3
    file = tmp_path / "separate.yaml"
    file.write_text(yaml.safe_dump(content))
    train(file, tmp_path / "separate", quiet=True)
    preset = save_run_to_preset(tmp_path / "separate", tmp_path / "preset")
    shutil.rmtree(tmp_path / "separate")
    train(
        new_recipe,
        tmp_path / "run",
        from_preset=preset,
        extend_vocabulary=12,
        quiet=True,
    )
    names = arrays(tmp_path / "run" / "model" / "model.weights.h5")
    sizes = {name: len(v) for name, v in names.items() if len(v) == 30}
    assert len(sizes) == 2


@pytest.mark.thorough
def test_a_dry_run_says_what_would_happen(
    preset_dir, new_recipe, tmp_path, capsys
):
    options = "--from-preset", str(preset_dir), "--extend-vocabulary", "20"
    dry = command(new_recipe, tmp_path / "run", *options, "--dry-run")
    assert cli.main(dry) == 0
    said = capsys.readouterr().out
    assert "target vocabulary: 20 new pieces" in said
    assert not (tmp_path / "run").exists()


def test_mistakes_are_told_in_one_line(
    preset_dir, prepared_dir, new_recipe, recipe_file, tmp_path, capsys
):
    preset = ["--from-preset", str(preset_dir)]
    for recipe, options, expected in (
        (recipe_file, [], "20 without `--from-preset`"),
        (
            new_recipe,
            [*preset, "--prepared", str(prepared_dir)],
            "must not be given with a prepared folder",
        ),
    ):
        options = [*options, "--extend-vocabulary", "20", "-q"]
        assert cli.main(command(recipe, tmp_path / "run", *options)) == 2
        error = capsys.readouterr().err
        assert expected in error and error.count("\n") == 1
    content = load_recipe(recipe_file).data
    prepare = ["prepare", "--source", content.train[0].source, "--target"]
    prepare += [content.train[0].target, "--extend-vocabulary", "5", "-q"]
    assert cli.main([*prepare, "-o", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert "`extend_vocabulary` needs a given tokenizer" in error
    assert not (tmp_path / "run").exists()


def test_another_tokenizer_is_still_refused(
    preset_dir, prepared_dir, new_recipe, tmp_path
):
    """Data that extend another tokenizer are not those of the folder."""
    content = yaml.safe_load(new_recipe.read_text())
    content["data"]["vocabulary_size"] = 24
    content["model"] = {"preset": "transformer_tiny"}
    file = tmp_path / "other.yaml"
    file.write_text(yaml.safe_dump(content))
    other, longer = tmp_path / "other", tmp_path / "longer"
    prepare = ["prepare", "--recipe", str(file), "-q", "-o"]
    assert cli.main([*prepare, str(other)]) == 0
    content["data"] |= {
        "tokenizer_source": str(other / "tokenizer/source.model"),
        "tokenizer_target": str(other / "tokenizer/target.model"),
        "extend_vocabulary": 5,
    }
    file.write_text(yaml.safe_dump(content))
    assert cli.main([*prepare, str(longer)]) == 0
    with pytest.raises(UserError, match="tokenizers are not those of"):
        train(
            new_recipe,
            tmp_path / "run",
            from_preset=preset_dir,
            prepared_dir=longer,
            quiet=True,
        )
