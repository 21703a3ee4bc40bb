"""Finds the files of a corpus: given by path, found by name, or downloaded."""

import contextlib
import difflib
import os
import sys
from pathlib import Path

from keras_deepnmt.data.corpora import CorpusFiles, CorpusOptions, LineReader
from keras_deepnmt.data.corpus_registry import (
    NAMED_CORPORA,
    NamedCorpus,
    NamedFile,
)
from keras_deepnmt.errors import UserError


def list_named_corpora() -> list[str]:
    """Lists the names of the known corpora, each in one direction.

    The reversed direction has a name too (`multi30k_de_en`), which is not
    listed.

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

    Example:
    >>> sorted(find_named_corpus("multi30k_de_en").splits)
    ['test', 'train', 'valid']
    """
    if name in NAMED_CORPORA:
        return NAMED_CORPORA[name]
    reversed_names = {_reversed_name(known): known for known in NAMED_CORPORA}
    if name in reversed_names:
        corpus = NAMED_CORPORA[reversed_names[name]]
        splits = {s: sides[::-1] for s, sides in corpus.splits.items()}
        return NamedCorpus(name, splits)
    near = difflib.get_close_matches(
        name, [*NAMED_CORPORA, *reversed_names], 1, 0.4
    )
    hint = f" Did you mean {near[0]}?" if near else ""
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
) -> CorpusFiles:
    """Finds the two files of a corpus, and downloads them if necessary.

    `split` chooses the split of a named corpus; a corpus with a single split
    (`newstest2014_en_de`) always gives that one. Named corpora are taken from
    `data_dir` if it is given, and are otherwise downloaded to `cache_dir`
    (default: Keras' folder). A file that is missing, cannot be downloaded or
    has another SHA-256 raises a `UserError`.

    Example:
    >>> written = Path("a.en").write_text("a"), Path("a.de").write_text("b")
    >>> find_corpus_files(CorpusOptions("a.en", "a.de"), "train").name
    'a'
    """
    if corpus.source is not None:
        # Reports a missing file before the work starts.
        readers = [LineReader(side) for side in (corpus.source, corpus.target)]
        return CorpusFiles(
            name=corpus.name or Path(corpus.source).name.split(".")[0],
            source=Path(corpus.source),
            target=Path(corpus.target),
            weight=corpus.weight,
            copies=tuple(reader.copy for reader in readers),
        )
    named = find_named_corpus(corpus.name)
    splits = named.splits
    sides = splits[split] if len(splits) > 1 else next(iter(splits.values()))
    paths = [
        _local_file(file, Path(data_dir))
        if data_dir is not None
        else fetch_file(file, cache_dir, progress)
        for file in sides
    ]
    return CorpusFiles(named.name, *paths, corpus.weight)


def fetch_file(
    file: NamedFile,
    cache_dir: str | Path | None = None,
    progress: bool = True,
) -> Path:
    """Downloads a file unless the cache has it, and verifies its SHA-256.

    `cache_dir` defaults to Keras' folder. A failed download or another SHA-256
    raises a `UserError`.

    Example:
    >>> corpus = find_named_corpus("newstest2014_en_de")
    >>> path = fetch_file(corpus.splits["test"][0])  # doctest: +SKIP
    """
    if cache_dir is None:
        cache_dir = os.environ.get("KERAS_HOME", Path.home() / ".keras")
    folder = Path(cache_dir) / "keras_deepnmt"
    folder = (folder / file.local_names[0]).parent
    path = folder / file.address.rsplit("/", 1)[-1]
    if path.exists():
        _check_sha256(path, file, "Delete it to have it fetched again.")
        return path
    # Downloaded under a temporary name until it is verified: get_file accepts
    # any file that already has the final name, even an incomplete one.
    fetched = folder / f"{path.name}.fetching-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{folder}: the folder for downloaded files cannot be created "
            f"({error.strerror}). Set KERAS_HOME to another folder."
        ) from error
    try:
        _get_file(file.address, fetched, progress)
        _check_sha256(
            fetched,
            file,
            f"It came from {file.address} and was not kept; take the file "
            "from a folder (`--data-dir`).",
        )
        os.replace(fetched, path)
    finally:
        fetched.unlink(missing_ok=True)
    return path


def _get_file(address: str, path: Path, progress: bool):
    import keras

    with contextlib.ExitStack() as stack:
        # Keras reports progress on stdout, which is for the command's results.
        stderr = (
            sys.stderr if progress else stack.enter_context(_open_devnull())
        )
        stack.enter_context(contextlib.redirect_stdout(stderr))
        try:
            keras.utils.get_file(
                path.name,
                address,
                cache_dir=str(path.parent.parent),
                cache_subdir=path.parent.name,
            )
        except Exception as error:  # get_file raises plain `Exception`
            raise UserError(
                f"{address} could not be fetched ({error}). Try again, or take "
                "the file from a folder (`--data-dir`)."
            ) from error


def _open_devnull():
    return open(os.devnull, "w")


def _local_file(file: NamedFile, data_dir: Path) -> Path:
    for name in file.local_names:
        for path in (data_dir / name, data_dir / f"{name}.gz"):
            if path.exists():
                _check_sha256(path, file, "It was left as it is.")
                return path
    raise UserError(
        f"{data_dir / file.local_names[0]}: no such file. Give another "
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


def _reversed_name(name: str) -> str:
    stem, source, target = name.rsplit("_", 2)
    return f"{stem}_{target}_{source}"
