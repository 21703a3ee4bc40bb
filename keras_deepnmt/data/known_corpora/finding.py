"""Finds the files of a corpus: given by path, found by name, or downloaded."""

import os
import re
from pathlib import Path

from keras_deepnmt.data.asked_sides import Asked
from keras_deepnmt.data.bilingual_files.document import (
    TABLES,
    document_format,
    open_bilingual,
)
from keras_deepnmt.data.corpora import CorpusFiles, CorpusOptions, LineReader
from keras_deepnmt.data.known_corpora.archives import build_text
from keras_deepnmt.data.known_corpora.downloads import (
    download,
    download_archive,
)
from keras_deepnmt.data.known_corpora.registry import NAMED_CORPORA
from keras_deepnmt.data.known_corpora.sources import (
    BuiltFile,
    CorpusFile,
    DemoFile,
    NamedCorpus,
    NamedFile,
)
from keras_deepnmt.data.text_formats import refuse_other_formats
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import file_lock, file_sha256, write_text
from keras_deepnmt.suggestions import did_you_mean

_TWO_LANGUAGES = re.compile(r"_([a-z]{2})_([a-z]{2})$")


def list_named_corpora() -> list[str]:
    """Lists the names of the known corpora, each in one direction.

    The reversed direction of a translation corpus has a name too
    (`multi30k_de_en`), which is not listed.

    Returns:
        Names in alphabetical order.

    Example:
    >>> "multi30k_en_de" in list_named_corpora()
    True
    """
    return sorted(NAMED_CORPORA)


def find_named_corpus(name: str) -> NamedCorpus:
    """Finds a known corpus by its name, in either direction, source side first.

    Raises a `UserError` that suggests the nearest name if there is none.
    """
    if name in NAMED_CORPORA:
        return NAMED_CORPORA[name]
    reversed_names = {
        _TWO_LANGUAGES.sub(r"_\2_\1", known): known
        for known in NAMED_CORPORA
        if _TWO_LANGUAGES.search(known)
    }
    if name in reversed_names:
        corpus = NAMED_CORPORA[reversed_names[name]]
        splits = {s: sides[::-1] for s, sides in corpus.splits.items()}
        return NamedCorpus(name, splits, corpus.notes)
    hint = did_you_mean(name, [*NAMED_CORPORA, *reversed_names])
    raise UserError(
        f"No corpus is known as {name}.{hint} Known are: "
        f"{', '.join(list_named_corpora())}."
    )


def find_corpus_files(
    corpus: CorpusOptions,
    split: str,
    data_dir: str | Path | None = None,
    cache_dir: str | Path | None = None,
    progress: bool = True,
    languages: tuple[str | None, str | None] = (None, None),
    context: int = 0,
) -> CorpusFiles:
    """Finds the files of a corpus, and downloads them if necessary.

    `split` chooses the split of a named corpus; a corpus that is a test set
    (`newstest2014_en_de`) gives it for any split. Named corpora are taken from
    `data_dir` if it is given, and are otherwise downloaded to `cache_dir`
    (default: Keras' folder). `languages` are those of the two sides of a corpus
    that names none, which one file with both of them may need. A file that is
    missing, cannot be downloaded, has another SHA-256, or, with a `context`, no
    place where a document may end, raises a `UserError`.
    """
    if corpus.translated_by and split != "train":
        raise UserError(
            "`translated_by` is for training text. Received: "
            f"translated_by={corpus.translated_by} in `{split}`. Give the "
            "translations of people: `target`, or the name of a corpus."
        )
    if corpus.translated_by:
        raise UserError(
            f"corpus {corpus.name or corpus.source or corpus.file}: has "
            f"`translated_by`: {corpus.translated_by}. Only `deepnmt train` "
            "translates a corpus; `prepare` and `sweep` need its translation "
            "as a file (`deepnmt translate`)."
        )
    if corpus.source is not None:
        # Reports a missing file before the work starts.
        readers = [LineReader(side) for side in (corpus.source, corpus.target)]
        refuse_other_formats(readers)
        return _corpus_files(
            corpus,
            languages,
            corpus.source,
            (corpus.source, corpus.target),
            copies=tuple(reader.copy for reader in readers),
        )
    if corpus.file is not None:
        return _one_file(corpus, languages, context)
    named = find_named_corpus(corpus.name)
    paths = [
        _local_file(file, Path(data_dir), cache_dir, progress)
        if data_dir is not None
        else fetch_file(file, cache_dir, progress)
        for file in _sides(named, split)
    ]
    return _corpus_files(corpus, languages, named.name, paths)


def _one_file(corpus, languages, context):
    reader = LineReader(corpus.file)
    columns = corpus.source_column, corpus.target_column
    asked = Asked(*corpus.sides(languages), *columns)
    format = document_format(reader)
    # Says now what it cannot be.
    open_bilingual(reader, asked, format)
    for name in ("source_column", "target_column"):
        if getattr(corpus, name) is not None and format not in TABLES:
            raise UserError(
                f"`{name}` needs a `file` that is TSV or JSON Lines. Received: "
                f"{name}={getattr(corpus, name)}, file={corpus.file}, which is "
                f"{format.upper()}. Leave it out."
            )
    # There units without a text are no pairs.
    if context and format not in TABLES:
        raise UserError(
            "`context` needs corpora in which documents end: at an empty line "
            "of text files, or an empty row of TSV or JSON Lines. Received: "
            f"context={context}, file={corpus.file}, which is "
            f"{format.upper()}. Convert the file, or set `context` to 0."
        )
    return _corpus_files(
        corpus,
        languages,
        corpus.file,
        (corpus.file, corpus.file),
        copies=(reader.copy,),
        asked=asked,
    )


def _corpus_files(corpus, languages, file, paths, copies=(), **others):
    # Reports a missing file before the work starts.
    alignments = corpus.alignments and LineReader(corpus.alignments)
    source, target = map(Path, paths[::-1] if corpus.reversed else paths)
    return CorpusFiles(
        name=corpus.name or name_of_file(file),
        source=source,
        target=target,
        weight=corpus.weight,
        tag=corpus.tag,
        direction=corpus.direction(languages),
        is_reversed=corpus.reversed,
        alignments=alignments and alignments.path,
        copies=(*copies, *([alignments.copy] if alignments else ())),
        **others,
    )


def name_of_file(file: str | Path) -> str:
    """Returns the name of a corpus of files that was given none.

    Example:
    >>> name_of_file("text/mono.de.gz")
    'mono'
    """
    return Path(file).name.split(".")[0]


def _sides(corpus, split):
    splits = corpus.splits
    if split in splits:
        return splits[split]
    if list(splits) == ["test"]:  # test sets of other years serve as training
        return splits["test"]
    raise UserError(
        f"{corpus.name}: has no part for `{split}`, only for "
        f"{' and '.join(splits)}. Name another corpus, or take pairs out of "
        f"the training text (`{split}_pairs`)."
    )


def fetch_file(
    file: CorpusFile,
    cache_dir: str | Path | None = None,
    progress: bool = True,
) -> Path:
    """Gets a file unless the cache has it, and verifies it.

    It is downloaded, built from archives that are downloaded, or written by
    the package. `cache_dir` defaults to Keras' folder. A failed download or
    another SHA-256 raises a `UserError`.
    """
    cache = _cache_folder(cache_dir)
    if isinstance(file, DemoFile):
        return _demo_file(file, cache)
    if isinstance(file, BuiltFile):
        return _built_file(file, cache, cache / "archives", progress)
    if file.address is None:
        raise UserError(
            f"{file.local_names[0]}: is at no public address. Give the folder "
            "that has it (`--data-dir`)."
        )
    folder = _made((cache / file.local_names[0]).parent)
    path = folder / file.address.rsplit("/", 1)[-1]
    if path.exists():
        _check_sha256(path, file, "Delete it to have it fetched again.")
        return path
    remedy = (
        f"It came from {file.address} and was not kept; take the file from a "
        "folder (`--data-dir`)."
    )
    download(
        file.address,
        path,
        lambda part: _check_sha256(part, file, remedy),
        progress=progress,
    )
    return path


def _cache_folder(cache_dir):
    if cache_dir is None:
        cache_dir = os.environ.get("KERAS_HOME", Path.home() / ".keras")
    return Path(cache_dir) / "keras_deepnmt"


def _made(folder):
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{folder}: the folder for downloaded files cannot be created "
            f"({error.strerror}). Set KERAS_HOME to another folder."
        ) from error
    return folder


def _built_file(file, cache, archives_dir, progress):
    """Builds a text in the cache; its SHA-256 is recorded beside it."""
    path = cache / file.local_name
    record = path.with_name(f"{path.name}.sha256")
    _made(path.parent)
    with file_lock(path):
        if path.exists() and record.exists():
            recorded = NamedFile(None, record.read_text().split()[0], ())
            remedy = f"Delete it and {record.name} to have it built again."
            _check_sha256(path, recorded, remedy)
            return path
        archives = {}
        for archive in dict.fromkeys(m.archive for m in file.members):
            # A folder of the user is left as it is.
            known = _made(cache / "archives") / f"{archive.name}.sha256"
            archives[archive.name] = archives_dir / archive.name
            _made(archives[archive.name].parent)
            download_archive(archive, archives[archive.name], known, progress)
        build_text(file, archives, path)
        write_text(record, f"{file_sha256(path)}  {path.name}\n")
    return path


def _demo_file(file, cache):
    from keras_deepnmt.data.demo import write_demo_corpus

    path = cache / file.local_name
    _made(path.parent)
    with file_lock(path.parent / "demo"):
        if not path.exists():
            write_demo_corpus(path.parent, num_train=40_000, num_test=500)
    _check_sha256(path, file, "Delete its folder to have it written again.")
    return path


def _local_file(
    file: CorpusFile, data_dir: Path, cache_dir, progress: bool
) -> Path:
    for name in file.local_names:
        for path in (data_dir / name, data_dir / f"{name}.gz"):
            if path.exists():
                if not isinstance(file, BuiltFile):
                    _check_sha256(path, file, "It was left as it is.")
                return path
    if isinstance(file, DemoFile):
        return fetch_file(file, cache_dir, progress)
    archives = {member.archive.name for member in getattr(file, "members", ())}
    if archives and all((data_dir / name).exists() for name in archives):
        return _built_file(file, _cache_folder(cache_dir), data_dir, progress)
    also = f" or of {', '.join(sorted(archives))}" if archives else ""
    raise UserError(
        f"{data_dir / file.local_names[0]}: no such file{also}. Give another "
        "`--data-dir`, or none to have it fetched."
    )


def _check_sha256(path: Path, file: NamedFile, remedy: str):
    reader = LineReader(path)
    for _ in reader:
        pass
    if reader.sha256 != file.sha256:
        raise UserError(
            f"{path}: its uncompressed content must have SHA-256 {file.sha256}."
            f" Received: {reader.sha256}. {remedy}"
        )
