"""What the quickstart changes in its recipe: where the text is, and sizes."""

from pathlib import Path

RECIPE = "transformer_tiny.demo_de_en"

NUM_PAIRS = {
    "full": {"num_train": 40_000, "num_test": 500},
    "smoke": {"num_train": 1_000, "num_test": 50},
}

_SMALLER = {
    "full": {},
    "smoke": {
        "model.overrides.hidden_dim": 32,
        "model.overrides.intermediate_dim": 64,
        "model.overrides.num_encoder_layers": 1,
        "model.overrides.num_decoder_layers": 1,
        "data.vocabulary_size": 600,
        "training.steps": 40,
        "training.batch_tokens": 1_000,
        "training.max_shapes": 2,
        "training.learning_rate.warmup_steps": 20,
        "training.validate_every": 40,
        "training.checkpoint_every": 20,
        "training.average_checkpoints": 2,
    },
}


def recipe_overrides(corpus: Path, scale: str) -> dict[str, object]:
    """Gives what replaces the packaged recipe's values.

    Args:
        corpus: folder of the corpus.
        scale: `"full"` or `"smoke"`.

    Returns:
        Values by dotted key.

    Example:
    >>> recipe_overrides(Path("corpus"), "smoke")["training.steps"]
    40
    """
    text = {
        split: {
            "source": str(corpus / f"{split}.de"),
            "target": str(corpus / f"{split}.en"),
        }
        for split in ("train", "test")
    }
    return {
        "data.train": [text["train"]],
        "data.test": text["test"],
        **_SMALLER[scale],
    }
