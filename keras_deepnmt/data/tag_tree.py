"""Which tags of a text belong together, and what they enclose."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from keras_deepnmt.data.kept_items import KeptItem

# These never have a closing tag in HTML, and need no slash.
_SINGLE = frozenset(
    "area base br col embed hr img input link meta source track wbr".split()
)
_TAG = re.compile(r"<(/?)([^\s/>]+)")


@dataclass
class TagNode:
    """A pair of tags with the tags in it, or a single tag.

    Attributes:
        opening: The opening tag, or the single one.
        closing: The closing tag; `None` of a single one.
        children: The tags in the pair, in order.
    """

    opening: KeptItem
    closing: KeptItem | None = None
    children: list["TagNode"] = field(default_factory=list)

    @property
    def begin(self) -> int:
        """The place in the text after the opening tag."""
        return self.opening.end

    @property
    def end(self) -> int:
        """The place in the text before the closing tag."""
        last = self.closing or self.opening
        return last.begin if self.closing else last.end


def tag_tree(tags: Sequence[KeptItem]) -> list[TagNode]:
    """Pairs opening tags with closing ones.

    A tag without a partner is a single one. Where two pairs cross, the one that
    closes last has no partner. The result has the tags that no pair
    encloses, in order.
    """
    top: list[TagNode] = []
    open_nodes: list[TagNode] = []

    def siblings():
        return open_nodes[-1].children if open_nodes else top

    def unpair(node):
        """Makes an opening tag a single one, before what seemed inside."""
        place = siblings().index(node)
        siblings()[place + 1 : place + 1] = node.children
        node.children = []

    for tag in tags:
        is_closing, name = _parts(tag)
        if is_closing and name in [_parts(n.opening)[1] for n in open_nodes]:
            while True:
                node = open_nodes.pop()
                if _parts(node.opening)[1] == name:
                    node.closing = tag
                    break
                unpair(node)
            continue
        node = TagNode(tag)
        siblings().append(node)
        if not is_closing and not _is_single(tag, name):
            open_nodes.append(node)
    while open_nodes:
        unpair(open_nodes.pop())
    return top


def _parts(tag):
    if tag.kind != "tag":
        return False, ""
    slash, name = _TAG.match(tag.text).groups()
    return bool(slash), name


def _is_single(tag, name):
    return (
        tag.kind != "tag" or tag.text.endswith("/>") or name.lower() in _SINGLE
    )
