"""The folder `deepnmt prepare` leaves, opened and checked."""

import hashlib
import json
from functools import cached_property
from pathlib import Path

from keras_deepnmt.data.pair_store import PairStore
from keras_deepnmt.data.tokenizers import Tokenizer
from keras_deepnmt.errors import UserError

_FORMAT = 1
_AGAIN = "Run `deepnmt prepare` again."


class PreparedData:
    """A prepared corpus: tokenizers, pairs and held-out texts.

    Args:
        directory: The folder `deepnmt prepare` wrote.
        verify: Also compares the SHA-256 of every shard, which reads them all.
            The tokenizers are always compared. Defaults to `False`.

    Raises:
        UserError: if the folder is unfinished, of another format, or a file in
            it is not the one that was written.

    Example:
    >>> data = PreparedData("prepared/multi30k_en_de")
    >>> len(data.store("train")), data.manifest["joint"]
    (29000, True)
    """

    def __init__(self, directory: str | Path, verify: bool = False):
        self.directory = Path(directory)
        manifest_file = self.directory / "manifest.json"
        if not manifest_file.is_file():
            what = "is unfinished" if self.directory.is_dir() else "is missing"
            raise UserError(
                f"{self.directory} {what}: there is no manifest.json. {_AGAIN}"
            )
        try:
            self.manifest = json.loads(manifest_file.read_text("utf-8"))
        except ValueError as error:
            raise UserError(
                f"{manifest_file}: not a manifest ({error}). {_AGAIN}"
            ) from error
        received = self.manifest.get("format")
        if received != _FORMAT:
            raise UserError(
                f"{manifest_file}: `format` must be {_FORMAT}. "
                f"Received: {received}. {_AGAIN}"
            )
        for side, sha256 in self.manifest["tokenizer"].items():
            self._compare(self._tokenizer_file(side), sha256)
        for split, summary in self.manifest["splits"].items():
            self._check_shards(split, summary, verify)

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits."""
        return tuple(self.manifest["splits"])

    @cached_property
    def source_tokenizer(self) -> Tokenizer:
        """The tokenizer of the source side."""
        return Tokenizer(self._tokenizer_file("source"))

    @cached_property
    def target_tokenizer(self) -> Tokenizer:
        """The tokenizer of the target side."""
        return Tokenizer(self._tokenizer_file("target"))

    def store(self, split: str) -> PairStore:
        """Opens the pairs of a split.

        Args:
            split: One of `splits`.

        Returns:
            A store that refuses ids outside the vocabularies.

        Raises:
            UserError: if there is no such split or its shards are damaged.
        """
        self._check_split(split)
        return PairStore(
            self.directory,
            split,
            self.manifest["source_vocabulary_size"],
            self.manifest["target_vocabulary_size"],
        )

    def texts(self, split: str) -> tuple[list[str], list[str]]:
        """Reads the raw lines of a held-out split.

        Args:
            split: A split other than `"train"`, of which no text is kept.

        Returns:
            `(sources, references)`, one line a pair, untouched.

        Raises:
            UserError: if there is no text of this split.
        """
        self._check_split(split)
        sides = []
        for side in ("source", "target"):
            file = self.directory / f"{split}.{side}.txt"
            if not file.is_file():
                raise UserError(f"{self.directory} holds no text of `{split}`.")
            # Only "\n" ends a line: `splitlines` would also cut at U+2028.
            lines = file.read_bytes().decode("utf-8").split("\n")
            sides.append(lines[:-1] if lines[-1] == "" else lines)
        pairs = self.manifest["splits"][split]["pairs"]
        if {len(lines) for lines in sides} != {pairs}:
            raise UserError(
                f"{self.directory}: the texts of `{split}` must have {pairs} "
                f"lines. Received: {len(sides[0])} and {len(sides[1])}. "
                f"{_AGAIN}"
            )
        return sides[0], sides[1]

    def _tokenizer_file(self, side: str) -> Path:
        return self.directory / "tokenizer" / f"{side}.model"

    def _check_split(self, split: str):
        if split not in self.manifest["splits"]:
            raise UserError(
                f"{self.directory} has no split `{split}`. "
                f"It has: {', '.join(self.splits)}."
            )

    def _check_shards(self, split: str, summary: dict, verify: bool):
        for shard in summary["shards"]:
            file = self.directory / shard["file"]
            if not file.is_file():
                raise UserError(f"{file} is missing. {_AGAIN}")
            if verify:
                self._compare(file, shard["sha256"])

    def _compare(self, file: Path, sha256: str):
        try:
            with open(file, "rb") as opened:
                received = hashlib.file_digest(opened, "sha256").hexdigest()
        except OSError as error:
            raise UserError(
                f"{file}: {error.strerror}. The folder is damaged. {_AGAIN}"
            ) from error
        if received != sha256:
            raise UserError(
                f"{file} is not the file the manifest lists (SHA-256 "
                f"{received[:12]}, not {sha256[:12]}). {_AGAIN}"
            )
