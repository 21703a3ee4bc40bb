"""Compiles a program for the shapes to come while the first ones train."""

import logging
import queue
import threading

import tensorflow as tf

from keras_deepnmt.threads import num_cores

_logger = logging.getLogger(__name__)


class AheadCompilation:
    """Compiles a traced program for several shapes, in threads.

    A thread runs the program with zeros in the place of its arguments and of
    the variables that it captures. So training goes on as it would without
    it: where it meets a shape that is being compiled it waits, and where it
    meets one whose turn has not come it compiles it itself. A failure is only
    logged, for debugging.

    Args:
        program: a `CompiledProgram` that was called in a `tf.function`.
        arguments: dict from a key to the arguments of the program, nests of
            `tf.TensorSpec` of known shapes, in the order of compilation.
        num_threads: int. Number of compilations at a time.
        on_compiled: callable that takes the key of what was compiled.

    Example:
    >>> double = CompiledProgram(lambda x: 2 * x, "double")
    >>> traced = tf.function(double).get_concrete_function(
    ...     tf.TensorSpec((None,))
    ... )
    >>> shapes = {n: (tf.TensorSpec((n,)),) for n in (3, 5)}
    >>> ahead = AheadCompilation(double, shapes, 1, print)
    >>> ahead.wait()
    3
    5
    """

    def __init__(self, program, arguments, num_threads, on_compiled):
        self._program = program
        self._on_compiled = on_compiled
        self._waiting = queue.SimpleQueue()
        for item in arguments.items():
            self._waiting.put(item)
        self._zeros = {}
        # Python waits for these threads before it ends. It must not end while
        # one of them computes.
        self._threads = [
            threading.Thread(target=self._compile, name="compilation ahead")
            for _ in range(num_threads)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self):
        """Begins no further compilation; the present ones end."""
        while not self._waiting.empty():
            try:
                self._waiting.get_nowait()
            except queue.Empty:
                return

    def wait(self):
        """Waits until all is compiled."""
        for thread in self._threads:
            thread.join()

    def _compile(self):
        try:
            # Each thread has its own, since TensorFlow locks the variables of
            # a program while it is compiled.
            run = self._program.stand_in(self._make_zeros)
            while True:
                key, arguments = self._waiting.get_nowait()
                run(arguments)
                self._on_compiled(key)
        except queue.Empty:
            return
        except Exception:
            _logger.debug("a compilation ahead failed", exc_info=True)

    def _make_zeros(self, shape, dtype):
        """Returns zeros, the same for all variables of a shape."""
        key = (tuple(shape), dtype)
        if key not in self._zeros:
            self._zeros[key] = tf.zeros(shape, dtype)
        return self._zeros[key]


def num_threads() -> int:
    """Returns on how many cores TensorFlow may compute in this process.

    Example:
    >>> num_threads() >= 1
    True
    """
    allowed = tf.config.threading.get_intra_op_parallelism_threads()
    return min(num_cores(), allowed) if allowed else num_cores()
