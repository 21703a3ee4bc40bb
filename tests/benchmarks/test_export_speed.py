"""The speed of an export, compared with that of another one."""

import time

from benchmarks.speed.export_speed import measure


class Client:
    """Translates each sentence in a given time, as something."""

    def __init__(self, seconds, translation):
        self.sizes = []
        self._seconds = seconds
        self._translation = translation

    def translate(self, texts):
        self.sizes.append(len(texts))
        time.sleep(self._seconds * len(texts))
        return [self._translation for _ in texts]


def test_the_faster_export_has_a_ratio_above_1():
    clients = {"new": Client(0.01, "a"), "old": Client(0.03, "a")}
    found = measure(clients, [["x", "y"], ["z", "w"]], rounds=3)
    assert found["batch"] == 2
    assert found["sentences"] == found["same_translations"] == 4
    assert 2 < found["speed_min"] <= found["speed_median"] < 4
    assert 25 < found["old_sentences_per_second"] < 35
    # Once to begin with, then in each round.
    assert clients["new"].sizes == [2] * 2 * 4


def test_other_translations_are_counted():
    clients = {"new": Client(0.001, "a"), "old": Client(0.001, "b")}
    found = measure(clients, [["x", "y"]], rounds=1)
    assert found["same_translations"] == 0
