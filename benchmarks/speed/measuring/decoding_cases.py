"""The sources for all engines: random ones, or the sentences of a text."""

import random

SIZES = {
    "tiny": dict(
        vocabulary_size=4_000,
        hidden_dim=128,
        intermediate_dim=256,
        num_heads=4,
        num_encoder_layers=4,
        num_decoder_layers=4,
    ),
    "base": dict(
        vocabulary_size=32_000,
        hidden_dim=512,
        intermediate_dim=2_048,
        num_heads=8,
        num_encoder_layers=6,
        num_decoder_layers=6,
    ),
}
SOURCE_TOKENS = 24
FIRST_WORD, END_ID = 4, 3
LENGTH_PENALTY = 0.6


def random_case(size, batch_size, num_beams, steps):
    """Returns one batch of random sources; see `decoding_engines.py`."""
    generator = random.Random(0)
    words = range(FIRST_WORD, SIZES[size]["vocabulary_size"])
    return {
        "sources": [
            [*generator.choices(words, k=SOURCE_TOKENS), END_ID]
            for _ in range(batch_size)
        ],
        "batch_size": batch_size,
        "num_beams": num_beams,
        "steps": steps,
        "max_length": steps,
        "length_penalty": 0.0,
    }


def run_case(text, batch_size, num_beams):
    """Returns the sentences of a text, translated until they end."""
    return {
        **{name: text[name] for name in ("sources", "lines", "max_length")},
        "batch_size": batch_size,
        "num_beams": num_beams,
        "steps": 0,
        "length_penalty": LENGTH_PENALTY,
    }
