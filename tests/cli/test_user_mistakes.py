"""Which mistakes are the user's: each ends in one line and exit code 2.

All run in this process. A mistake that nothing refuses would start to train or
to translate; both are replaced by an error of the program, which exits with 1.
"""

import json
import shutil
import subprocess
import sys

import pytest
from digit_run import environment

from keras_deepnmt.runs.loop import TrainingLoop
from keras_deepnmt.translator import Translator

# Key and value of `--set`, and the message.
RECIPE_MISTAKES = [
    ("seed=-1", "`seed`"),
    ("seed=99999999999999", "`seed`"),
    ("name=2020-13-45", "must be YAML"),
    ("training.steps=!!int abc", "must be YAML"),
    ("training.steps=99999999999999", "2,147,483,647"),
    ("training.batch_tokens=99999999999999", "2,147,483,647"),
    ("training.max_shapes=300", "an integer from 1 to 255"),
    ("training.learning_rate.peak=.nan", "`training.learning_rate.peak`"),
    ("training.learning_rate.peak=.inf", "`training.learning_rate.peak`"),
    ("training.temperature.start=.nan", "`training.temperature.start`"),
    ("training.r_drop=.inf", "`training.objective.r_drop.alpha`"),
    ("training.loss=focal", "focal"),
    ("training.loss_options={gamma: 2}", "gamma"),
    ("training.objective={nosuch: {}}", "nosuch"),
    ("training.freeze=[nosuch*]", "nosuch*"),
    ("training.initialize_from=nowhere", "nowhere"),
    ("training.objective.distillation.teacher=nowhere", "nowhere"),
    ("model.overrides.hidden_dim=abc", "must be an integer"),
    ("model.overrides.hidden_dim=64.5", "must be an integer"),
    ("model.overrides.dropout=x", "must be a number"),
    ("model.overrides.dropout=2", "2"),
    ("model.overrides.share_embeddings=7", "must be true or false"),
    ("model.overrides.num_heads=3", "num_heads=3"),
    ("model.overrides.num_heads=0", "num_heads=0"),
    ("model.overrides.layer_norm_epsilon=x", "must be a number"),
    ("model.overrides.source_vocabulary_size=7", "cannot be set"),
    ("model.overrides.dtype=float33", "float33"),
    ("model.overrides.activation=nosuch", "nosuch"),
    ("model.overrides.encoder_fusion={a: 1}", "encoder_fusion"),
    (
        "model.overrides.encoder_self_attention="
        "{class_name: keras_deepnmt>HybridSelfAttention, "
        "config: {num_heads: 0}}",
        "`model`",
    ),
    ("evaluation.tokenize=nosuch", "`evaluation`: `tokenize`"),
    ("evaluation.tokenize=ja-mecab", "keras_deepnmt[ja]"),
    ("evaluation.metrics=[bleu, meteor]", "meteor"),
]

TEXT = ["--source", "test.source", "--target", "test.target"]
PREPARE = ["prepare", *TEXT, "--output", "out", "--vocabulary-size"]
# A command and its options, and the message.
OPTION_MISTAKES = [
    ([*PREPARE, "25", "--seed", "-1"], "`--seed`"),
    ([*PREPARE, "99999999999999"], "`--vocabulary-size`"),
    ([*PREPARE, "25", "--weight", "nan"], "`--weight`"),
    *(
        ([*words, "inf"], "inf is not >")
        for words in (
            [*PREPARE, "25", "--weight"],
            ["serve", "--timeout"],
            ["serve", "--wait-ms"],
            ["translate", "run", "--ensemble-weights", "1"],
            ["translate-files", "run", "--gpus-per-worker"],
        )
    ),
    (["serve", "--timeout", "0"], "`--timeout`: 0 is not >0 and <=2147483647."),
    ([*PREPARE, "25", "--corpus", "nosuch"], "nosuch"),
    (["translate", "run", "--batch-size", "99999999999999"], "2,147,483,647"),
    (["translate", "run", "--num-beams", "99999999999999"], "2,147,483,647"),
    (["evaluate", "run", *TEXT, "--metrics", "meteor"], "meteor"),
    (["evaluate", "run", *TEXT, "--tokenize", "ja-mecab"], "keras_deepnmt[ja]"),
    (["evaluate", "run", *TEXT, "--output", "no/such/file"], "no/such/file"),
    (["export", "run", "test.source"], "test.source"),
    (["verify", "test.source"], "test.source"),
    (["average", "run", "--last", "1", "--output", "run"], "run"),
    (
        ["sweep", "digits.yaml", "--grid", "training.steps=2024-13-01"],
        "the values of training.steps must be YAML",
    ),
    (
        ["sweep", "digits.yaml", "--grid", "seed=1", "seed=2"],
        "must have all values of seed in one place",
    ),
]

# A file that is damaged, the damage, the command, and the message.
TRANSLATE = ["translate", "run"]
EVALUATE = ["evaluate", "run", *TEXT]
TRAIN = ["train", "digits.yaml", "--prepared", "prepared", "--quiet"]
FILE_MISTAKES = [
    ("run/run.json", {"preset": "nosuch"}, TRANSLATE, "nosuch"),
    ("run/run.json", {"preset": 7}, TRANSLATE, "`preset`"),
    ("run/run.json", {"overrides": {"nosuch": 1}}, TRANSLATE, "nosuch"),
    ("run/run.json", {"overrides": 7}, TRANSLATE, "`overrides`"),
    ("run/run.json", {"decoding": {"num_beams": "x"}}, TRANSLATE, "num_beams"),
    ("run/run.json", {"decoding": {"num_beams": 0}}, TRANSLATE, "num_beams"),
    ("run/run.json", {"decoding": 7}, TRANSLATE, "`decoding`"),
    ("run/run.json", "[1]", TRANSLATE, "run.json: "),
    ("run/run.json", {"steps": "x"}, TRANSLATE, "`steps`"),
    ("run/run.json", {"tokenizer": {"source": 7}}, TRANSLATE, "r.source`"),
    ("run/run.json", {"code": [7]}, TRANSLATE, "`code.0`"),
    ("run/run.json", {"tags": [7]}, TRANSLATE, "`tags.0`"),
    ("run/run.json", {"files": {"a": 7}}, TRANSLATE, "`files.a`"),
    ("run/run.json", "[" * 3000, TRANSLATE, "levels of brackets"),
    ("prepared/manifest.json", "[" * 3000, TRAIN, "levels of brack"),
    ("run/run.json", "{", TRANSLATE, "not valid JSON"),
    ("run/scores.json", "{", EVALUATE, "scores.json: not valid JSON"),
    ("run/scores.json", "[]", EVALUATE, "Received: []. Rename or delete it"),
    ("run/tokenizer/source.model", "x", TRANSLATE, "source.model"),
    ("prepared/manifest.json", {"splits": 7}, TRAIN, "`splits`"),
    ("prepared/manifest.json", {"tokenizer": None}, TRAIN, "`tokenizer`"),
    ("prepared/manifest.json", {"corpora": None}, TRAIN, "`corpora`"),
    ("prepared/manifest.json", "\x00", TRAIN, "manifest.json"),
    ("digits.yaml", "[1, 2]", TRAIN, "digits.yaml"),
    ("digits.yaml", "name: 2020-13-45", TRAIN, "digits.yaml: not YAML"),
    ("digits.yaml", "[" * 3000, TRAIN, "digits.yaml: not YAML"),
    ("digits.yaml", "name: !!python/object:a.b x", TRAIN, "digits.yaml"),
    ("digits.yaml", "name: 'a", TRAIN, "digits.yaml"),
    ("digits.yaml", "a: &a [*a]", TRAIN, "digits.yaml"),
]


@pytest.fixture(scope="module")
def original(digits, tmp_path_factory):
    """A copy of the digits' folder without checkpoints."""
    skipped = shutil.ignore_patterns(
        "checkpoints", "tensorboard", "scores.json", "train.source"
    )
    folder = tmp_path_factory.mktemp("mistakes") / "digits"
    return shutil.copytree(digits, folder, ignore=skipped)


@pytest.fixture
def folder(original, tmp_path, monkeypatch):
    """The current folder, with that copy, and nothing long to be done."""

    def fail(*_, **__):
        raise AssertionError("not refused")

    monkeypatch.setattr(TrainingLoop, "run", fail)
    monkeypatch.setattr(Translator, "translate", fail)
    # As without the extra `ja`, also where it is installed.
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ja_mecab.MeCab", None)
    folder = shutil.copytree(original, tmp_path / "copy")
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("setting, said", RECIPE_MISTAKES)
def test_wrong_values_of_a_recipe(refused, folder, setting, said):
    assert said in refused(*TRAIN, "--run-dir", "new", "--set", setting)


@pytest.mark.parametrize("words, said", OPTION_MISTAKES)
def test_wrong_values_of_options(refused, folder, words, said):
    assert said in refused(*words)
    assert not (folder / "out").exists()


@pytest.mark.thorough
@pytest.mark.parametrize("name, damage, words, said", FILE_MISTAKES)
def test_damaged_files(refused, folder, name, damage, words, said):
    file = folder / name
    if isinstance(damage, dict):
        damage = json.dumps(json.loads(file.read_text()) | damage)
    file.write_text(damage)
    assert said in refused(*words)


def test_unknown_backend(folder):
    done = subprocess.run(
        [sys.executable, "-m", "keras_deepnmt", "translate", "run"],
        env=environment(KERAS_BACKEND="nosuch"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1, done.stderr
    assert "KERAS_BACKEND" in done.stderr


def test_a_bug_in_the_middle_of_a_command_is_no_mistake(deepnmt, folder):
    done = deepnmt(*TRAIN, "--run-dir", "new")
    assert done.code == 1
    assert "internal error: AssertionError: not refused. " in done.err
