"""The tensors of another toolkit's model, each of which must be used."""

from collections.abc import Mapping

import numpy as np

from keras_deepnmt.errors import UserError


class NamedTensors:
    """Tensors by name, of which a reader takes what it knows.

    Matrices have a row for each output, as those of PyTorch. `origin` is the
    file or folder, for errors.

    Example:
    >>> tensors = NamedTensors({"fc.weight": np.ones((3, 2))}, "model.npz")
    >>> tensors.dense("fc", "output", bias=False)["output/kernel"].shape
    (2, 3)
    >>> tensors.take("fc.bias")
    Traceback (most recent call last):
    ...
    keras_deepnmt.errors.UserError: model.npz: its weights lack fc.bias.
    """

    def __init__(self, tensors: Mapping[str, np.ndarray], origin: object):
        self.tensors = tensors
        self.origin = origin
        self._used: set[str] = set()

    def take(self, name: str) -> np.ndarray:
        """Returns a tensor, which must be there."""
        if name not in self.tensors:
            raise UserError(f"{self.origin}: its weights lack {name}.")
        self._used.add(name)
        return self.tensors[name]

    def take_if_there(self, name: str) -> np.ndarray | None:
        """Returns a tensor, or `None`."""
        return self.take(name) if name in self.tensors else None

    def has(self, name: str) -> bool:
        """Whether there is a tensor of this name."""
        return name in self.tensors

    def ignore(self, *names: str) -> None:
        """Lets tensors be there that are not used."""
        self._used.update(names)

    def count(self, prefix: str) -> int:
        """Returns how many numbers from 0 on follow a prefix in the names."""
        starts = {
            name[len(prefix) :].split(".")[0]
            for name in self.tensors
            if name.startswith(prefix)
        }
        number = 0
        while str(number) in starts:
            number += 1
        return number

    def dense(
        self, theirs: str, ours: str, bias: bool = True
    ) -> dict[str, np.ndarray]:
        """Returns the weights of a dense layer; zeros for a bias it lacks.

        `theirs` is the name of the layer there, `ours` its path here, and
        `bias` says whether it has one there.
        """
        matrix = self.matrix(f"{theirs}.weight")
        zeros = np.zeros(len(matrix), "float32")
        return {
            f"{ours}/kernel": matrix.T,
            f"{ours}/bias": self.take(f"{theirs}.bias") if bias else zeros,
        }

    def matrix(self, name: str) -> np.ndarray:
        """Returns a tensor, which must have two axes."""
        tensor = self.take(name)
        if tensor.ndim != 2:
            raise UserError(
                f"{self.origin}: {name} must have two axes. Received the shape "
                f"{tensor.shape}"
            )
        return tensor

    def norm(
        self, theirs: str, ours: str, bias: bool = True
    ) -> dict[str, np.ndarray]:
        """Returns the weights of a layer normalization, as `dense` does."""
        gamma = self.take(f"{theirs}.weight")
        beta = self.take(f"{theirs}.bias") if bias else np.zeros_like(gamma)
        return {f"{ours}/gamma": gamma, f"{ours}/beta": beta}

    def others(self) -> list[str]:
        """Returns the names of the tensors that were not used."""
        return sorted(self.tensors.keys() - self._used)

    def refuse_others(self) -> None:
        """Raises a `UserError` that names a tensor that was not used."""
        others = self.others()
        if others:
            name = others[0]
            raise UserError(
                f"{self.origin}: its weights have {len(others)} tensors that "
                f"no part of the model uses, such as {name} "
                f"{self.tensors[name].shape}. They are of another model."
            )
