"""Lets an analysis read the intermediate tensors of layers."""

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras

_recorder: contextvars.ContextVar[Callable[[str, Any], None] | None] = (
    contextvars.ContextVar("recorder", default=None)
)


def record(layer: keras.layers.Layer, name: str, tensor: Any) -> None:
    """Hands a tensor of a layer to the recorder, if there is one.

    If `tensor` is a function, it is called only if there is a recorder, and its
    result is recorded.

    Without a recorder nothing happens: the tensor is not kept, and a compiled
    program does not contain it unless the layer needs it.
    """
    recorder = _recorder.get()
    if recorder is not None:
        recorder(
            f"{layer.path}/{name}", tensor() if callable(tensor) else tensor
        )


@contextlib.contextmanager
def recorder(receive: Callable[[str, Any], None]) -> Iterator[None]:
    """Calls `receive(path, tensor)` for all tensors recorded in the context.

    The path is that of the layer, a slash and the name of the tensor.
    """
    token = _recorder.set(receive)
    try:
        yield
    finally:
        _recorder.reset(token)


def attention_to_source(names: Sequence[str]) -> list[str]:
    """Chooses the recorded attention of decoder blocks, block by block."""
    cross = [n for n in names if n.endswith("cross_attention/weights")]
    if cross:
        return cross
    # The attention of convolutional decoder blocks.
    return [
        name
        for name in names
        if name.startswith("decoder")
        and name.count("/") == 2
        and name.endswith("/attention/weights")
    ]


def usual_alignment_block(num_blocks: int) -> int:
    """The decoder block, from 1, whose attention to the source aligns words.

    The last but one aligns best in models of six blocks (Garg et al., 2019),
    the last in the quickstart's of two (`benchmarks/quality/README.md`).
    """
    return num_blocks if num_blocks < 3 else num_blocks - 1
