"""How much a client may ask for in a minute."""

import time
from collections import Counter
from collections.abc import Callable

from vidrio.serve.refusal import Refusal

WINDOW = 60  # seconds


class RequestLimits:
    """Counts the requests of each client in the minute at hand; all counts are forgotten when the next one begins."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._minute, self._counts = 0, Counter[str]()

    def take(self, client: str, requests: int, limit: int) -> None:
        """Refuse what is more than the limit; −1 is none."""
        now = self._clock()
        if int(now // WINDOW) != self._minute:
            self._minute, self._counts = int(now // WINDOW), Counter()
        if limit == -1:
            return
        if self._counts[client] + requests > limit:
            wait = WINDOW - now % WINDOW
            raise Refusal(429, f"Slowdown: too many requests ({limit} per 1 minute)", wait)
        self._counts[client] += requests
