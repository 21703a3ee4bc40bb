"""What must be true of signals that raise an exception.

* it is raised in the body, also if the signal comes while Python drops what is
  raised: in a callback of the garbage collection or in a `__del__`
* afterwards the process handles the signal as before
"""

import gc
import signal
import time

import pytest

from keras_deepnmt.signals import raised_on


class Stopped(BaseException):
    pass


def send():
    signal.raise_signal(signal.SIGUSR1)


def send_in_collection():
    def callback(phase, info):
        send()

    gc.callbacks.append(callback)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(callback)


def send_in_deletion():
    class Deleted:
        def __del__(self):
            send()

    Deleted()


@pytest.mark.parametrize("sent", [send, send_in_collection, send_in_deletion])
def test_the_exception_is_raised_whenever_the_signal_comes(sent):
    before = signal.getsignal(signal.SIGUSR1)
    with pytest.raises(Stopped), raised_on(signal.SIGUSR1, Stopped):
        sent()
        time.sleep(60)
    assert signal.getsignal(signal.SIGUSR1) == before
