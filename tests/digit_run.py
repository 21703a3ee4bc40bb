"""A run that learned to reverse digits, trained once through the command line.

Tests of the command line and of the whole system share it; everything goes
through real processes, as a person would do it.
"""

import fcntl
import os
import random
import subprocess
from pathlib import Path

from forked_processes import run_forked

import keras_deepnmt

RECIPE = """
name: transformer_tiny.digits
model:
  preset: transformer_tiny
  overrides:
    hidden_dim: 64
    intermediate_dim: 128
    num_heads: 2
    num_encoder_layers: 1
    num_decoder_layers: 1
    dropout: 0.0
data:
  train:
  - {source: train.source, target: train.target}
  valid: {source: valid.source, target: valid.target}
  test: {source: test.source, target: test.target}
  vocabulary_size: 25
  drop_identical: false
training:
  steps: 400
  batch_tokens: 1024
  max_shapes: 1
  learning_rate:
    peak: 0.003
    warmup_steps: 60
  validate_every: 400
  checkpoint_every: 100
  average_checkpoints: 2
decoding:
  num_beams: 3
evaluation:
  tokenize: none
"""


def write_digits(folder, split, pairs, seed):
    """Writes pairs of a string of digits and its reverse."""
    draw = random.Random(seed)
    with (
        open(folder / f"{split}.source", "w") as source,
        open(folder / f"{split}.target", "w") as target,
    ):
        for _ in range(pairs):
            digits = [
                str(draw.randrange(10)) for _ in range(draw.randint(3, 8))
            ]
            source.write(" ".join(digits) + "\n")
            target.write(" ".join(reversed(digits)) + "\n")


def environment(**changes):
    """The environment of a process that finds the package under test."""
    return {
        **os.environ,
        "PYTHONPATH": str(Path(keras_deepnmt.__file__).parents[1]),
        **changes,
    }


def deepnmt_process(*words, folder, stdin="", program=None, **variables):
    """Runs `deepnmt` as a process: an installed program, or this package.

    `variables` are changes of its environment.
    """
    if program is None:
        return run_forked(
            ["-m", "keras_deepnmt", *words],
            cwd=folder,
            input=stdin,
            env=environment(**variables),
        )
    return subprocess.run(
        [program, *map(str, words)],
        cwd=folder,
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        env=environment(PYTHONPATH="", **variables),
        check=False,
    )


def digit_folder(tmp_path_factory):
    """A folder with the corpus and recipe.yaml; `prepared` and `run` too.

    The processes of one pytest run share it: the first one trains, the others
    wait.
    """
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    folder = root / "digits"
    with open(root / "digits.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "run" / "run.json").is_file():
            folder.mkdir(exist_ok=True)
            _train(folder)
    return folder


def _train(folder):
    for seed, (split, pairs) in enumerate(
        {"train": 6000, "valid": 50, "test": 100}.items()
    ):
        write_digits(folder, split, pairs, seed)
    (folder / "digits.yaml").write_text(RECIPE)
    words = ["prepare", "--recipe", "digits.yaml", "--output", "prepared"]
    _succeed(words, folder)
    words = ["train", "digits.yaml", "--prepared", "prepared", "--run-dir"]
    _succeed([*words, "run"], folder)


def _succeed(words, folder):
    done = deepnmt_process(*words, folder=folder)
    if done.returncode:
        raise RuntimeError(f"deepnmt {' '.join(words)}: {done.stderr}")
