"""The directions of a model: from and into which languages it translates.

A model of one direction has no tag for it, or the tag of its training text. A
model of several directions is told by a tag into which language to translate
(Johnson et al., 2017).
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from keras_deepnmt.errors import UserError


class Direction(NamedTuple):
    """The languages of a training corpus, and its tag.

    Attributes:
        source: code of the language that is translated; `None` if it is not
            known.
        target: code of the language that it is put into.
        tag: text that stands before each source.
    """

    source: str | None
    target: str | None
    tag: str | None


class Directions:
    """Those of all training corpora of a model.

    Each has its `source`, `target` and `tag`, as run.json has them. `known` are
    those whose languages are known.

    Reference:
        - [Johnson et al., 2017](https://arxiv.org/abs/1611.04558).
    """

    def __init__(self, directions: Iterable[Mapping[str, str | None]] = ()):
        found = (
            Direction(*map(one.get, ("source", "target", "tag")))
            for one in directions
        )
        self.known = [one for one in found if one.source and one.target]

    @property
    def targets(self) -> tuple[str, ...]:
        """Codes of the languages that there are translations into."""
        return tuple(dict.fromkeys(one.target for one in self.known))

    def source_of(self, target: str) -> str | None:
        """Returns the only language that is translated into another one.

        `None` if there are several, or none.
        """
        sources = {one.source for one in self.known if one.target == target}
        return sources.pop() if len(sources) == 1 else None

    def tag_of(self, target: str) -> str | None:
        """Returns the tag for translations into a language.

        It is also that of pairs of languages that no training corpus had.
        `None` means that sources need none, as where a corpus has none. A
        language with several tags is refused otherwise, and so is one that the
        model has not learned.
        """
        tags = {one.tag: None for one in self.known if one.target == target}
        if len(tags) == 1:
            return next(iter(tags))
        if None in tags:
            return None
        if tags:
            listed = ", ".join(tags)
            raise UserError(
                "`target_language` must have one tag in the training text. "
                f"Received: {target}, which has several: {listed}. Give one of "
                "them as `tag`."
            )
        if not self.targets:
            raise UserError(
                "`target_language` needs a model that knows its languages: "
                f"`data.target_language` of its recipe. Received: {target}. "
                "Leave it out, or give a `tag`."
            )
        raise UserError(
            "`target_language` must be a language that the model has learned "
            f"to write: {', '.join(self.targets)}. Received: {target}"
        )
