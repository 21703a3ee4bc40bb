"""What `training_gpu.py` does with answers, late ones and none."""

import time
from types import SimpleNamespace

import pytest

from benchmarks.shared.result_rows import append_rows
from benchmarks.shared.step_flops import step_flops
from benchmarks.speed import training_gpu
from benchmarks.tables import gpu_tables

SIZES = training_gpu.SIZES["base"]


class Worker:
    """Answers in the place of a process; an update takes `seconds`."""

    def __init__(self, seconds, failure=None):
        self.is_killed = False
        self._seconds = seconds
        self._failure = failure

    def ask(self, name, *arguments):
        self._question = name, arguments

    def answer(self, timeout):
        name, arguments = self._question
        if self._failure:
            raise self._failure
        return 100 if name == "memory" else self._seconds * arguments[0]

    def kill(self):
        self.is_killed = True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


def measure(workers, end=None, rounds=3):
    ways = SimpleNamespace(ways=training_gpu.WAYS, rounds=rounds, updates=10)
    return training_gpu.measure(
        workers.get,
        lambda question: 4e14,
        ways,
        time.monotonic() + 60 if end is None else end,
    )


def rows_of(measured, model="base"):
    flags = {"bfloat16": "--fast", "torch bfloat16": "", "float32": ""}
    common = {"date": "2031-05-07", "machine": "p, 2 cores"}
    common |= {"device": "Card 7", "model": model}
    return training_gpu.make_rows(SIZES, measured, common, flags)


@pytest.fixture
def workers():
    seconds = (0.010, 0.015, 0.030)
    return dict(zip(training_gpu.WAYS, map(Worker, seconds), strict=True))


def test_a_row_has_the_ratio_to_pytorch_and_the_fraction_of_the_peak(workers):
    ours, torch, float32 = rows_of(measure(workers))
    assert (ours["rounds"], ours["memory_mib"]) == (3, 100)
    assert ours["tokens_per_second"] == 256 * 32 / 0.010
    assert ours["speed_to_torch_median"] == 1.5
    assert torch["speed_to_torch_max"] == 1.0
    assert float32["speed_to_torch_min"] == 0.5
    share = step_flops(SIZES) / 0.010 / 4e14
    assert ours["peak_fraction_median"] == pytest.approx(share, abs=5e-4)
    assert (ours["flags"], ours["met"]) == ("--fast", True)
    assert torch["met"] == float32["met"] == ""
    (trial, *_) = rows_of(measure(workers), "tiny")
    assert trial["target"] == trial["met"] == ""


@pytest.mark.parametrize(
    "failure", [TimeoutError("No answer"), RuntimeError("out of memory")]
)
def test_a_way_without_answer_is_left_out_and_ended(workers, failure, capsys):
    workers["torch bfloat16"] = Worker(0, failure)
    ours, float32 = rows_of(measure(workers))
    assert workers["torch bfloat16"].is_killed
    said = capsys.readouterr().out
    assert "torch bfloat16 is left out" in said and str(failure) in said
    assert (ours["way"], float32["way"]) == ("bfloat16", "float32")
    assert ours["speed_to_torch_median"] == ours["met"] == ""


def test_rounds_end_with_the_time(workers, capsys):
    assert rows_of(measure(workers, end=time.monotonic())) == []
    assert "No time for more than 0 rounds" in capsys.readouterr().out
    assert all(worker.is_killed for worker in workers.values())


def test_both_frameworks_must_see_the_device():
    card = Worker(0)
    seen = {"jax": ("cuda", "Card 7"), "torch": ("cuda", "Card 7")}
    card.answer = lambda timeout: seen
    assert training_gpu.find_device(card, 0) == ("cuda", "Card 7")
    seen["torch"] = ("cpu", "")
    with pytest.raises(SystemExit, match="must see the same device"):
        training_gpu.find_device(card, 0)


def test_the_table_names_the_card(workers, tmp_path, monkeypatch):
    monkeypatch.setattr(gpu_tables, "RESULTS", tmp_path)
    assert gpu_tables.gpu_tables() == []
    append_rows(tmp_path / "training_gpu.csv", rows_of(measure(workers)))
    text = "\n".join(gpu_tables.gpu_tables())
    assert "| `--fast` | 819,200 | 10.0 | 1.50 | 1.50 to 1.50 |" in text
    assert "Measured 2031-05-07 on one Card 7." in text
    assert "in bfloat16: 400 TFLOP/s on one Card 7." in text
