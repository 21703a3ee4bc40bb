"""Turns aligned text files into a prepared folder, in two streaming passes.

The first pass filters the pairs and writes them to temporary files; the second
converts them to ids and writes shards. Memory holds 4 bytes per pair, for its
two lengths; texts and hashes are on disk. Shortlists and scores of alignments,
if they are asked for, need up to 2 GB more, one after the other.
"""

import logging
from pathlib import Path

# NumPy imports this module on first use, and Ctrl-C during that import is lost.
import numpy.random  # noqa: F401
import rich.console
import rich.progress

from keras_deepnmt.data.corpora import CorpusFiles
from keras_deepnmt.data.known_corpora.finding import find_corpus_files
from keras_deepnmt.data.manifest import leakage_warnings
from keras_deepnmt.data.preparation.block_maps import BlockMap
from keras_deepnmt.data.preparation.existing_folder import check_existing_folder
from keras_deepnmt.data.preparation.folder_writer import FolderWriter
from keras_deepnmt.data.preparation.language_filter import LanguageFilter
from keras_deepnmt.data.preparation.options import HELD_OUT, PrepareOptions
from keras_deepnmt.data.preparation.own_filters import make_own_filters
from keras_deepnmt.data.preparation.rejected_pairs import RejectedPairs
from keras_deepnmt.data.preparation.tokenizer_making import TokenizerMaker
from keras_deepnmt.files import StagedFolder

_log = logging.getLogger(__name__)


def prepare_corpus(
    options: PrepareOptions,
    output_dir: str | Path,
    *,
    data_dir: str | Path | None = None,
    overwrite: bool = False,
    rejected_file: str | Path | None = None,
    progress: bool = True,
    map_blocks: BlockMap | None = None,
) -> dict:
    r"""Writes a prepared folder: tokenizers, shards of ids and a manifest.

    The folder gets its name only when it is complete. If it already exists and
    was made with the same options from the same text, it is left unchanged. The
    same options and text give the same bytes on any machine with the same
    versions.

    Args:
        options: What to prepare.
        output_dir: The folder to write.
        data_dir: Folder with copies of the named corpora. Defaults to
            downloading them from their public addresses.
        overwrite: Whether to replace a folder that was prepared with other
            options or from other text.
        rejected_file: A file to write the pairs to that are left out: a table
            with tabs between the split, the corpus, the number of the line, the
            reason and the two texts. Defaults to none.
        progress: Whether to show progress bars on stderr.
        map_blocks: Calls the steps that see one block at a time, as a
            `preparation.block_maps.BlockMap`. Defaults to threads of this
            process. The result does not depend on it.

    Returns:
        The manifest.

    Raises:
        UserError: if files are missing, empty, not UTF-8 or not aligned, or
            are no plain text, if no pair is left or the vocabulary is larger
            than the text allows, if the folder has other content, or if the
            disk is full.

    Example:
    >>> from keras_deepnmt.data import CorpusOptions
    >>> written = Path("train.en").write_text("a dog\na cat\n")
    >>> written = Path("train.de").write_text("ein Hund\neine Katze\n")
    >>> train = CorpusOptions("train.en", "train.de")
    >>> options = PrepareOptions(train=[train], vocabulary_size=26)
    >>> manifest = prepare_corpus(options, "prepared", progress=False)
    >>> manifest["splits"]["train"]["pairs"]
    2
    """
    own_filters = make_own_filters(options)
    corpora = _find_corpora(options, data_dir, progress)
    rejected = RejectedPairs(rejected_file, output_dir)
    manifest = check_existing_folder(output_dir, options, corpora, overwrite)
    if manifest is not None:
        _log.info("%s: already prepared.", output_dir)
        if rejected_file is not None:
            _log.warning(
                "%s: not written, since %s is prepared already. Prepare it "
                "again with `--overwrite` to list the pairs that are left out.",
                rejected_file,
                output_dir,
            )
        return manifest
    maker = TokenizerMaker(options)
    languages = None
    if options.min_language_score:
        languages = {
            corpus.direction: LanguageFilter(
                corpus.direction, options.min_language_score
            )
            for corpus in corpora["train"]
        }
    bars = rich.progress.Progress(
        *rich.progress.Progress.get_default_columns(),
        rich.progress.TimeElapsedColumn(),
        console=rich.console.Console(stderr=True),
        disable=not progress,
    )
    staged = StagedFolder(output_dir, replace=overwrite)
    warnings = maker.warnings()
    try:
        with staged as folder, rejected, bars:
            manifest = FolderWriter(
                *(options, corpora, maker, folder, bars, rejected, warnings),
                *(languages, own_filters, map_blocks),
            ).write()
        warnings += leakage_warnings(manifest)
    finally:
        # They may explain an error.
        for warning in warnings:
            _log.warning("%s: %s", output_dir, warning)
    return manifest


def _find_corpora(
    options: PrepareOptions, data_dir, progress: bool
) -> dict[str, list[CorpusFiles]]:
    given = {
        split: options.corpora(split)
        for split in (*HELD_OUT, "train")
        if options.corpora(split)
    }
    return {
        split: [
            find_corpus_files(
                corpus,
                split,
                data_dir,
                progress=progress,
                languages=options.languages,
                context=options.context,
            )
            for corpus in corpora
        ]
        for split, corpora in given.items()
    }
