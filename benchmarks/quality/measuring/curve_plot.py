"""Draws the learning curves of one corpus."""

import sys


def read_curves(rows, settings):
    """Returns the newest curves that were trained with the given settings.

    The result maps a preset to its curves by seed, which are lists of pairs
    `(update, validation loss)`.
    """
    chosen = [
        row
        for row in rows
        if all(row[name] == str(value) for name, value in settings.items())
    ]
    curves = {}
    for row in chosen:
        if row["commit"] == chosen[-1]["commit"]:
            seeds = curves.setdefault(row["preset"], {})
            point = int(row["update"]), float(row["val_loss"])
            seeds.setdefault(row["seed"], []).append(point)
    return curves


def draw(curves, title, path):
    """Draws a thin line for each seed and a thick one for their mean (SVG)."""
    try:
        import matplotlib
    except ImportError:
        sys.exit("The plot needs matplotlib: python -m pip install matplotlib")
    # Needs no display, and writes the same file for the same rows.
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "learning_curves"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    for number, (preset, seeds) in enumerate(curves.items()):
        color = f"C{number}"
        for curve in seeds.values():
            axes.plot(*zip(*curve, strict=True), color, lw=0.6, alpha=0.5)
        label = f"{preset}, mean of {len(seeds)}"
        axes.plot(*_mean(seeds.values()), color, lw=1.8, label=label)
    axes.set_xlabel("updates")
    axes.set_ylabel("validation loss (nats a token)")
    axes.set_title(title, fontsize="medium")
    axes.grid(alpha=0.3)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _mean(curves):
    """Averages the losses of several seeds at the same updates."""
    columns = list(zip(*curves, strict=True))
    updates = [column[0][0] for column in columns]
    return updates, [
        sum(loss for _, loss in column) / len(column) for column in columns
    ]
