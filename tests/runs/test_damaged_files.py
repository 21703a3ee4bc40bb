"""A damaged file costs a line of explanation and nothing else.

Every file of a run, a prepared folder and a preset folder is cut, emptied,
deleted, replaced by a folder, exchanged with another file, and gets flipped
bits. The commands that read it then end with exit code 0 or 2, an error of one
line that is no internal one, and change no other file. No damaged weights
reach HDF5, which crashes on some.

The damages are drawn by the seed of the test run, which its first lines name.
"""

import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import keras
import pytest

from keras_deepnmt import zoo
from keras_deepnmt.cli import main
from keras_deepnmt.translator import Translator
from keras_deepnmt.translator.results import Hypothesis

# Of a damaged checkpoint, before which an older one is taken.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

KINDS = ("cut", "emptied", "deleted", "a folder", "exchanged")
# Of each file in all damages.
BITS = 6
TRANSLATE = "translate {folder} --no-compile --quiet -i {root}/text -o {out}"
LATEST = f"{TRANSLATE} --checkpoint latest"
BEST = f"{TRANSLATE} --checkpoint best"
EVALUATE = "evaluate {folder} --no-compile --quiet --prepared {root}/prepared"
TRAIN = (
    "train {root}/letters.yaml --run-dir {folder} --prepared {root}/prepared"
)
PREPARE = "prepare --recipe {root}/letters.yaml --output {folder}"
OF_PREPARED = (
    "evaluate {root}/run --no-compile --quiet --prepared {root}/prepared"
)
REPORT = "report {folder} --output {out}"
# The commands that read a file, by the beginning of its name.
READERS = {
    "run": {
        "checkpoints/best": (BEST,),
        "checkpoints/step": (LATEST,),
        "epoch_counts": (TRAIN,),
        "log.csv": (LATEST, TRAIN),
        "model/": (TRANSLATE,),
        "recipe.yaml": (LATEST, EVALUATE, TRAIN),
        "run.json": (TRANSLATE, EVALUATE, REPORT),
        "scores.json": (EVALUATE,),
        "tokenizer/": (TRANSLATE, LATEST),
        "validation": (TRAIN,),
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
        return next(
            readers[start]
            for start in readers
            if str(self.file).startswith(start)
        )

    def do(self, draw):
        file = self.folder / self.file
        content = file.read_bytes()
        if self.kind == "cut":
            file.write_bytes(content[: draw.randrange(1, len(content))])
        elif self.kind == "emptied":
            file.write_bytes(b"")
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
    """In place of searches; and one model instead of an equal one each time."""

    def nbest(translator, texts, *more, **given):
        return [[Hypothesis(text, 0.0, 0.0, ())] for text in texts]

    make = zoo.create_model
    made = {}

    def make_once(*arguments, **options):
        key = repr((arguments, sorted(options.items())))
        if key not in made:
            made[key] = make(*arguments, **options)
        return made[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Translator, "translate_nbest", nbest)
        patch.setattr(Translator, "translate", lambda _, texts, **__: [*texts])
        patch.setattr(zoo, "create_model", make_once)
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
    (root / "text").write_text("a b c\n")
    shutil.copy(recipe_file, root / "letters.yaml")
    assert main(EVALUATE.format(folder=root / "run", root=root).split()) == 0
    return root


@pytest.fixture
def whole_weights(root, monkeypatch):
    """Refuses what is about to reach HDF5 and is not one of the run's files."""
    known = {
        content
        for file, content in contents(root).items()
        if file.suffix == ".h5"
    }

    def load(model, file, **options):
        assert Path(file).read_bytes() in known, f"HDF5 would read {file}"

    monkeypatch.setattr(keras.Model, "load_weights", load)


def fault(command, damage, root, capfd):
    """Runs a command that reads a damaged folder; what is wrong with it."""
    before = contents(damage.folder)
    out = root / "out"
    words = command.format(folder=damage.folder, root=root, out=out).split()
    capfd.readouterr()
    try:
        code = main(words)
    except (Exception, SystemExit) as error:
        code = repr(error)
    errors = capfd.readouterr().err
    out.unlink(missing_ok=True)
    after = contents(damage.folder)
    # Where it adds a row to the scores it has understood them.
    adds = words[0] in ("evaluate", "report") and code == 0
    # Training does that if the other of two exchanged files is of the model.
    is_made_anew = "the final model is damaged" in errors
    lost = [
        str(file)
        for file in before
        if after.get(file) != before[file]
        and not (adds and file.name == "scores.json")
        and not is_made_anew
    ]
    lines = [x for x in errors.splitlines() if " error: " in x]
    if code not in (0, 2) or len(lines) != (code == 2) or lost:
        return f"{damage}; {words[0]}: {code} {errors[-500:]!r} lost: {lost}"
    return None


def faults(chosen, root, capfd):
    draw, found = random.Random(random.random()), []
    for damage in chosen:
        before = contents(damage.folder)
        damage.do(draw)
        for command in damage.commands:
            found.append(fault(command, damage, root, capfd))
        file = damage.folder / damage.file
        if file.is_dir():
            shutil.rmtree(file)
        for file in contents(damage.folder).keys() - before.keys():
            file.unlink()
        for file, content in before.items():
            # Training may have removed a checkpoint that is damaged.
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(content)
    return [one for one in found if one]


def all_damages(root, bits=BITS):
    return [damage for name in READERS for damage in damages(root / name, bits)]


def check(damages, root, capfd):
    found = faults(damages, root, capfd)
    assert not found, "\n".join([f"{len(found)} of {len(damages)}:", *found])


def test_a_damaged_file_costs_a_line_and_no_other_file(
    root, whole_weights, capfd
):
    check(random.sample(all_damages(root), 25), root, capfd)


@pytest.mark.thorough
def test_many_damaged_files_cost_a_line_each(root, whole_weights, capfd):
    check(random.sample(all_damages(root), 150), root, capfd)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_damaged_file_costs_a_line(root, whole_weights, capfd):
    damages = all_damages(root)
    assert len(damages) >= 500
    check(damages, root, capfd)
