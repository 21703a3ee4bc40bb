"""Finds in how few parts a batch fits in memory, by trying."""

import contextlib
import dataclasses
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from keras_deepnmt.data.prepared_data import PreparedData
from keras_deepnmt.errors import UserError
from keras_deepnmt.recipes.loading import save_recipe
from keras_deepnmt.recipes.run_folder import RunFolder
from keras_deepnmt.recipes.schema import Recipe

DOES_NOT_FIT = 77
# What else runs may grow, and sampling may miss the very peak.
SHARE_OF_MEMORY = 0.9
MOST_PARTS = 4096
_KILLED = (-9, 137)
_SAYS_SO = ("RESOURCE_EXHAUSTED", "ResourceExhausted", "bad_alloc")


def with_parts(recipe: Recipe, parts: int) -> Recipe:
    """Fills in what `batch_tokens: auto` means.

    An update sees the whole batch, whatever the parts; its rows are a multiple
    of them.

    Args:
        recipe: the recipe.
        parts: parts of a batch that are computed one after another.

    Returns:
        The recipe with numbers; a batch is as large as it should be.

    Example:
    >>> key = "training.effective_batch_tokens"
    >>> auto = {"training.batch_tokens": "auto", key: 9000}
    >>> recipe = load_recipe("transformer_tiny.multi30k_en_de", auto)
    >>> with_parts(recipe, 3).training.batch_tokens
    9000
    """
    training = dataclasses.replace(
        recipe.training,
        batch_tokens=recipe.training.effective_batch_tokens,
        effective_batch_tokens=None,
        gradient_accumulation_steps=parts,
    )
    return dataclasses.replace(recipe, training=training)


def fewest_parts(fits: Callable[[int], bool], most: int) -> int | None:
    """Finds the smallest number of parts that fits.

    Doubles until one fits, then halves the gap: `fits` is taken to hold for
    all larger numbers once it holds for one.

    Args:
        fits: tries a number of parts.
        most: the largest number there is.

    Returns:
        The number, or `None` where not even `most` fits.

    Example:
    >>> fewest_parts(lambda parts: parts >= 5, most=64)
    5
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
    """Tries a recipe's batch in fewer and fewer rows at a time.

    Each trial makes two updates of the largest batches in a process of its
    own, so that one that runs out of memory harms nothing. On a processor it
    is stopped when it takes more memory than there is; an accelerator says so
    itself.

    Args:
        recipe: a recipe with `batch_tokens: auto`.
        prepared_dir: the prepared corpus.
        most: rows of the smallest batch.
        say: shows a line.

    Returns:
        The smallest number of parts that fits.

    Raises:
        UserError: if not even single rows fit, or a trial fails otherwise.
    """
    tokens = recipe.training.effective_batch_tokens

    def fits(parts):
        limit = SHARE_OF_MEMORY * available_memory()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "trial.yaml"
            save_recipe(with_parts(recipe, parts), file, {})
            peak = run_trial(
                [
                    *(
                        sys.executable,
                        "-m",
                        "keras_deepnmt.recipes.batch_trial",
                    ),
                    *(str(file), str(prepared_dir)),
                ],
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
            f"nothing that fits: {tokens:,} tokens do not even in "
            f"{min(most, MOST_PARTS)} parts. Use a smaller "
            "`training.effective_batch_tokens` or model, or shorter sentences."
        )
    say(
        f"Batches of {tokens:,} tokens are computed in {parts} "
        f"part{'s' * (parts > 1)}."
    )
    return parts


def find_batch(
    recipe: Recipe,
    run: RunFolder,
    data: PreparedData,
    say: Callable[[str], None],
) -> dict[str, int] | None:
    """Gives what `batch_tokens: auto` means in a run, tried once.

    Args:
        recipe: the recipe.
        run: the run's folder, whose `recipe.yaml` keeps what was found.
        data: the prepared corpus.
        say: shows a line.

    Returns:
        Dict of `batch_tokens` and `gradient_accumulation_steps`; `None` where
        the recipe names a number.
    """
    training = recipe.training
    if training.batch_tokens != "auto":
        return None
    if run.recipe_file.is_file():
        return run.recipe().resolved["batch"]
    tokens = training.effective_batch_tokens
    longest = int(data.store("train").lengths.max())
    rows = tokens // longest // (training.replicas or 1)
    most = max(1, rows)
    return {
        "batch_tokens": tokens,
        "gradient_accumulation_steps": find_parts(
            recipe, data.directory, most, say
        ),
    }


def run_trial(command: Sequence[str], limit: float) -> int | None:
    """Runs a process and stops it when it takes too much memory.

    Args:
        command: its words.
        limit: bytes of resident memory, of the process itself.

    Returns:
        The most resident memory seen, or `None` if it did not fit.

    Raises:
        UserError: if it failed for another reason.
    """
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env={**os.environ, "PYTHONPATH": path},
        )
        try:
            peak = _watch(process, limit)
        finally:
            process.kill()
            code = process.wait()
        errors.seek(0)
        said = errors.read()
    if peak > limit or code == DOES_NOT_FIT or code in _KILLED:
        return None
    if code and any(words in said for words in _SAYS_SO):
        return None
    if code:
        last = (said.strip().splitlines() or [f"exit code {code}"])[-1]
        raise UserError(f"the trial of a batch failed: {last}")
    return peak


def available_memory() -> float:
    """Measures how much memory this machine, or this container, has left.

    Returns:
        Bytes; infinity where the system does not say.
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
    """Follows a process to its end, or to its limit; gives the peak."""
    peak = 0
    page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
    statistics = Path(f"/proc/{process.pid}/statm")
    while process.poll() is None and peak <= limit:
        with contextlib.suppress(OSError, IndexError):
            words = statistics.read_text(encoding="ascii").split()
            peak = max(peak, int(words[1]) * page)
        time.sleep(0.01)
    return peak
