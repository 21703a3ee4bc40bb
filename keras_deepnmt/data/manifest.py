"""Reads, writes and describes the manifest of a prepared folder."""

import math
from pathlib import Path
from typing import Any, NotRequired

import numpy as np
from typing_extensions import TypedDict

from keras_deepnmt.data.shortlists import SHORTLIST_FILE
from keras_deepnmt.errors import UserError
from keras_deepnmt.files import recover_folder, write_json
from keras_deepnmt.json_files import check_form, read_json

MANIFEST_FILE = "manifest.json"
FORMAT = 1
_REMEDY = "Run `deepnmt prepare --overwrite` again."


class _Sides(TypedDict):
    source: str
    target: str


class _Corpus(TypedDict):
    split: str
    name: str
    weight: float
    sha256: _Sides
    lines: int
    pairs: int
    rows: list[int]
    tag: NotRequired[str | None]
    direction: NotRequired[list[str | None]]


class _Shard(TypedDict):
    file: str
    sha256: str


class _Split(TypedDict):
    pairs: int
    source_tokens: int
    target_tokens: int
    shards: list[_Shard]
    texts: NotRequired[_Sides]


class _Shortlist(TypedDict):
    sha256: str


class _Manifest(TypedDict):
    """What is read in a manifest; folders of earlier versions have less."""

    joint: bool
    source_vocabulary_size: int
    target_vocabulary_size: int
    tokenizer: _Sides
    options: dict[str, Any]
    corpora: list[_Corpus]
    filters: dict[str, dict[str, int]]
    splits: dict[str, _Split]
    leakage: dict[str, int]
    # Its entries are checked where they are compared with the files.
    files: NotRequired[dict[str, Any]]
    shortlist: NotRequired[_Shortlist]
    links: NotRequired[dict[str, str]]


def write_manifest(directory: str | Path, manifest: dict):
    """Writes the manifest; a folder with a manifest is complete."""
    write_json(Path(directory) / MANIFEST_FILE, manifest)


def read_manifest(directory: str | Path) -> dict:
    """Reads the manifest of a prepared folder.

    Raises a `UserError` if there is none, if this version cannot read it, or if
    a key is missing or has a value of another kind.
    """
    path = Path(directory) / MANIFEST_FILE
    # `prepare --overwrite` may have been killed while it replaced the folder.
    recover_folder(directory)
    try:
        manifest = read_json(path, remedy=_REMEDY)
    except FileNotFoundError as error:
        raise UserError(
            f"{directory}: not a prepared corpus (it has no {MANIFEST_FILE})."
            " Run `deepnmt prepare` first."
        ) from error
    except OSError as error:
        raise UserError(
            f"{path}: cannot be read ({error.strerror})."
        ) from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise UserError(
            f"{path}: the format must be {FORMAT}. Received: "
            f"{manifest.get('format') if isinstance(manifest, dict) else '?'}. "
            "Run `deepnmt prepare` again with this version."
        )
    check_form(manifest, path, _Manifest, _REMEDY)
    return manifest


def listed_files(manifest: dict) -> dict[str, dict[str, int | str]]:
    """Returns the table of a prepared folder's files, see `file_table`.

    The manifest of an earlier version has no such table, but the hashes of
    tokenizers, shards, shortlists and the texts of held-out splits.
    """
    if "files" in manifest:
        return manifest["files"]
    return {
        name: {"sha256": sha256}
        for name, sha256 in written_hashes(manifest).items()
    }


def written_hashes(manifest: dict) -> dict[str, str]:
    """Returns the SHA-256 of files by name, noted as they were written."""
    expected = {
        f"tokenizer/{side}.model": sha256
        for side, sha256 in manifest["tokenizer"].items()
    }
    if "shortlist" in manifest:
        expected[SHORTLIST_FILE] = manifest["shortlist"]["sha256"]
    expected |= manifest.get("links", {})
    for name, split in manifest["splits"].items():
        expected |= {s["file"]: s["sha256"] for s in split["shards"]}
        expected |= {
            text_file(name, side): sha256
            for side, sha256 in split.get("texts", {}).items()
        }
    return expected


def text_file(split: str, side: str) -> str:
    """Returns the name of the file with a held-out split's text."""
    return f"{split}.{side}.txt"


def row_weights(manifest: dict) -> np.ndarray | None:
    """Returns the float32 weight of each training row, or `None` if all are 1.

    A weight says how often a row is drawn per epoch, on average.
    """
    corpora = training_corpora(manifest)
    by_corpus = corpus_weights(manifest)
    if all(weight == 1 for weight in by_corpus):
        return None
    weights = np.ones(corpora[-1]["rows"][1], "float32")
    for corpus, weight in zip(corpora, by_corpus, strict=True):
        weights[slice(*corpus["rows"])] = weight
    return weights


def training_corpora(manifest: dict) -> list[dict]:
    """Returns the entries of the training corpora."""
    return [c for c in manifest["corpora"] if c["split"] == "train"]


def corpus_weights(manifest: dict) -> list[float]:
    """Returns how often each pair of each training corpus is drawn per epoch.

    With a temperature T (`data.temperature`), a corpus of n pairs with the
    weight w is drawn with a probability proportional to `w n^(1/T)`
    (Arivazhagan et al., 2019), and an epoch has as many pairs as without.

    Reference:
        - [Arivazhagan et al., 2019](https://arxiv.org/abs/1907.05019).
    """
    corpora = training_corpora(manifest)
    weights = [corpus["weight"] for corpus in corpora]
    # Folders of earlier versions have no temperature.
    temperature = manifest.get("options", {}).get("temperature", 1)
    if temperature == 1:
        return weights
    sizes = [stop - start for start, stop in (c["rows"] for c in corpora)]
    shares = [
        weight * size ** (1 / temperature)
        for weight, size in zip(weights, sizes, strict=True)
    ]
    pairs = sum(map(math.prod, zip(weights, sizes, strict=True)))
    scale = pairs / sum(shares)
    return [
        scale * share / max(1, size)
        for share, size in zip(shares, sizes, strict=True)
    ]


def describe_manifest(manifest: dict) -> str:
    """Describes in a few lines how many pairs were read, left out and kept."""
    lines = []
    for split, counts in manifest["filters"].items():
        left_out = [
            f"{count:,} {name}"
            for name, count in counts.items()
            if count and name not in ("read", "kept")
        ]
        tokens = manifest["splits"][split]
        lines.append(
            f"{split}: {counts['kept']:,} of {counts['read']:,} pairs "
            f"(left out: {', '.join(left_out) or 'none'}), "
            f"{tokens['source_tokens']:,} source and "
            f"{tokens['target_tokens']:,} target tokens{_unknown(tokens)}"
            f"{_case_examples(tokens)}"
        )
    lines += [
        f"training corpus {corpus['name']}: no pair is left of "
        f"{corpus['lines']:,}, its weight {corpus['weight']:g} has no effect"
        for corpus in manifest["corpora"]
        if corpus["split"] == "train" and not corpus["pairs"]
    ]
    lines += [
        f"{corpus['split']} corpus {corpus['name']}: {corpus['pairs']:,} pairs "
        f"with the tag {corpus['tag']}"
        for corpus in manifest["corpora"]
        if corpus.get("tag") is not None
    ]
    lines += describe_shares(manifest)
    if "links" in manifest:
        train = manifest["splits"]["train"]
        lines.append(
            f"alignments: {train['aligned_pairs']:,} of {train['pairs']:,} "
            "training pairs have links"
        )
    kind = "joint" if manifest["joint"] else "separate"
    lines.append(
        f"vocabulary ({kind}): {manifest['source_vocabulary_size']:,} source, "
        f"{manifest['target_vocabulary_size']:,} target"
    )
    lines += describe_extension(manifest)
    return "\n".join(lines)


def describe_shares(manifest: dict) -> list[str]:
    """Describes how often the corpora are drawn, if by a temperature.

    Example:
    >>> describe_shares({"corpora": [], "options": {"temperature": 1.0}})
    []
    """
    if manifest["options"].get("temperature", 1) == 1:
        return []
    corpora, weights = training_corpora(manifest), corpus_weights(manifest)
    drawn = [
        weight * (corpus["rows"][1] - corpus["rows"][0])
        for corpus, weight in zip(corpora, weights, strict=True)
    ]
    return [
        f"training corpus {corpus['name']}: {number / sum(drawn):.1%} of the "
        f"pairs of an epoch, each drawn {weight:.3g} times on average"
        for corpus, weight, number in zip(corpora, weights, drawn, strict=True)
    ]


def describe_extension(manifest: dict) -> list[str]:
    """Describes in a line per side what was added to given tokenizers."""
    lines = []
    for side, added in manifest.get("extension", {}).items():
        characters, merges = added["characters"], added["merges"]
        unknown = manifest["splits"]["train"][f"{side}_unknown_tokens"]
        lines.append(
            f"{side} vocabulary: {characters + merges:,} new pieces "
            f"({characters:,} characters, {merges:,} merges), "
            f"{added['tokens_after']:.2f} instead of "
            f"{added['tokens_before']:.2f} tokens per sentence; "
            f"{unknown:,} unknown tokens are left in the training text, "
            f"characters without a piece: {added['missing_characters']:,}"
        )
    return lines


def _case_examples(split: dict) -> str:
    counts = split.get("case_examples", {})
    names = {"all_caps": "in capitals", "capitalized": "with capitalized words"}
    parts = [f"{count:,} {names[name]}" for name, count in counts.items()]
    return f", also shown: {' and '.join(parts)}" if parts else ""


def _unknown(tokens: dict) -> str:
    counts = [
        f"{tokens[f'{side}_unknown_tokens']:,} {side} tokens"
        for side in ("source", "target")
        if tokens.get(f"{side}_unknown_tokens")
    ]
    return f" ({' and '.join(counts)} are unknown)" if counts else ""


def leakage_warnings(manifest: dict) -> list[str]:
    """Returns one warning per pair of splits that share source sentences."""
    warnings = []
    for name, pairs in manifest["leakage"].items():
        sources = manifest["leakage"].get(f"{name}_source")
        if sources:
            other, split = name.split("_")
            warnings.append(
                f"{sources} of {manifest['splits'][split]['pairs']} {split} "
                f"sources are in {other} too, {pairs} of them with the same "
                "target."
            )
    return warnings
