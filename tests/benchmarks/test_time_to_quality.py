"""What must be true of the minutes until a BLEU is reached."""

from benchmarks.quality.time_to_quality import first_reached, reached_columns

TRAINING = {"seconds": 600.0, "target_tokens": 9_000}


def curve(*bleus):
    """Validations every 100 updates, 60 seconds and 1,000 tokens."""
    return [
        {
            "step": str(99 + 100 * i),
            "seconds": "60.0",
            "tokens": "1000.0",
            "val_bleu": bleu,
        }
        for i, bleu in enumerate(bleus)
    ]


def test_the_first_validation_that_is_good_enough_counts():
    rows = curve("10.0", "", "39.0", "38.0", "41.0")
    assert first_reached(rows, 39.0) == (299, 180.0, 3000.0)
    assert first_reached(rows, 41.5) is None
    assert first_reached([], 0.0) is None


def test_otherwise_the_final_model_counts_with_all_minutes():
    columns = reached_columns(curve("38.0"), TRAINING, 500, 39.2, 39.0)
    assert columns == {
        "target_bleu": 39.0,
        "updates_to_target": 500,
        "minutes_to_target": 10.0,
        "tokens_to_target": 9_000,
    }


def test_a_target_that_was_not_reached_has_no_minutes():
    columns = reached_columns(curve("38.0"), TRAINING, 500, 38.9, 39.0)
    assert columns["minutes_to_target"] == ""
    assert columns["updates_to_target"] == columns["tokens_to_target"] == ""
