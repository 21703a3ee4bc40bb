"""Ray's processes prepare a corpus: three give the bytes of none."""

import pytest
from digit_run import deepnmt_process, write_digits

pytest.importorskip("ray")


@pytest.mark.thorough
def test_three_workers_prepare_the_bytes_of_none(tmp_path):
    """Also where pairs occur again, in a file or in others that weigh more."""
    write_digits(tmp_path, "a", 2500, seed=0)
    write_digits(tmp_path, "b", 1500, seed=1)
    for side in ("source", "target"):
        a, b = (
            (tmp_path / f"{name}.{side}").read_text().splitlines(True)
            for name in "ab"
        )
        # Repetitions are within blocks of 1,024 lines and far apart.
        for name, lines in (
            ("a", a[:900] + a[600:] + a[:200]),
            ("b", b + a[2000:2300] + b[40:80]),
            ("c", a[1000:1100] + b[700:750] + a[1000:1001]),
        ):
            (tmp_path / f"{name}.{side}").write_text("".join(lines))
    words = [
        *("prepare", "--source", "a.source", "b.source", "c.source"),
        *("--target", "a.target", "b.target", "c.target"),
        *("--weight", "1", "0.5", "2"),
        *("--valid-pairs", "50", "--vocabulary-size", "25"),
    ]
    folders = []
    for name, more in (("none", []), ("three", ["--workers", "3"])):
        more += ["--output", name, "--rejected", f"{name}.tsv"]
        done = deepnmt_process(*words, *more, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        folders.append(
            {
                file.relative_to(tmp_path / name): file.read_bytes()
                for file in (tmp_path / name).rglob("*")
                if file.is_file()
            }
        )
    assert folders[0] == folders[1]
    rejected = (tmp_path / "none.tsv").read_text()
    assert rejected == (tmp_path / "three.tsv").read_text()
    # 500 within a, 300 of a in b, 40 within b, 150 in the heavier c, of which
    # one has a repetition, and those by chance.
    assert rejected.count("duplicate") >= 991
