"""Means over the seeds of `claims.py`, and of their paired differences."""

from benchmarks.quality.measuring.seed_statistics import mean_and_interval


def summarize(rows, variants_of):
    """Returns means over seeds, and over the paired differences of variants.

    Of each claim in `rows`, only those of its last commit are used.
    `variants_of` maps a claim to its variants; the others are compared with the
    first. Returns one dict per claim, metric and variant.
    """
    # Only rows of one version are compared.
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
            by_seed = variants[name]
            mean, interval = mean_and_interval(_values(by_seed.values()))
            last = list(by_seed.values())[-1]
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
                    "seeds": len(by_seed),
                    "mean": f"{mean:.4g}",
                    "interval": f"{interval:.2g}",
                    **_difference(by_seed, order[0], name, variants[order[0]]),
                }
            )
    return summary


def _difference(by_seed, baseline, name, others):
    both = [seed for seed in by_seed if seed in others]
    if name == baseline or not both:
        return dict.fromkeys(
            ["against", "difference", "difference_interval"], ""
        )
    values = [
        one - other
        for one, other in zip(
            _values(by_seed[seed] for seed in both),
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
