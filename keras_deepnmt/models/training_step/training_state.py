"""State of training besides the weights: update counts and random states."""

import collections.abc
import threading
import weakref

import keras

from keras_deepnmt.xla.events import Compilation, announce


class NotedShapes(collections.abc.MutableSet):
    """The batch shapes that a step has met: rows of a replica and lengths.

    A step adds a shape here before it is compiled for it; listeners to the
    model's compilations are then called. The purpose is `"training"` or
    `"validation"`.
    """

    def __init__(self, model, purpose):
        # Weak, since TensorFlow never frees the function that adds a shape.
        self._model = weakref.ref(model)
        self._purpose = purpose
        # Not a subclass of `set`, of which Keras would keep a copy.
        self._shapes = set()
        self._lock = threading.Lock()

    def __contains__(self, shape):
        return shape in self._shapes

    def __iter__(self):
        return iter(self._shapes)

    def __len__(self):
        return len(self._shapes)

    def add(self, shape):
        # Replicas meet a shape at the same time, in several threads.
        with self._lock:
            is_new = shape not in self._shapes
            self._shapes.add(shape)
            number = len(self._shapes)
        model = self._model()
        if is_new and model is not None and model.step_jit_compile:
            announce(model, Compilation(self._purpose, shape, number))

    def discard(self, shape):
        self._shapes.discard(shape)


def update_count(model):
    """Returns the number of updates that a compiled model has made.

    On TensorFlow, updates that were skipped because of a float16 overflow are
    included.
    """
    optimizer = model.optimizer
    count = getattr(optimizer, "batch_count", optimizer.iterations)
    # `int` cannot read a variable that is mirrored over replicas.
    return int(keras.ops.convert_to_numpy(count))


def write_back_weights(model):
    """Gives a model the values of its weights in the middle of `fit`.

    On JAX `fit` keeps them outside the model during an epoch. On other backends
    this does nothing.
    """
    if hasattr(model, "jax_state_sync"):
        model.jax_state_sync()


def has_values(model):
    """Returns whether the variables of a compiled model have values.

    On JAX `fit` takes them out of the model to make an update; if it is
    interrupted meanwhile, they may be lost.

    Example:
    >>> model = keras_deepnmt.models.Transformer(11, 13, 8, 16, 2, 1, 1)
    >>> model.compile("adam")
    >>> has_values(model)
    True
    """
    try:
        for variable in [*model.variables, *model.optimizer.variables]:
            keras.ops.convert_to_numpy(variable)
    except (TypeError, RuntimeError):
        # Keras left the variable without a value, or JAX has reused its memory
        # for the value after the next update.
        return False
    return True


def count_batches(optimizer):
    """Adds a variable `batch_count` to a loss-scaling optimizer.

    Such an optimizer neither makes nor counts an update whose gradient
    overflows, but the position in the training data moves on. Other optimizers
    are not changed. Only the step on TensorFlow calls this.
    """
    if not isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        return
    # A model that is compiled again with its optimizer goes on counting.
    if not hasattr(optimizer, "batch_count"):
        optimizer.batch_count = optimizer.add_variable(
            (),
            initializer="zeros",
            dtype="int64",
            aggregation="only_first_replica",
            name="batch_count",
        )
        # Of an optimizer that has made updates already.
        optimizer.batch_count.assign(
            keras.ops.cast(optimizer.iterations, "int64")
        )


def seed_variables(model):
    """Lists the random states of a built model, which no weights file holds.

    They are identified by their order, since their paths contain a counter of
    the whole process.
    """
    weights = {id(weight) for weight in model.weights}
    return [v for v in model.variables if id(v) not in weights]
