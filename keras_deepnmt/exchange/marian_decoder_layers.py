"""What Marian's decoders may have in place of self-attention.

`transformer-decoder-autoreg: average-attention` is that of Zhang et al. (2018),
`rnn` with `dec-cell: ssru` the recurrent unit of Kim et al. (2019).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_deepnmt.errors import UserError
from keras_deepnmt.exchange.named_tensors import NamedTensors

SELF_ATTENTION = "self-attention"
_AVERAGE, _RECURRENT = "average-attention", "rnn"
_KEY = "transformer-decoder-autoreg"
# The values of options that this package can express; the first is Marian's
# default, but for the cell, which must be given.
_FIXED = {
    SELF_ATTENTION: {},
    _AVERAGE: {
        "transformer-aan-depth": (2,),
        "transformer-aan-nogate": (False,),
    },
    _RECURRENT: {
        "dec-cell": ("ssru",),
        "transformer-rnn-projection": (False,),
        "layer-normalization": (False,),
    },
}
_DEFAULTS = {_KEY: SELF_ATTENTION, "dec-cell": "gru"}
_ACTIVATION = "transformer-aan-activation"


def decoder_kind(
    config: Mapping[str, Any],
    normalize_first: bool,
    activations: Mapping[str, str],
    place: str,
) -> dict[str, Any]:
    """Returns the kind of the layer, and the activation in an average one.

    `activations` has names of Keras for those of Marian. `place` says where the
    options are, for errors.
    """

    def refuse(key, value, allowed):
        raise UserError(
            f"{place}: `{key}` must be {' or '.join(map(str, allowed))}, since "
            f"other models cannot be imported. Received: {value}"
        )

    kind = config.get(_KEY, SELF_ATTENTION)
    if kind not in _FIXED:
        refuse(_KEY, kind, _FIXED)
    for key, allowed in _FIXED[kind].items():
        value = config.get(key, _DEFAULTS.get(key, allowed[0]))
        if value not in allowed:
            refuse(key, value, allowed)
    activation = None
    if kind == _AVERAGE:
        # Marian averages the inputs before their norm, and its gates read one
        # without a norm.
        if normalize_first:
            refuse(
                "transformer-preprocess",
                config.get("transformer-preprocess"),
                [f"'' with {_AVERAGE}"],
            )
        name = config.get(_ACTIVATION, "swish")
        if name not in activations:
            refuse(_ACTIVATION, name, activations)
        activation = activations[name]
    return {"kind": kind, "activation": activation}


def decoder_layer(
    tensors: NamedTensors, kind: str, activation: str | None
) -> dict[str, Any]:
    """Returns the argument of `Transformer` for such a layer, if one is needed.

    `kind` and `activation` are those that `decoder_kind` returns.
    """
    if kind == SELF_ATTENTION:
        return {}
    layer = {"SimplerSimpleRecurrentUnit": {}}
    if kind == _AVERAGE:
        width = tensors.matrix("decoder_l1_aan_W1").shape[1]
        layer = {
            "AverageAttention": {
                "intermediate_dim": width,
                "activation": activation,
            }
        }
    return {"decoder_self_attention": layer}


def decoder_layer_weights(
    tensors: NamedTensors,
    kind: str,
    theirs: str,
    ours: str,
    normalize_first: bool,
) -> tuple[dict[str, np.ndarray], str]:
    """Returns the weights of such a layer, and the name of its norm.

    `theirs` is the name of the block there, such as `decoder_l1`, and `ours`
    the path of the layer here.
    """
    if kind == _AVERAGE:
        theirs = f"{theirs}_aan"
        return _average_attention(tensors, theirs, ours), f"{theirs}_ffn"
    theirs = f"{theirs}_rnn"
    return {
        f"{ours}/forget_gate/kernel": tensors.matrix(f"{theirs}_Wf"),
        f"{ours}/forget_gate/bias": tensors.take(f"{theirs}_bf").reshape(-1),
        f"{ours}/candidate/kernel": tensors.matrix(f"{theirs}_W"),
    }, theirs if normalize_first else f"{theirs}_ffn"


def _average_attention(tensors, theirs, ours):
    found = {}
    for place, part in (("1", "intermediate"), ("2", "output")):
        name = f"{ours}/feed_forward/{part}"
        if place == "2" and not tensors.has(f"{theirs}_W2"):
            # Marian leaves out a matrix that would not change the width.
            width = len(found[f"{ours}/feed_forward/intermediate/bias"])
            found[f"{name}/kernel"] = np.eye(width, dtype="float32")
            found[f"{name}/bias"] = np.zeros(width, "float32")
            continue
        found[f"{name}/kernel"] = tensors.matrix(f"{theirs}_W{place}")
        found[f"{name}/bias"] = tensors.take(f"{theirs}_b{place}").reshape(-1)
    # In the paper both gates read the input and the average; in Marian the
    # first one reads the input alone, the second one the average.
    gates = [tensors.matrix(f"{theirs}_W{gate}") for gate in "if"]
    nothing = np.zeros_like(gates[0])
    found[f"{ours}/gates/kernel"] = np.block(
        [[gates[0], nothing], [nothing, gates[1]]]
    )
    found[f"{ours}/gates/bias"] = np.concatenate(
        [tensors.take(f"{theirs}_b{gate}").reshape(-1) for gate in "if"]
    )
    return found
