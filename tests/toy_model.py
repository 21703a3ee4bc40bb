"""A seeded model with the methods of every model, small enough to enumerate.

Each next token depends on the whole hypothesis, through a real cache, and on
the source sentence: a beam that gets another one's cache gives other scores.
"""

import functools
import itertools

import keras
import numpy as np
from keras import ops

from keras_deepnmt.decoding import compile_for

DECAY = 0.7
WIDTH = 5
ON_JAX = keras.backend.backend() == "jax"
SOURCES = np.array(
    [[4, 9, 3, 0, 0], [5, 3, 0, 0, 0], [8, 7, 6, 16, 3]], "int32"
)


def eagerly(function, *arguments, **options):
    """Calls a search operation by operation, as NumPy arrays.

    For a single call this takes less time than tracing the search.
    """
    outputs = function(*arguments, **options)
    return keras.tree.map_structure(ops.convert_to_numpy, outputs)


def run(model, function, sources=SOURCES, **options):
    """Searches by the program of the model."""
    return model.compiled(function)(sources, **options)


def tokens(ids):
    """The tokens of one row, without padding."""
    return [token for token in np.asarray(ids).tolist() if token != 0]


class ToyModel:
    def __init__(
        self,
        vocabulary_size=6,
        source_vocabulary_size=17,
        max_length=None,
        seed=0,
        scale=3.0,
    ):
        self.source_vocabulary_size = source_vocabulary_size
        self.target_vocabulary_size = vocabulary_size
        self.max_length = max_length
        shapes = (
            (source_vocabulary_size, WIDTH),
            (vocabulary_size, WIDTH),
            (WIDTH, vocabulary_size),
        )
        self.source_table, self.target_table, self.kernel = (
            keras.Variable(np.zeros(shape, "float32")) for shape in shapes
        )
        self._compiled, self._references = {}, {}
        self.draw_weights(seed, scale)

    def draw_weights(self, seed, scale=3.0):
        self._references.clear()
        generator = np.random.default_rng(seed)
        for variable in self.variables:
            values = generator.normal(size=variable.shape)
            variable.assign(values.astype("float32"))
        self.kernel.assign(self.kernel * scale)

    def compiled(self, function, jit_compile=ON_JAX):
        """The function compiled for this model, whatever weights it has.

        One for all calls, so that only other shapes and options are traced. On
        TensorFlow a plain graph is ready sooner than a program of XLA; JAX
        would compile the loops of one in every call.
        """
        key = function, jit_compile
        if key not in self._compiled:
            self._compiled[key] = compile_for(self, function, jit_compile)
        return self._compiled[key]

    @property
    def variables(self):
        return [self.source_table, self.target_table, self.kernel]

    def encode(self, source_ids):
        is_real = ops.cast(ops.not_equal(source_ids, 0), "float32")[..., None]
        states = ops.take(self.source_table, source_ids, axis=0) * is_real
        return {"context": ops.sum(states, axis=1)}  # (B, D)

    def init_cache(self, memory, max_length, num_beams=1):
        batch_size, width = ops.shape(memory["context"])
        states = ops.zeros((batch_size * num_beams, max_length, width))
        return {
            "static": {"context": memory["context"]},
            "dynamic": {"layer": {"states": states}},
        }

    def decode(self, target_ids, memory, cache=None, index=None):
        embedded = ops.take(self.target_table, target_ids, axis=0)
        if cache is None:
            states, rows = embedded, ops.arange(ops.shape(target_ids)[1])
            context = memory["context"]
        else:
            states = cache["dynamic"]["layer"]["states"]
            positions = ops.arange(ops.shape(states)[1])
            here = ops.equal(positions, index)[None, :, None]
            states = ops.where(here, embedded, states)
            rows = ops.reshape(index, (1,))
            context = cache["static"]["context"]
        columns = ops.arange(ops.shape(states)[1])
        distance = ops.cast(rows[:, None] - columns[None], "float32")
        weights = ops.where(distance >= 0, DECAY ** ops.abs(distance), 0.0)
        history = ops.einsum("tm,bmd->btd", weights, states)
        shape = ops.shape(history)
        by_sentence = ops.reshape(
            history, (ops.shape(context)[0], -1, shape[2])
        )
        hidden = ops.tanh(by_sentence + context[:, None])
        hidden = ops.reshape(hidden, (-1, shape[1], shape[2]))
        scores = ops.matmul(hidden, self.kernel)
        if cache is None:
            return scores
        dynamic = {"layer": {"states": states}}
        return scores, {"static": cache["static"], "dynamic": dynamic}

    def log_probs(self, scores):
        return ops.log_softmax(ops.cast(scores, "float32"), axis=-1)

    def reference_log_prob(self, source, target):
        """Log-probability of `target` (ends with 3), one number at a time."""
        tables = [
            np.asarray(ops.convert_to_numpy(variable), "float64")
            for variable in self.variables
        ]
        key = (*source, *(table.tobytes() for table in tables))
        if key not in self._references:
            self._references[key] = _reference(*tables, source)
        return self._references[key](tuple(map(int, target)))[1]

    def all_targets(self, max_length):
        """Every permitted output of at most `max_length` tokens."""
        words = [1, *range(4, self.target_vocabulary_size)]
        return [
            [*words_of_one, 3]
            for length in range(max_length)
            for words_of_one in itertools.product(words, repeat=length)
        ]


def _reference(source_table, target_table, kernel, source):
    """For a beginning: the state, its log-probability, those of next tokens."""
    context = source_table[[i for i in source if i != 0]].sum(0)

    @functools.cache
    def after(words):
        state, total, previous = 0.0, 0.0, 2
        if words:
            previous = words[-1]
            state, total, log_probs = after(words[:-1])
            total = total + log_probs[previous]
        state = DECAY * state + target_table[previous]
        scores = np.tanh(state + context) @ kernel
        return state, total, scores - np.log(np.exp(scores).sum())

    return after
