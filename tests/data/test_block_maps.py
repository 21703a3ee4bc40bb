"""What sees one block at a time may be done anywhere, with equal results.

Here each step, its arguments and its results are pickled, as for a process on
another machine. `tests/cli/test_prepare_by_ray.py` has such processes.
"""

import dataclasses
import pickle
from pathlib import Path

import pytest
from toy_corpus import contents, prepare, toy_pairs, write_pairs

from keras_deepnmt.data import PrepareOptions


def map_elsewhere(make, made_of, calls):
    make, made_of = pickle.loads(pickle.dumps((make, tuple(made_of))))
    step = make(*made_of)
    for arguments in calls:
        result = step(*pickle.loads(pickle.dumps(arguments)))
        yield pickle.loads(pickle.dumps(result))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "changes",
    [
        {"errors": "skip", "case": "factored", "mask_symbols": 2},
        {"errors": "replace", "min_alignment_score": -5.0},
    ],
)
def test_steps_elsewhere_give_the_same_folder(tmp_path, changes):
    corpus = write_pairs(tmp_path, "train", toy_pairs(2500))
    for file in map(Path, (corpus.source, corpus.target)):
        lines = file.read_bytes().split(b"\n")
        lines[1], lines[7] = b"f\xfcr", b""
        lines[1500:1600] = lines[:100]
        file.write_bytes(b"\n".join(lines))
    train = [
        corpus,
        dataclasses.replace(corpus, tag="<bt>", weight=2.0),
        dataclasses.replace(
            write_pairs(tmp_path, "heavy", toy_pairs(2500)[:300]), weight=3.0
        ),
    ]
    options = PrepareOptions(
        train, valid_pairs=50, test_pairs=20, vocabulary_size=120, **changes
    )
    for name, more in (
        ("here", {}),
        ("elsewhere", {"map_blocks": map_elsewhere}),
    ):
        prepare(
            options,
            tmp_path / name,
            rejected_file=tmp_path / f"rejected_{name}",
            **more,
        )
    assert contents(tmp_path / "here") == contents(tmp_path / "elsewhere")
    rejected = (tmp_path / "rejected_here").read_bytes()
    assert rejected == (tmp_path / "rejected_elsewhere").read_bytes()
    assert rejected.count(b"duplicate") > 90
