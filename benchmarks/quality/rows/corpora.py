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

DEMO_FOLDER = "quickstart/corpus"  # of the paths in recipes
NUM_PAIRS = {
    "full": dict(num_train=40_000, num_test=500),
    "smoke": dict(num_train=500, num_valid=10, num_test=20),
}


def prepared_corpus(
    options: PrepareOptions, folder: Path, scale: str
) -> PreparedData:
    """Opens the prepared corpus of a recipe, and makes it if there is none.

    Recipes with the same data, vocabulary and segmentation have the same one,
    in a subfolder of `folder` that may be copied to another machine. There the
    text is not needed. `scale` is `"full"` or `"smoke"`.
    """
    content = json.dumps(
        [dataclasses.asdict(options), scale], sort_keys=True, default=str
    )
    key = hashlib.sha256(content.encode()).hexdigest()[:12]
    prepared = folder / "prepared" / key
    prepared.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(prepared):
        if not prepared.is_dir():
            prepare_corpus(
                _with_files(options, folder / f"demo_{scale}", scale),
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


def _with_files(options, demo_folder, scale):
    """Names the files of corpora that are given by relative paths.

    They are files of the embedded corpus, which is written to `demo_folder`, or
    in the folder with copies of corpora.
    """
    corpora = [*options.train, options.valid, options.test]
    if any(map(_is_demo, corpora)):
        write_demo_corpus(demo_folder, **NUM_PAIRS[scale])

    def with_files(corpus):
        if corpus is None or corpus.source is None:
            return corpus
        sides = Path(corpus.source), Path(corpus.target)
        if _is_demo(corpus):
            sides = [demo_folder / side.name for side in sides]
        elif _data_dir() is None:
            raise UserError(
                f"{corpus.source}: no folder with this corpus. Set "
                "DEEPNMT_DATA to the folder that contains it."
            )
        else:
            sides = [_data_dir() / side for side in sides]
        source, target = map(str, sides)
        return dataclasses.replace(corpus, source=source, target=target)

    return dataclasses.replace(
        options,
        train=[with_files(corpus) for corpus in options.train],
        valid=with_files(options.valid),
        test=with_files(options.test),
    )


def _is_demo(corpus):
    return (
        corpus is not None
        and corpus.source is not None
        and Path(corpus.source).parent.as_posix() == DEMO_FOLDER
    )
