"""The F-score of precision and recall."""


def f_score(precision: float, recall: float, beta: float = 0.5) -> float:
    """Combines precision and recall into one score (van Rijsbergen, 1979).

        F = (1 + beta^2) P R / (beta^2 P + R)

    Args:
        precision: P, in [0, 1] or in points 0-100.
        recall: R, in the same unit.
        beta: Weight of recall relative to precision. Grammatical error
            correction uses 0.5.

    Returns:
        F in the unit of `precision` and `recall`; 0 if both are 0.

    Raises:
        ValueError: if a number is negative.

    Example:
    >>> round(f_score(64.7, 33.2), 1)
    54.4
    """
    if min(precision, recall, beta) < 0.0:
        raise ValueError(
            "`precision`, `recall` and `beta` must not be negative. Received: "
            f"precision={precision}, recall={recall}, beta={beta}."
        )
    weight = beta**2
    denominator = weight * precision + recall
    return (
        (1.0 + weight) * precision * recall / denominator
        if denominator
        else 0.0
    )
