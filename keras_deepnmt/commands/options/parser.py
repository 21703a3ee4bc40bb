"""The parser of one command: typed options and one-line error messages."""

import argparse
import re
import textwrap

import jsonargparse

from keras_deepnmt.errors import UserError
from keras_deepnmt.suggestions import did_you_mean

# Numbers are int32 in TensorFlow.
LARGEST = 2**31 - 1


class VerbParser(jsonargparse.ArgumentParser):
    """Parses the arguments of one command, such as `deepnmt train`.

    Every command has the option `--quiet` (`-q`). A wrong argument raises
    `UserError` with the nearest valid option instead of printing the usage.
    `summary` and `example` are the first and the last lines of the help.
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
            "-q",
            action="store_true",
            help="Do not show progress, only results, warnings and errors.",
        )

    def parse_args(self, args=None, *rest, **kwargs) -> jsonargparse.Namespace:
        """Parses the arguments; raises `UserError` if one is wrong."""
        try:
            options = super().parse_args(args, *rest, **kwargs)
        except (argparse.ArgumentError, TypeError) as error:
            raise UserError(self._explain(str(error))) from error
        for name, value in options.items():
            if isinstance(value, int) and abs(value) > LARGEST:
                raise UserError(
                    f"`--{name.replace('_', '-')}` must be at most "
                    f"{LARGEST:,}. Received: {value}"
                )
            # TensorFlow does not accept jsonargparse's subclasses of int and
            # float, such as PositiveInt.
            for plain in (int, float):
                if isinstance(value, plain) and not isinstance(value, bool):
                    options[name] = plain(value)
        return options

    def _explain(self, message: str) -> str:
        unknown = re.search(r"unrecognized arguments?: (.*)", message, re.I)
        if unknown:
            word = unknown[1].split()[0].split("=")[0]
            names = [
                name
                for name, action in self._option_string_actions.items()
                if action.help != argparse.SUPPRESS
            ]
            kind = "option" if word.startswith("-") else "argument"
            hint = did_you_mean(word, names) or f" See {self.prog} --help."
            return f'unknown {kind} "{word}".{hint}'
        required = re.search(r"arguments are required: (.*)", message)
        if required:
            names = map(self._as_typed, required[1].split(", "))
            return f"needs {', '.join(names)}. See {self.prog} --help."
        value = re.search(
            r'key "(\w+)"(?: element \d+)?:\s*(.*)', message, re.S
        )
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
    """Keeps the line breaks of the example and shows defaults as sentences."""

    def _split_lines(self, text, width):
        # An option stays whole: "--max-extra-tokens".
        return textwrap.wrap(
            " ".join(text.split()), width, break_on_hyphens=False
        )

    def _get_help_string(self, action):
        if action.dest == "help":
            return super()._get_help_string(action)
        text = action.help or ""
        if action.option_strings and action.required:
            text += " Required."
        is_flag = action.nargs == 0
        return text if is_flag else with_default(text, action.default)


def with_default(text: str, default: object) -> str:
    """Adds the default of an option to its help, which may say it already.

    Example:
    >>> with_default("Whether case is ignored.", False)
    'Whether case is ignored. Default: false.'
    """
    if default in (None, [], argparse.SUPPRESS) or "Default" in text:
        return text
    if isinstance(default, bool):
        default = str(default).lower()  # as on the command line
    return f"{text} Default: {default}."


def add_run_folder(parser: VerbParser, more: str = "") -> None:
    """Adds the positional argument for the run folder.

    `more` says what else it may be.
    """
    before, end = (", ", f", {more}.") if more else (", or ", ".")
    parser.add_argument(
        "run",
        metavar="RUN",
        help="Run folder written by `deepnmt train`, preset folder written by "
        f"`deepnmt export --format preset`{before}name of a trained model "
        f"(`deepnmt models --trained`){end}",
    )


def _plain(rule: str) -> str:
    # Replaces the Python types in jsonargparse's messages by plain words.
    rule = re.sub(r"<class '(?:.*\.)?(\w+)'>", r"\1", rule)
    rule = re.sub(r"(?:typing\.)?Literal\[(.*?)\]", r"one of \1", rule)
    rule = re.sub(r"Not of type (Positive|NonNegative)(Int|Number): ", "", rule)
    rule = re.sub(r"does not conform to restriction v>", "is not >", rule)
    rule = rule.replace(" and v<=", " and <=")
    rule = re.sub(r"Expected an? ", "expected ", rule)
    rule = re.sub(r"Got value:", "Received:", rule)
    return " ".join(rule.split()).removesuffix(".")


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.strip().splitlines())
