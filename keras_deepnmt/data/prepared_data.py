"""Opens and checks the folder that `deepnmt prepare` wrote."""

from functools import cached_property
from pathlib import Path

import numpy as np

from keras_deepnmt.data.manifest import (
    MANIFEST_FILE,
    listed_files,
    read_manifest,
    row_weights,
    text_file,
)
from keras_deepnmt.data.pair_store import PairStore
from keras_deepnmt.data.token_links import LinkStore
from keras_deepnmt.data.tokenizers import Tokenizer
from keras_deepnmt.errors import UserError
from keras_deepnmt.file_tables import check_files

_REMEDY = "Run `deepnmt prepare` again."


class PreparedData:
    """A prepared corpus: tokenizers, pairs of ids and held-out texts.

    Args:
        directory: The folder `deepnmt prepare` wrote.
        verify: Whether to check the SHA-256 of every file. Defaults to
            `False`: the sizes of all files are checked, and the hashes of
            those other than shards, as far as that takes half a second.

    Raises:
        UserError: if the folder is incomplete or of another format, or if a
            file in it is missing or was changed.

    Example:
    >>> data = PreparedData("prepared/multi30k_en_de")
    >>> len(data.store("train")), data.manifest["joint"]
    (29000, True)
    """

    def __init__(self, directory: str | Path, verify: bool = False):
        self.directory = Path(directory)
        self.manifest = read_manifest(self.directory)
        table = listed_files(self.manifest)
        check_files(self.directory, table, MANIFEST_FILE, _REMEDY, verify)

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits."""
        return tuple(self.manifest["splits"])

    @cached_property
    def source_tokenizer(self) -> Tokenizer:
        """The tokenizer of the source side."""
        return self._open_tokenizer("source")

    @cached_property
    def target_tokenizer(self) -> Tokenizer:
        """The tokenizer of the target side."""
        return self._open_tokenizer("target")

    @property
    def weights(self) -> np.ndarray | None:
        """The weight of each training row, or `None` if all are 1."""
        return row_weights(self.manifest)

    @cached_property
    def links(self) -> LinkStore | None:
        """The links of the training pairs, or `None` if none were given."""
        if "links" not in self.manifest:
            return None
        pairs = self.manifest["splits"]["train"]["pairs"]
        return LinkStore(self.directory, pairs)

    def store(self, split: str) -> PairStore:
        """Opens the pairs of a split.

        Args:
            split: One of `splits`.

        Returns:
            A `PairStore` that raises an error for ids outside the vocabularies.

        Raises:
            UserError: if there is no such split or its shards are damaged.
        """
        self._check_split(split)
        store = PairStore(
            self.directory,
            split,
            self.manifest["source_vocabulary_size"],
            self.manifest["target_vocabulary_size"],
        )
        pairs = self.manifest["splits"][split]["pairs"]
        if len(store) != pairs:
            raise UserError(
                f"{self.directory}: the manifest lists {pairs} pairs of "
                f"`{split}`, the shards hold {len(store)}. {_REMEDY}"
            )
        return store

    def texts(self, split: str) -> tuple[list[str], list[str]]:
        """Reads the unprocessed lines of a held-out split.

        Args:
            split: A split other than `"train"`, whose text is not stored.

        Returns:
            `(sources, references)`, one line per pair.

        Raises:
            UserError: if the folder has no text of this split, or if the text
                was changed.
        """
        self._check_split(split)
        sides = []
        for side in ("source", "target"):
            file = self.directory / text_file(split, side)
            if not file.is_file():
                raise UserError(f"{self.directory} has no text of `{split}`.")
            # Only "\n" ends a line: `splitlines` would also cut at U+2028.
            lines = file.read_bytes().decode("utf-8").split("\n")
            sides.append(lines[:-1] if lines[-1] == "" else lines)
        pairs = self.manifest["splits"][split]["pairs"]
        if {len(lines) for lines in sides} != {pairs}:
            raise UserError(
                f"{self.directory}: the texts of `{split}` must have {pairs} "
                f"lines. Received: {len(sides[0])} and {len(sides[1])}. "
                f"{_REMEDY}"
            )
        hashes = self.manifest["splits"][split]["texts"]
        table = {
            text_file(split, side): {"sha256": sha256}
            for side, sha256 in hashes.items()
        }
        check_files(self.directory, table, MANIFEST_FILE, _REMEDY, verify=True)
        return sides[0], sides[1]

    def _open_tokenizer(self, side: str) -> Tokenizer:
        tokenizer = Tokenizer(self._tokenizer_file(side))
        size = self.manifest[f"{side}_vocabulary_size"]
        if tokenizer.vocabulary_size != size:
            raise UserError(
                f"{self._tokenizer_file(side)}: must have the vocabulary of "
                f"the manifest. Received: {tokenizer.vocabulary_size} pieces "
                f"instead of {size}. {_REMEDY}"
            )
        return tokenizer

    def _tokenizer_file(self, side: str) -> Path:
        return self.directory / "tokenizer" / f"{side}.model"

    def _check_split(self, split: str):
        if split not in self.manifest["splits"]:
            raise UserError(
                f"{self.directory} has no split `{split}`. "
                f"It has: {', '.join(self.splits)}."
            )
