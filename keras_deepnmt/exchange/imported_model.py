"""What a reader of a format knows about a model of another toolkit."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from keras_deepnmt.errors import UserError, refused_values
from keras_deepnmt.models import Transformer

# A preset with the same model class; all its arguments are given.
PRESET = "transformer_base"
_LISTED = 3


@dataclass(frozen=True)
class ImportedModel:
    """A Transformer of another toolkit, in the terms of this package.

    Attributes:
        origin: the file or folder that it was read from.
        format: name of its format.
        arguments: arguments of `models.Transformer`.
        weights: the value of each weight, by its path in the model, such as
            `encoder_block_1/attention/query/kernel`.
        source_proto: the source side's SentencePiece model, serialized.
        target_proto: the target side's.
        decoding: options of `Translator` that the model's own toolkit uses.
        facts: what the model card says about the model.

    Example:
    >>> from keras_deepnmt.exchange import load_marian
    >>> imported = load_marian("opus-mt-de-en")
    >>> imported.build().count_params()
    74410496
    """

    origin: str
    format: str
    arguments: Mapping[str, Any]
    weights: Mapping[str, np.ndarray]
    source_proto: bytes
    target_proto: bytes
    decoding: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def overrides(self) -> dict[str, Any]:
        """The arguments but the sizes of the vocabularies."""
        return {
            name: value
            for name, value in self.arguments.items()
            if not name.endswith("vocabulary_size")
        }

    def build(self) -> Transformer:
        """Makes the model with these weights.

        Raises:
            UserError: if the model cannot be made, or a weight is missing, not
                expected or of another shape.
        """
        with refused_values(f"{self.origin}: the model"):
            model = Transformer(**self.arguments)
        expected = {weight.path: weight for weight in model.weights}
        missing = sorted(expected.keys() - self.weights.keys())
        surplus = sorted(self.weights.keys() - expected.keys())
        for names, problem in ((missing, "lacks"), (surplus, "also has")):
            if names:
                shapes = expected if problem == "lacks" else self.weights
                listed = ", ".join(
                    f"{name} {tuple(shapes[name].shape)}"
                    for name in names[:_LISTED]
                )
                raise UserError(
                    f"{self.origin}: {problem} {len(names)} weights, such as "
                    f"{listed}. Its configuration describes another model."
                )
        for name, weight in expected.items():
            value = self.weights[name]
            if tuple(value.shape) != tuple(weight.shape):
                raise UserError(
                    f"{self.origin}: the weight for {name} must have the shape "
                    f"{tuple(weight.shape)}. Received: {tuple(value.shape)}"
                )
            weight.assign(value)
        return model
