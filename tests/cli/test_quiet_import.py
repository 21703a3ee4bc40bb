"""A signal during the import of the backend comes when the import is done.

Within it, an exception would cause unrelated errors.
"""

import os
import signal
import time

import pytest

from keras_deepnmt import training
from keras_deepnmt.commands.terminal.quiet_import import import_backend
from keras_deepnmt.errors import Terminated
from keras_deepnmt.signals import raised_on


@pytest.mark.parametrize(
    "number, exception",
    [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)],
)
def test_a_signal_during_the_import_comes_after_it(
    monkeypatch, capfd, number, exception
):
    done = []

    def send():
        os.kill(os.getpid(), number)
        time.sleep(0.01)
        os.write(2, b"message of a library\n")
        done.append("the rest of the import")

    monkeypatch.setattr(training, "keep_freed_memory", send)
    with raised_on(number, exception), pytest.raises(exception) as info:
        import_backend()
    assert info.type is exception and done
    assert capfd.readouterr().err == ""
