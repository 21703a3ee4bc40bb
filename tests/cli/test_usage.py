"""Help is fast and names everything; a typing error gets a suggestion."""

import json
import resource
import subprocess
import sys

import pytest
from digit_run import environment

from keras_deepnmt.commands import VERBS


def run_script(script):
    """Runs Python code in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=environment(),
    )


def test_help_comes_at_once_and_without_tensorflow():
    script = (
        "import sys; from keras_deepnmt.cli import main; main(['--help']);"
        "print(sorted({'tensorflow', 'keras', 'jax'} & set(sys.modules)))"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run_script(script)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Computing time: what else runs on the machine does not count.
    seconds = after.ru_utime - before.ru_utime
    assert done.stdout.endswith("[]\n"), done.stderr
    assert seconds < 1.5


def test_help_of_a_command_comes_without_tensorflow():
    script = (
        "import sys; from keras_deepnmt.cli import main, VERBS;"
        "[main([verb, '--help']) for verb in VERBS];"
        "print(sorted({'tensorflow', 'keras', 'jax'} & set(sys.modules)))"
    )
    done = run_script(script)
    assert done.stdout.endswith("[]\n"), done.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_each_command_has_help_with_an_example(deepnmt, verb):
    done = deepnmt(verb, "--help")
    assert done.code == 0
    assert f"deepnmt {verb}" in done.out.split("example:")[1]
    assert "--quiet" in done.out
    assert verb in deepnmt("--help").out


def test_version(deepnmt):
    from keras_deepnmt import __version__

    assert deepnmt("--version").out == f"deepnmt {__version__}\n"


def test_no_command_prints_the_help_and_fails(deepnmt):
    done = deepnmt()
    assert done.code == 2
    assert "quickstart" in done.out


def test_unknown_command_names_the_nearest(deepnmt):
    done = deepnmt("trian", "x")
    assert done.code == 2
    assert done.err == (
        'deepnmt: error: unknown command "trian". Did you mean "train"?\n'
    )


def test_unknown_option_names_the_nearest(refused):
    line = refused("translate", "run", "--num-beam", "3")
    assert 'unknown option "--num-beam". Did you mean "--num-beams"?' in line


def test_missing_and_superfluous_arguments(refused):
    assert "needs RUN" in refused("translate")
    assert 'unknown argument "c"' in refused("verify", "a", "b", "c")
    assert "needs --source" in refused("score", "run", "--target", "x")


@pytest.mark.parametrize(
    "words, said",
    [
        (
            ["--num-beams", "0"],
            "`--num-beams` must be an integer from 1 to 2,147,483,647. "
            "Received: 0",
        ),
        (["--batch-size", "many"], "`--batch-size`"),
        (["--length-penalty", "-1"], "`--length-penalty`"),
        (["--length-offset", "-1"], "`--length-offset`"),
        (["--num-hypotheses", "5", "--num-beams", "2"], "5 and 2"),
    ],
)
def test_wrong_values_are_named(refused, words, said):
    assert said in refused("translate", "run", *words)


def test_a_wrong_value_of_a_recipe_is_named(refused):
    recipe = "transformer_tiny.demo_de_en"
    line = refused("train", recipe, "--set", "decoding.length_offset=-1")
    assert "`decoding.length_offset`" in line and "-1" in line


def test_options_of_a_search_reach_it(deepnmt, monkeypatch):
    from keras_deepnmt.errors import UserError

    seen = []

    def see(run, **options):
        given = {k: v for k, v in options.items() if "length" in k}
        seen.append(given)
        raise UserError("seen")

    monkeypatch.setattr("keras_deepnmt.translator.Translator.load", see)
    monkeypatch.setattr(
        "keras_deepnmt.runs.test_translations.translate_runs", see
    )
    options = ["--length-penalty", "1", "--length-offset", "0"]
    options += ["--min-length", "3"]
    for words in (["translate"], ["evaluate"], ["export", "served"]):
        verb, *more = words
        assert deepnmt(verb, "run", *more, *options).code == 2
    expected = {"length_penalty": 1.0, "length_offset": 0.0, "min_length": 3}
    assert seen == [expected] * 3


@pytest.mark.thorough
def test_no_library_adds_its_own_lines_where_jax_is_missing():
    script = (
        "import sys; sys.modules['jax'] = None;"
        "from keras_deepnmt.cli import main; main(['verify', 'nowhere'])"
    )
    done = run_script(script)
    assert done.stderr.startswith("deepnmt verify: error: nowhere")
    assert done.stderr.count("\n") == 1, done.stderr


def test_recipes_are_listed_without_tensorflow():
    script = (
        "import sys; from keras_deepnmt.cli import main;"
        "words = ['models', '--recipes'];"
        "main(words); main([*words, '--json']);"
        "print(sorted({'tensorflow', 'keras', 'jax'} & set(sys.modules)))"
    )
    done = run_script(script)
    assert "\nconv_seq2seq_tiny.multi30k_en_de\n" in done.stdout
    assert done.stdout.endswith("[]\n"), done.stderr


def test_models_and_recipes_as_json(deepnmt):
    rows = json.loads(deepnmt("models", "layer_attention_*", "--json").out)
    assert [row["preset"] for row in rows] == [
        "layer_attention_base",
        "layer_attention_big",
        "layer_attention_tiny",
    ]
    row = rows[0]
    assert row["extra_parameters"] == 42 and row["parameters"] > 10**7
    assert row["step_ratio"] is None  # measured for the tiny presets alone
    assert isinstance(rows[2]["step_ratio"], float)
    assert row["paper"] == "Liu et al. (2021)"
    name = "transformer_tiny.demo_de_en"
    assert json.loads(deepnmt("models", name, "--recipes", "--json").out) == [
        {"recipe": name, "preset": "transformer_tiny"}
    ]


def test_models_are_listed_with_what_they_cost(deepnmt):
    heading, line = deepnmt("models", "layer_attention_base").out.splitlines()
    assert heading.split()[:2] == ["preset", "parameters"]
    cells = line.split()
    assert cells[0] == "layer_attention_base" and cells[2] == "42"
    assert line.endswith("Liu et al. (2021)")
    quiet = deepnmt("models", "layer_attention_*", "--quiet").out
    assert quiet.split() == [
        "layer_attention_base",
        "layer_attention_big",
        "layer_attention_tiny",
    ]


@pytest.mark.parametrize("more", [[], ["--quiet"], ["--recipes"]])
def test_a_pattern_that_matches_no_model_is_refused(deepnmt, more):
    done = deepnmt("models", "transfomer_tinny*", *more)
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert "'transfomer_tinny*'" in done.err
    assert 'Did you mean "transformer_tiny' in done.err
