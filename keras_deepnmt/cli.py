"""The `deepnmt` command line: runs a command and reports its errors."""

import contextlib
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

import absl.logging

from keras_deepnmt.commands import VERBS, module_name
from keras_deepnmt.commands.options.completion import completion_script
from keras_deepnmt.commands.options.downloads import given_limits
from keras_deepnmt.commands.options.own_code import given_code
from keras_deepnmt.commands.options.parser import VerbParser
from keras_deepnmt.commands.terminal.console import short_log_messages
from keras_deepnmt.commands.terminal.failures import (
    INTERNAL_ERROR,
    describe_bug,
    explain,
    ignore_cleanup_errors,
    print_error,
    silence_stdout,
    wants_traceback,
)
from keras_deepnmt.commands.terminal.standard_streams import (
    open_standard_streams,
    stop_without_reader,
)
from keras_deepnmt.errors import TERMINATED, Terminated
from keras_deepnmt.signals import raised_on
from keras_deepnmt.suggestions import did_you_mean
from keras_deepnmt.terminal_text import print_line
from keras_deepnmt.version import __version__

INTERRUPTED = 130
BROKEN_PIPE = 141
# Commands that print results while they work, and stop when nobody reads them.
STREAMING = ("score", "translate")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one `deepnmt` command and returns its exit code.

    The exit code is 0 for success, 2 for a user error, 1 for a bug of this
    package (both are reported in one line on stderr), 130 for an interrupt
    (Ctrl-C), 141 if `translate` or `score` stopped since the reader of stdout
    closed its end of the pipe, and 143 if SIGTERM stopped the command, unless
    `train --exit-code-on-stop` gives another one. If the environment variable
    `DEEPNMT_TRACEBACK` is 1, errors are raised with their traceback.

    `argv` has the arguments after `deepnmt`, by default those of this process.
    """
    if argv is None:
        open_standard_streams()
    try:
        code = _run(list(sys.argv[1:] if argv is None else argv))
    except BrokenPipeError:  # while printing the overview
        silence_stdout()
        code = BROKEN_PIPE
    except OSError as error:
        code = print_error(None, explain(error) or str(error))
    if argv is None:
        _exit(code)
    return code


def _exit(code: int) -> NoReturn:
    """Ends the process without the interpreter's shutdown.

    All our files are closed by now. The shutdown would take TensorFlow
    seconds, and after an error HDF5 and tf.data may print messages or crash.
    """
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = code or BROKEN_PIPE
    except OSError as error:
        code = code or print_error(None, explain(error) or str(error))
    silence_stdout()
    sys.stderr.flush()
    os._exit(code)


def overview() -> str:
    """Returns the text of `deepnmt --help`."""
    lines = [
        "usage: deepnmt COMMAND [options]",
        "",
        "Train, evaluate and export neural machine translation models.",
        "",
        "commands:",
        *(f"  {verb:<15} {summary}" for verb, summary in VERBS.items()),
        "",
        "Run `deepnmt COMMAND --help` for the options of a command, "
        "`deepnmt --version`",
        "for the version, and `deepnmt --print-completion bash` (or zsh) for a "
        "script",
        "with which your shell completes commands and options.",
        "Start with: deepnmt quickstart",
    ]
    return "\n".join(lines)


def make_parser(verb: str) -> VerbParser:
    """Returns the parser of a command's options."""
    command = importlib.import_module(module_name(verb))
    parser = VerbParser(verb, VERBS[verb], command.EXAMPLE)
    command.add_options(parser)
    return parser


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(overview())
        return 0 if words else 2
    if words[0] == "--version":
        print(f"deepnmt {__version__}")
        return 0
    if words[0] == "--print-completion":
        return _print_completion(" ".join(words[1:]))
    if words[0] not in VERBS:
        kind = "option" if words[0].startswith("-") else "command"
        hint = did_you_mean(words[0], VERBS) or " See deepnmt --help."
        return print_error(None, f'unknown {kind} "{words[0]}".{hint}')
    if words[0] in STREAMING:
        stop_without_reader()
    # Libraries read these settings when they are imported, so set them first.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # For example, Grain logs a warning if JAX is not installed.
    absl.logging.set_verbosity(absl.logging.ERROR)
    with (
        ignore_cleanup_errors(),
        _interrupts_raised(),
        # So that no command leaves unfinished files or other processes.
        raised_on(signal.SIGTERM, Terminated),
    ):
        return _run_verb(words[0], words[1:])


def _interrupts_raised():
    """Raises `KeyboardInterrupt` on Ctrl-C, unless it is ignored or handled."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        return raised_on(signal.SIGINT, KeyboardInterrupt)
    return contextlib.nullcontext()


def _run_verb(verb: str, words: list[str]) -> int:
    interrupt_advice = "Nothing was done."
    options = None  # A signal may come before there are any.
    try:
        command = importlib.import_module(module_name(verb))
        interrupt_advice = command.CONTINUE
        options = make_parser(verb).parse_args(words)
        with (
            short_log_messages(options.quiet),
            given_code(options),
            given_limits(options),
        ):
            code = command.run(options)
        sys.stdout.flush()
        return code or 0
    except SystemExit as end:
        return end.code or 0
    except BrokenPipeError:
        silence_stdout()
        return BROKEN_PIPE
    except Terminated as stop:
        message = str(stop) or f"interrupted. {interrupt_advice}"
        print_line(f"deepnmt {verb}: {message}")
        return getattr(options, "exit_code_on_stop", TERMINATED)
    except KeyboardInterrupt as interrupt:
        # Code that saved something on Ctrl-C describes it in the message.
        message = str(interrupt) or f"interrupted. {interrupt_advice}"
        return print_error(verb, message, INTERRUPTED)
    except Exception as error:
        return _report(verb, error)


def _print_completion(shell: str) -> int:
    try:
        print(completion_script(shell))
    except Exception as error:
        return _report(None, error)
    return 0


def _report(verb: str | None, error: Exception) -> int:
    """Prints an error in one line, or raises it if a traceback is wanted."""
    if wants_traceback():
        raise error
    silence_stdout()
    message = explain(error)
    if message is None:
        return print_error(verb, describe_bug(error), INTERNAL_ERROR)
    return print_error(verb, message)


if __name__ == "__main__":
    sys.exit(main())
