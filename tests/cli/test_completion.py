"""A shell completes commands, options, choices, files and recipes."""

import shutil
import subprocess
import sys

import pytest

BASH = shutil.which("bash")


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    from keras_deepnmt.commands.options.completion import completion_script

    file = tmp_path_factory.mktemp("completion") / "deepnmt.bash"
    file.write_text(completion_script("bash"))
    return file


@pytest.fixture
def complete(script, tmp_path):
    """Gives what a real Bash offers for the last of these words."""
    if BASH is None:
        pytest.skip("Bash is not installed.")
    (tmp_path / "mine.yaml").touch()
    (tmp_path / "runs").mkdir()

    def run(*words):
        command = f"""
            source {script}
            COMP_WORDS=(deepnmt "$@")
            COMP_CWORD=$#
            function=$(complete -p deepnmt | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
            $function
            printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        done = subprocess.run(
            [BASH, "--norc", "-c", command, "bash", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        return set(done.stdout.split())

    return run


@pytest.mark.parametrize(
    "words, offered",
    [
        (["tra"], {"train", "translate", "translate-files"}),
        (["train", "--run"], {"--run-dir"}),
        (["translate", "runs", "--num-b"], {"--num-beams"}),
        (["quickstart", "--scale", ""], {"full", "smoke"}),
        (["prepare", "--joint", "t"], {"true"}),
        (["train", "transformer_tiny.demo"], {"transformer_tiny.demo_de_en"}),
        (["train", "mi"], {"mine.yaml"}),
        (["train", "--run-dir", ""], {"runs"}),
        (["prepare", "--source", "m"], {"mine.yaml"}),
    ],
)
def test_bash_completes(complete, words, offered):
    assert complete(*words) == offered


def test_the_script_is_printed_without_tensorflow(deepnmt, script):
    code = (
        "import sys; from keras_deepnmt.cli import main;"
        "main(['--print-completion', 'bash']);"
        "print(sorted({'tensorflow', 'keras'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True
    )
    assert done.stdout == f"{script.read_text()}\n[]\n", done.stderr


def test_zsh_has_a_script_too(deepnmt):
    done = deepnmt("--print-completion", "zsh")
    assert done.code == 0
    assert done.out.startswith("#compdef deepnmt")
    assert "--num-beams" in done.out and "_deepnmt_recipes" in done.out


@pytest.mark.parametrize("words", [["tcsh"], [], ["bash", "zsh"]])
def test_another_shell_is_refused(deepnmt, words):
    done = deepnmt("--print-completion", *words)
    assert done.code == 2
    assert "must be one of bash, zsh" in done.err


def test_the_missing_package_is_named(deepnmt, monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    done = deepnmt("--print-completion", "bash")
    assert done.code == 2
    assert 'pip install "keras_deepnmt[completion]"' in done.err
