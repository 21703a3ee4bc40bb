"""Selects rows of `results/scaling_*.csv`, whose numbers are floats."""

BYTES_PER_GRADIENT, HALF = 4, 2


def growing_batch_rows(rows):
    """Returns the rows whose global batch grows with the number of GPUs."""
    return [row for row in rows if row["scaling"] == "weak"]


def max_parts(rows):
    """Returns the largest number of accumulated parts."""
    return max(row["parts"] for row in rows)


def network_speeds(rows):
    """Returns the network speeds, slowest first."""
    return sorted({row["network_gbit"] for row in rows})


def find_row(rows, **wanted):
    """Returns the first row with these values; raises `LookupError` if none."""
    for row in rows:
        if all(row[name] == value for name, value in wanted.items()):
            return row
    raise LookupError(f"No row has {wanted}.")


def gradient_options(rows, preset, gpus, network_gbit):
    """Returns the forecasts for four ways of sending gradients.

    Float32 gradients, half the bytes, and both again with accumulated parts.
    """
    return [
        find_row(
            growing_batch_rows(rows),
            preset=preset,
            gpus=gpus,
            network_gbit=network_gbit,
            parts=parts,
            bytes_per_gradient=size,
        )
        for parts in (1, max_parts(rows))
        for size in (BYTES_PER_GRADIENT, HALF)
    ]
