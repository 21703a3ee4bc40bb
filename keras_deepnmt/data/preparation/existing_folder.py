"""Decides whether an existing output folder is used, replaced or refused."""

from dataclasses import MISSING, asdict, fields
from pathlib import Path

from keras_deepnmt.data.bilingual_files.pair_lines import content_sha256
from keras_deepnmt.data.corpora import CorpusFiles, LineReader
from keras_deepnmt.data.manifest import (
    MANIFEST_FILE,
    listed_files,
    read_manifest,
)
from keras_deepnmt.data.normalization import (
    NORMALIZATIONS,
    load_normalization,
)
from keras_deepnmt.data.preparation.options import PrepareOptions
from keras_deepnmt.data.preparation.own_filters import filter_code
from keras_deepnmt.data.tokenizers import Tokenizer
from keras_deepnmt.errors import UserError
from keras_deepnmt.file_tables import changed_files
from keras_deepnmt.files import recover_folder


def check_existing_folder(
    output_dir: str | Path,
    options: PrepareOptions,
    corpora: dict[str, list[CorpusFiles]],
    overwrite: bool,
) -> dict | None:
    """Returns the manifest of a folder that was prepared from the same input.

    Returns `None` if the folder has to be made: it does not exist, is empty, or
    `overwrite` is true. Raises a `UserError` if it was prepared with other
    options or from other text, if its files were changed, or if it has other
    content.
    """
    output_dir = Path(output_dir)
    recover_folder(output_dir)
    if not output_dir.exists():
        return None
    if not output_dir.is_dir():
        raise UserError(f"{output_dir}: is a file; a folder is needed.")
    if not any(output_dir.iterdir()):
        return None
    if not (output_dir / MANIFEST_FILE).is_file():
        raise UserError(
            f"{output_dir}: the folder holds other files; they are left as "
            "they are. Choose another folder."
        )
    if overwrite:
        return None
    manifest = read_manifest(output_dir)
    difference = _find_difference(output_dir, manifest, options, corpora)
    if difference is None:
        damaged = changed_files(output_dir, listed_files(manifest), verify=True)
        if not damaged:
            return manifest
        difference = f"{', '.join(damaged)} was changed since"
    raise UserError(
        f"{output_dir}: prepared already, but {difference}. Choose another "
        "folder, or replace this one with `deepnmt prepare --overwrite`."
    )


def _find_difference(folder, manifest, options, corpora) -> str | None:
    # An option that is newer than the folder had its default value.
    before, now = _defaults(options) | manifest["options"], asdict(options)
    for name in now:
        if name in ("train", "valid", "test"):
            continue  # compared by content below
        if name in ("tokenizer_source", "tokenizer_target"):
            side = name.removeprefix("tokenizer_")
            changed = (now[name] is None) != (before.get(name) is None) or (
                now[name] is not None
                and Tokenizer(now[name]).sha256 != _given(manifest, side)
            )
        else:
            changed = before.get(name) != now[name]
            if not changed and _file_changed(folder, options, name):
                return f"{now[name]} was changed since"
        if changed:
            return f"with {name}={before.get(name)}, not {now[name]}"
    if manifest.get("filter_code", {}) != filter_code(options):
        return "the code of a filter was changed since"
    old = [_corpus_key(entry) for entry in manifest["corpora"]]
    new = []
    for split, files in corpora.items():
        for corpus in files:
            sha256 = content_sha256(corpus)
            new.append((split, corpus.weight, corpus.tag, *sha256.values()))
            others = [
                e[2] for e in old if e[:2] + e[3:] == new[-1][:2] + new[-1][3:]
            ]
            if others and corpus.tag not in others:
                return (
                    f"with tag={others[0]} for {corpus.source}, not "
                    f"{corpus.tag}"
                )
            if new[-1] not in old:
                return (
                    f"from another {split} corpus than {corpus.source} now is"
                )
    if new != old:
        return "from other corpora"
    files = [corpus for split in corpora.values() for corpus in split]
    for entry, corpus in zip(manifest["corpora"], files, strict=True):
        now = list(corpus.direction)
        # Folders of earlier versions have no directions.
        if (before := entry.get("direction", now)) != now:
            return f"with the languages {before} for {corpus.source}, not {now}"
        # Weights of stages and tables know a corpus by its name.
        if (before := entry["name"]) != corpus.name:
            return f"with name={before} for {corpus.source}, not {corpus.name}"
        if entry.get("alignments", {}).get("sha256") != _alignments(corpus):
            return f"with other alignments of {corpus.source}"
    return None


def _given(manifest, side) -> str:
    """SHA-256 of the tokenizer that was given, before it was extended."""
    extension = manifest.get("extension", {}).get(side)
    return extension["tokenizer"] if extension else manifest["tokenizer"][side]


def _defaults(options) -> dict:
    return {
        field.name: field.default
        if field.default_factory is MISSING
        else field.default_factory()
        for field in fields(options)
    }


def _file_changed(folder, options, name) -> bool:
    """Whether the file that an option names says something else than before."""
    value = getattr(options, name)
    if value is None:
        return False
    if name == "user_defined_symbols_file" and options.tokenizer_source is None:
        symbols = [*options.all_user_defined_symbols(), *options.tags()]
        return set(symbols) != set(
            _tokenizer(folder, options.tag_side).user_defined_symbols
        )
    if name.endswith("_normalization") and value not in NORMALIZATIONS:
        side = name.removesuffix("_normalization")
        before = _tokenizer(folder, side).normalization
        return not before.is_same(load_normalization(value, before.case))
    return False


def _tokenizer(folder, side) -> Tokenizer:
    return Tokenizer(folder / "tokenizer" / f"{side}.model")


def _alignments(corpus) -> str | None:
    """SHA-256 of the alignments of a corpus that has some."""
    if corpus.alignments is None:
        return None
    file = LineReader(corpus.alignments)
    for _ in file:
        pass
    return file.sha256


def _corpus_key(entry: dict) -> tuple:
    hashes = entry["sha256"]
    # Folders of earlier versions have no tags.
    settings = entry["split"], entry["weight"], entry.get("tag")
    return *settings, hashes["source"], hashes["target"]
