"""What a case of `layer_speed.py` consists of, and the measured sizes."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

SIZES = {
    "base": {
        "layer": dict(hidden_dim=512, num_heads=8, batch_size=16, length=64),
        "encoder": dict(
            hidden_dim=512,
            intermediate_dim=2048,
            num_heads=8,
            num_layers=6,
            vocabulary_size=64,
            batch_size=16,
            length=64,
        ),
        "model": dict(
            hidden_dim=256,
            intermediate_dim=1024,
            num_heads=4,
            num_layers=6,
            vocabulary_size=8_000,
            batch_size=32,
            length=32,
        ),
        "base model": dict(
            hidden_dim=512,
            intermediate_dim=2048,
            num_heads=8,
            num_layers=6,
            vocabulary_size=8_000,
            batch_size=32,
            length=32,
        ),
        "call": dict(hidden_dim=256, batch_size=16, length=64),
        "preset": dict(vocabulary_size=8_000, batch_size=32, length=32),
    },
    "tiny": {
        "layer": dict(hidden_dim=64, num_heads=2, batch_size=2, length=8),
        **dict.fromkeys(
            ("encoder", "model", "base model"),
            dict(
                hidden_dim=64,
                intermediate_dim=128,
                num_heads=2,
                num_layers=3,
                vocabulary_size=16,
                batch_size=2,
                length=8,
            ),
        ),
        "call": dict(hidden_dim=16, batch_size=2, length=8),
        "preset": dict(
            vocabulary_size=16,
            batch_size=2,
            length=8,
            overrides=dict(num_encoder_layers=1, num_decoder_layers=1),
        ),
    },
}


def no_slots(sizes):
    """Returns the slots of a plain model: an empty dict."""
    return {}


class Call(NamedTuple):
    """A layer and the arguments it is called with.

    `shapes` are the shapes of float tensors; `run` is called with the layer and
    these tensors.
    """

    layer: Any
    shapes: list
    run: Callable = lambda layer, *tensors: layer(*tensors)


@dataclasses.dataclass(frozen=True)
class Case:
    """A variant of a paper's layer, and what it is compared with.

    `layer`, `variant` and `plain` describe both sides in words. `make` and
    `make_plain` are functions of the sizes. Their result depends on `kind`:

    * `"layer"`: a self-attention layer, measured alone;
    * `"call"`: a `Call` of a layer that takes other arguments;
    * `"encoder"`: a dict of slots of an encoder without dropout;
    * `"model"`, `"base model"` (width 512): a dict of slots of a model, whose
      training step is timed;
    * `"preset"`: the name of a preset.

    `target` is the maximum for the ratio of the times or, with
    `of_multiply_adds`, for that ratio divided by the ratio of the
    multiply-adds.
    """

    layer: str
    variant: str
    plain: str
    kind: str
    make: Callable
    make_plain: Callable = no_slots
    target: float | None = None
    of_multiply_adds: bool = False

    @property
    def name(self):
        return f"{self.layer}, {self.variant}, against {self.plain}"
