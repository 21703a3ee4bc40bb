"""What a fresh process must load, and what it must not."""

import os
import subprocess
import sys

import pytest
from package_tree import REPOSITORY

BLOCK = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ImportError("blocked: " + name)

sys.meta_path.insert(0, Block())
"""
OPTIONAL = {
    "array_record",
    "grain",
    "jsonargparse",
    "keras_hub",
    "keras_nlp",
    "matplotlib",
    "pydantic",
    "sacrebleu",
    "sentencepiece",
    "tensorflow_text",
    "yaml",
}
USE_LAYERS = """
import numpy as np
from keras_deepnmt.layers import TransformerEncoderBlock
from keras_deepnmt.losses import LabelSmoothedCrossEntropy
block = TransformerEncoderBlock(2, 16)
assert block(np.zeros((3, 5, 8), "float32")).shape == (3, 5, 8)
"""


def run_fresh(code, blocked=frozenset(), **environment):
    result = subprocess.run(
        [sys.executable, "-c", BLOCK.format(blocked=set(blocked)) + code],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr[-3000:]


def test_the_package_loads_its_subpackages_lazily():
    run_fresh(
        "import keras_deepnmt\n"
        "heavy = {'keras', 'tensorflow', 'jax', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )


def test_the_command_line_answers_without_loading_a_backend():
    run_fresh(
        "from keras_deepnmt.cli import main\n"
        "main(['--help'])\n"
        "heavy = {'keras', 'tensorflow', 'jax'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )


def test_a_command_loads_no_parts_that_it_does_not_need():
    """The whole package `data` took each command half a second."""
    run_fresh(
        "import keras_deepnmt.commands.translate\n"
        "others = {'array_record', 'grain', 'sacremoses'} & set(sys.modules)\n"
        "assert not others, others\n"
        "package = 'keras_deepnmt.data.'\n"
        "parts = {'batches', 'preparation', 'prepared_data'}\n"
        "parts = {package + part for part in parts} & set(sys.modules)\n"
        "assert not parts, parts\n"
    )


def test_clients_and_other_engines_need_no_backend():
    """A server of a CTranslate2 model took 0.9 GiB more with TensorFlow."""
    run_fresh(
        "import keras_deepnmt.exchange\n"
        "from keras_deepnmt.serving import GrpcClient, RestClient\n"
        "from keras_deepnmt.commands import serve\n"
        "from keras_deepnmt.exchange import find_engine\n"
        "from keras_deepnmt.server import ctranslate2_engine, http_app\n"
        "from keras_deepnmt.server import served_models, version_watch\n",
        {"keras", "tensorflow", "jax"},
    )


@pytest.mark.thorough(each_commit=True)
@pytest.mark.parametrize(
    "backend, blocked",
    [
        ("tensorflow", OPTIONAL),
        ("jax", OPTIONAL | {"tensorflow"}),
    ],
)
def test_layers_work_with_keras_and_a_backend_alone(backend, blocked):
    run_fresh(USE_LAYERS, blocked, KERAS_BACKEND=backend)


@pytest.mark.thorough
def test_training_on_jax_is_measured_without_tensorflow():
    """A machine with a GPU may have JAX and no TensorFlow."""
    run_fresh(
        "from benchmarks.speed import training_gpu\n"
        "sizes = training_gpu.SIZES['tiny'] | dict(hidden_dim=8, num_heads=2)\n"
        "steps = training_gpu.jax_steps(sizes, 'mixed_bfloat16')\n"
        "first = steps['updates'](1)\n"
        "assert steps['updates'](30) < first\n"
        "assert training_gpu.product_speed(8)() > 0\n",
        {"tensorflow", "tensorflow_text", "torch"},
        KERAS_BACKEND="jax",
    )
