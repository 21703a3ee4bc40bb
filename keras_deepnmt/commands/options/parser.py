"""The parser of one verb: typed options, and errors of one helpful line."""

import argparse
import difflib
import re
from collections.abc import Iterable

import jsonargparse

from keras_deepnmt.errors import UserError


class VerbParser(jsonargparse.ArgumentParser):
    """Parses the words after `deepnmt VERB`.

    Every verb takes `--quiet`. A mistake raises `UserError` with the nearest
    right option instead of printing a page of usage.

    Args:
        verb: the command.
        summary: what it does, in one sentence.
        example: lines to try, shown below the options.

    Example:
    >>> parser = VerbParser("train", "Train.", "deepnmt train my.yaml")
    >>> parser.parse_args(["--quiet"]).quiet
    True
    """

    def __init__(self, verb: str = "", summary: str = "", example: str = ""):
        super().__init__(
            prog=f"deepnmt {verb}",
            description=summary,
            epilog=f"example:\n{_indent(example)}",
            formatter_class=_HelpFormatter,
            exit_on_error=False,
            allow_abbrev=False,
        )
        self.add_argument(
            "--quiet",
            action="store_true",
            help="Show no progress, only results, warnings and errors.",
        )

    def parse_args(self, args=None, *rest, **kwargs) -> jsonargparse.Namespace:
        """Parses the words, or raises `UserError` with one line."""
        try:
            options = super().parse_args(args, *rest, **kwargs)
        except (argparse.ArgumentError, TypeError) as error:
            raise UserError(self._explain(str(error))) from error
        for name, value in options.items():
            # jsonargparse's numbers are classes of their own, which
            # TensorFlow does not take.
            for plain in (int, float):
                if isinstance(value, plain) and not isinstance(value, bool):
                    options[name] = plain(value)
        return options

    def _explain(self, message: str) -> str:
        unknown = re.search(r"unrecognized arguments?: (.*)", message, re.I)
        if unknown:
            word = unknown[1].split()[0].split("=")[0]
            names = list(self._option_string_actions)
            kind = "option" if word.startswith("-") else "argument"
            hint = nearest(word, names) or f" See {self.prog} --help."
            return f'unknown {kind} "{word}".{hint}'
        required = re.search(r"arguments are required: (.*)", message)
        if required:
            names = map(self._as_typed, required[1].split(", "))
            return f"needs {', '.join(names)}. See {self.prog} --help."
        value = re.search(r'key "(\w+)":\s*(.*)', message, re.S)
        if value:
            option = f"--{value[1].replace('_', '-')}"
            return f"`{option}`: {_plain(value[2])}."
        return f"{' '.join(message.split())}. See {self.prog} --help."

    def _as_typed(self, name: str) -> str:
        option = f"--{name.replace('_', '-')}"
        return option if option in self._option_string_actions else name.upper()


class _HelpFormatter(
    jsonargparse.DefaultHelpFormatter, argparse.RawDescriptionHelpFormatter
):
    """Keeps the line breaks of the example."""


def nearest(word: str, names: Iterable[str]) -> str:
    """Suggests the name that looks most like a word.

    Args:
        word: what was typed.
        names: what could have been meant.

    Returns:
        A sentence to append, or nothing where no name is near.

    Example:
    >>> nearest("trian", ["train", "score"])
    ' Did you mean "train"?'
    """
    matches = difflib.get_close_matches(word, list(names), n=1)
    return f' Did you mean "{matches[0]}"?' if matches else ""


def add_run(parser: VerbParser) -> None:
    """Adds the run folder that most verbs start from.

    Args:
        parser: the verb's parser.
    """
    parser.add_argument(
        "run", metavar="RUN", type=str, help="Run folder that train wrote."
    )


def _plain(rule: str) -> str:
    # jsonargparse speaks of Python types; say the same in words.
    rule = re.sub(r"<class '(?:.*\.)?(\w+)'>", r"\1", rule)
    rule = re.sub(r"(?:typing\.)?Literal\[(.*?)\]", r"one of \1", rule)
    rule = re.sub(r"Not of type (Positive|NonNegative)(Int|Float): ", "", rule)
    rule = re.sub(r"does not conform to restriction v>", "is not >", rule)
    rule = re.sub(r"Expected an? ", "expected ", rule)
    rule = re.sub(r"Got value:", "Received:", rule)
    return " ".join(rule.split()).removesuffix(".")


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.strip().splitlines())
