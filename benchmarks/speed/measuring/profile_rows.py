"""Rows of a profile: the time of each kind of operations."""


def rows_of_kinds(columns, milliseconds_of_kinds):
    """Returns a row for each kind of operations, the longest first.

    `columns` are the same in all rows; a row adds the kind, its time in
    milliseconds and its share of all kinds.

    >>> [row["share"] for row in rows_of_kinds({}, {"a": 1.0, "b": 3.0})]
    [0.75, 0.25]
    """
    total = sum(milliseconds_of_kinds.values())
    return [
        {
            **columns,
            "kind": kind,
            "milliseconds": round(milliseconds, 2),
            "share": round(milliseconds / total, 4),
        }
        for kind, milliseconds in sorted(
            milliseconds_of_kinds.items(), key=lambda pair: -pair[1]
        )
    ]


def print_profile(name, rows, whole):
    """Prints the rows of a profile; `whole` is the column of the whole time."""
    print(
        f"{name}: {rows[0][whole]} ms, matrix products at the peak "
        f"{rows[0]['limit_ms']} ms"
    )
    for row in rows:
        print(f"{100 * row['share']:5.1f} %  {row['kind']}")
