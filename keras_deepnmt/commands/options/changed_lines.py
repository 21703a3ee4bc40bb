"""Options of translation that change lines before the model reads them."""

from jsonargparse import Namespace

from keras_deepnmt.errors import UserError

# What reads the words of a line as they are.
_REFUSED = {
    "alignments": "--alignments",
    "replace_unknown": "--replace-unknown",
    "keep_markup": "--keep-markup",
    "split_sentences": "--split-sentences",
    "rerank": "--rerank",
    "rerank_reverse": "--rerank-reverse",
}


def check_lines_can_change(
    option: str, options: Namespace, has_markup: bool
) -> None:
    """Checks that nothing else reads the lines that `option` changes.

    `has_markup` says whether the input has markup that is kept in any case.
    """
    for name, other in _REFUSED.items():
        # "" is --replace-unknown without a table.
        if options.get(name) not in (None, False, []):
            raise UserError(
                f"{option} cannot be used with {other}, which reads the words "
                "of a line as they are. Leave one of them out."
            )
    if has_markup:
        raise UserError(
            f"{option} cannot be used with XLIFF and TMX, whose markup is kept "
            f"text by text. Received: {options.input}. Leave it out, or give "
            "the texts as lines."
        )
