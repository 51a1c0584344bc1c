"""Extend uvicorn's HTTP protocol: limit connections, add timeouts, and disable pipelining."""

import asyncio
from math import inf
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from vidrio.serve.listener import HEAD_SECONDS, has_left

SEND_SECONDS = 30.0  # seconds that a client has to receive a response, plus one second per SLOWEST bytes
SLOWEST = 50_000
MAX_UNSENT = 32 << 20  # maximum bytes in the write buffers of slow clients
RESERVED = 64  # the number of open files reserved for other uses


Idle = dict["Connection", None]  # connections, longest idle first


class Connection(H11Protocol):
    """A connection. If more than `most` connections are open, an idle one is closed, so that clients that send their
    requests promptly are served even if many others are slow."""

    def __init__(self, *, most: int, idle: "tuple[Idle, Idle]", **given: Any) -> None:
        super().__init__(**given)
        self._most = most
        self._new, self._answered = idle  # idle connections: before their first response, and after one
        self._all: set[Connection] = self.connections  # type: ignore[assignment]
        self.idle_since = self.loop.time()
        self.send_until: float | None = None  # the deadline while the client is not reading its response
        self._checking: asyncio.TimerHandle | None = None

    @property
    def is_answered(self) -> bool:
        """Whether every request whose head has arrived has been answered."""
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        return cycle is None or cycle.response_complete

    @property
    def is_busy(self) -> bool:
        """Whether a complete request is being processed."""
        return not self.is_answered and not self.cycle.more_body

    @property
    def unsent(self) -> int:
        return self.transport.get_write_buffer_size()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._check()
        self._new[self] = None
        if len(self._all) > self._most:  # abort the longest idle in the larger group, so attackers displace each other
            group = max(self._new, self._answered, key=len)
            longest = next(iter(group))
            del group[longest]
            longest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._checking:
            self._checking.cancel()
        self._leave_idle()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Ignore a request that arrives before the previous response is complete, and close the connection after that
        response. Keep receiving data, to detect when the client disconnects."""
        was_busy = self.is_busy
        if not was_busy and has_left(self.transport.get_extra_info("socket")):
            self.transport.abort()
            return
        if not was_busy:
            super().data_received(data)
        if self.is_busy:
            self._leave_idle()
        if was_busy or (self.is_busy and self.conn.trailing_data[0]):
            self.cycle.keep_alive = False
            self.flow.resume_reading()

    def on_response_complete(self) -> None:
        self.idle_since = self.loop.time()
        self._leave_idle()
        self._answered[self] = None
        super().on_response_complete()

    def _leave_idle(self) -> None:
        self._new.pop(self, None)
        self._answered.pop(self, None)

    def pause_writing(self) -> None:
        super().pause_writing()
        self.send_until = self.loop.time() + SEND_SECONDS + self.unsent / SLOWEST
        slow = [one for one in self._all if one.send_until is not None]
        if sum(one.unsent for one in slow) > MAX_UNSENT:
            min(slow, key=lambda one: one.send_until or 0).transport.abort()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.send_until = None

    def _check(self) -> None:
        """Close the connection if a request's head is late or its client stops reading. Runs every second."""
        end = self.idle_since + HEAD_SECONDS if self.is_answered else inf
        if self.loop.time() >= (self.send_until or end):
            self.transport.abort()
        else:
            self._checking = self.loop.call_later(1, self._check)


def most_connections(wanted: int) -> int:
    """Return the requested number of connections, or fewer if this process may not open that many files."""
    try:
        import resource
    except ImportError:  # Windows
        return wanted
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return wanted if allowed == resource.RLIM_INFINITY else max(8, min(wanted, allowed - RESERVED))


def most_arriving(wanted: int) -> int:
    """Return how many more connections may wait for request headers: as many again, if the process may open
    enough files."""
    return max(8, most_connections(2 * wanted) - most_connections(wanted))
