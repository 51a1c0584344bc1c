"""Translating with the model as it is learning: beam search for many sentences at once.

The same search as `search.py` (score = log p / length ^ penalty, 2 · beam candidates a step, done when as many
hypotheses have ended as the beam is wide), with the whole batch in every product. It serves to watch and to judge a
run; translating is the other engines' work.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from vidrio.data.progress import Advance
from vidrio.learn.batches import pad
from vidrio.learn.net import model
from vidrio.learn.net.model import Network

ROOM = 3000  # source tokens × beam at a time


@torch.no_grad()
def translate(
    net: Network,
    sources: Sequence[np.ndarray],
    *,
    beam: int = 4,
    length_penalty: float = 1.0,
    room: int = ROOM,
    advance: Advance = lambda done: None,
) -> list[list[int]]:
    """The best translation of each source (ids without special tokens), in the same order.

    An empty source, or one that is longer than the model's positions, has none.
    """
    special = net.config.special
    ended = [np.append(ids, special.end) if net.config.source_end else np.asarray(ids) for ids in sources]
    results: list[list[int]] = [[] for _ in sources]
    lengths = [len(ids) if len(ids) <= net.config.max_positions else 0 for ids in ended]
    for group in _groups(lengths, max(1, room // beam)):
        found = _search(net, [ended[i] for i in group], beam, length_penalty)
        for i, ids in zip(group, found, strict=True):
            results[i] = ids
        advance(len(group))
    return results


def _groups(lengths: Sequence[int], room: int) -> Iterator[list[int]]:
    """Places of sentences of similar lengths, longest first, empty ones left out."""
    order = sorted((i for i, length in enumerate(lengths) if length), key=lambda i: -lengths[i])
    start = 0
    while start < len(order):
        size = max(1, room // lengths[order[start]])
        yield order[start : start + size]
        start += size


class KeptKeys:
    """The keys and values of every live hypothesis, by sub-layer."""

    def __init__(self) -> None:
        self.by_name: dict[str, tuple[Tensor, Tensor]] = {}

    def __call__(self, name: str, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        if name in self.by_name:
            k, v = (torch.cat([old, new], dim=2) for old, new in zip(self.by_name[name], (k, v), strict=True))
        self.by_name[name] = k, v
        return k, v

    def choose(self, rows: Tensor, among: str = "") -> None:
        """Go on with these rows only (one may be taken twice)."""
        for name, (k, v) in self.by_name.items():
            if among in name:
                self.by_name[name] = k.index_select(0, rows), v.index_select(0, rows)


def _search(net: Network, sources: list[np.ndarray], beam: int, length_penalty: float) -> list[list[int]]:
    config, special = net.config, net.config.special
    device = net.positions_PD.device
    B = len(sources)
    lengths = np.array([len(ids) for ids in sources])
    source_BS = torch.from_numpy(pad(np.concatenate(sources), lengths, special.pad)[0]).to(device)
    lengths_B = torch.from_numpy(lengths).to(device)
    memory = model.encode(net, source_BS, lengths_B).repeat_interleave(beam, dim=0)
    allowed = model.within_lengths(source_BS, lengths_B)
    allowed = None if allowed is None else allowed.repeat_interleave(beam, dim=0)

    most = min(config.decoding.max_length, config.max_positions - 1)
    limits = [min(most, 2 * len(source) + 20) for source in sources]  # by itself: the company must not matter
    never = torch.tensor([i for i in (special.pad, special.start) if i >= 0], device=device)
    first_row_B1 = torch.arange(0, B * beam, beam, device=device)[:, None]
    ids = torch.full((B * beam, 1), special.start, dtype=torch.long, device=device)
    totals = torch.full((B, beam), -torch.inf, device=device)
    totals[:, 0] = 0  # all hypotheses begin alike: only one of them may branch
    finished: list[list[tuple[float, list[int]]]] = [[] for _ in range(B)]
    done = [False] * B
    kept = KeptKeys()
    for step in range(max(limits)):
        rows = model.decode(net, ids[:, -1:], memory, allowed, kept, step)
        logits = model.logits(net, rows[:, 0]).float()
        logits[:, never] = -torch.inf
        if step == 0:
            logits[:, special.end] = -torch.inf  # an empty translation is none
        log_probs = logits.log_softmax(-1)
        candidates = (totals.view(-1, 1) + log_probs).view(B, -1)
        best, places = candidates.topk(2 * beam, dim=1)
        parents, tokens = places // log_probs.shape[1], places % log_probs.shape[1]
        ends = tokens == special.end
        for b, rank in ends[:, :beam].nonzero().tolist():
            if not done[b]:
                ended_ids = ids[b * beam + int(parents[b, rank]), 1:].tolist()
                finished[b].append((float(best[b, rank]) / (step + 1) ** length_penalty, ended_ids))
        # Those that have not ended, best first: sort by (ended, rank).
        keep = (ends.long() * 2 * beam + torch.arange(2 * beam, device=device)).argsort(dim=1)[:, :beam]
        totals = best.gather(1, keep)
        chosen = (first_row_B1 + parents.gather(1, keep)).view(-1)
        ids = torch.cat([ids.index_select(0, chosen), tokens.gather(1, keep).view(-1, 1)], dim=1)
        if beam > 1:
            kept.choose(chosen, among=".self")  # the beams of a sentence share its source
        for b, found in enumerate(finished):
            if step + 1 == limits[b] and not found:  # cut: the best so far
                found.append((0.0, ids[b * beam, 1:].tolist()))
            done[b] = len(found) >= beam or step + 1 >= limits[b]
        if all(done):
            break
    return [max(found, key=lambda pair: pair[0])[1] for found in finished]
