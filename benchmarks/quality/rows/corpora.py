"""Prepared corpora for `table.py`, each made once for all rows that use it."""

import dataclasses
import hashlib
import json
import os
from pathlib import Path

from benchmarks.shared.result_rows import REPOSITORY
from keras_deepnmt.data.demo import write_demo_corpus
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.data.preparation.prepare_corpus import prepare_corpus
from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import file_lock

# The corpus of rows that only try the script: a few pairs of the embedded one.
SMOKE_CORPUS = {
    split: {"source": f"smoke/{split}.de", "target": f"smoke/{split}.en"}
    for split in ("train", "valid", "test")
}
_SMOKE_PAIRS = {"num_train": 500, "num_valid": 10, "num_test": 20}


def prepared_corpus(options: PrepareOptions, folder: Path) -> PreparedData:
    """Opens the prepared corpus of a recipe, and makes it if there is none.

    Recipes with the same data, vocabulary and segmentation have the same one,
    in a subfolder of `folder` that may be copied to another machine. There the
    text is not needed.
    """
    content = json.dumps(
        dataclasses.asdict(options), sort_keys=True, default=str
    )
    key = hashlib.sha256(content.encode()).hexdigest()[:12]
    prepared = folder / "prepared" / key
    prepared.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(prepared):
        if not prepared.is_dir():
            prepare_corpus(
                _with_files(options, folder),
                prepared,
                data_dir=_data_dir(),
                progress=False,
            )
    return PreparedData(prepared)


def _data_dir():
    """The folder with copies of corpora; without it, named ones are fetched."""
    default = REPOSITORY.parent / "shared" / "data"
    folder = Path(os.environ.get("DEEPNMT_DATA", default))
    return folder if folder.is_dir() else None


def _with_files(options, work_folder):
    """Finds the files of corpora that are given by relative paths.

    They are in the folder with copies of corpora, except those of
    `SMOKE_CORPUS`, which are written to the work folder.
    """

    def with_files(corpus):
        if corpus is None or corpus.source is None:
            return corpus
        sides = Path(corpus.source), Path(corpus.target)
        folder = _data_dir()
        if sides[0].parent.name == "smoke":
            folder = work_folder
            write_demo_corpus(folder / "smoke", **_SMOKE_PAIRS)
        elif folder is None:
            raise UserError(
                f"{corpus.source}: no folder with this corpus. Set "
                "DEEPNMT_DATA to the folder that contains it."
            )
        source, target = (str(folder / side) for side in sides)
        return dataclasses.replace(corpus, source=source, target=target)

    return dataclasses.replace(
        options,
        train=[with_files(corpus) for corpus in options.train],
        valid=with_files(options.valid),
        test=with_files(options.test),
    )
