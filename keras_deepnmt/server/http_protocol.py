"""Connections of HTTP that do not wait for a request for ever."""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol


def timed_protocol(seconds: float) -> type[H11Protocol]:
    """Makes a class of connections that are closed without a whole request.

    uvicorn waits without end for the first request of a connection, and for the
    headers of any: of clients that only connect, or send a byte now and then.
    Here a connection is closed after one to two times `seconds` without the
    headers of a request.
    """

    class TimedProtocol(H11Protocol):
        _timer: asyncio.TimerHandle | None = None
        _waited_after: object = ...

        def connection_made(self, transport):
            super().connection_made(transport)
            self._watch()

        def connection_lost(self, exc):
            self._timer.cancel()
            super().connection_lost(exc)

        def _watch(self):
            # The request before, if its answer is complete.
            before = self.cycle
            if before is not None and not before.response_complete:
                before = ...
            elif before is self._waited_after:
                self.transport.close()
                return
            self._waited_after = before
            self._timer = self.loop.call_later(seconds, self._watch)

    return TimedProtocol
