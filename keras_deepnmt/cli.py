"""The command line: finds the verb, runs it, and turns failures into a line."""

import importlib
import os
import sys
from collections.abc import Sequence

import absl.logging

from keras_deepnmt.commands import VERBS
from keras_deepnmt.commands.options.parser import VerbParser, nearest
from keras_deepnmt.commands.terminal.console import short_messages
from keras_deepnmt.commands.terminal.failures import (
    explain,
    leftovers_ignored,
    silence_stdout,
    tell,
    wants_traceback,
)
from keras_deepnmt.errors import Terminated
from keras_deepnmt.version import __version__

INTERRUPTED = 130
TERMINATED = 143
BROKEN_PIPE = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one `deepnmt` command and returns its exit code.

    0 is success, 2 a user's mistake (told in one line on stderr), 130 an
    interrupt, 141 a reader that went away. Training that SIGTERM stopped has
    saved everything and ends with 0. With `DEEPNMT_TRACEBACK=1` in the
    environment mistakes are raised instead.

    Args:
        argv: the words after `deepnmt`. Defaults to those of this process.

    Returns:
        The exit code.

    Example:
    >>> main(["--version"])
    deepnmt 0.1.0
    0
    """
    code = _run(list(sys.argv[1:] if argv is None else argv))
    if argv is None and code:
        # HDF5 and tf.data complain, or crash, when the interpreter takes down
        # what a failure left half open; everything of ours is closed by now.
        silence_stdout()
        sys.stderr.flush()
        os._exit(0 if code == TERMINATED else code)
    return 0 if code == TERMINATED else code


def overview() -> str:
    """Lists the verbs, each with what it does.

    Returns:
        The text of `deepnmt --help`.

    Example:
    >>> "translate" in overview()
    True
    """
    lines = [
        "usage: deepnmt COMMAND [options]",
        "",
        "Trains, measures and exports neural translators.",
        "",
        "commands:",
        *(f"  {verb:<11} {summary}" for verb, summary in VERBS.items()),
        "",
        "`deepnmt COMMAND --help` says more. Start with: deepnmt quickstart",
    ]
    return "\n".join(lines)


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(overview())
        return 0 if words else 2
    if words[0] == "--version":
        print(f"deepnmt {__version__}")
        return 0
    if words[0] not in VERBS:
        kind = "option" if words[0].startswith("-") else "command"
        hint = nearest(words[0], VERBS) or " See deepnmt --help."
        return tell(None, f'unknown {kind} "{words[0]}".{hint}')
    # Both hold for libraries as they are loaded, so before any of them.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # Grain, for one, warns where JAX is not installed.
    absl.logging.set_verbosity(absl.logging.ERROR)
    with leftovers_ignored():
        return _run_verb(words[0], words[1:])


def _run_verb(verb: str, words: list[str]) -> int:
    how_to_continue = "Nothing was done."
    try:
        command = importlib.import_module(f"keras_deepnmt.commands.{verb}")
        how_to_continue = command.CONTINUE
        parser = VerbParser(verb, VERBS[verb], command.EXAMPLE)
        command.add_options(parser)
        options = parser.parse_args(words)
        with short_messages(options.quiet):
            code = command.run(options)
        sys.stdout.flush()
        return code or 0
    except SystemExit as end:
        return end.code or 0
    except BrokenPipeError:
        silence_stdout()
        return BROKEN_PIPE
    except Terminated as stop:
        print(f"deepnmt {verb}: {stop}", file=sys.stderr, flush=True)
        return TERMINATED
    except KeyboardInterrupt as interrupt:
        # A room that saved something says so itself.
        message = str(interrupt) or f"interrupted. {how_to_continue}"
        return tell(verb, message, INTERRUPTED)
    except Exception as error:
        message = explain(error)
        if message is None or wants_traceback():
            raise
        silence_stdout()
        return tell(verb, message)


if __name__ == "__main__":
    sys.exit(main())
