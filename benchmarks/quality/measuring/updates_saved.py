"""How many fewer updates one curve needs than another to come as low."""

import math
import statistics

from benchmarks.quality.measuring.seed_statistics import mean_and_interval

# Shares of the baseline's updates after which its loss is a level.
SHARES = {
    "baseline's best in 50 % of its updates": 0.5,
    "baseline's best in 75 % of its updates": 0.75,
    "baseline's best": 1.0,
}
# Curves that differ in one of these are not compared.
SETTINGS = ("corpus", "updates", "validate_every", "batch_tokens")
SETTINGS += ("learning_rate", "device")
NEVER = "never"


def first_reached(curve, level):
    """Tells after how many updates a curve first came down to a level.

    Args:
        curve: list of pairs `(update, loss)`, updates rising.
        level: float.

    Returns:
        Float, interpolated linearly between the last loss above the level and
        the first one not above it; infinity if there is none.
    """
    before = None
    for update, loss in curve:
        if loss <= level:
            # After a loss that was no number there is no line to follow.
            if before is None or not math.isfinite(before[1]):
                return float(update)
            (start, high), run = before, update - before[0]
            return start + run * (high - level) / (high - loss)
        before = (update, loss)
    return math.inf


def levels(curve):
    """Gives the losses that a baseline had reached after some updates.

    Args:
        curve: list of pairs `(update, loss)`.

    Returns:
        Dict from the name of a level to the least loss up to there.
    """
    last = curve[-1][0]
    found = [point for point in curve if math.isfinite(point[1])]
    return {
        name: min(
            (loss for update, loss in found if update <= share * last),
            default=-math.inf,
        )
        for name, share in SHARES.items()
    }


def summarize(rows, baseline):
    """Compares every preset's curves with the baseline's of the same seeds.

    Args:
        rows: list of dicts of strings, as read from the table. Of each
            setting, those of its last commit count.
        baseline: str. The preset that the others are compared with.

    Returns:
        List of dicts, one a setting, preset and level, in their order.
    """
    commits = {_setting(row): row["commit"] for row in rows}
    settings = {}
    for row in rows:
        setting = _setting(row)
        if row["commit"] == commits[setting]:
            seeds = settings.setdefault(setting, {}).setdefault(
                row["preset"], {}
            )
            seeds.setdefault(row["seed"], []).append(row)
    return [
        row
        for presets in settings.values()
        for name, seeds in presets.items()
        if name != baseline and baseline in presets
        for row in _compare(name, seeds, baseline, presets[baseline])
    ]


def _setting(row):
    return tuple(row[name] for name in SETTINGS)


def _compare(name, curves, baseline, others):
    both = [seed for seed in curves if seed in others]
    if not both:
        return
    last, plain = curves[both[-1]][-1], others[both[-1]][-1]
    for level in SHARES:
        aims = [levels(_points(others[seed]))[level] for seed in both]
        theirs, ours = (
            [
                first_reached(_points(found[seed]), aim)
                for seed, aim in zip(both, aims, strict=True)
            ]
            for found in (others, curves)
        )
        yield {
            **{name: last[name] for name in ("date", "commit", "machine")},
            **{name: last[name] for name in SETTINGS},
            "model": name,
            "parameters": last["parameters"],
            "against": baseline,
            "parameters_against": plain["parameters"],
            "seeds": len(both),
            "level": level,
            "val_loss": f"{statistics.fmean(aims):.4g}",
            "updates_against": _median(theirs),
            "updates_needed": _median(ours),
            **_saved(ours, theirs),
        }


def _points(rows):
    return [(int(row["update"]), float(row["val_loss"])) for row in rows]


def _median(updates):
    median = statistics.median(updates)
    return f"{median:.0f}" if math.isfinite(median) else NEVER


def _saved(ours, theirs):
    """Means the saved shares, unless a seed has none: that is said instead."""
    lost = sum(not math.isfinite(updates) for updates in ours)
    if lost or not all(theirs):
        # A mean over the others would be that of the lucky seeds.
        said = f"{NEVER} in {lost} of {len(ours)} seeds"
        said = said if lost else "the baseline never improved"
        return {"saved": said, "saved_interval": ""}
    shares = [1 - one / other for one, other in zip(ours, theirs, strict=True)]
    mean, interval = mean_and_interval(shares)
    return {"saved": f"{mean:+.3f}", "saved_interval": f"{interval:.2g}"}
