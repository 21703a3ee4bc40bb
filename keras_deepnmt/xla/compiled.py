"""Compiles a function of a model once for each set of input shapes."""

import inspect
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import fields, is_dataclass, replace

import keras
import numpy as np

from keras_deepnmt.xla import tuned
from keras_deepnmt.xla.events import Compilation, announce
from keras_deepnmt.xla.replicas import (
    distribute_rows,
    num_replicas,
    shard_rows,
)

# The arguments whose leading axis is not that of the rows.
_WITHOUT_ROWS = ("candidate_ids",)


class CompiledFunction:
    """A function of a model that is compiled for each set of input shapes.

    Under a strategy the rows of a batch are distributed over the replicas, and
    each gets the whole of an argument `candidate_ids`, which has no rows. The
    weights are read at each call, so changes by training or loading take
    effect. (A plain `jax.jit` around a model would keep the old weights.) Make
    one with `compile_for`.

    A plain graph of TensorFlow, which XLA does not compile, is traced once for
    arrays of all sizes. `tuned.MOST_PROGRAMS` of them are kept, for as many
    options.

    Args:
        model: a model of this package, or anything with `variables`.
        function: callable that takes the model, tensors and keyword options.
        jit_compile: bool. Whether XLA compiles it.
        purpose: str. Purpose of the program, see `Compilation`.

    Attributes:
        num_compilations: int. Number of programs kept.
    """

    def __init__(self, model, function, jit_compile, purpose):
        self._model = model
        self._function = function
        self._jit_compile = jit_compile
        self._purpose = purpose
        self._is_for_all_sizes = has_plain_graphs(model) and not jit_compile
        self._compiled = {}
        self._lock = threading.Lock()

    @property
    def num_compilations(self):
        return len(self._compiled)

    def __call__(self, *arrays, **options):
        """Returns the function's result as NumPy arrays."""
        outputs = self.tensors(*arrays, **options)
        return keras.tree.map_structure(keras.ops.convert_to_numpy, outputs)

    def tensors(self, *arrays, **options):
        """Returns the function's result as tensors of the backend."""
        function, arrays = self._traced(arrays, options)
        return function(*arrays)

    def trace(self, *arrays, **options):
        """Traces the function for such a call, which then only compiles it."""
        self._traced(arrays, options)

    def _traced(self, arrays, options):
        """Returns the traced program of a call, and the arrays it takes."""
        structure = keras.tree.map_structure(_as_array, arrays)
        arrays = _given(structure)
        numbers = _tensor_values(options)
        whole = self._places_without_rows(structure)
        key = (
            str(keras.tree.map_structure(lambda x: x is None, structure)),
            self._shapes_and_types(arrays, whole),
            compiled_options(**options),
        )
        # Tensors, so that another value needs no other compilation.
        arrays += [
            np.float32(n) if isinstance(n, float) else np.int32(n)
            for n in numbers
        ]
        program = self._compiled.get(key)
        if program is None:
            with self._lock:
                # Another thread may have just compiled it.
                program = self._compiled.get(key)
                if program is None:
                    program = self._announce_and_compile(
                        structure, arrays, options
                    )
                    self._keep(key, program)
        return program, arrays

    def _keep(self, key, program):
        """Keeps a program; of graphs, which can be freed, the latest ones."""
        self._compiled[key] = program
        is_full = len(self._compiled) > tuned.MOST_PROGRAMS
        if self._is_for_all_sizes and is_full:
            del self._compiled[next(iter(self._compiled))]

    def _shapes_and_types(self, arrays, whole):
        """Returns the shapes that a program is for, and the types.

        A graph for all sizes has open ones, but for arrays without rows, such
        as candidates: a search needs the size of its vocabulary.
        """
        return tuple(
            (
                (None,) * len(x.shape)
                if self._is_for_all_sizes and place not in whole
                else tuple(x.shape),
                keras.backend.standardize_dtype(x.dtype),
            )
            for place, x in enumerate(arrays)
        )

    def _announce_and_compile(self, structure, arrays, options):
        if self._jit_compile:
            event = Compilation(self._purpose, tuple(arrays[0].shape))
            announce(self._model, event)
        return _CompiledByFirstCall(self._compile(structure, arrays, options))

    def _compile(self, structure, arrays, options):
        num_arrays = len(_given(structure))

        def function(*tensors):
            given = iter(tensors[:num_arrays])
            nests = keras.tree.map_structure(
                lambda x: None if x is None else next(given), structure
            )
            return self._function(
                self._model,
                *nests,
                **_with_tensors(options, tensors[num_arrays:]),
            )

        whole = self._places_without_rows(structure)
        if keras.backend.backend() == "tensorflow":
            return self._compile_on_tensorflow(arrays, function, whole)
        if keras.backend.backend() == "jax" and self._jit_compile:
            return self._compile_on_jax(function, whole)
        return function

    def _places_without_rows(self, structure):
        """Returns which of the arrays every replica gets as they are."""
        names = list(inspect.signature(self._function).parameters)[1:]
        arguments = [
            name
            for name, nest in zip(names, structure, strict=False)
            for _ in _given(nest)
        ]
        return [n for n, name in enumerate(arguments) if name in _WITHOUT_ROWS]

    def _compile_on_tensorflow(self, arrays, function, whole):
        import tensorflow as tf

        if self._jit_compile:
            from keras_deepnmt.xla.tensorflow_programs import (
                CompiledProgram,
            )

            name = getattr(self._function, "__name__", "function")
            function = CompiledProgram(function, name.strip("_<>"))
        if num_replicas(self._model) > 1:
            traced = tf.function(function, autograph=False)
            return distribute_rows(
                self._model.distribute_strategy, traced, whole
            )
        # Traced here: a `tf.function` would warn of every new shape.
        specs = [
            tf.TensorSpec(*one) for one in self._shapes_and_types(arrays, whole)
        ]
        traced = tf.function(function, autograph=False)
        concrete = traced.get_concrete_function(*specs)
        return lambda *arrays: concrete(*map(tf.convert_to_tensor, arrays))

    def _compile_on_jax(self, function, whole):
        import jax

        def stateless(values, *arrays):
            mapping = zip(self._model.variables, values, strict=True)
            with keras.StatelessScope(state_mapping=mapping):
                return function(*arrays)

        jitted = jax.jit(stateless)

        def search(*arrays):
            values = [variable.value for variable in self._model.variables]
            return jitted(values, *arrays)

        if num_replicas(self._model) > 1:
            return shard_rows(self._model.distribution, search, whole)
        return search


class _CompiledByFirstCall:
    """A function whose first call, which compiles it, is made by one thread."""

    def __init__(self, function):
        self._function = function
        self._lock = threading.Lock()
        self._is_compiled = False

    def __call__(self, *arrays):
        if not self._is_compiled:
            with self._lock:
                if not self._is_compiled:
                    result = self._function(*arrays)
                    self._is_compiled = True
                    return result
        return self._function(*arrays)


def has_plain_graphs(model):
    """Whether a model also runs as a graph for arrays of all sizes.

    JAX has no such graphs, and a strategy has one for each replica's shapes.
    """
    is_tensorflow = keras.backend.backend() == "tensorflow"
    return is_tensorflow and num_replicas(model) == 1


def _given(nests):
    """Lists the arrays in nests of arrays and `None`."""
    return [x for x in keras.tree.flatten(nests) if x is not None]


def _as_array(x):
    """Returns an object with a shape; a tensor stays on its device."""
    is_kept = x is None or keras.ops.is_tensor(x)
    return x if is_kept else np.asarray(x)


def _tensor_values(options):
    """Lists the values in dataclasses that are tensors in compiled programs."""
    return [
        getattr(value, name)
        for _, value in sorted(options.items())
        for name in _tensor_fields(value)
    ]


def _with_tensors(options, values):
    """Replaces the values that `_tensor_values` lists."""
    values = iter(values)
    return {
        name: replace(value, **{f: next(values) for f in _tensor_fields(value)})
        if is_dataclass(value)
        else value
        for name, value in sorted(options.items())
    }


def compiled_options(**options):
    """Returns options in a form that is equal if one program serves them all.

    Values that are tensors in the program do not count.

    Example:
    >>> from keras_deepnmt.decoding import SearchOptions
    >>> long, short = (SearchOptions(length_penalty=x) for x in (1.0, 0.2))
    >>> compiled_options(options=long) == compiled_options(options=short)
    True
    """
    values = [1] * len(_tensor_values(options))
    return tuple(_with_tensors(options, values).items())


def _tensor_fields(value):
    if not is_dataclass(value):
        return []
    return [
        field.name
        for field in fields(value)
        if field.metadata.get(
            "is_tensor", isinstance(getattr(value, field.name), float)
        )
    ]


def compile_for(model, function, jit_compile=True, purpose=None):
    """Compiles `function(model, *arrays, **options)`.

    It is compiled once for all calls with equal array shapes and equal
    options; `num_compilations` of the result counts the programs. Fields
    of type `float` of a dataclass, such as the length penalty in
    `SearchOptions`, reach the function as scalar tensors: other values need no
    other compilation. The metadata `is_tensor` of a field overrides this.

    Args:
        model: a model of this package, or anything with `variables`.
        function: callable that takes the model and tensors. Python values
            that change the computation (`max_length=…`) are keyword options.
        jit_compile: bool. If `False`, TensorFlow runs a plain graph, as in an
            exported model, which serves all sizes of the arrays, and JAX
            compiles nothing.
        purpose: str. Purpose of the program, for messages. Defaults to the name
            of the function.

    Returns:
        A `CompiledFunction`. It takes nests of arrays or tensors, or `None` in
        place of one, and the options, and returns NumPy arrays in the structure
        that `function` returns.

    Example:
    >>> from keras_deepnmt.decoding import beam_search
    >>> search = compile_for(model, beam_search)
    >>> search(source_ids, num_beams=2, max_length=9)["ids"].shape
    (3, 2, 9)
    >>> search.num_compilations
    1
    """
    if purpose is None:
        purpose = getattr(function, "__name__", "function")
    return CompiledFunction(model, function, jit_compile, purpose)


class PreparedShapes:
    """The shapes `(rows, positions)` that a search has been compiled for.

    If the search is not compiled, nothing is prepared.
    """

    def __init__(self, is_compiled: bool):
        self._is_compiled = is_compiled
        self._shapes: dict[tuple[int, int], Future | None] = {}
        self._thread: ThreadPoolExecutor | None = None

    def is_known(self, shape: tuple[int, int]) -> bool:
        """Whether a shape needs no preparation."""
        return not self._is_compiled or shape in self._shapes

    def prepare(
        self, shape: tuple[int, int], compile_it: Callable[[], None]
    ) -> None:
        """Calls a function in another thread, unless the shape is known."""
        if self.is_known(shape):
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "compile")
        self._shapes[shape] = self._thread.submit(compile_it)

    def wait_for(self, shape: tuple[int, int]) -> None:
        """Waits until a shape that was prepared is compiled.

        An error is not raised: the search of that shape will raise it.
        """
        if not self._is_compiled:
            return
        future = self._shapes.setdefault(shape, None)
        if future is not None:
            future.exception()
            self._shapes[shape] = None
