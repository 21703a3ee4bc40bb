"""Where the texts of a known corpus come from: files, archives, or the package.

A content's SHA-256 is that of the uncompressed text, so a gzipped file and its
plain copy have the same one.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class NamedFile:
    """A text file that can be downloaded as it is.

    Attributes:
        address: Where it is; `None` if it is at no public address.
        sha256: Of the uncompressed content.
        local_names: The paths, relative to a `data_dir`, where a copy of the
            file may be.
    """

    address: str | None
    sha256: str
    local_names: tuple[str, ...]


@dataclass(frozen=True)
class Archive:
    """An archive, or a compressed file, that can be downloaded.

    Attributes:
        address: Where it is.
        digest: Kind and value of its hash, as `sha256:...` or `md5:...`; `None`
            if none is published. The hash of the first download is then
            recorded, and later ones must have the same.
        file_name: Its name in the cache and in a `data_dir`; by default the
            last part of the address.
    """

    address: str
    digest: str | None = None
    file_name: str | None = None

    @property
    def name(self) -> str:
        """The name of the file, without a folder."""
        return self.file_name or self.address.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Member:
    """A file in an archive, and how to read its sentences.

    Attributes:
        archive: The archive.
        path: The file's path in the archive; empty for a compressed file.
        form: `text`, one sentence a line; `sgm`, a test set in SGML or XML
            whose sentences are `<seg>` elements; `talks`, the training text of
            IWSLT, with lines that describe the talks; or `tmx`, a translation
            memory with the sentences of both languages.
        languages: For `tmx`: the language to read, and the other one, which a
            pair must have too.
        lines: For `text`: the lines to read, from the first one (counted from
            0) to before the second one; `None` for all.
    """

    archive: Archive
    path: str = ""
    form: Literal["text", "sgm", "talks", "tmx"] = "text"
    languages: tuple[str, str] | None = None
    lines: tuple[int, int] | None = None


@dataclass(frozen=True)
class BuiltFile:
    """A text that is put together from members of archives, in their order.

    Attributes:
        local_name: Its path in the cache and relative to a `data_dir`.
        members: Its parts.
    """

    local_name: str
    members: tuple[Member, ...]

    @property
    def local_names(self) -> tuple[str, ...]:
        """The paths, relative to a `data_dir`, where a copy may be."""
        return (self.local_name,)


@dataclass(frozen=True)
class DemoFile:
    """A text of the demo corpus, which the package contains.

    Attributes:
        local_name: Its path in the cache and relative to a `data_dir`; all
            files of the corpus are in one folder.
        sha256: Of the content.
    """

    local_name: str
    sha256: str

    @property
    def local_names(self) -> tuple[str, ...]:
        """The paths, relative to a `data_dir`, where a copy may be."""
        return (self.local_name,)


CorpusFile = NamedFile | BuiltFile | DemoFile


@dataclass(frozen=True)
class NamedCorpus:
    """A known corpus.

    Attributes:
        name: The name. That of a translation corpus ends with its source and
            target language.
        splits: The source and target file of each split. A corpus with
            nothing but `test` can be used for any split.
        notes: What a user must know about it, in a few sentences.
    """

    name: str
    splits: dict[str, tuple[CorpusFile, CorpusFile]]
    notes: str = ""

    def archives(self) -> list[Archive]:
        """Returns the archives that its files are made of, each one once."""
        archives = {}
        for sides in self.splits.values():
            for file in sides:
                for member in getattr(file, "members", ()):
                    archives[member.archive] = True
        return list(archives)
