"""A damaged file costs a line of explanation and nothing else.

Every file of a run, a prepared folder and a preset folder is cut, emptied,
deleted, replaced by a folder or by an empty list, exchanged with another file,
and gets flipped bits. The commands that read it then end with exit code 0 or 2,
an error of one line that is no internal one, change no other file, and with
code 2 leave no new one. No damaged weights reach HDF5, which crashes on some.

The damages are always the same, so that a change that has nothing to do with
files cannot fail. Only the slow test draws others, by the seed of the test run,
which its first lines name.
"""

import copy
import random
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import h5py
import keras
import pytest

from keras_deepnmt import analysis, zoo
from keras_deepnmt.cli import main
from keras_deepnmt.errors import UserError
from keras_deepnmt.evaluation.sentence_budget import SentenceBudget
from keras_deepnmt.files import write_json
from keras_deepnmt.recipes import extending
from keras_deepnmt.recipes.training_schema import DivergenceRecipe
from keras_deepnmt.runs.rollback import Rollbacks
from keras_deepnmt.runs.run_folder import RunFolder
from keras_deepnmt.training.checkpoint_files import checkpoint_fault
from keras_deepnmt.training.progress import EpochCounts
from keras_deepnmt.translator import Translator
from keras_deepnmt.translator.results import Hypothesis

# Of a damaged checkpoint, before which an older one is taken.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

KINDS = (
    *("cut", "emptied", "deleted", "a folder", "exchanged"),
    "an empty list",
)
# Of each file in all damages.
BITS = 6
TRANSLATE = "translate {folder} --no-compile --quiet -i {root}/text -o {out}"
LATEST = f"{TRANSLATE} --checkpoint latest"
LATEST_OF_ALL = f"{LATEST} --batch-size 7"
BEST = f"{TRANSLATE} --checkpoint best"
SCORE = "--no-compile --quiet --resamples 2 --prepared {root}/prepared"
EVALUATE = f"evaluate {{folder}} {SCORE}"
TRAIN = (
    "train {root}/letters.yaml --run-dir {folder} --prepared {root}/prepared"
)
PREPARE = "prepare --recipe {root}/letters.yaml --output {folder}"
OF_PREPARED = f"evaluate {{root}}/run {SCORE}"
# Without a whole `run.json` it makes the final model anew.
TRAIN_ANEW = f"{TRAIN} --allow-changes"
# Its updates are replaced by an error: see `STOPPED`.
TRAIN_ON = f"{TRAIN} --set training.steps=7"
STOPPED = "stopped before the first update"
REPORT = f"report {{folder}} {SCORE} --output {{out}}"
EXPORT = "export {folder} {out} --format preset"
AVERAGE = "average {folder} --last 2 --output {out}"
# They take about a second where they do not end at once.
SLOW = (AVERAGE, LATEST_OF_ALL, REPORT, TRAIN_ANEW, TRAIN_ON)


def read_checkpoints(folder):
    store = RunFolder(folder).checkpoints()
    store.latest()
    store.bests()


def read_divergence(folder):
    Rollbacks(RunFolder(folder), DivergenceRecipe()).rate_factor  # noqa: B018


def read_epoch_counts(folder):
    EpochCounts(RunFolder(folder).epoch_counts_file).of(6)


def read_validation(folder):
    budget = SentenceBudget(0.1, 9, 1, RunFolder(folder).validation_file)
    budget.file = None  # The choice is not written.
    budget.choose(5, seconds_of=None)


# The commands that read a file, by the beginning of its name; functions where
# a command would train first.
READERS = {
    "run": {
        "checkpoints/best": (BEST,),
        "checkpoints/step": (read_checkpoints, LATEST_OF_ALL, AVERAGE),
        "divergence": (read_divergence, TRAIN_ON),
        "epoch_counts": (read_epoch_counts, TRAIN_ON),
        "log.csv": (LATEST, TRAIN, TRAIN_ON, REPORT),
        "model/": (TRANSLATE, EXPORT, REPORT),
        "recipe.yaml": (LATEST, EVALUATE, TRAIN, EXPORT, AVERAGE, REPORT),
        "run.json": (TRANSLATE, EVALUATE, TRAIN_ANEW, EXPORT, AVERAGE, REPORT),
        "scores.json": (EVALUATE, EXPORT, REPORT),
        "tokenizer/": (TRANSLATE, LATEST, EXPORT, AVERAGE),
        "validation": (read_validation, TRAIN_ON),
    },
    "prepared": {
        "test": (PREPARE, OF_PREPARED),
        "manifest.json": (PREPARE, OF_PREPARED),
        "": (PREPARE,),
    },
    "preset": {"": (TRANSLATE,)},
}


@dataclass(frozen=True)
class Damage:
    """What happens to one file of a folder."""

    folder: Path
    file: Path
    kind: str

    def __str__(self):
        return f"{self.folder.name}/{self.file}: {self.kind}"

    @property
    def commands(self):
        readers = READERS[self.folder.name]
        found = next(
            readers[start]
            for start in readers
            if str(self.file).startswith(start)
        )
        return [
            command
            for command in found
            if command not in SLOW or self.kind in ("cut", "exchanged", "bit 0")
        ]

    def do(self, draw):
        file = self.folder / self.file
        content = file.read_bytes()
        if self.kind == "cut":
            file.write_bytes(content[: draw.randrange(1, len(content))])
        elif self.kind == "emptied":
            file.write_bytes(b"")
        elif self.kind == "an empty list":
            file.write_bytes(b"[]\n")
        elif self.kind == "exchanged":
            other = draw.choice([f for f in contents(self.folder) if f != file])
            file.write_bytes(other.read_bytes())
            other.write_bytes(content)
        elif self.kind.startswith("bit"):
            place = draw.randrange(len(content))
            flipped = bytes([content[place] ^ 1 << draw.randrange(8)])
            file.write_bytes(content[:place] + flipped + content[place + 1 :])
        else:
            file.unlink()
            if self.kind == "a folder":
                file.mkdir()


def contents(folder):
    return {
        file: file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def is_read(file):
    return "tensorboard" not in file.parts


def damages(folder, bits):
    kinds = [*KINDS, *(f"bit {number}" for number in range(bits))]
    return [
        Damage(folder, file.relative_to(folder), kind)
        for file in contents(folder)
        if is_read(file)
        for kind in kinds
    ]


@pytest.fixture(scope="module")
def echoes():
    """In place of searches, figures and updates.

    What is made again and again of the same values, models and YAML, is made
    once.
    """

    def nbest(translator, texts, *more, **given):
        return [[Hypothesis(text, 0.0, 0.0, ())] for text in texts]

    make = zoo.create_model
    made = {}

    def make_once(*arguments, **options):
        key = repr((arguments, sorted(options.items())))
        if key not in made or made[key].compiled:
            made[key] = make(*arguments, **options)
        return made[key]

    read = extending.read_yaml
    known = {}

    def read_once(file, place):
        key = (Path(file).read_bytes(), place)
        if key not in known:
            known[key] = read(file, place)
        return copy.deepcopy(known[key][0]), known[key][1]

    def stop(*_, **__):
        raise UserError(STOPPED)

    report = sys.modules[analysis.report.__module__]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Translator, "translate_nbest", nbest)
        patch.setattr(Translator, "translate", lambda _, texts, **__: [*texts])
        patch.setattr(zoo, "create_model", make_once)
        patch.setattr(extending, "read_yaml", read_once)
        patch.setattr(keras.Model, "fit", stop)
        # They read no files, and take five seconds.
        patch.setattr(report, "analyze", lambda run, **_: [])
        patch.setattr(report, "report_page", lambda *_: "page")
        yield


@pytest.fixture(scope="module")
def root(
    echoes,
    finished_run,
    prepared_dir,
    preset_dir,
    recipe_file,
    tmp_path_factory,
):
    """Copies of the three folders; the run has scores, too."""
    root = tmp_path_factory.mktemp("damaged")
    for name, source in (
        ("run", finished_run),
        ("prepared", prepared_dir),
        ("preset", preset_dir),
    ):
        shutil.copytree(source, root / name)
    write_json(
        root / "run" / "divergence.json",
        {"rollbacks": [{"rate_factor": 0.5}], "states": {"6": [2.5, 1]}},
    )
    (root / "text").write_text("a b c\n")
    shutil.copy(recipe_file, root / "letters.yaml")
    assert main(EVALUATE.format(folder=root / "run", root=root).split()) == 0
    return root


@pytest.fixture
def damaged_weights(monkeypatch):
    """The content of damaged weights; none of it may reach HDF5."""
    damaged, open_file = set(), h5py.File.__init__

    def open_whole(self, name, mode="r", **options):
        if isinstance(name, str | Path) and Path(name).is_file():
            if Path(name).read_bytes() in damaged:
                raise AssertionError(f"HDF5 would read {name}")
        open_file(self, name, mode, **options)

    monkeypatch.setattr(h5py.File, "__init__", open_whole)
    return damaged


def fault(command, damage, damaged, root, capfd):
    """Reads a damaged folder by a command; returns what is wrong with it.

    `damaged` are the folders of the files that differ.
    """
    before, paths = contents(damage.folder), set(root.rglob("*"))
    if callable(command):
        name, code, errors = command.__name__, 0, ""
        try:
            command(damage.folder)
        except UserError as error:
            code, errors = 2, f"{name}: error: {error}"
        except Exception as error:
            code = repr(error)
    else:
        out = root / "out"
        words = command.format(folder=damage.folder, root=root, out=out).split()
        name = words[0]
        capfd.readouterr()
        try:
            code = main(words)
        except (Exception, SystemExit) as error:
            code = repr(error)
        errors = capfd.readouterr().err
        if code != 2:
            # Of another command than the next one.
            shutil.rmtree(out) if out.is_dir() else out.unlink(missing_ok=True)
    after, new = contents(damage.folder), set(root.rglob("*")) - paths
    # Where it adds a row to the scores it has understood them.
    adds = name in ("evaluate", "report") and code == 0
    # Training goes on, or makes the model anew; whole checkpoints stay.
    is_training = "Resuming at update" in errors
    lost = [
        str(file)
        for file in before
        if after.get(file) != before[file]
        and not (adds and file.name == "scores.json")
        and not (
            is_training
            and (
                "checkpoints" not in file.parts
                or file.parent in damaged
                or checkpoint_fault(file.parent) is None
            )
        )
    ]
    if code == 2 and not is_training:
        lost += [f"new: {path}" for path in new]
    lines = [x for x in errors.splitlines() if " error: " in x]
    if code not in (0, 2) or len(lines) != (code == 2) or lost:
        return f"{damage}; {name}: {code} {errors[-500:]!r} lost: {lost}"
    return None


def faults(chosen, root, damaged_weights, capfd, seed):
    draw, found = random.Random(seed), []
    for damage in chosen:
        before = contents(damage.folder)
        damage.do(draw)
        after = contents(damage.folder)
        damaged = {f.parent for f in before if after.get(f) != before[f]}
        damaged_weights.clear()
        damaged_weights.update(
            content
            for file, content in after.items()
            if file.suffix == ".h5" and content not in before.values()
        )
        for command in damage.commands:
            found.append(fault(command, damage, damaged, root, capfd))
        file = damage.folder / damage.file
        if file.is_dir():
            shutil.rmtree(file)
        for file in contents(damage.folder).keys() - before.keys():
            file.unlink()
            if not any(file.parent.iterdir()):
                file.parent.rmdir()
        for file, content in before.items():
            # Training may have removed a checkpoint that is damaged.
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(content)
    return [one for one in found if one]


def all_damages(root, bits=BITS):
    return [damage for name in READERS for damage in damages(root / name, bits)]


def check(damages, root, damaged_weights, capfd, seed=1):
    found = faults(damages, root, damaged_weights, capfd, seed)
    assert not found, "\n".join([f"{len(found)} of {len(damages)}:", *found])


@pytest.mark.thorough
def test_a_damaged_file_costs_a_line_and_no_other_file(
    root, damaged_weights, capfd
):
    chosen = random.Random(1).sample(all_damages(root), 25)
    check(chosen, root, damaged_weights, capfd)


@pytest.mark.thorough
@pytest.mark.timeout(3600)
def test_every_damaged_file_costs_a_line(root, damaged_weights, capfd):
    damages = all_damages(root)
    assert len(damages) >= 500
    check(damages, root, damaged_weights, capfd)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_other_damages_cost_a_line(root, damaged_weights, capfd):
    seed = random.random()
    check(all_damages(root), root, damaged_weights, capfd, seed)
