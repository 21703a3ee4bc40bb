"""Finds the files of a corpus: named by the user, known by name, or fetched."""

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
    """Lists the corpora that can be named, in their own direction.

    Each can be named the other way round too (`multi30k_de_en`).

    Returns:
        Names in alphabetical order.

    Example:
    >>> "multi30k_en_de" in list_named_corpora()
    True
    """
    return sorted(NAMED_CORPORA)


def find_named_corpus(name: str) -> NamedCorpus:
    """Finds a known corpus, the other way round too.

    Args:
        name: A name of `list_named_corpora`, or one with its two languages
            exchanged.

    Returns:
        The corpus, source side first.

    Raises:
        UserError: if there is none; the nearest name is suggested.

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


def corpus_files(
    corpus: CorpusOptions,
    split: str,
    data_dir: str | Path | None = None,
    cache_dir: str | Path | None = None,
    progress: bool = True,
) -> CorpusFiles:
    """Finds the two files of a corpus, and fetches them if need be.

    Args:
        corpus: The corpus.
        split: Which split of a named corpus is wanted. Corpora of one split
            (`newstest2014_en_de`) give that one.
        data_dir: Folder with copies of the named corpora; without it they are
            fetched.
        cache_dir: Where fetched files are kept; by default Keras' own folder.
        progress: Whether to show progress on stderr.

    Returns:
        The corpus with its files.

    Raises:
        UserError: if the name is unknown, a file is missing, cannot be fetched
            or does not hold what it should.

    Example:
    >>> written = Path("a.en").write_text("a"), Path("a.de").write_text("b")
    >>> corpus_files(CorpusOptions("a.en", "a.de"), "train").name
    'a'
    """
    if corpus.source is not None:
        for path in (corpus.source, corpus.target):
            LineReader(path)  # a missing file is known before the work starts
        return CorpusFiles(
            name=corpus.name or Path(corpus.source).name.split(".")[0],
            source=Path(corpus.source),
            target=Path(corpus.target),
            weight=corpus.weight,
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
    """Fetches a file once and checks what it holds.

    Args:
        file: The file.
        cache_dir: Where fetched files are kept; by default Keras' own folder.
        progress: Whether to show progress on stderr.

    Returns:
        Path of the file, verified.

    Raises:
        UserError: if it cannot be fetched or holds something else.

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
        _check(path, file, "Delete it to have it fetched again.")
        return path
    # Under a name of its own until it is verified: get_file takes any file
    # that lies at the final name, even half of one.
    fetched = folder / f"{path.name}.fetching-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{folder}: no folder for fetched files ({error.strerror}). Set "
            "KERAS_HOME to another one."
        ) from error
    try:
        _get_file(file.address, fetched, progress)
        _check(
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
        # Keras reports on stdout, which belongs to the command's results.
        stderr = sys.stderr if progress else stack.enter_context(_nowhere())
        stack.enter_context(contextlib.redirect_stdout(stderr))
        try:
            keras.utils.get_file(
                path.name,
                address,
                cache_dir=str(path.parent.parent),
                cache_subdir=path.parent.name,
            )
        except Exception as error:  # what get_file raises
            raise UserError(
                f"{address} could not be fetched ({error}). Try again, or take "
                "the file from a folder (`--data-dir`)."
            ) from error


def _nowhere():
    return open(os.devnull, "w")


def _local_file(file: NamedFile, data_dir: Path) -> Path:
    for name in file.local_names:
        for path in (data_dir / name, data_dir / f"{name}.gz"):
            if path.exists():
                _check(path, file, "It was left as it is.")
                return path
    raise UserError(
        f"{data_dir / file.local_names[0]}: no such file. Give another "
        "`--data-dir`, or none to have it fetched."
    )


def _check(path: Path, file: NamedFile, remedy: str):
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
