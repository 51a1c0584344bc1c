"""A listening socket that passes a connection to asyncio once the head of its first request has arrived.

Until then, the connection is only a file descriptor in an epoll set, which costs far less than a uvicorn connection.
Clients that send half a request, or disconnect before they are served, therefore hardly delay other clients. Neither do
clients that send many long requests: short requests are passed on at once, but long ones at a limited rate, so that
reading them leaves the event loop most of its time. On systems without epoll, asyncio accepts each connection
immediately.
"""

import asyncio
import os
import re
import select
import socket
import time
from typing import Any

from vidrio.errors import ConfigError

BACKLOG = 2048  # the number of connections that can wait to be accepted
SILENT = 5  # seconds until a connection that has sent nothing can be accepted; Linux rounds it up to 7
HEAD_SECONDS = 10.0  # seconds within which the head of a request must arrive
LONGEST_HEAD = 64 * 1024  # bytes; uvicorn rejects a longer head
TOGETHER = 32  # the number of connections to check before asyncio does other work
LONG_BODY = 2_000  # bytes; a longer body contains several sentences
RATE = 25e6  # bytes of long bodies passed on per second
LARGE_BODY = 250_000  # bytes; a longer body, or one of unknown size, counts as this long
HEAD_END = re.compile(rb"\n\r?\n")
BODY_SIZE = re.compile(rb"\ncontent-length: *(\d{1,12})|\ntransfer-encoding:", re.IGNORECASE)
CLOSE_WAIT = 8  # the state of a TCP connection that the other end has closed


class Listener(socket.socket):
    """A listening socket that holds connections until their head is complete, and skips clients that have disconnected.

    `fileno()` returns the epoll set of the listening socket and the held connections, so asyncio calls `accept`
    whenever one of them is ready.
    """

    def __init__(self, fileno: int, most: int) -> None:
        super().__init__(fileno=fileno)
        self._most = most
        self.arriving: dict[int, tuple[socket.socket, Any, float]] = {}  # connection, address and time by descriptor
        # The sizes of the long requests in `arriving` that can be passed on, by descriptor, in order
        self._long: dict[int, int] = {}
        self._pausing: asyncio.TimerHandle | None = None  # set while no long request may be passed on
        self._expiring: asyncio.TimerHandle | None = None
        self._polled = select.epoll() if hasattr(select, "epoll") else None
        if self._polled:
            self._polled.register(super().fileno(), select.EPOLLIN)
            # Readable when it is time for the next long request, so that asyncio calls `accept`.
            self._turn = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self._polled.register(self._turn, select.EPOLLIN)

    def fileno(self) -> int:
        return self._polled.fileno() if self._polled and not self._polled.closed else super().fileno()

    def listen(self, backlog: int = BACKLOG) -> None:
        """Ignore asyncio's backlog, which is also the number of connections that asyncio accepts at a time."""
        super().listen(BACKLOG)

    def accept(self) -> tuple[socket.socket, Any]:
        """Return the next connection with a complete head. Raise BlockingIOError if there is none."""
        if not self._polled:
            return super().accept()
        for _ in range(TOGETHER):
            for descriptor, _events in self._polled.poll(0, 1):
                if descriptor == self._turn:
                    continue
                if descriptor == super().fileno():
                    client, address = super().accept()
                    client.setblocking(False)
                else:
                    client, address, _since = self.arriving[descriptor]
                size = body_size(client)
                if size is None:
                    self._drop(client)
                elif 0 <= size <= LONG_BODY:
                    self._forget(client)
                    return client, address
                else:
                    self._hold(client, address)
                    if size > 0:
                        self._long[client.fileno()] = size
                        if not self._pausing:
                            os.eventfd_write(self._turn, 1)
        return self._next_long()

    def _next_long(self) -> tuple[socket.socket, Any]:
        """Return the long request that has waited longest. Raise BlockingIOError if it is not time for one."""
        os.eventfd_read(self._turn)
        while self._long:
            descriptor, size = next(iter(self._long.items()))
            client, address, _since = self.arriving[descriptor]
            if has_left(client):
                self._drop(client)
            else:
                self._forget(client)
                self._pausing = asyncio.get_running_loop().call_later(min(size, LARGE_BODY) / RATE, self._end_pause)
                return client, address
        raise BlockingIOError

    def _end_pause(self) -> None:
        self._pausing = None
        if self._long:
            os.eventfd_write(self._turn, 1)

    def close(self) -> None:
        while self.arriving:
            self._drop(next(iter(self.arriving.values()))[0])
        for timer in (self._expiring, self._pausing):
            if timer:
                timer.cancel()
        if self._polled and not self._polled.closed:
            self._polled.close()
            os.close(self._turn)
        super().close()

    def _hold(self, client: socket.socket, address: Any) -> None:
        """Hold a connection, unless it is already held. If too many are held, close the oldest one."""
        assert self._polled
        if client.fileno() in self.arriving:
            return
        self.arriving[client.fileno()] = (client, address, time.monotonic())
        self._polled.register(client.fileno(), select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET)
        if len(self.arriving) > self._most:
            self._drop(next(iter(self.arriving.values()))[0])
        self._expiring = self._expiring or asyncio.get_running_loop().call_later(1, self._expire)

    def _expire(self) -> None:
        """Close connections whose head is late. Runs every second while connections are held."""
        late = time.monotonic() - HEAD_SECONDS
        for descriptor, (client, _, since) in list(self.arriving.items()):
            if since < late and descriptor not in self._long:
                self._drop(client)
        self._expiring = asyncio.get_running_loop().call_later(1, self._expire) if self.arriving else None

    def _forget(self, client: socket.socket) -> None:
        if self._polled and self.arriving.pop(client.fileno(), None):
            self._polled.unregister(client.fileno())
            self._long.pop(client.fileno(), None)

    def _drop(self, client: socket.socket) -> None:
        self._forget(client)
        client.close()


def body_size(client: socket.socket) -> int | None:
    """Return the size of the body that a request announces, or -1 if the head of the request is incomplete. Return 0 if
    uvicorn rejects the request immediately, and None if the client has disconnected."""
    try:
        data = client.recv(LONGEST_HEAD, socket.MSG_PEEK)
    except BlockingIOError:
        return -1
    except OSError:  # the connection was reset
        return None
    if not data or has_left(client):
        return None
    if head := HEAD_END.search(data):
        size = BODY_SIZE.search(data, 0, head.end())
        return int(size[1] or LARGE_BODY) if size else 0  # without a number, the body is sent in chunks
    return 0 if len(data) == LONGEST_HEAD or not data[:1].isalpha() else -1


def has_left(client: socket.socket) -> bool:
    """Return whether the client has closed its end, so that its request need not be read. Works only on Linux."""
    if not hasattr(socket, "TCP_INFO"):
        return False
    return client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == CLOSE_WAIT


def listening(host: str, port: int, most: int) -> Listener:
    """Return a listener on an address. At most `most` connections wait for the head of their request."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = Listener(socket.create_server((host, port), family=family, backlog=BACKLOG).detach(), most)
    except (OSError, UnicodeError) as error:
        do = "use another: --port 5001, or --port 0 for any free port" if port else "use another --host"
        raise ConfigError(f"cannot listen on {host}:{port}", found=str(error), do=do) from None
    if hasattr(socket, "TCP_DEFER_ACCEPT"):  # Linux: clients that send nothing do not occupy the event loop
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, SILENT)
    # All connections inherit this option. Without it, the end of a response would wait 40 ms for the client to
    # acknowledge the beginning.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
