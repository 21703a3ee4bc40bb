"""Reads descriptions of arguments from docstrings, for help and reference."""

import inspect
import re


def argument_descriptions(kind: type) -> dict[str, str]:
    """Returns the descriptions in the `Args:` section of a class, by name.

    Arguments that a base class describes are included.

    Example:
    >>> from keras_deepnmt.decoding.options import SearchOptions
    >>> argument_descriptions(SearchOptions)["num_beams"]
    'Number of hypotheses kept for each sentence, at least 1; 1 is greedy ...'
    """
    descriptions = {}
    for base in reversed(kind.__mro__):
        text = inspect.cleandoc(vars(base).get("__doc__") or "")
        if "Args:\n" not in text:
            continue
        text = text.split("Args:\n")[1].split("\n\n")[0]
        entries = re.split(r"^    (\w+(?:, [\w.]+)*): ", text, flags=re.M)[1:]
        for names, description in zip(entries[::2], entries[1::2], strict=True):
            for name in re.findall(r"\w+", names):
                descriptions[name] = " ".join(description.split())
    return descriptions
