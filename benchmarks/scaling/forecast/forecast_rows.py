"""Finds rows of `results/scaling_*.csv`, numbers as numbers."""

BYTES_PER_GRADIENT, HALF = 4, 2


def weak_of(rows):
    """Gives the rows whose global batch grows with the GPUs."""
    return [row for row in rows if row["scaling"] == "weak"]


def most_parts(rows):
    """Gives the largest number of accumulated parts."""
    return max(row["parts"] for row in rows)


def networks_of(rows):
    """Gives the speeds of networks, slowest first."""
    return sorted({row["network_gbit"] for row in rows})


def find(rows, **wanted):
    """Gives the first row with these values; there must be one."""
    for row in rows:
        if all(row[name] == value for name, value in wanted.items()):
            return row
    raise LookupError(f"No row has {wanted}.")


def ways_of(rows, preset, gpus, network_gbit):
    """Gives whole and half bytes, first in one part, then in most."""
    return [
        find(
            weak_of(rows),
            preset=preset,
            gpus=gpus,
            network_gbit=network_gbit,
            parts=parts,
            bytes_per_gradient=size,
        )
        for parts in (1, most_parts(rows))
        for size in (BYTES_PER_GRADIENT, HALF)
    ]
