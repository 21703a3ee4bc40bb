"""The symbols that stand for kept items in what a model reads and writes.

A tokenizer that was trained for them has them as user-defined symbols, `⟪1⟫` to
`⟪N⟫`, so that each is one piece, which no rule changes.
"""

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keras_deepnmt.data.tokenizers import Tokenizer


def mask_symbol(number: int) -> str:
    """Returns the symbol with a number, from 1."""
    return f"⟪{number}⟫"


def mask_symbols(*tokenizers: "Tokenizer") -> list[str]:
    """Returns the symbols that all of these tokenizers have.

    They are `⟪1⟫` and those that follow it, as far as none is missing.
    """
    common = set.intersection(
        *(set(tokenizer.user_defined_symbols) for tokenizer in tokenizers)
    )
    numbered = map(mask_symbol, itertools.count(1))
    return list(itertools.takewhile(common.__contains__, numbered))
