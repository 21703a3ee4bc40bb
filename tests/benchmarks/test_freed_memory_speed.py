"""Training with kept memory, compared with training without."""

from benchmarks.speed.freed_memory import summary


def test_less_time_with_kept_memory_is_a_higher_speed():
    returned = [dict(seconds=s, pages=500) for s in (2.0, 3.0, 4.0)]
    kept = [dict(seconds=s, pages=0) for s in (1.0, 2.0, 1.0)]
    assert summary({"returned": returned, "kept": kept}) == {
        "rounds": 3,
        "speed_median": 2.0,
        "speed_min": 1.5,
        "speed_max": 4.0,
        "returned_seconds": 3.0,
        "returned_pages": 500,
        "kept_seconds": 1.0,
        "kept_pages": 0,
    }
