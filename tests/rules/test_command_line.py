"""The help names only verbs, options and advice that exist.

* every verb that `deepnmt --help` lists exists
* every option of a verb is read by it
* every option that a message, a docstring or a page names exists
* no help shows a Python value, a default twice or a name of the code
"""

import ast
import importlib
import inspect
import re
import textwrap

import pytest
import yaml
from package_tree import REPOSITORY, refuse, relative, source_files
from test_readme import PAGES

from keras_deepnmt import cli
from keras_deepnmt.commands import VERBS, module_name
from keras_deepnmt.commands.terminal.failures import describe_bug
from keras_deepnmt.data import PrepareOptions
from keras_deepnmt.decoding import SearchOptions
from keras_deepnmt.limits import Limits
from keras_deepnmt.xla.autoclustering import FLAGS


def test_help_lists_every_verb(capsys):
    assert cli.main(["--help"]) == 0
    listed = re.findall(r"^  ([\w-]+) ", capsys.readouterr().out, re.MULTILINE)
    assert listed == list(VERBS)


def test_every_listed_verb_exists_and_explains_itself(capsys):
    offenders = []
    for verb in VERBS:
        command = importlib.import_module(module_name(verb))
        if not callable(getattr(command, "run", None)):
            offenders.append(f"{command.__name__}: no function `run`")
            continue
        code = cli.main([verb, "--help"])
        if code != 0 or verb not in capsys.readouterr().out:
            offenders.append(f"deepnmt {verb} --help: exit code {code}")
    refuse(
        offenders, "A verb needs `run` in its module and a help that names it."
    )


# Options of other programs.
OTHER_PROGRAMS = {"--strict", "--check", "--logdir", "--randomly-seed"}
OTHER_PROGRAMS |= {"--only"}  # of preset_cost.py in benchmarks
OTHER_PROGRAMS |= {"--max-len-a", "--max-len-b", "--max-length-factor"}
# Of pip, useradd and Docker, in an image.
OTHER_PROGRAMS |= {"--no-cache-dir", "--create-home", "--start-period"}
# Of Ray and Slurm, on many machines.
OTHER_PROGRAMS |= {"--head", "--address", "--nodes", "--ntasks-per-node"}
OTHER_PROGRAMS |= {"--gpus-per-task", "--signal", "--requeue"}
# Of the whole program, and inside of the code.
NO_VERB = {"--help", "--version", "--print-completion", "--value"}
NO_VERB |= {"--porcelain", "--tf_xla_persistent_cache_directory"}
NO_VERB |= {flag.split("=")[0] for flag in FLAGS}


def options_of(verb):
    # The names of an option, before two spaces and its description.
    entries = re.findall(r"^  (-.*?)(?:  |$)", help_of(verb), re.MULTILINE)
    return {
        name for entry in entries for name in re.findall(r"--[\w-]+", entry)
    }


def help_of(verb):
    return cli.make_parser(verb).format_help()


def test_every_option_that_is_named_exists():
    known = set().union(*map(options_of, VERBS)) | NO_VERB | OTHER_PROGRAMS
    # The pages of the benchmarks describe scripts with their own options.
    pages = [page for page in PAGES if "benchmarks" not in page.parts]
    # A comparison, which names options of other toolkits.
    pages = [page for page in pages if page.name != "features.md"]
    offenders = []
    for path in [*source_files(), *pages]:
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            if path.name == "coming_from.md":
                # The later cells have the options of other toolkits.
                line = "|".join(line.split("|")[:3])
            offenders += [
                f"{relative(path)}:{number}: {option}"
                for option in re.findall(r"(?<![\w-])--[a-z][\w-]+", line)
                if option not in known
            ]
    refuse(offenders, "Name an option that some verb has.")


def test_the_form_for_bugs_asks_for_the_doctor_first():
    form = REPOSITORY / ".github" / "ISSUE_TEMPLATE" / "bug_report.yml"
    body = yaml.safe_load(form.read_text(encoding="utf-8"))["body"]
    assert "`deepnmt doctor`" in body[0]["attributes"]["value"]
    assert body[1]["validations"]["required"]
    # It and the message of an internal error name the same variable.
    assert "DEEPNMT_TRACEBACK=1" in form.read_text(encoding="utf-8")
    assert "DEEPNMT_TRACEBACK=1" in describe_bug(KeyError())


def names_in(module):
    """Attributes, names and texts in a module and in the options it imports."""
    tree = ast.parse(inspect.getsource(module))
    names = set()
    for node in ast.walk(tree):
        names.add(getattr(node, "attr", None))
        names.add(getattr(node, "id", None))
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)
        if isinstance(node, ast.ImportFrom) and ".shards." in node.module:
            # Of `translate-files` alone, which is divided among them.
            names |= names_in(importlib.import_module(node.module))
        if isinstance(node, ast.ImportFrom) and "options." in node.module:
            shared = importlib.import_module(node.module)
            for alias in node.names:
                names.add(alias.name)
                found = getattr(shared, alias.name)
                # Types of numbers are made by jsonargparse.
                is_ours = found.__module__.startswith("keras_deepnmt.")
                if is_ours and not alias.name.startswith("add_"):
                    names |= names_in_function(found)
    return names


def names_in_function(function):
    """Attributes and texts in a function or class and in its helpers."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    names = {getattr(node, "attr", None) for node in ast.walk(tree)}
    names |= {getattr(node, "value", None) for node in constants(tree)}
    called = {getattr(node, "id", "") for node in ast.walk(tree)}
    module = inspect.getmodule(function)
    for name in called - {function.__name__}:
        helper = vars(module).get(name) if name.startswith("_") else None
        if inspect.isfunction(helper):
            names |= names_in_function(helper)
    return names


def constants(tree):
    return [n for n in ast.walk(tree) if isinstance(n, ast.Constant)]


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_is_read_by_its_verb(verb):
    command = importlib.import_module(module_name(verb))
    read = names_in(command)
    reads_batches = read & {"load_translator", "given_decoding_options"}
    if reads_batches or "given_search_options" in read:
        read |= set(SearchOptions.names())
    if reads_batches:
        read |= {"batch_size", "batch_tokens", "tag"}
    if "given_options" in read:
        read |= set(PrepareOptions.__dataclass_fields__)
    if verb == "prepare":  # their names are made of two loops
        read |= {
            f"{split}_{side}"
            for split in ("valid", "test")
            for side in ("source", "target")
        }
    destinations = {o[2:].replace("-", "_") for o in options_of(verb)}
    # `--no-compile` is the same option as `--compile`.
    destinations = {
        name
        for name in destinations
        if name.removeprefix("no_") not in destinations - {name}
    }
    # `cli` reads these options.
    read |= {"help", "quiet", "import", *Limits.__dataclass_fields__}
    offenders = destinations - read
    refuse(sorted(offenders), f"Remove these options of deepnmt {verb}.")


def test_an_export_has_no_batch_size():
    assert "--batch-size" not in options_of("export")


@pytest.mark.parametrize("verb", VERBS)
def test_help_reads_like_sentences(verb):
    text = " ".join(help_of(verb).split())
    options = text.split("options:")[1].split("example:")[0]
    for entry in re.split(r" (?=--[a-z])", options):
        assert entry.count("Default:") <= 1, entry
    for wrong in ("null", "None", "default:", "(type", "<class", "=="):
        assert wrong not in text, wrong
    assert not re.search(r"--[\w-]+-$", help_of(verb), re.MULTILINE)
    # Names of the code: the command line has options.
    assert not re.findall(r"`[a-z]+_[a-z_]+`", options)
