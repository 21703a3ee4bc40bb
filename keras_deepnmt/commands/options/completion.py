"""Writes the script with which a shell completes `deepnmt` commands."""

import argparse
import importlib
import typing

from keras_deepnmt.commands import VERBS, module_name
from keras_deepnmt.errors import UserError

SHELLS = ("bash", "zsh")
_PREAMBLE = {
    "bash": """
_deepnmt_recipes() {{
  compgen -W "{recipes}" -- "$1"
  compgen -f -- "$1"
}}
""",
    "zsh": """
_deepnmt_recipes() {{
  _alternative "recipes:recipe:({recipes})" "files:file:_files"
}}
""",
}


def completion_script(shell: str) -> str:
    """Returns the completion script of a shell: `bash` or `zsh`.

    It needs the optional package shtab.
    """
    if shell not in SHELLS:
        raise UserError(
            f"`--print-completion` must be one of {', '.join(SHELLS)}. "
            f"Received: {shell}"
        )
    import shtab

    from keras_deepnmt.recipes.loading import list_recipes

    parser = _Completed(prog="deepnmt")
    parser.add_argument("--version", action="store_true", help="Show it.")
    parser.add_argument("--print-completion", choices=SHELLS, help="This.")
    verbs = parser.add_subparsers()
    for verb, summary in VERBS.items():
        options = verbs.add_parser(verb, help=summary, description=summary)
        options.add_argument("--quiet", action="store_true", help="No progress")
        command = importlib.import_module(module_name(verb))
        command.add_options(options)
    preamble = _PREAMBLE[shell].format(recipes=" ".join(list_recipes()))
    return shtab.complete(parser, shell, preamble={shell: preamble})


class _Completed(argparse.ArgumentParser):
    """Takes the options of a verb, and knows how their values are completed."""

    def add_argument(self, *names, type=None, **options):
        action = super().add_argument(*names, **_with_choices(type, options))
        kind = options.get("metavar")
        if kind in ("FILE", "PATTERN"):
            action.complete = {"bash": "_shtab_compgen_files", "zsh": "_files"}
        elif kind in ("DIR", "RUN"):
            action.complete = {
                "bash": "_shtab_compgen_dirs",
                "zsh": "_files -/",
            }
        elif kind == "RECIPE":
            action.complete = dict.fromkeys(SHELLS, "_deepnmt_recipes")
        return action


def _with_choices(hint, options):
    if hint is bool:
        return {**options, "choices": ["true", "false"]}
    if typing.get_origin(hint) is typing.Literal:
        return {**options, "choices": list(typing.get_args(hint))}
    return options
