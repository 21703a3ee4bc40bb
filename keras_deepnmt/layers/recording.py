"""Lets an analysis read the intermediate tensors of layers."""

import contextlib
import contextvars
from collections.abc import Callable, Iterator
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
