"""Which texts of a file with several are asked for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Asked:
    """What is asked of a file.

    Attributes:
        source_language: Code of the language of the texts, such as `de`.
            `None` is what the file says.
        target_language: That of their translations.
        source_column: The name of the column with the texts, in tables.
        target_column: That of the translations.
        replace_targets: Whether translations that are there are replaced, but
            for those that somebody approved.
    """

    source_language: str | None = None
    target_language: str | None = None
    source_column: str | None = None
    target_column: str | None = None
    replace_targets: bool = False
