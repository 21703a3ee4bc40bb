"""Ray's processes prepare a corpus: three give the bytes of none."""

import pytest
from digit_run import deepnmt_process, write_digits

pytest.importorskip("ray")


@pytest.mark.thorough
def test_three_workers_prepare_the_bytes_of_none(tmp_path):
    write_digits(tmp_path, "train", 4000, seed=0)
    words = [
        *("prepare", "--source", "train.source", "--target", "train.target"),
        *("--valid-pairs", "50", "--vocabulary-size", "25", "--output"),
    ]
    folders = []
    for name, more in (("none", []), ("three", ["--workers", "3"])):
        done = deepnmt_process(*words, name, *more, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        folders.append(
            {
                file.relative_to(tmp_path / name): file.read_bytes()
                for file in (tmp_path / name).rglob("*")
                if file.is_file()
            }
        )
    assert folders[0] == folders[1]
