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
                _with_demo_text(options, folder / f"demo_{scale}", scale),
                prepared,
                data_dir=_data_dir(),
                progress=False,
            )
    return PreparedData(prepared)


def _data_dir():
    """The folder with copies of named corpora; without it, they are fetched."""
    default = REPOSITORY.parent / "shared" / "data"
    folder = Path(os.environ.get("DEEPNMT_DATA", default))
    return folder if folder.is_dir() else None


def _with_demo_text(options, folder, scale):
    """Writes the embedded corpus and names its files, if the recipe uses it."""
    corpora = [*options.train, options.valid, options.test]
    if not any(map(_is_demo, corpora)):
        return options
    write_demo_corpus(folder, **NUM_PAIRS[scale])

    def at_folder(corpus):
        if not _is_demo(corpus):
            return corpus
        return dataclasses.replace(
            corpus,
            source=str(folder / Path(corpus.source).name),
            target=str(folder / Path(corpus.target).name),
        )

    return dataclasses.replace(
        options,
        train=[at_folder(corpus) for corpus in options.train],
        valid=at_folder(options.valid),
        test=at_folder(options.test),
    )


def _is_demo(corpus):
    return (
        corpus is not None
        and corpus.source is not None
        and Path(corpus.source).parent.as_posix() == DEMO_FOLDER
    )
