"""Every verb that `deepnmt --help` lists exists."""

import importlib
import re

from package_tree import refuse

from keras_deepnmt import cli
from keras_deepnmt.commands import VERBS


def test_help_lists_every_verb(capsys):
    assert cli.main(["--help"]) == 0
    listed = re.findall(r"^  (\w+) ", capsys.readouterr().out, re.MULTILINE)
    assert listed == list(VERBS)


def test_every_listed_verb_exists_and_explains_itself(capsys):
    offenders = []
    for verb in VERBS:
        command = importlib.import_module(f"keras_deepnmt.commands.{verb}")
        if not callable(getattr(command, "run", None)):
            offenders.append(f"{command.__name__}: no function `run`")
            continue
        code = cli.main([verb, "--help"])
        if code != 0 or verb not in capsys.readouterr().out:
            offenders.append(f"deepnmt {verb} --help: exit code {code}")
    refuse(
        offenders, "A verb needs `run` in its module and a help that names it."
    )
