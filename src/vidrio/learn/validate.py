"""How good the model is on held-out sentences, while it learns: for each task a function, `net → scores`.

To be judged, sentences are translated greedily, many at once: the words that `search.py` takes with a beam of 1, with
all of the batch in every product. Translating is the other engines' work.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from vidrio.data.store import Examples
from vidrio.learn.batches import Batch, collate, pad, plan
from vidrio.learn.net import model
from vidrio.learn.net.loss import objective, predict
from vidrio.learn.net.model import Network
from vidrio.score.metrics import quick_scores

Validate = Callable[[Network], dict[str, Any]]

ROOM = 8192  # tokens at a time
SEARCHED = 3000  # source tokens at a time
SHOWN, LEAST_SHOWN = 3, 5  # sample translations, of sentences with so many words


@dataclass(frozen=True)
class Translations:
    """Loss on all, BLEU and chrF of greedy translations of `most` from all over the set, and a few of them to read."""

    held_out: Examples
    texts: Sequence[tuple[str, str]]  # the same as text
    sources: Sequence[Sequence[int]]  # and as ids
    to_text: Callable[[list[int]], str]
    most: int

    def __call__(self, net: Network) -> dict[str, Any]:
        some = translated(len(self.texts), self.most)
        sources, references = zip(*(self.texts[i] for i in some), strict=True)
        translations = list(map(self.to_text, translate(net, [np.array(self.sources[i]) for i in some])))
        read = [pair for pair in zip(sources, translations, strict=True) if len(pair[0].split()) >= LEAST_SHOWN]
        scores = quick_scores(translations, references)
        return {"loss": mean_loss(net, self.held_out)} | scores | {"samples": read[:SHOWN]}


def translated(count: int, most: int) -> list[int]:
    """The places of those sentences of the set that are translated, from all over it."""
    return sorted({int(i) for i in np.linspace(0, count - 1, min(most, count))})


@dataclass(frozen=True)
class Classes:
    """Loss, and the share of texts whose class is told rightly."""

    held_out: Examples

    def __call__(self, net: Network) -> dict[str, Any]:
        right = sum(
            int((model.logits(net, predict(net, batch)).argmax(-1) == batch.expected_BT[:, 0]).sum())
            for batch in batches(net, self.held_out)
        )
        return {"loss": mean_loss(net, self.held_out), "accuracy": 100 * right / len(self.held_out)}


@dataclass(frozen=True)
class Loss:
    """Loss alone: there is no one right text to generate."""

    held_out: Examples

    def __call__(self, net: Network) -> dict[str, Any]:
        return {"loss": mean_loss(net, self.held_out)}


@torch.no_grad()
def mean_loss(net: Network, held_out: Examples) -> float:
    """−log p of the right token, on average."""
    total = predictions = 0.0
    for batch in batches(net, held_out):
        total += objective(net, batch, 0.0)[1].item()
        predictions += batch.n_predictions
    return total / max(1.0, predictions)


def batches(net: Network, held_out: Examples) -> Iterator[Batch]:
    """The held-out pairs in batches; those too long for the model are left out."""
    for which in plan(held_out, ROOM, net.config.max_positions, (0,)):
        yield collate(held_out, which, net.config).to(net.positions_PD.device)


# --- greedy search ----------------------------------------------------------------------------------------------------


@torch.no_grad()
def translate(net: Network, sources: Sequence[np.ndarray], *, room: int = SEARCHED) -> list[list[int]]:
    """The greedy translation of each source (ids without special tokens), in the same order.

    An empty source, or one that is longer than the model's positions, has none.
    """
    special = net.config.special
    ended = [np.append(ids, special.end) if net.config.source_end else np.asarray(ids) for ids in sources]
    results: list[list[int]] = [[] for _ in sources]
    lengths = [len(ids) if len(ids) <= net.config.max_positions else 0 for ids in ended]
    for group in _groups(lengths, room):
        for i, ids in zip(group, _search(net, [ended[i] for i in group]), strict=True):
            results[i] = ids
    return results


def _groups(lengths: Sequence[int], room: int) -> Iterator[list[int]]:
    """Places of sentences of similar lengths, longest first, empty ones left out."""
    order = sorted((i for i, length in enumerate(lengths) if length), key=lambda i: -lengths[i])
    start = 0
    while start < len(order):
        size = max(1, room // lengths[order[start]])
        yield order[start : start + size]
        start += size


def _search(net: Network, sources: list[np.ndarray]) -> list[list[int]]:
    special, device = net.config.special, net.positions_PD.device
    lengths = np.array([len(ids) for ids in sources])
    source_BS = torch.from_numpy(pad(np.concatenate(sources), lengths, special.pad)[0]).to(device)
    lengths_B = torch.from_numpy(lengths).to(device)
    memory = model.encode(net, source_BS, lengths_B)
    allowed = model.within_lengths(source_BS, lengths_B)

    most = min(net.config.decoding.max_length, net.config.max_positions - 1)
    limits = [min(most, 2 * len(source) + 20) for source in sources]  # by itself: the company must not matter
    never = torch.tensor([i for i in (special.pad, special.start) if i >= 0], device=device)
    ids_BT = torch.full((len(sources), 1), special.start, dtype=torch.long, device=device)
    kept: model.Kept = {}
    for step in range(max(limits)):
        rows = model.decode(net, ids_BT[:, -1:], memory, allowed, kept, step)
        logits_BV = model.logits(net, rows[:, 0]).float()
        logits_BV[:, never] = -torch.inf
        if step == 0:
            logits_BV[:, special.end] = -torch.inf  # an empty translation is none
        ids_BT = torch.cat([ids_BT, logits_BV.argmax(-1, keepdim=True)], dim=1)
        over = (ids_BT == special.end).any(1).tolist()
        if all(is_over or step + 1 >= limit for is_over, limit in zip(over, limits, strict=True)):
            break
    translations = []
    for ids, limit in zip(ids_BT[:, 1:].tolist(), limits, strict=True):
        end = ids.index(special.end) if special.end in ids else limit
        translations.append(ids[: min(end, limit)])
    return translations
