"""Writes a commented recipe to start from."""

from keras_deepnmt.recipes.reference import schema_file

DEFAULT_PRESET = "transformer_tiny"
_TEXT = """\
# Train this recipe with:
#   deepnmt train recipe.yaml --dry-run  # tells sizes, memory and time
#   deepnmt train recipe.yaml
# `deepnmt recipe --show recipe.yaml` prints it with all keys and defaults.

# Name of the run folder in runs/. Default: the name of this file.
# name: {preset}.my_corpus_de_en

# A recipe, bundled or a file, whose values count where this one gives none:
# extends: transformer_tiny.multi30k_en_de

model:
  preset: {preset}  # `deepnmt models` lists the presets
  # Arguments of the model that replace the preset's:
  # overrides:
  #   dropout: 0.2
  #   output_fusion: SurfaceFusion  # the layer of a paper, in a slot

# Aligned texts, one sentence per line, UTF-8, plain or compressed. With
# `deepnmt train recipe.yaml --prepared DIR`, where DIR is a folder written by
# `deepnmt prepare`, this section may be left out.
data:
  train:  # a list of corpora
    - source: train.de
      target: train.en
  valid:
    source: valid.de
    target: valid.en
  test:
    source: test.de
    target: test.en
  # Without such files, pairs are taken out of the training text:
  # valid_pairs: 1000
  # test_pairs: 1000
  source_language: de
  target_language: en
  vocabulary_size: 10000  # pieces of the tokenizer

training:
  steps: 20000  # updates
  batch_tokens: 4096  # on either side of a batch, padding included
  learning_rate:
    peak: 0.001
    warmup_steps: 4000  # updates
  label_smoothing: 0.1
  validate_every: 1000  # updates
  checkpoint_every: 1000  # updates
  average_checkpoints: 5  # the last ones, into the final model
  # final_model: best  # the checkpoint of the best validation instead
  # early_stopping_patience: 10  # validations

decoding:
  num_beams: 4

evaluation:
  lowercase: false  # whether BLEU and chrF ignore case
  # sacreBLEU's tokenizer. Default: that of the target language, such as 13a or
  # zh; `none` for tokenized text:
  # tokenize: none
"""


def new_recipe(preset: str = DEFAULT_PRESET) -> str:
    """Returns a small recipe with comments, for a preset.

    It trains as it stands once the files of its section `data` are named. The
    first line names the JSON Schema that editors complete keys from.
    """
    text = _TEXT.format(preset=preset)
    schema = schema_file()
    if not schema.is_file():  # the package was imported from an archive
        return text
    return f"# yaml-language-server: $schema={schema.as_uri()}\n{text}"
