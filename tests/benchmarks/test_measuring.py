"""How rows are kept, and how other processes' speeds are read."""

import csv
import inspect
import os
import time
from pathlib import Path

import pytest

from benchmarks.shared.result_rows import append_row, append_rows
from benchmarks.shared.worker_process import WorkerProcess, answer_questions
from benchmarks.speed.joeynmt_throughput import find_batch_tokens
from benchmarks.speed.measuring.joeynmt_process import (
    joeynmt_configuration,
    train_joeynmt,
)

LINE = "INFO - Epoch 1, Step: 10, Tokens per Sec:    {}, Lr: 0.1"


def read(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_old_rows_stay_when_columns_are_added(tmp_path):
    path = tmp_path / "results" / "speed.csv"
    append_row(path, {"date": "1", "speed": 5})
    append_rows(
        path,
        [{"date": d, "replicas": 2, "speed": 7} for d in ("2", "3")],
    )
    assert read(path) == [
        {"date": "1", "replicas": "", "speed": "5"},
        {"date": "2", "replicas": "2", "speed": "7"},
        {"date": "3", "replicas": "2", "speed": "7"},
    ]


def test_no_column_is_lost(tmp_path):
    path = tmp_path / "speed.csv"
    append_row(path, {"date": "1", "speed": 5})
    with pytest.raises(ValueError, match="other columns"):
        append_row(path, {"date": "2"})
    assert read(path) == [{"date": "1", "speed": "5"}]


def fake_joeynmt(tmp_path, *lines, then):
    """Writes a program that prints lines, as JoeyNMT logs, and goes on."""
    file = tmp_path / "python"
    said = "\n".join(f"echo '{line}'" for line in lines)
    file.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\n{said}\n{then}\n")
    file.chmod(0o755)
    return file


def test_early_updates_of_joeynmt_do_not_count(tmp_path):
    python = fake_joeynmt(
        tmp_path,
        "INFO - Total params: 1,965,056",
        *map(LINE.format, (9_999, 300)),
        then=f"sleep 1; echo '{LINE.format(600)}'; exec sleep 60",
    )
    start = time.monotonic()
    speed, tokens, parameters = train_joeynmt(str(python), "any.yaml", 20)
    # As many updates at 300 as at 600 tokens a second: 2 / (1/300 + 1/600).
    assert speed == pytest.approx(400)
    assert parameters == 1_965_056
    # 400 tokens a second for a second or a little more, in 20 updates.
    assert 19 < tokens < 60
    # It is not waited for: it would go on training.
    assert time.monotonic() - start < 30
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_what_joeynmt_says_when_it_fails_is_shown(tmp_path):
    python = fake_joeynmt(tmp_path, "no such key", then="exit 1")
    with pytest.raises(RuntimeError, match="no such key"):
        train_joeynmt(str(python), "any.yaml", 20)


def test_joeynmt_logs_the_counted_updates_and_no_validation(tmp_path):
    training = joeynmt_configuration(
        tmp_path,
        dict(
            hidden_dim=8,
            intermediate_dim=16,
            num_heads=2,
            num_encoder_layers=1,
            num_decoder_layers=3,
            dropout=0.1,
        ),
        batch_tokens=70,
        updates=20,
        learning_rate=0.01,
        smoothing=0.1,
        seed=5,
    )["training"]
    # One line that comes too early, and two that count.
    assert training["logging_freq"] == 10
    assert training["updates"] > 30
    assert training["validation_freq"] > training["updates"]
    assert training["validation_freq"] % training["logging_freq"] == 0


def test_joeynmt_gets_batches_with_as_many_real_tokens_as_ours():
    started = []

    def tokens_per_update(batch_tokens):
        # Padding takes a larger share of large batches.
        started.append(batch_tokens)
        return batch_tokens**0.9

    found = find_batch_tokens(tokens_per_update, 4_086, 9_400)
    assert found**0.9 == pytest.approx(4_086, rel=0.02)
    assert started[-1] == found and len(started) > 1


def test_batches_of_another_size_than_ours_are_not_compared():
    with pytest.raises(RuntimeError, match=r"4086 target tokens.*\{9400: 100"):
        find_batch_tokens(lambda size: 100, 4_086, 9_400)


def test_a_worker_answers_in_order_and_tells_why_it_died(tmp_path):
    script = tmp_path / "script.py"
    repository = Path(inspect.getfile(answer_questions)).parents[2]
    script.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(repository)!r})\n"
        "from benchmarks.shared.worker_process import answer_questions\n"
        "def divide(a, b):\n"
        "    print('this is no answer')\n"
        "    return a / b\n"
        "answer_questions({'divide': divide})\n"
    )
    with WorkerProcess(script) as worker:
        worker.ask("divide", 3, 4)
        worker.ask("divide", 6, 4)
        assert [worker.answer(), worker.answer()] == [0.75, 1.5]
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            worker("divide", 1, 0)
