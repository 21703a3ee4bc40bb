"""Compiles training shapes ahead on JAX, or not; prints what happened.

Run as a program with `KERAS_BACKEND=jax`. Its argument is `ahead`, `alone`, or
`again` for a training ahead after one that ended before its first update.
"""

import contextlib
import json
import sys

import jax
import keras
import numpy as np
from keras import ops

import keras_deepnmt
from keras_deepnmt.models.training_step import stateless_step

SHAPES = ((4, 3, 5), (2, 7, 6), (6, 2, 3))
STEPS = (0, 1, 0, 2, 1)


def batches():
    """The batches of `STEPS`."""
    draw = np.random.default_rng(5)
    for step in STEPS:
        rows, source_length, target_length = SHAPES[step]
        source = draw.integers(4, 11, (rows, source_length)).astype("int32")
        target = draw.integers(4, 13, (rows, target_length)).astype("int32")
        yield {"source_ids": source, "target_ids": target}, target


class CompiledPrograms:
    """Counts what XLA compiles of the training step."""

    def __init__(self):
        self.count = 0
        jax.monitoring.register_event_duration_secs_listener(self._note)

    def _note(self, event, seconds, fun_name="", **_):
        is_compiled = event.endswith("backend_compile_duration")
        self.count += is_compiled and "train_step" in fun_name


class Counts(keras.callbacks.Callback):
    """Notes how many steps were compiled after each update."""

    def __init__(self, programs):
        super().__init__()
        self.programs, self.noted = programs, []

    def on_train_batch_end(self, batch, logs=None):
        self.noted.append(self.programs.count)


class Interrupt(keras.callbacks.Callback):
    """Ends a training before its first update."""

    def on_train_begin(self, logs=None):
        raise KeyboardInterrupt


stateless_step.num_compilations_at_once = lambda *_: 2
programs = CompiledPrograms()
keras.utils.set_random_seed(3)
model = keras_deepnmt.create_model(
    "transformer_tiny",
    *(11, 13),
    hidden_dim=8,
    intermediate_dim=8,
    num_heads=2,
    num_encoder_layers=1,
    num_decoder_layers=1,
    dropout=0.3,
)
model.compile("adam", gradient_accumulation_steps=2)
at_once = model.compile_ahead(() if sys.argv[1] == "alone" else SHAPES)
if sys.argv[1] == "again":
    with contextlib.suppress(KeyboardInterrupt):
        model.fit(list(batches()), verbose=0, callbacks=[Interrupt()])
counts = Counts(programs)
model.fit(list(batches()), shuffle=False, verbose=0, callbacks=[counts])
found = {
    "at once": at_once,
    "compiled": counts.noted,
    "shapes": sorted(model.training_shapes),
    "weights": [
        ops.convert_to_numpy(variable).tolist() for variable in model.variables
    ],
}
model.stop_compiling_ahead()
print(json.dumps(found))
