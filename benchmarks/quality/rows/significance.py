"""Paired bootstrap tests between rows of the table."""

from collections.abc import Sequence

NUM_RESAMPLES = 1_000


def paired_bootstrap(
    translations: Sequence[str],
    plain_translations: Sequence[str],
    references: Sequence[str],
    tokenize: str,
    lowercase: bool,
) -> tuple[float, float]:
    """Compares the BLEU of two systems by sacreBLEU's paired bootstrap test.

    Returns:
        The difference from the plain system, and the p-value: how probable
        such a difference, in either direction, would be if the systems were
        equally good. Equal scores have the p-value 1.
    """
    from sacrebleu.metrics import BLEU
    from sacrebleu.significance import PairedTest

    _, results = PairedTest(
        [("plain", list(plain_translations)), ("other", list(translations))],
        {"BLEU": BLEU(lowercase, tokenize=tokenize, force=True)},
        [list(references)],
        test_type="bs",
        n_samples=NUM_RESAMPLES,
    )()
    plain, other = results["BLEU"]
    difference = other.score - plain.score
    # sacreBLEU counts resamples with a larger difference than the one seen. If
    # that is 0 and all translations agree it finds none, and so the smallest
    # possible p-value.
    return difference, other.p_value if difference else 1.0
