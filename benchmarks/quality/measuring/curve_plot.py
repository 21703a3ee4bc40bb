"""Draws the learning curves of one corpus."""

import sys


def read_curves(rows, settings):
    """Takes the newest curves of one setting out of the table.

    Args:
        rows: list of dicts of strings, as read from the table.
        settings: dict of what the curves have in common.

    Returns:
        Dict from a preset to its curves by seed, lists of pairs `(update,
        validation loss)`.
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
    """Draws a line for every seed, and a thicker one for their mean.

    Args:
        curves: what `read_curves` gives.
        title: str.
        path: the SVG file to write.
    """
    try:
        import matplotlib
    except ImportError:
        sys.exit("The plot needs matplotlib: python -m pip install matplotlib")
    # Drawn by no window, and the same file from the same rows.
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
    """Means the losses of several seeds at the same updates."""
    columns = list(zip(*curves, strict=True))
    updates = [column[0][0] for column in columns]
    return updates, [
        sum(loss for _, loss in column) / len(column) for column in columns
    ]
