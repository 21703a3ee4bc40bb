"""What a case of `layer_speed.py` is, and the sizes it is measured with."""

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
    """Gives the slots of the plain model: none."""
    return {}


class Call(NamedTuple):
    """A layer and what it is called with.

    Args:
        layer: the layer.
        shapes: list of shapes of float tensors.
        run: function of the layer and these tensors.
    """

    layer: Any
    shapes: list
    run: Callable = lambda layer, *tensors: layer(*tensors)


@dataclasses.dataclass(frozen=True)
class Case:
    """A paper's layer in one variant, against what it replaces.

    Args:
        layer: name of the layer.
        variant: its options in words.
        plain: what it is compared with, in words.
        kind: `"layer"`, compared alone; `"call"`, alone with arguments of its
            own; `"encoder"`, in the slots of an encoder without dropout;
            `"model"`, in the slots of a whole model whose training step is
            timed; `"base model"`, of width 512; `"preset"`, a whole preset.
        make: function of the sizes that gives the layer, a `Call`, dict of
            slots, or name of a preset.
        make_plain: the same for what it is compared with.
        target: most that the ratio of the times may be.
        of_multiply_adds: whether the target is of that ratio over the ratio
            of the multiply-adds.
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
