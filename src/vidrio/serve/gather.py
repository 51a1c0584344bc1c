"""Many clients' texts, gathered into batches.

Everything here happens on the event loop, so nothing is locked; the translating itself is done by a few threads.
Clients take turns, a text each, so that who asks for a book holds nobody up. A client that leaves is forgotten at once:
what waits of it is not begun.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from vidrio.serve.refusal import Refusal

BATCH = 8_000  # characters in a batch: with more of them the engine is hardly faster, and everybody waits for all
FEWEST = 40  # what a text counts at least

Translate = Callable[[list[str]], list[Any]]
Result = TypeVar("Result")


@dataclass(eq=False)
class Waiting:
    """What a client waits for."""

    kind: Hashable  # texts of one kind may share a batch
    translate: Translate
    texts: deque[tuple[str, asyncio.Future[Any]]] = field(default_factory=deque)


class Gatherer:
    """Texts wait here, at most `most` characters of them. `observe` is called with the texts, characters and seconds of
    each batch."""

    def __init__(
        self,
        *,
        threads: int,
        wait: float,
        most: int,
        observe: Callable[[int, int, float], None] = lambda texts, characters, seconds: None,
    ) -> None:
        self._threads, self._wait, self._most = threads, wait, most
        self._observe = observe
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="translate")
        self._clients: deque[Waiting] = deque()
        self._at_work: set[asyncio.Task[None]] = set()
        self._speed = 2_000.0  # characters a second, as it has been lately
        self.waiting = 0  # characters

    @property
    def overloaded(self) -> bool:
        """Whether a text of some length would be refused."""
        return self.waiting >= 0.9 * self._most

    def alone(self, work: Callable[[], Result]) -> asyncio.Future[Result]:
        """Something that is in no batch, in its turn."""
        return asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def translate(self, kind: Hashable, translate: Translate, texts: Sequence[str]) -> list[Any]:
        """What `translate` makes of each text, in a batch with others of the same kind."""
        cost = sum(map(_cost, texts))
        if self.waiting and self.waiting + cost > self._most:
            raise Refusal(503, "The server is busy, try again later", self.waiting / self._speed)
        loop = asyncio.get_running_loop()
        client = Waiting(kind, translate, deque((text, loop.create_future()) for text in texts))
        results = [future for _, future in client.texts]
        self.waiting += cost
        self._clients.append(client)
        if len(self._at_work) < self._threads:
            task = loop.create_task(self._work())
            self._at_work.add(task)
            task.add_done_callback(self._at_work.discard)
        try:
            return [await future for future in results]
        finally:  # cancelled, or one of them failed: nobody wants the rest
            self.waiting -= sum(_cost(text) for text, _ in client.texts)
            client.texts.clear()
            for future in results:
                if not future.cancel() and not future.cancelled():
                    future.exception()  # nobody else asks for it

    async def _work(self) -> None:
        """Batch after batch until nothing waits."""
        await asyncio.sleep(self._wait)
        while batch := self._next_batch():
            client, rows = batch
            began, texts = time.perf_counter(), [text for text, _ in rows]
            results = await self._translated(client, texts)
            seconds, characters = time.perf_counter() - began, sum(map(len, texts))
            self._speed = 0.8 * self._speed + 0.2 * characters / max(seconds, 1e-3)
            self._observe(len(texts), characters, seconds)
            for (_, future), result in zip(rows, results, strict=True):
                if not future.done():
                    future.set_exception(result) if isinstance(result, Exception) else future.set_result(result)

    async def _translated(self, client: Waiting, texts: list[str]) -> list[Any]:
        """For each text what became of it. What fails together is tried one by one: it is nobody else's fault."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._pool, client.translate, texts)
        except Exception as error:
            if len(texts) == 1:
                return [error]
        return [result for text in texts for result in await self._translated(client, [text])]

    def _next_batch(self) -> tuple[Waiting, list[tuple[str, asyncio.Future[Any]]]] | None:
        """A text of each client in turn, all of the kind of the first one, until the batch is full."""
        first: Waiting | None = None
        rows: list[tuple[str, asyncio.Future[Any]]] = []
        size, passed = 0, 0
        while passed < len(self._clients) and size < BATCH:
            client = self._clients.popleft()
            if not client.texts:
                continue
            if first is not None and client.kind != first.kind:
                self._clients.append(client)
                passed += 1
                continue
            first, passed = first or client, 0
            text, future = client.texts.popleft()
            self.waiting -= _cost(text)
            size += _cost(text)
            rows.append((text, future))
            if client.texts:
                self._clients.append(client)
        return (first, rows) if first else None

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def _cost(text: str) -> int:
    return max(FEWEST, len(text))
