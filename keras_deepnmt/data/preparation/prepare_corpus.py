"""Turns aligned text files into a prepared folder, in two streaming passes.

The first pass normalises, filters and spools the pairs to disk; the second
cuts them into ids and writes shards. In memory stay at most 24 bytes a pair:
8 for its hash (16 while the hashes are merged) and 4 for its two lengths.
"""

import logging
from pathlib import Path

import rich.console
import rich.progress

from keras_deepnmt.data.corpora import CorpusFiles
from keras_deepnmt.data.manifest import leakage_lines
from keras_deepnmt.data.named_corpora import corpus_files
from keras_deepnmt.data.preparation.existing_folder import prepared_before
from keras_deepnmt.data.preparation.folder_writer import Preparation
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.data.staging import StagedFolder

_log = logging.getLogger(__name__)


def prepare_corpus(
    options: PrepareOptions,
    output_dir: str | Path,
    *,
    data_dir: str | Path | None = None,
    overwrite: bool = False,
    progress: bool = True,
) -> dict:
    r"""Writes a prepared folder: tokenizers, shards of ids and a manifest.

    The folder appears under its name only when all of it is there. Where it
    exists already, made with the same options from the same text, it is left
    as it is. The same options and text give the same bytes, on any machine
    with the same versions.

    Args:
        options: What to prepare.
        output_dir: The folder to write.
        data_dir: Folder with copies of the named corpora; without it they are
            fetched from their public addresses.
        overwrite: Whether to replace a folder that was prepared otherwise.
        progress: Whether to show progress bars on stderr.

    Returns:
        The manifest.

    Raises:
        UserError: if a file is missing, empty, not UTF-8 or not aligned, if
            no pair is left or the vocabulary is larger than the text allows,
            if the folder holds something else, or the disk is full.

    Example:
    >>> from keras_deepnmt.data.corpora import CorpusOptions
    >>> written = Path("train.en").write_text("a dog\na cat\n")
    >>> written = Path("train.de").write_text("ein Hund\neine Katze\n")
    >>> train = CorpusOptions("train.en", "train.de")
    >>> options = PrepareOptions(train=[train], vocabulary_size=26)
    >>> manifest = prepare_corpus(options, "prepared", progress=False)
    >>> manifest["splits"]["train"]["pairs"]
    2
    """
    corpora = _resolve(options, data_dir, progress)
    before = prepared_before(output_dir, options, corpora, overwrite)
    if before is not None:
        _log.info("%s: already prepared.", output_dir)
        return before
    bars = rich.progress.Progress(
        *rich.progress.Progress.get_default_columns(),
        rich.progress.TimeElapsedColumn(),
        console=rich.console.Console(stderr=True),
        disable=not progress,
    )
    with StagedFolder(output_dir, replace=overwrite) as folder, bars:
        manifest = Preparation(options, corpora, folder, bars).run()
    for line in leakage_lines(manifest):
        _log.warning("%s: %s", output_dir, line)
    return manifest


def _resolve(
    options: PrepareOptions, data_dir, progress: bool
) -> dict[str, list[CorpusFiles]]:
    corpora = {
        split: [
            corpus_files(
                getattr(options, split), split, data_dir, progress=progress
            )
        ]
        for split in ("valid", "test")
        if getattr(options, split) is not None
    }
    corpora["train"] = [
        corpus_files(corpus, "train", data_dir, progress=progress)
        for corpus in options.train
    ]
    return corpora
