"""Means over the seeds of `claims.py`, and over their paired differences."""

from benchmarks.quality.measuring.seed_statistics import mean_and_interval


def summarize(rows, variants_of):
    """Gives means over seeds, and over paired differences of variants.

    Args:
        rows: list of dicts, as read from the table. Of each claim, those of
            its last commit count.
        variants_of: dict from a claim to its variants; the first is what the
            others are compared with.

    Returns:
        List of dicts, one a claim, metric and variant, in their order.
    """
    # What is compared was made by one version.
    commits = {row["claim"]: row["commit"] for row in rows}
    newest = {}
    for row in rows:
        if row["commit"] != commits[row["claim"]]:
            continue
        key = (row["claim"], row["metric"], row["updates"])
        values = newest.setdefault(key, {}).setdefault(row["variant"], {})
        values[row["seed"]] = row
    summary = []
    for (claim, metric, updates), variants in newest.items():
        order = [name for name in variants_of[claim] if name in variants]
        for name in order:
            found = variants[name]
            mean, interval = mean_and_interval(_values(found.values()))
            last = list(found.values())[-1]
            summary.append(
                {
                    "date": last["date"],
                    "commit": last["commit"],
                    "machine": last["machine"],
                    "claim": claim,
                    "metric": metric,
                    "variant": name,
                    "updates": updates,
                    "parameters": last["parameters"],
                    "seeds": len(found),
                    "mean": f"{mean:.4g}",
                    "interval": f"{interval:.2g}",
                    **_difference(found, order[0], name, variants[order[0]]),
                }
            )
    return summary


def _difference(found, baseline, name, others):
    both = [seed for seed in found if seed in others]
    if name == baseline or not both:
        return dict.fromkeys(
            ["against", "difference", "difference_interval"], ""
        )
    values = [
        one - other
        for one, other in zip(
            _values(found[seed] for seed in both),
            _values(others[seed] for seed in both),
            strict=True,
        )
    ]
    mean, interval = mean_and_interval(values)
    return {
        "against": baseline,
        "difference": f"{mean:+.4g}",
        "difference_interval": f"{interval:.2g}",
    }


def _values(rows):
    return [float(row["value"]) for row in rows]
