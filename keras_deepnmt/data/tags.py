"""Tags: texts that stand before the source sentences of a corpus.

A tag tells a model of what kind a sentence is, such as into which language it
is to be translated. It is a user-defined symbol of a tokenizer, so that it
always is one token, and a part of the source's text: `<2de> a dog`. A model
reads it there, or, if the side of its tags is `target`, as the beginning of
what it writes: `a dog` gives `<2de> ein Hund`, without the tag in the end.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from keras_deepnmt.errors import UserError

if TYPE_CHECKING:
    from keras_deepnmt.data.tokenizers import Tokenizer

# The side of a pair that a model has the tags on.
TagSide = Literal["source", "target"]
# SentencePiece has other uses for these.
_TAKEN = ("<pad>", "<unk>", "<s>", "</s>")
_SPACE_MARK = "▁"
# So many symbols of a tokenizer are listed in an error.
_MOST_LISTED = 20


def check_tag(tag: str) -> None:
    """Refuses a text that cannot be a tag.

    Such a text is empty, has white space or a character that cannot be seen, or
    is the name of a special token.
    """
    is_visible = tag.isprintable() and tag.split() == [tag]
    if not is_visible or _SPACE_MARK in tag or tag in _TAKEN:
        raise UserError(
            "`tag` must be a text without white space and hidden characters, "
            f"such as <2de>, but none of {', '.join(_TAKEN)}. Received: "
            f"tag={tag!r}"
        )


def tagged_text(text: str, tag: str | None) -> str:
    """Returns a text with a tag and a space before it, if there is a tag.

    Example:
    >>> tagged_text("a dog", "<2de>"), tagged_text("a dog", None)
    ('<2de> a dog', 'a dog')
    """
    return text if tag is None else f"{tag} {text}"


def tagged_sentence(text: str, tag: str | None) -> str:
    """Returns a sentence with a tag before it, unless it has no words.

    Example:
    >>> tagged_sentence("a dog", "<2de>"), tagged_sentence(" ", "<2de>")
    ('<2de> a dog', ' ')
    """
    return tagged_text(text, tag if text.strip() else None)


def begins_with_tag(text: str, tags: Iterable[str]) -> bool:
    """Whether a text begins with one of some tags.

    Example:
    >>> begins_with_tag(" <2de> a dog", ["<2de>", "<2fr>"])
    True
    """
    return text.lstrip().startswith(tuple(tags))


def own_tag(text: str, tags: Iterable[str]) -> str | None:
    """Returns the tag that a text begins with, if it does.

    Example:
    >>> own_tag(" <2de> a dog", ["<2de>"]), own_tag("<2de>r", ["<2de>"])
    ('<2de>', None)
    """
    first, *_ = text.split(maxsplit=1) or [""]
    return first if first in tags else None


def untagged_text(text: str, tags: Iterable[str]) -> str:
    """Returns a text without the tag that it begins with, if it does.

    Example:
    >>> [untagged_text(text, ["<2de>"]) for text in ("<2de> a dog", "<2de>r")]
    ['a dog', '<2de>r']
    """
    if own_tag(text, tags) is None:
        return text
    return "".join(text.split(maxsplit=1)[1:])


def split_tags(
    texts: Iterable[str], tags: Iterable[str]
) -> tuple[list[str], list[str | None]]:
    """Takes the tags off texts that begin with one of some tags.

    Returns the texts without them, and the tag of each, or `None`.
    """
    known = frozenset(tags)
    texts = list(texts)
    found = [own_tag(text, known) for text in texts]
    return [untagged_text(text, known) for text in texts], found


def without_beginning(text: str, tag: str | None) -> str:
    """Returns a translation without the tag that it was made to begin with."""
    if tag is None:
        return text
    return text.lstrip(" ").removeprefix(tag).removeprefix(" ")


def tagged_texts(
    tokenizer: "Tokenizer", texts: Sequence[str], tag: str | None
) -> list[str]:
    """Returns texts with a tag before each that has tokens, if there is a tag.

    An empty sentence stays empty.
    """
    if tag is None:
        return list(texts)
    return [
        tagged_text(text, tag if len(ids) else None)
        for text, ids in zip(texts, tokenizer.encode(list(texts)), strict=True)
    ]


def check_has_tag(
    tokenizer: "Tokenizer", tag: str, remedy: str, side: TagSide = "source"
) -> None:
    """Refuses a tag that is not one piece of the tokenizer of a side.

    The message names the user-defined symbols that this tokenizer has, and ends
    with the `remedy`.
    """
    symbols = tokenizer.user_defined_symbols
    if tag in symbols:
        return
    listed = ", ".join(symbols[:_MOST_LISTED])
    if len(symbols) > _MOST_LISTED:
        listed += f" and {len(symbols) - _MOST_LISTED:,} more"
    raise UserError(
        f"`tag` must be a user-defined symbol of the {side} tokenizer, so that "
        f"it is one piece. Received: tag={tag} and {tokenizer.model_file}, "
        f"whose user-defined symbols are: {listed or 'none'}. {remedy}"
    )


def tags_of_corpora(tags: Iterable[str | None]) -> list[str | None]:
    """Lists the tags of the training corpora, each once, in order.

    `None` is the tag of a corpus without one. The list is empty if no corpus
    has a tag.

    Example:
    >>> tags_of_corpora(["<2de>", None, "<2de>"]), tags_of_corpora([None])
    (['<2de>', None], [])
    """
    found = list(dict.fromkeys(tags))
    return [] if found == [None] else found
