"""What `deepnmt --help` promises exists."""

import importlib
import re

import pytest

from keras_deepnmt import cli
from keras_deepnmt.commands import VERBS


def test_help_lists_every_verb(capsys):
    assert cli.main(["--help"]) == 0
    listed = re.findall(r"^  (\w+) ", capsys.readouterr().out, re.MULTILINE)
    assert listed == list(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_a_listed_verb_exists_and_explains_itself(verb, capsys):
    command = importlib.import_module(f"keras_deepnmt.commands.{verb}")
    assert callable(command.run)
    assert cli.main([verb, "--help"]) == 0
    assert verb in capsys.readouterr().out
