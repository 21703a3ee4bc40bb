"""The tags and placeholders in a text, and which of them separate words."""

from collections.abc import Iterable
from dataclasses import dataclass

from keras_deepnmt.data.kept_items import TAG_KINDS, KeptItem, find_kept_items
from keras_deepnmt.data.tag_tree import TagNode, tag_tree
from keras_deepnmt.data.word_units import lacks_spaces


@dataclass(frozen=True)
class MarkedText:
    """A text and what is kept in it.

    Attributes:
        text: The text as it is given.
        items: All kept items, in order.
        tree: Those that are tags, in pairs.
    """

    text: str
    items: tuple[KeptItem, ...]
    tree: tuple[TagNode, ...]

    @classmethod
    def of(cls, text: str) -> "MarkedText":
        """Finds the items of a text."""
        items = find_kept_items(text)
        tags = [item for item in items if item.kind in TAG_KINDS]
        return cls(text, tuple(items), tuple(tag_tree(tags)))

    def words(self, begin: int = 0, end: int | None = None) -> list[KeptItem]:
        """Returns the items between two places that stand for words."""
        end = len(self.text) if end is None else end
        return [
            item
            for item in self.items
            if item.kind not in TAG_KINDS and begin <= item.begin < end
        ]


def separating_tags(marked: MarkedText) -> set[KeptItem]:
    """Finds the tags in whose place a space is read.

    They stand between two letters: a single tag, such as `<br/>`, or the first
    one after the end of a pair that another one follows at once.
    """
    singles = {node.opening for node in _nodes(marked.tree) if not node.closing}
    closings = {node.closing for node in _nodes(marked.tree)}
    found, run = set(), []
    for item in [*marked.items, None]:
        if item and run and item.begin == run[-1].end:
            run.append(item)
            continue
        if _separates(marked.text, run, singles, closings):
            found.add(run[0])
        run = [item] if item and item.kind in TAG_KINDS else []
    return found


def _separates(text, run, singles, closings) -> bool:
    if not run or not run[0].begin or run[-1].end == len(text):
        return False
    beside = text[run[0].begin - 1] + text[run[-1].end]
    if beside[0].isspace() or not beside[1].isalnum() or lacks_spaces(beside):
        return False
    after_closing = False
    for tag in run:
        is_single = tag in singles and tag.kind != "comment"
        if is_single or (after_closing and tag not in closings):
            return True
        after_closing |= tag in closings
    return False


def _nodes(tree: Iterable[TagNode]) -> Iterable[TagNode]:
    for node in tree:
        yield node
        yield from _nodes(node.children)
