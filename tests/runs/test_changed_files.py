"""What must be true of the files of a run folder and of a preset folder.

* one that is cut, changed or missing is named in one line before it is used
* the model card, the recipe and the log may change
* what a link in a run folder leads to gets into no copy of it
* folders of earlier versions, which list no files, are read
"""

import json
import shutil

import pytest

from keras_deepnmt.errors import UserError
from keras_deepnmt.files import PRESET_FILE, write_json
from keras_deepnmt.runs.average import average
from keras_deepnmt.runs.preset_folder import save_run_to_preset
from keras_deepnmt.translator.loading import RUN_FILE, read_run

SUMMARIES = {"finished_run": RUN_FILE, "preset_dir": PRESET_FILE}


@pytest.fixture(params=SUMMARIES)
def folder(request, tmp_path):
    original = request.getfixturevalue(request.param)
    return shutil.copytree(original, tmp_path / "copy")


def summary_of(folder):
    file = next(
        p for p in map(folder.joinpath, SUMMARIES.values()) if p.exists()
    )
    return file, json.loads(file.read_text(encoding="utf-8"))


def load_unchanged(folder):
    """Reads all that a translator needs but the values of the weights."""
    run = read_run(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keras.Model.load_weights", lambda *_: None)
        run.load_model()


def test_every_file_that_is_cut_flipped_or_lost_is_named(folder):
    _, summary = summary_of(folder)
    parts = ("config.json", "metadata.json", "model.weights.h5", ".model")
    assert all(any(n.endswith(p) for n in summary["files"]) for p in parts)
    for name in summary["files"]:
        file = folder / name
        whole = file.read_bytes()
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 1
        for content in (whole[:-1], bytes(flipped), b"", None):
            file.unlink()
            if content is not None:
                file.write_bytes(content)
            with pytest.raises(
                UserError, match=f"{name}.* (not? |missing|no tokenizer|cannot)"
            ) as e:
                load_unchanged(folder)
            assert "\n" not in str(e.value)
        file.write_bytes(whole)
    load_unchanged(folder)


def test_files_that_are_made_to_change_may_change(folder):
    _, summary = summary_of(folder)
    free = [
        path
        for path in folder.rglob("*")
        if path.name in ("README.md", "log.csv", "scores.json")
    ]
    assert free
    for path in free:
        assert path.name not in summary["files"]
        path.write_text("changed")
    load_unchanged(folder)


def test_a_folder_of_an_earlier_version_is_read(folder):
    file, summary = summary_of(folder)
    del summary["files"]
    write_json(file, summary)
    load_unchanged(folder)


def test_a_damaged_tokenizer_gets_into_no_average(finished_run, tmp_path):
    run_dir = shutil.copytree(finished_run, tmp_path / "run")
    file = run_dir / "tokenizer" / "source.model"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(UserError, match="source.model: not the file"):
        average(run_dir, tmp_path / "mean", last=2)
    assert not (tmp_path / "mean").exists()


@pytest.mark.parametrize(
    "name", ["tokenizer", "tokenizer/notes.txt", "recipe.yaml", "shortlist.npz"]
)
@pytest.mark.parametrize("copied_by", [average, save_run_to_preset])
def test_what_a_link_leads_to_is_not_copied(
    finished_run, tmp_path, name, copied_by
):
    run_dir = shutil.copytree(finished_run, tmp_path / "run")
    link, outside = run_dir / name, tmp_path / "outside"
    if link.exists():
        link.rename(outside)
    else:
        outside.write_text("of another folder")
    link.symlink_to(outside)
    options = {"last": 2} if copied_by is average else {}
    with pytest.raises(UserError, match=f"{link}: is a link to {outside}"):
        copied_by(run_dir, tmp_path / "copy", **options)
    assert not (tmp_path / "copy").exists()
