"""A model as two graphs of ONNX: its encoder, and one step of its decoder.

B is the number of sentences, S the length of the longest source, K the number
of hypotheses of each sentence, M the maximum length of a translation, m the
position of a step. Names of tensors are paths, such as
`static/decoder_block_1/key`.

Inputs of the encoder: `source_ids` `(B, S)`, and the scalars `num_beams` K and
`max_length` M. Its outputs are the state, which the decoder's first step takes:
what it reads of the source (`memory`, `static`), and what changes from step to
step (`dynamic`, `history`).

Inputs of the decoder: `token_ids` `(B, K)`, the last token of each hypothesis;
`parents` `(B, K)`, the number of the hypothesis of the last step that each
hypothesis extends; the scalar `position` m; and the state. Outputs: `log_probs`
`(B, K, V)`, and each tensor of the state that changes, under the name of the
input that takes it at the next step, after `next/`.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_deepnmt.decoding.caches import reorder_cache
from keras_deepnmt.masks import END_ID

ENCODER, DECODER = "encoder.onnx", "decoder_step.onnx"
_OPSET = 18
# What is computed twice to see which axes of the state are open.
_TRIALS = (
    {"B": 3, "S": 2, "K": 4, "M": 5},
    {"B": 5, "S": 3, "K": 7, "M": 9},
)
_AXES = ("B", "S", "K", "M", "B*K", "B*S", "K*M")

# Type and shape of a tensor; an open axis is a string.
Spec = tuple[str, Sequence[int | str]]


def write_graphs(model: Any, folder: Path) -> dict[str, Any]:
    """Writes the encoder, and one step of the decoder, of a float32 model.

    Returns for each of the two files its `inputs` and `outputs`: type and shape
    of each tensor by its name. The folder must exist.
    """
    state = _state_specs(model)
    integers = ("int32", ["B", "K"])
    inputs = {"token_ids": integers, "parents": integers}
    inputs |= {"position": ("int32", []), **state}
    decoder = _convert(lambda **values: _step(model, **values), inputs)
    inputs = _used_inputs(decoder, inputs)
    # The output of the encoder, for instance: its keys and values are enough.
    state = {name: spec for name, spec in state.items() if name in inputs}
    outputs = {
        "log_probs": ("float32", ["B", "K", model.target_vocabulary_size]),
        **{
            f"next/{name}": (dtype, _replaced(shape, {"m": "m+1"}))
            for name, (dtype, shape) in state.items()
            if name.startswith(("dynamic/", "history/"))
        },
    }
    graphs = {DECODER: _save(decoder, folder / DECODER, inputs, outputs)}
    scalars = dict.fromkeys(("num_beams", "max_length"), ("int32", []))
    inputs = {"source_ids": ("int32", ["B", "S"]), **scalars}

    def encode(**values):
        found = _first_state(model, **values)
        return {name: found[name] for name in state}

    encoder = _convert(encode, inputs)
    inputs = _used_inputs(encoder, inputs)
    outputs = {
        name: (dtype, _replaced(shape, {"m": 0, "m*K": 0}))
        for name, (dtype, shape) in state.items()
    }
    graphs[ENCODER] = _save(encoder, folder / ENCODER, inputs, outputs)
    return graphs


def _first_state(model, source_ids, num_beams, max_length):
    """Encodes sources: the state before the first step."""
    memory = model.encode(source_ids)
    cache = model.init_cache(memory, max_length, num_beams)
    # Each step adds a position to the histories.
    history = model.init_cache(memory, 0, num_beams).get("history", {})
    return _flat({"memory": memory, **cache, "history": history})


def _step(model, token_ids, parents, position, **state):
    """Makes one step of the decoder, as a search does."""
    num_beams = ops.shape(token_ids)[1]
    state = {"static": {}, "dynamic": {}, "history": {}, **_nested(state)}

    def with_room(name, x):
        added = 1 if name == "ancestors" else num_beams
        widths = [[0, 0]] * len(x.shape)
        widths[2] = [0, added]
        return ops.pad(x, widths)

    history = _flat(state["history"])
    history = {name: with_room(name, x) for name, x in history.items()}
    state["history"] = _nested(history)
    cache = reorder_cache(state, parents, position - 1)
    cache["static"] = state["static"]
    scores, cache = model.decode(
        ops.reshape(token_ids, (-1, 1)), state["memory"], cache, position
    )
    log_probs = model.log_probs(scores)  # (B * K, 1, V)
    sizes = (-1, num_beams, model.target_vocabulary_size)
    changed = {part: cache.get(part, {}) for part in ("dynamic", "history")}
    return {
        "log_probs": ops.reshape(log_probs, sizes),
        **{f"next/{name}": x for name, x in _flat(changed).items()},
    }


def _state_specs(model) -> dict[str, Spec]:
    """Computes the state twice, with other sizes, for its open axes."""
    one, other = (
        _first_state(
            model,
            np.full((sizes["B"], sizes["S"]), END_ID, "int32"),
            ops.convert_to_tensor(sizes["K"], "int32"),
            ops.convert_to_tensor(sizes["M"], "int32"),
        )
        for sizes in _TRIALS
    )
    specs = {}
    for name, x in one.items():
        pairs = zip(x.shape, other[name].shape, strict=True)
        shape = [a if a == b else _letters(a, b) for a, b in pairs]
        if name.startswith("history/"):
            shape[2] = "m" if name == "history/ancestors" else "m*K"
        specs[name] = (keras.backend.standardize_dtype(x.dtype), shape)
    return specs


def _letters(*lengths) -> str:
    """Names an axis by its lengths in the trials."""
    for letters in _AXES:
        sizes = [
            int(np.prod([trial[x] for x in letters.split("*")]))
            for trial in _TRIALS
        ]
        if sizes == list(lengths):
            return letters
    return "?"


def _replaced(shape, changes):
    changes = {"m*K": "(m+1)*K", **changes}
    return [changes.get(axis, axis) for axis in shape]


def _flat(nest: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Gives each tensor of a nest its path as a name."""
    found = {}
    for name, value in nest.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{path}{name}/")
        else:
            found[f"{path}{name}"] = value
    return found


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `_flat`."""
    nest: dict[str, Any] = {}
    for path, value in flat.items():
        *parents, name = path.split("/")
        place = nest
        for each in parents:
            place = place.setdefault(each, {})
        place[name] = value
    return nest


def _convert(function: Callable[..., dict[str, Any]], inputs):
    """Traces a function of named tensors as a graph of ONNX."""
    import tensorflow as tf
    import tf2onnx

    specs = [
        tf.TensorSpec(
            [None if isinstance(axis, str) else axis for axis in shape],
            dtype,
            name,
        )
        for name, (dtype, shape) in inputs.items()
    ]
    traced = tf.function(
        lambda *values: function(**dict(zip(inputs, values, strict=True))),
        input_signature=specs,
        autograph=False,
    )
    logger = logging.getLogger("tf2onnx")
    level = logger.level
    # An operation that ONNX lacks is named by the engine, which runs the graph.
    logger.setLevel(logging.CRITICAL)
    try:
        return tf2onnx.convert.from_function(traced, specs, opset=_OPSET)[0]
    finally:
        logger.setLevel(level)


def _used_inputs(graph, inputs: Mapping[str, Spec]) -> dict[str, Spec]:
    """Removes the inputs that no operation reads; returns the others."""
    names = set(_names_read(graph.graph))
    kept = [each for each in graph.graph.input if each.name in names]
    del graph.graph.input[:]
    graph.graph.input.extend(kept)
    return {name: inputs[name] for name in (each.name for each in kept)}


def _names_read(graph) -> Iterator[str]:
    for node in graph.node:
        yield from node.input
        for attribute in node.attribute:
            if attribute.HasField("g"):  # the body of a loop
                yield from _names_read(attribute.g)


def _save(graph, file, inputs, outputs):
    """Writes a graph with named axes; returns what it takes and gives."""
    import onnx

    written = {}
    for kind, values, specs in (
        ("inputs", graph.graph.input, inputs),
        ("outputs", graph.graph.output, outputs),
    ):
        written[kind] = {}
        for value in values:
            name, (dtype, shape) = value.name, specs[value.name]
            element = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
            value.CopyFrom(
                onnx.helper.make_tensor_value_info(name, element, shape)
            )
            written[kind][name] = {"dtype": dtype, "shape": list(shape)}
    onnx.save_model(graph, file)
    return written
