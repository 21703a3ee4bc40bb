"""Finds the smallest number of parts in which a batch fits in memory."""

import contextlib
import dataclasses
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras

from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError
from keras_deepnmt.processes import start_python
from keras_deepnmt.recipes.loading import save_recipe
from keras_deepnmt.recipes.schema import Recipe
from keras_deepnmt.runs.changes import KeyChange
from keras_deepnmt.runs.objective_options import make_loss, make_terms
from keras_deepnmt.zoo.registry import get_preset

DOES_NOT_FIT = 77
# Other processes may grow, and the peak may fall between two measurements.
SHARE_OF_MEMORY = 0.9
MOST_PARTS = 4096
_KILLED = (-9, 137)
# What decides how much memory an update needs, besides model and data.
_MEMORY_KEYS = tuple(
    f"training.{key}"
    for key in (
        *("precision", "activation_checkpointing", "objective", "optimizer"),
        *("loss", "strategy", "replicas", "jit_compile", "max_shapes"),
    )
)
_OUT_OF_MEMORY_MESSAGES = (
    "RESOURCE_EXHAUSTED",
    "ResourceExhausted",
    "bad_alloc",
)


def with_parts(recipe: Recipe, parts: int) -> Recipe:
    """Replaces `batch_tokens: auto` by the effective batch in `parts` parts.

    The parts are computed one after another and make one update; the number of
    rows of a batch is a multiple of `parts`.
    """
    training = dataclasses.replace(
        recipe.training,
        batch_tokens=recipe.training.effective_batch_tokens,
        effective_batch_tokens=None,
        gradient_accumulation_steps=parts,
    )
    return dataclasses.replace(recipe, training=training)


def with_found_parts(recipe: Recipe) -> Recipe:
    """Replaces `batch_tokens: auto` by the parts in the recipe's `resolved`.

    A recipe that gives a number of tokens is returned as it is.
    """
    if recipe.training.batch_tokens != "auto":
        return recipe
    parts = recipe.resolved["batch"]["gradient_accumulation_steps"]
    return with_parts(recipe, parts)


def fewest_parts(fits: Callable[[int], bool], most: int) -> int | None:
    """Finds the smallest number of parts, up to `most`, that fits.

    Doubles the number until it fits, then searches by bisection: if a number
    fits, all larger ones are assumed to fit. Returns `None` if `most` does not
    fit.
    """
    fails, parts = 0, 1
    while not fits(parts):
        if parts == most:
            return None
        fails, parts = parts, min(2 * parts, most)
    while parts - fails > 1:
        middle = (fails + parts) // 2
        if fits(middle):
            parts = middle
        else:
            fails = middle
    return parts


def find_parts(
    recipe: Recipe,
    prepared_dir: Path,
    most: int,
    say: Callable[[str], None],
) -> int:
    """Finds the smallest number of parts for which two updates fit in memory.

    Each trial runs in a process of its own, since it may run out of memory. On
    a CPU it is stopped when it uses more memory than is available; an
    accelerator raises an error by itself. `most` is the number of rows of the
    smallest batch; `say` prints a line.
    """
    tokens = recipe.training.effective_batch_tokens

    def fits(parts):
        limit = SHARE_OF_MEMORY * available_memory()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "trial.yaml"
            save_recipe(with_parts(recipe, parts), file, {})
            peak = run_trial(
                ["-m", "keras_deepnmt.runs.batch_trial", file, prepared_dir],
                limit,
            )
        what = f"{tokens:,} tokens in {parts} part{'s' * (parts > 1)}"
        if peak is None:
            say(f"Trying {what}: too large for {limit / 2**30:.1f} GiB.")
        else:
            say(f"Trying {what}: fits; main memory {peak / 2**30:.1f} GiB.")
        return peak is not None

    parts = fewest_parts(fits, min(most, MOST_PARTS))
    if parts is None:
        raise UserError(
            f"recipe {recipe.name}: `training.batch_tokens: auto` found "
            f"nothing that fits: {tokens:,} tokens need too much memory even "
            f"in {min(most, MOST_PARTS)} parts. Use a smaller "
            "`training.effective_batch_tokens` or model, or shorter sentences."
        )
    say(
        f"Batches of {tokens:,} tokens are computed in {parts} "
        f"part{'s' * (parts > 1)}."
    )
    return parts


def find_batch(
    recipe: Recipe,
    recorded: Mapping[str, Any] | None,
    data: PreparedData,
    say: Callable[[str], None],
    changes: Sequence[KeyChange] = (),
) -> dict[str, int] | None:
    """Finds the batch of `batch_tokens: auto`.

    On a resume it is in `recorded`, the section `resolved` of `recipe.yaml`,
    unless the tokens have changed, or one of the `changes` of the recipe is of
    a key that the memory of an update depends on. Returns a dict of
    `batch_tokens` and `gradient_accumulation_steps`, or `None` if the recipe
    gives a number of tokens.
    """
    training = recipe.training
    if training.batch_tokens != "auto":
        return None
    tokens = training.effective_batch_tokens
    found = (recorded or {}).get("batch", {})
    is_kept = not any(c.key.startswith(_MEMORY_KEYS) for c in changes)
    if found.get("batch_tokens") == tokens and is_kept:
        return found
    _check_known(recipe)
    longest = int(data.store("train").lengths.max())
    rows = tokens // longest // (training.replicas or 1)
    most = max(1, rows)
    return {
        "batch_tokens": tokens,
        "gradient_accumulation_steps": find_parts(
            recipe, data.directory, most, say
        ),
    }


def _check_known(recipe):
    """Refuses names registered in this process: trials run in other ones."""
    for key, name, found in _named_objects(recipe):
        module = found.__module__
        if module.split(".")[0] not in ("keras", "keras_deepnmt"):
            raise UserError(
                f"recipe {recipe.name}: `training.batch_tokens: auto` makes "
                "trials in other processes, which know only what "
                f"keras_deepnmt registers. Received: `{key}` with {name}, "
                f"which {module} defines. Give the numbers "
                "`training.batch_tokens` and "
                "`training.gradient_accumulation_steps` instead."
            )


def _named_objects(recipe) -> Iterator[tuple[str, str, Any]]:
    """Yields the key and name of each class or function, and the object."""
    training, preset = recipe.training, recipe.model.preset
    yield "model.preset", preset, get_preset(preset)
    for name in _strings(recipe.model.overrides):
        found = keras.saving.get_registered_object(name)
        if found is not None:
            yield "model.overrides", name, found
    yield "training.loss", training.loss, type(make_loss(recipe))
    for name, term in zip(training.objective, make_terms(recipe), strict=True):
        yield "training.objective", name, type(term)


def _strings(value):
    """Yields all keys and values that are strings, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _strings([*value, *value.values()])
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _strings(one)


def run_trial(words: Sequence[Any], limit: float) -> int | None:
    """Runs Python and stops it if its resident memory exceeds `limit`.

    `words` are those of `start_python`. Returns the peak of resident memory in
    bytes, or `None` if the process did not fit.
    """
    with tempfile.TemporaryFile("w+") as errors:
        process = start_python(words, stderr=errors)
        try:
            peak = _watch(process, limit)
        finally:
            process.kill()
            code = process.wait()
        errors.seek(0)
        messages = errors.read()
    if peak > limit or code == DOES_NOT_FIT or code in _KILLED:
        return None
    if code and any(words in messages for words in _OUT_OF_MEMORY_MESSAGES):
        return None
    if code:
        last = (messages.strip().splitlines() or [f"exit code {code}"])[-1]
        name, _, message = last.partition(": ")
        if name.endswith(UserError.__name__):
            raise UserError(f"the trial of a batch failed: {message}")
        raise RuntimeError(f"the trial of a batch failed: {last}")
    return peak


def available_memory() -> float:
    """Returns the free memory of this machine or container, in bytes.

    Infinity if the system does not report it.
    """
    free = [float("inf")]
    with contextlib.suppress(OSError, ValueError, IndexError):
        info = Path("/proc/meminfo").read_text(encoding="ascii")
        free.append(1024.0 * int(info.split("MemAvailable:")[1].split()[0]))
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        with contextlib.suppress(OSError, ValueError):
            numbers = [
                int(Path("/sys/fs/cgroup", name).read_text(encoding="ascii"))
                for name in (limit, used)
            ]
            free.append(float(numbers[0] - numbers[1]))
    return min(free)


def _watch(process, limit):
    """Returns a process' peak memory when it ends or exceeds `limit`."""
    peak = 0
    page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
    statistics = Path(f"/proc/{process.pid}/statm")
    while process.poll() is None and peak <= limit:
        with contextlib.suppress(OSError, IndexError):
            words = statistics.read_text(encoding="ascii").split()
            peak = max(peak, int(words[1]) * page)
        time.sleep(0.01)
    return peak
