"""Training that SIGTERM stops is never taken for a finished one.

The signal itself comes in a real process, in test_processes.py.
"""

import os
import signal
import time

import pytest

from keras_deepnmt.errors import Terminated
from keras_deepnmt.runs import train as module

WORDS = ["train", "transformer_tiny.demo_de_en", "--quiet", "--run-dir", "run"]


@pytest.mark.parametrize(
    ("options", "code"),
    [([], 143), (["--exit-code-on-stop", "75"], 75)],
)
def test_the_exit_code_says_that_training_was_stopped(
    deepnmt, monkeypatch, options, code
):
    def stop(*arguments, **options):
        raise Terminated("interrupted: the checkpoint of step 5 is saved.")

    monkeypatch.setattr(module, "train", stop)
    done = deepnmt(*WORDS, *options)
    assert done.code == code and done.out == ""
    assert done.err == (
        "deepnmt train: interrupted: the checkpoint of step 5 is saved.\n"
    )


def test_a_signal_before_the_first_update_has_the_same_code(
    deepnmt, monkeypatch
):
    def prepare(*arguments, **options):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)

    # Without a handler the signal would end this process.
    previous = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        monkeypatch.setattr(module, "train", prepare)
        done = deepnmt(*WORDS, "--exit-code-on-stop", "75")
    finally:
        signal.signal(signal.SIGTERM, previous)
    assert done.code == 75
    assert done.err.count("\n") == 1 and "same command" in done.err


def test_a_code_that_no_process_can_have_is_refused(refused):
    line = refused(*WORDS, "--exit-code-on-stop", "256")
    assert "--exit-code-on-stop" in line and "255" in line


def test_restart_is_passed_on_only_when_asked_for(deepnmt, monkeypatch):
    received = []
    monkeypatch.setattr(
        module, "train", lambda *_, restart, **__: received.append(restart)
    )
    for words in (WORDS, [*WORDS, "--restart"]):
        assert deepnmt(*words).code == 0
    assert received == [False, True]
