"""The listening socket. A connection is accepted by asyncio once the head of its first request has arrived.

Until then it is only a file descriptor in an epoll set, which costs a few microseconds; a connection of uvicorn costs
several hundred. So thousands of clients that send half a request, or leave before they are served, hardly delay the
others. Without epoll (outside Linux), asyncio accepts every connection at once.
"""

import asyncio
import re
import select
import socket
import time
from typing import Any

BACKLOG = 2048  # connections that the system keeps until they are accepted
SILENT = 5  # seconds until the system hands over a connection on which nothing was sent; Linux rounds it up to 7
HEAD_SECONDS = 10.0  # for the head of a request to arrive
LONGEST_HEAD = 64 * 1024  # bytes; uvicorn refuses longer ones
TOGETHER = 32  # connections to look at before other work has its turn
END = re.compile(rb"\n\r?\n")  # of a head
CLOSE_WAIT = 8  # the state of a TCP connection whose other end has been closed


class Listener(socket.socket):
    """Skips clients that have disconnected. asyncio polls `fileno()`: the set of the listening socket and of all
    connections without a complete head."""

    def __init__(self, fileno: int, most: int) -> None:
        super().__init__(fileno=fileno)
        self._most = most
        self.arriving: dict[int, tuple[socket.socket, Any, float]] = {}  # by file descriptor, oldest first
        self._expiring: asyncio.TimerHandle | None = None
        self._polled = select.epoll() if hasattr(select, "epoll") else None
        if self._polled:
            self._polled.register(super().fileno(), select.EPOLLIN)

    def fileno(self) -> int:
        return self._polled.fileno() if self._polled and not self._polled.closed else super().fileno()

    def listen(self, backlog: int = BACKLOG) -> None:
        """Ignore asyncio's backlog, which is also the number of connections that it accepts at a time."""
        super().listen(BACKLOG)

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection with a complete head. BlockingIOError if there is none."""
        if not self._polled:
            return super().accept()
        for _ in range(TOGETHER):
            for descriptor, _events in self._polled.poll(0, 1):
                if descriptor == super().fileno():
                    client, address = super().accept()
                    client.setblocking(False)
                else:
                    client, address, _since = self.arriving[descriptor]
                found = head(client)
                if found and not has_left(client):
                    self._forget(client)
                    return client, address
                if found is None or has_left(client):
                    self._drop(client)
                elif client.fileno() not in self.arriving:
                    self._wait_for_head(client, address)
        raise BlockingIOError

    def close(self) -> None:
        while self.arriving:
            self._drop(next(iter(self.arriving.values()))[0])
        if self._expiring:
            self._expiring.cancel()
        if self._polled:
            self._polled.close()
        super().close()

    def _wait_for_head(self, client: socket.socket, address: Any) -> None:
        """Keep a connection until more arrives. Beyond the limit, the oldest connection is closed."""
        assert self._polled
        self.arriving[client.fileno()] = (client, address, time.monotonic())
        self._polled.register(client.fileno(), select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET)
        if len(self.arriving) > self._most:
            self._drop(next(iter(self.arriving.values()))[0])
        self._expiring = self._expiring or asyncio.get_running_loop().call_later(1, self._expire)

    def _expire(self) -> None:
        """Every second: close the connections whose head is late."""
        late = time.monotonic() - HEAD_SECONDS
        for client in [client for client, _, since in self.arriving.values() if since < late]:
            self._drop(client)
        self._expiring = asyncio.get_running_loop().call_later(1, self._expire) if self.arriving else None

    def _forget(self, client: socket.socket) -> None:
        if self._polled and self.arriving.pop(client.fileno(), None):
            self._polled.unregister(client.fileno())

    def _drop(self, client: socket.socket) -> None:
        self._forget(client)
        client.close()


def head(client: socket.socket) -> bool | None:
    """Whether the head of a request has arrived, or anything that is none and uvicorn refuses at once. None if nothing
    more can arrive."""
    try:
        data = client.recv(LONGEST_HEAD, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:  # the connection was reset
        return None
    if not data:
        return None
    return bool(END.search(data)) or len(data) == LONGEST_HEAD or not data[:1].isalpha()


def has_left(client: socket.socket) -> bool:
    """Whether the client has closed its end, so that its request need not be read. Linux only."""
    if not hasattr(socket, "TCP_INFO"):
        return False
    return client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == CLOSE_WAIT
