"""How many updates a model saves on its way to a given loss."""

import math
import statistics

from benchmarks.quality.measuring.seed_statistics import mean_and_interval

# Fractions of the baseline's updates whose lowest losses are to be reached.
SHARES = {
    "baseline's best in 50 % of its updates": 0.5,
    "baseline's best in 75 % of its updates": 0.75,
    "baseline's best": 1.0,
}
# Only curves with equal values in these columns are compared.
SETTINGS = ("corpus", "updates", "validate_every", "batch_tokens")
SETTINGS += ("learning_rate", "device")
NEVER = "never"


def first_reached(curve, level):
    """Returns the number of updates after which a curve first reaches a loss.

    `curve` is a list of pairs `(update, loss)`, sorted by update. The result is
    interpolated linearly between the last loss above the level and the first
    one at or below it; it is infinite if there is none.
    """
    previous = None
    for update, loss in curve:
        if loss <= level:
            # After a non-finite loss nothing can be interpolated.
            if previous is None or not math.isfinite(previous[1]):
                return float(update)
            start, high = previous
            fraction = (high - level) / (high - loss)
            return start + (update - start) * fraction
        previous = (update, loss)
    return math.inf


def levels(curve):
    """Returns the lowest losses of a baseline after fractions of its updates.

    The result maps the names in `SHARES` to losses.
    """
    last = curve[-1][0]
    finite = [point for point in curve if math.isfinite(point[1])]
    return {
        name: min(
            (loss for update, loss in finite if update <= share * last),
            default=-math.inf,
        )
        for name, share in SHARES.items()
    }


def summarize(rows, baseline):
    """Compares every preset's curves with the baseline's of the same seeds.

    `rows` are read from the table of curves; for each setting only the rows of
    its last commit are used. Returns one dict per setting, preset and level.
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
    last, last_of_baseline = curves[both[-1]][-1], others[both[-1]][-1]
    for level in SHARES:
        targets = [levels(_points(others[seed]))[level] for seed in both]
        theirs, ours = (
            [
                first_reached(_points(of_seed[seed]), target)
                for seed, target in zip(both, targets, strict=True)
            ]
            for of_seed in (others, curves)
        )
        yield {
            **{name: last[name] for name in ("date", "commit", "machine")},
            **{name: last[name] for name in SETTINGS},
            "model": name,
            "parameters": last["parameters"],
            "against": baseline,
            "parameters_against": last_of_baseline["parameters"],
            "seeds": len(both),
            "level": level,
            "val_loss": f"{statistics.fmean(targets):.4g}",
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
    """Averages the saved fractions, unless a seed never reached the loss."""
    lost = sum(not math.isfinite(updates) for updates in ours)
    if lost or not all(theirs):
        # A mean over the other seeds would be too good.
        reason = f"{NEVER} in {lost} of {len(ours)} seeds"
        reason = reason if lost else "the baseline never improved"
        return {"saved": reason, "saved_interval": ""}
    shares = [1 - one / other for one, other in zip(ours, theirs, strict=True)]
    mean, interval = mean_and_interval(shares)
    return {"saved": f"{mean:+.3f}", "saved_interval": f"{interval:.2g}"}
