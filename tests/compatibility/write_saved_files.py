"""Writes the files that later versions must still load.

Run it with the code of the version whose files are to be kept, in an empty
folder; it makes `saved_by_VERSION.tar.xz` there:

PYTHONPATH=CHECKOUT python tests/compatibility/write_saved_files.py
"""

import os
import random
import shutil
import tarfile
from pathlib import Path

import keras
import numpy as np

import keras_deepnmt
from keras_deepnmt.data import prepare_corpus
from keras_deepnmt.layers import (
    FineGrainedLayerAttention,
    HybridSelfAttention,
    LayerAggregation,
    RoleInteraction,
    SurfaceFusion,
)
from keras_deepnmt.recipes import load_recipe
from keras_deepnmt.runs.train import train
from keras_deepnmt.serving import export
from keras_deepnmt.training import CheckpointStore

# In full: a recipe file as a user of that version may have it.
RECIPE = """\
name: transformer_tiny.letters
seed: 7
model:
  preset: transformer_tiny
  overrides:
    hidden_dim: 8
    intermediate_dim: 8
    num_heads: 2
    num_encoder_layers: 1
    num_decoder_layers: 1
data:
  train: [{source: train.source, target: train.target}]
  valid: {source: valid.source, target: valid.target}
  test: {source: test.source, target: test.target}
  vocabulary_size: 20
  drop_identical: false
training:
  steps: 6
  batch_tokens: 64
  max_shapes: 2
  learning_rate: {peak: 0.01, warmup_steps: 3}
  jit_compile: false
  validate_every: 3
  checkpoint_every: 1
  average_checkpoints: 2
decoding:
  num_beams: 2
  length_offset: 0.0
evaluation:
  tokenize: none
"""
SENTENCES = ["a b c", "h g f e d", "a"]


def write_corpus():
    draw = random.Random(5)
    for split, pairs in (("train", 131), ("valid", 5), ("test", 7)):
        with (
            open(f"{split}.source", "w") as source,
            open(f"{split}.target", "w") as target,
        ):
            for _ in range(pairs):
                letters = draw.choices("abcdefgh", k=draw.randint(2, 9))
                source.write(" ".join(letters) + "\n")
                target.write(" ".join(reversed(letters)) + "\n")


def write_models():
    """A model with a layer in most slots, as `.keras` file and as preset."""
    keras.utils.set_random_seed(3)
    model = keras_deepnmt.models.Transformer(
        17,
        19,
        hidden_dim=8,
        intermediate_dim=16,
        num_heads=2,
        num_encoder_layers=2,
        num_decoder_layers=2,
        source_embedding_layer=RoleInteraction(3),
        encoder_self_attention=HybridSelfAttention(
            2, fusion="gated_sum", gate_reduction=4
        ),
        encoder_aggregation=LayerAggregation("linear"),
        encoder_fusion=FineGrainedLayerAttention(num_decoder_layers=2),
        output_fusion=SurfaceFusion(),
        layer_diversity=1.0,
    )
    conv = keras_deepnmt.create_model(
        "dense_nmt_2_tiny",
        17,
        19,
        hidden_dim=16,
        growth_dim=8,
        num_encoder_layers=2,
        num_decoder_layers=2,
        max_length=32,
    )
    model.compile("adam")
    inputs = {
        "source_ids": np.array([[5, 6, 7, 3], [8, 9, 3, 0]], "int32"),
        "target_ids": np.array([[2, 17, 16], [2, 18, 0]], "int32"),
    }
    model.save("transformer.keras")
    conv.save("conv_seq2seq.keras")
    model.save_to_preset("preset")
    np.savez(
        "scores.npz",
        transformer=model.predict_on_batch(inputs),
        conv_seq2seq=conv.predict_on_batch(inputs),
        **inputs,
    )


def write_runs():
    Path("letters.yaml").write_text(RECIPE)
    recipe = load_recipe("letters.yaml")
    prepare_corpus(recipe.data, "prepared", progress=False)
    train(recipe, "run", prepared_dir="prepared", quiet=True)
    translator = keras_deepnmt.Translator.load("run")
    Path("translations.txt").write_text(
        "".join(f"{line}\n" for line in translator.translate(SENTENCES))
    )
    save = CheckpointStore.save

    def save_and_stop(store, model, step):
        save(store, model, step)
        if step == 4:
            raise KeyboardInterrupt

    CheckpointStore.save = save_and_stop
    try:
        train(recipe, "interrupted", prepared_dir="prepared", quiet=True)
    except KeyboardInterrupt:
        print("interrupted, as it should be")
    for folder in ("run", "interrupted"):
        for name in ("tensorboard", "xla_cache"):
            shutil.rmtree(Path(folder, name), ignore_errors=True)


def main():
    if os.listdir():
        raise SystemExit("Run it in an empty folder.")
    write_corpus()
    write_models()
    write_runs()
    export(keras_deepnmt.Translator.load("run"), "export")
    names = sorted(os.listdir())
    archive = f"saved_by_{keras_deepnmt.__version__}.tar.xz"
    with tarfile.open(archive, "w:xz") as tar:
        for name in names:
            tar.add(name)
    print(archive, os.path.getsize(archive), "bytes:", *names)


if __name__ == "__main__":
    main()
