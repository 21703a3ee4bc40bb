"""Translators with random weights, which write markup at random, too."""

import keras

from keras_deepnmt import Translator, create_model
from keras_deepnmt.data.demo import demo_pairs
from keras_deepnmt.data.preparation.tokenizer_training import train_tokenizer

PAIRS = demo_pairs(500)
# A model that writes at random writes these, too.
INVENTED = [
    "<b>",
    "</b>",
    "<br/>",
    "{name}",
    "%s",
    "www.x.de",
    "4711471",
    "⟪9⟫",
]


def random_translator(folder, symbols):
    """A translator with random weights, which writes up to nine tokens."""
    tokenizer = train_tokenizer(
        [f"{pair.source} {pair.target}" for pair in PAIRS],
        folder / f"{len(symbols)}.model",
        160,
        user_defined_symbols=[*symbols, *INVENTED],
    )
    keras.utils.set_random_seed(1)
    model = create_model(
        *("transformer_tiny", 160, 160),
        hidden_dim=16,
        intermediate_dim=16,
        num_heads=1,
        num_encoder_layers=1,
        num_decoder_layers=1,
    )
    for variable in model.trainable_variables:
        variable.assign(variable * 3.0)
    translator = Translator(
        *(model, tokenizer, tokenizer),
        compiled=False,
        num_beams=2,
        max_length_ratio=0.0,
        max_extra_tokens=9,
        batch_size=64,
    )
    translator.compilation_padding = 10**6  # few graphs are traced
    return translator
