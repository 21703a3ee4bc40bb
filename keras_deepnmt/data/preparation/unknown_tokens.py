"""Counts the tokens that a given tokenizer does not know."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from keras_deepnmt.data.tokenizers import Tokenizer
from keras_deepnmt.masks import UNKNOWN_ID

# A larger share of unknown tokens on a side of a split is warned about.
MAX_SHARE = 0.001
# The texts of so many sentences are looked at for examples.
_SENTENCES_FOR_EXAMPLES = 1000
_EXAMPLES = 5


class UnknownTokens:
    """Counts the unknown tokens of each split, on the sides given.

    The sides are `source` and `target`. `names` is what warnings call the
    tokenizers, by default the names of their files.
    """

    def __init__(
        self,
        tokenizers: Mapping[str, Tokenizer],
        names: Mapping[str, str] | None = None,
    ):
        self._tokenizers = dict(tokenizers)
        self._names = names or {
            side: str(one.model_file) for side, one in tokenizers.items()
        }
        self._counts: Counter = Counter()
        self._texts: Counter = Counter()
        self._examples = {side: Counter() for side in self._tokenizers}

    def add(
        self,
        split: str,
        sides: Mapping[str, tuple[Sequence[np.ndarray], Sequence[str]]],
    ):
        """Counts in a block: by side, the ids and the texts of sentences.

        A text may begin with sentences of a context that its ids lack.
        """
        for side, tokenizer in self._tokenizers.items():
            ids, texts = sides[side]
            for row, text in zip(ids, texts, strict=True):
                unknown = np.flatnonzero(row == UNKNOWN_ID)
                if not len(unknown):
                    continue
                self._counts[split, side] += len(unknown)
                if self._texts[side] < _SENTENCES_FOR_EXAMPLES:
                    self._texts[side] += 1
                    surfaces = tokenizer.surfaces(text)
                    # Counted from the end, which both have.
                    self._examples[side].update(
                        surfaces[n] for n in unknown - len(row)
                    )

    def entry(self, split: str) -> dict[str, int]:
        """Returns the counts of a split for the manifest."""
        return {
            f"{side}_unknown_tokens": self._counts[split, side]
            for side in self._tokenizers
        }

    def warnings(self, splits: Mapping[str, Mapping]) -> list[str]:
        """Returns a warning for each side of a split with too many.

        `splits` are the splits of the manifest.
        """
        warnings = []
        for split, summary in splits.items():
            for side, name in self._names.items():
                count = self._counts[split, side]
                tokens = summary[f"{side}_tokens"]
                if count > MAX_SHARE * tokens:
                    common = self._examples[side].most_common(_EXAMPLES)
                    examples = ", ".join(_shown(text) for text, _ in common)
                    warnings.append(
                        f"{count:,} of {tokens:,} {side} tokens of the {split} "
                        f"set ({count / tokens:.2%}) are unknown to "
                        f"{name}, such as {examples}. A model cannot tell "
                        "them apart: train a tokenizer on this text, take one "
                        "that has these characters, or let "
                        "`extend_vocabulary` add them."
                    )
        return warnings


def _shown(text: str) -> str:
    text = text[:20]
    return text if text.isprintable() and text else ascii(text)
