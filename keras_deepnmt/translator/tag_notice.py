"""Warns once of sources that lack a tag, or have two."""

import logging
from collections.abc import Sequence

from keras_deepnmt.data.tags import begins_with_tag

_log = logging.getLogger(__name__)


class TagNotice:
    """Compares sources with the tags of a model's training text.

    `tags` are those of the training corpora, with `None` where a corpus has
    none: then sources need no tag. The attribute `tags` has no `None`.
    """

    def __init__(self, tags: Sequence[str | None] = ()):
        self._are_needed = bool(tags) and None not in tags
        self.tags = tuple(tag for tag in tags if tag is not None)
        self._told = False

    def look_at(self, texts: Sequence[str], tag: str | None) -> None:
        """Warns of the first source at fault, if there was no warning yet.

        The texts are without `tag`, which the translator adds, if there is one.
        """
        if self._told or not self.tags:
            return
        for text in texts:
            if fault := self.fault(text, tag):
                self._told = True
                _log.warning("A source such as %r: %s", text[:60], fault)
                return

    def fault(self, text: str, tag: str | None) -> str | None:
        """Says what is wrong with the tags of a source, if anything is.

        The text is without `tag`, which the translator adds, if there is one.
        """
        has_tag = begins_with_tag(text, self.tags)
        if tag is not None and has_tag:
            return f"it begins with a tag already, and gets {tag} before it."
        if tag is None and not has_tag and self._are_needed and text.strip():
            return (
                "it begins with none of the tags of the training text, "
                f"{', '.join(self.tags)}, as all that was learned from does. "
                "Choose one (`tag`, --tag), or a language that has one "
                "(`target_language`, --target-language)."
            )
        return None
