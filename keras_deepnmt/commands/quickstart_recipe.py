"""The recipe of the quickstart, in two sizes."""

SCALES = {
    "full": {
        "num_train": 40_000,
        "num_test": 500,
        "vocabulary_size": 2_000,
        "hidden_dim": 128,
        "intermediate_dim": 512,
        "num_heads": 4,
        "num_layers": 2,
        "dropout": 0.0,
        "max_shapes": 4,
        "steps": 1_000,
        "warmup_steps": 200,
        "batch_tokens": 2_500,
        "checkpoint_every": 50,
    },
    "smoke": {
        "num_train": 1_000,
        "num_test": 50,
        "vocabulary_size": 600,
        "hidden_dim": 32,
        "intermediate_dim": 64,
        "num_heads": 4,
        "num_layers": 1,
        "dropout": 0.0,
        "max_shapes": 2,
        "steps": 40,
        "warmup_steps": 20,
        "batch_tokens": 1_000,
        "checkpoint_every": 20,
    },
}

RECIPE = """\
# Written by `deepnmt quickstart`; change it and run `deepnmt train` on it.
name: transformer_tiny.demo_de_en
model:
  preset: transformer_tiny
  overrides:
    hidden_dim: {hidden_dim}
    intermediate_dim: {intermediate_dim}
    num_heads: {num_heads}
    num_encoder_layers: {num_layers}
    num_decoder_layers: {num_layers}
    dropout: {dropout}
data:
  train:
    - source: {corpus}/train.de
      target: {corpus}/train.en
  test:
    source: {corpus}/test.de
    target: {corpus}/test.en
  source_language: de
  target_language: en
  vocabulary_size: {vocabulary_size}
training:
  steps: {steps}
  batch_tokens: {batch_tokens}
  max_shapes: {max_shapes}
  peak_learning_rate: 0.004
  warmup_steps: {warmup_steps}
  validate_every: {steps}
  checkpoint_every: {checkpoint_every}
  average_checkpoints: 4
"""
