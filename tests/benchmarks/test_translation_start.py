"""The start of a translation, compared with that of another checkout."""

from benchmarks.speed.translation_start import relative_speeds


def test_less_time_is_a_higher_speed():
    now = {"compiled": [10.0, 10.0, 20.0], "cached": [4.0]}
    before = {"compiled": [15.0, 10.0, 60.0], "cached": [2.0]}
    assert relative_speeds(now, before) == {
        "compiled_relative_to_old_median": 1.5,
        "compiled_relative_to_old_min": 1.0,
        "compiled_relative_to_old_max": 3.0,
        "cached_relative_to_old_median": 0.5,
        "cached_relative_to_old_min": 0.5,
        "cached_relative_to_old_max": 0.5,
    }


def test_nothing_is_compared_with_no_other_checkout():
    now = {"compiled": [10.0], "cached": [4.0]}
    speeds = relative_speeds(now, {"compiled": [], "cached": []})
    assert set(speeds.values()) == {""}
