"""p-values of paired tests over counts of sentences, and how to print them."""

from collections.abc import Callable, Iterator

import numpy as np

# Of all samples; that of sacreBLEU.
SEED = 12345
# Differences of two scores, in points, that count as equal: equal sums may have
# scores that differ by rounding.
EQUAL = 1e-9
# Samples drawn at once. A multiple of 32, the bits of a draw: so the samples
# are those of a single call of the generator, which are those of sacreBLEU.
_CHUNK = 1_024

Scores = Callable[[np.ndarray], np.ndarray]


def randomization_p_value(
    system: np.ndarray,
    baseline: np.ndarray,
    scores: Scores,
    num_trials: int = 10_000,
    seed: int = SEED,
) -> float:
    """Paired approximate randomization test (Riezler and Maxwell, 2005).

    A trial swaps the two translations of about half of the sentences. With `c`
    of `n` trials whose difference of scores is at least as large as that of the
    systems, in either direction,

        p = (c + 1) / (n + 1).

    Swaps of sentences whose counts are equal change nothing. If the others can
    be swapped in at most `num_trials` ways, all of them are tried instead, and
    `p` is the exact share `c / n`.

    `system` and `baseline` are counts of their sentences `(sentences, counts)`,
    such as those of `MetricCounts`; `scores` maps sums of counts
    `(rows, counts)` to scores `(rows,)`. The p-value is how probable a
    difference at least as large is if it is chance which system made which
    translation.
    """
    # Sums and products of counts are exact, and faster than those of integers.
    system, baseline = (np.asarray(of, "float64") for of in (system, baseline))
    totals = system.sum(axis=0), baseline.sum(axis=0)
    one, other = (scores(total[None])[0] for total in totals)
    changes = baseline - system
    is_changed = changes.any(axis=1)
    changes = changes[is_changed]
    at_least = tried = 0
    is_exact = 2 ** len(changes) <= num_trials
    if is_exact:
        chunks = _all_swaps(len(changes))
    else:
        chunks = _drawn_swaps(is_changed, num_trials, seed)
    for is_swapped in chunks:
        moved = is_swapped.astype("float64") @ changes
        found = np.abs(scores(totals[0] + moved) - scores(totals[1] - moved))
        at_least += int((found >= abs(one - other) - EQUAL).sum())
        tried += len(found)
    return at_least / tried if is_exact else (at_least + 1) / (tried + 1)


def bootstrap_p_value(
    system: np.ndarray,
    baseline: np.ndarray,
    scores: Scores,
    num_resamples: int = 1_000,
    seed: int = SEED,
) -> float:
    """Paired bootstrap test (Koehn, 2004), as sacreBLEU defines its p-value.

    With the difference `D` of the systems' scores and those of `n` samples of
    the sentences, `D*`, of which `c` have

        |D*| - mean |D*| >= |D|,

    it is p = (c + 1) / (n + 1). The draws are those of sacreBLEU.

    It is 1 if the systems have equal scores, and for a single sentence, since
    all samples of it are the same. `system`, `baseline` and `scores` are as for
    `randomization_p_value`.
    """
    one, other = (
        scores(counts.sum(axis=0)[None])[0] for counts in (system, baseline)
    )
    number = len(system)
    if abs(one - other) <= EQUAL or number == 1:
        return 1.0
    generator = np.random.default_rng(seed)
    found = []
    for start in range(0, num_resamples, _CHUNK):
        rows = min(_CHUNK, num_resamples - start)
        drawn = generator.choice(number, size=(rows, number))
        times = np.array(
            [np.bincount(row, minlength=number) for row in drawn], "float64"
        )
        found.append(scores(times @ system) - scores(times @ baseline))
    sizes = np.abs(np.concatenate(found))
    at_least = sizes - sizes.mean() >= abs(one - other) - EQUAL
    return (int(at_least.sum()) + 1) / (num_resamples + 1)


def format_p_value(value: float, name: str = "", decimals: int = 4) -> str:
    """Formats a p-value, and never as zero.

    Args:
        value: The p-value, 0 to 1.
        name: What stands before it, such as `"p"`. Defaults to nothing.
        decimals: Number of digits after the point.

    Example:
    >>> format_p_value(0.03125, "p"), format_p_value(1 / 10_001, "p")
    ('p = 0.0312', 'p < 0.0001')
    >>> format_p_value(0.5), format_p_value(1e-9)
    ('0.5000', '< 0.0001')
    """
    smallest = 10**-decimals
    sign, shown = ("<", smallest) if value < smallest else ("=", value)
    text = f"{name} {sign} {shown:.{decimals}f}"
    return text if name else text.removeprefix(" = ").lstrip()


def _all_swaps(number: int) -> Iterator[np.ndarray]:
    """Yields chunks of all ways to swap a number of sentences, as bits."""
    for start in range(0, 2**number, _CHUNK):
        ways = np.arange(start, min(start + _CHUNK, 2**number))
        yield (ways[:, None] >> np.arange(number)) & 1


def _drawn_swaps(is_changed, num_trials, seed):
    """Yields chunks of random swaps of the sentences that are changed."""
    generator = np.random.default_rng(seed)
    for start in range(0, num_trials, _CHUNK):
        size = min(_CHUNK, num_trials - start), len(is_changed)
        yield generator.integers(2, size=size, dtype=bool)[:, is_changed]
