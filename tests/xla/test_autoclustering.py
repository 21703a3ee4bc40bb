"""Products by TensorFlow's kernels, and clusters of the rest by XLA."""

import os
import subprocess
import sys

import pytest

from keras_deepnmt.xla import autoclustering, processor

FLAGS = "TF_XLA_FLAGS"
# Says in a fresh process whether clusters are compiled, and what a warning of a
# model in bfloat16 is.
FIRST, LATE = (
    f"""{before}
import keras_deepnmt.models
import keras_deepnmt.models.training_step.tensorflow_step as step
step.multiplies_bfloat16 = lambda: True
model = keras_deepnmt.models.Transformer(
    11, 13, 8, 16, 2, 1, 1, dtype="mixed_bfloat16"
)
model.compile("adam")
print(model.is_autoclustered)
"""
    for before in ("", "import tensorflow as tf; tf.constant(1.0) + 1.0")
)


def run_fresh(script, flags=()):
    """Runs a script in a process with these flags of TensorFlow alone."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, FLAGS: " ".join(flags)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done


def described(monkeypatch, tmp_path, text):
    file = tmp_path / "cpuinfo"
    file.write_text(text)
    monkeypatch.setattr(processor, "_DESCRIPTION", file)
    return processor.bfloat16_instructions.__wrapped__()


@pytest.mark.parametrize(
    "line, expected",
    [
        ("flags\t\t: fpu avx512_bf16 clflush", ("avx512_bf16",)),
        ("flags\t\t: amx_bf16 amx_tile fpu", ("amx_bf16",)),
        ("Features\t: fp asimd bf16 i8mm", ("bf16",)),
        ("flags\t\t: fpu avx2 avx512f", ()),
        # The name of a processor says nothing.
        ("model name\t: Some bf16 avx512_bf16 processor", ()),
    ],
)
def test_instructions_are_read_from_the_description_of_the_processor(
    monkeypatch, tmp_path, line, expected
):
    text = f"processor\t: 0\n{line}\n"
    assert described(monkeypatch, tmp_path, text) == expected


def test_a_processor_that_cannot_be_asked_has_none(monkeypatch, tmp_path):
    monkeypatch.setattr(processor, "_DESCRIPTION", tmp_path / "missing")
    assert processor.bfloat16_instructions.__wrapped__() == ()


@pytest.mark.parametrize(
    "before, multiplies, expected",
    [
        ("", True, " ".join(autoclustering.FLAGS)),
        ("--x=1", True, " ".join(["--x=1", *autoclustering.FLAGS])),
        ("", False, ""),
        ("--tf_xla_auto_jit=2", True, "--tf_xla_auto_jit=2"),
        ("--tf_xla_cpu_global_jit", True, "--tf_xla_cpu_global_jit"),
    ],
)
def test_flags_are_added_where_they_help_and_the_user_has_not_chosen(
    monkeypatch, before, multiplies, expected
):
    monkeypatch.setenv(FLAGS, before)
    monkeypatch.setattr(
        autoclustering, "multiplies_bfloat16", lambda: multiplies
    )
    autoclustering.ask_for_autoclustering()
    assert os.environ[FLAGS] == expected
    autoclustering.ask_for_autoclustering()
    assert os.environ[FLAGS] == expected


def test_the_option_of_the_process_is_as_before_after_an_error():
    import tensorflow as tf

    with pytest.raises(KeyError):
        with autoclustering.autoclustering():
            assert tf.config.optimizer.get_jit() == "autoclustering"
            raise KeyError
    assert tf.config.optimizer.get_jit() == ""


@pytest.mark.parametrize("script", [FIRST, LATE], ids=["first", "late"])
def test_a_process_in_which_tensorflow_ran_before_is_told(script):
    # As the import sets them on a processor with bfloat16.
    flags = autoclustering.FLAGS if script == FIRST else ()
    done = run_fresh(script, flags)
    is_first = script == FIRST
    assert done.stdout.strip() == str(is_first)
    assert ("as slow as in float32" in done.stderr) is not is_first


def test_commands_set_the_flags_before_they_look_for_devices():
    # TensorFlow reads them at the first look, even if nothing ran.
    script = """
import keras_deepnmt.xla.autoclustering as autoclustering
autoclustering.multiplies_bfloat16 = lambda: True
from keras_deepnmt.commands.terminal.quiet_import import import_backend
import_backend()
print(autoclustering.clusters_are_compiled())
"""
    done = run_fresh(script)
    assert done.stdout.strip() == "True"
