"""Short runs on the demo corpus whose models have all kinds of layers."""

import pytest
from uncompiled_models import eager_updates

from keras_deepnmt.data.demo import write_demo_corpus
from keras_deepnmt.recipes.loading import load_recipe
from keras_deepnmt.runs.train import train
from keras_deepnmt.translator import Translator

RECIPE = """\
name: {preset}.figures
model:
  preset: {preset}
  overrides: {overrides}
data:
  train: [{{source: {folder}/train.de, target: {folder}/train.en}}]
  valid: {{source: {folder}/valid.de, target: {folder}/valid.en}}
  test: {{source: {folder}/test.de, target: {folder}/test.en}}
  vocabulary_size: 400
training:
  steps: 2
  batch_tokens: 400
  max_shapes: 1
  jit_compile: false
  validate_every: 1
  checkpoint_every: 2
decoding:
  num_beams: 2
"""
PRESETS = {
    "everything_tiny": "{hidden_dim: 16, intermediate_dim: 16, num_heads: 2, "
    "num_encoder_layers: 2, num_decoder_layers: 2}",
    "dense_nmt_1_tiny": "{hidden_dim: 16, growth_dim: 8, "
    "num_encoder_layers: 2, num_decoder_layers: 2}",
    "role_interaction_softmax_tiny": "{hidden_dim: 16, intermediate_dim: 16, "
    "num_heads: 2, num_encoder_layers: 1, num_decoder_layers: 1}",
}


@pytest.fixture(scope="module", autouse=True)
def cheap_updates():
    """Figures of runs are the subject, not how the runs were trained."""
    with eager_updates():
        yield


class Runs(dict):
    """The folder of a run by its preset, trained when it is first used."""

    def __init__(self, root):
        super().__init__()
        self.root = root
        write_demo_corpus(root, num_train=300, num_valid=3, num_test=30)

    def __missing__(self, preset):
        file = self.root / f"{preset}.yaml"
        overrides = PRESETS[preset]
        file.write_text(
            RECIPE.format(preset=preset, overrides=overrides, folder=self.root)
        )
        self[preset] = self.root / preset
        with pytest.MonkeyPatch.context() as patch:
            # Validations of untrained models would take long.
            patch.setattr(
                Translator, "translate", lambda self, texts, **_: list(texts)
            )
            train(load_recipe(file), self[preset], quiet=True)
        return self[preset]


@pytest.fixture(scope="module")
def run_dirs(tmp_path_factory):
    return Runs(tmp_path_factory.mktemp("figures"))
