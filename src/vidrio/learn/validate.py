"""Validate a model on held-out sentences during training.

Sentences are translated by batched greedy search, which gives the same tokens as `search.py` with a beam of 1.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from vidrio.learn import model
from vidrio.learn.batches import Batch, Examples, Ids, collate, plan
from vidrio.learn.loop import Validate
from vidrio.learn.loss import objective, predict
from vidrio.learn.model import Network
from vidrio.learn.task import Task
from vidrio.score.metrics import quick_scores

JUDGED = 300  # number of held-out sentences to translate at each validation
ROOM = 8192  # maximum number of tokens per batch, including padding
SHOWN = 3  # number of sample translations to report


def validation(task: Task, pairs: Sequence[tuple[str, str]]) -> Validate:
    """Return a function that computes the loss on all pairs, and either BLEU and chrF on a sample, or the accuracy."""
    held_out, some = task.encoded(pairs), [pairs[i] for i in translated(len(pairs), JUDGED)]
    judged = task.encoded(some)

    def scores(net: Network) -> dict[str, Any]:
        loss = {"loss": mean_loss(net, held_out)}
        if task.kind == "classify":
            return loss | {"accuracy": accuracy(net, held_out)}
        if task.kind == "generate":
            return loss
        sources, references = zip(*some, strict=True)
        translations = task.target.decode_batch(translate(net, judged))
        samples = list(zip(sources, translations, strict=True))[:SHOWN]
        return loss | quick_scores(translations, references) | {"samples": samples}

    return scores


def translated(count: int, most: int) -> list[int]:
    """Return the indices of at most `most` sentences to translate, evenly spaced."""
    return sorted({int(i) for i in np.linspace(0, count - 1, min(most, count))})


def accuracy(net: Network, held_out: Examples) -> float:
    """Return the accuracy in percent."""
    right = 0
    for _, batch in batches(net, held_out):
        right += int((model.logits(net, predict(net, batch)).argmax(-1) == batch.expected_BT[:, 0]).sum())
    return 100 * right / len(held_out)


@torch.no_grad()
def mean_loss(net: Network, held_out: Examples) -> float:
    """Return the mean −log p of the reference tokens."""
    total = predictions = 0.0
    for _, batch in batches(net, held_out):
        total += objective(net, batch, 0.0)[1].item()
        predictions += batch.n_predictions
    return total / max(1.0, predictions)


def batches(net: Network, held_out: Examples) -> Iterator[tuple[Ids, Batch]]:
    """Yield the held-out pairs in batches, with their indices. Pairs that are too long for the model are skipped."""
    for which in plan(held_out, ROOM, net.config.max_positions, (0,)):
        yield which, collate(held_out, which, net.config).to(net.positions_PD.device)


# --- greedy search ----------------------------------------------------------------------------------------------------


@torch.no_grad()
def translate(net: Network, examples: Examples) -> list[list[int]]:
    """Translate each source by greedy search, in order. Pairs that are too long for the model get an empty result."""
    results: list[list[int]] = [[] for _ in range(len(examples))]
    for which, batch in batches(net, examples):
        for i, ids in zip(which, _search(net, batch), strict=True):
            results[i] = ids
    return results


def _search(net: Network, batch: Batch) -> list[list[int]]:
    special, device = net.config.special, batch.source_BS.device
    memory = model.encode(net, batch.source_BS, batch.source_lengths_B)
    allowed = model.within_lengths(batch.source_BS, batch.source_lengths_B)
    most = min(net.config.decoding.max_length, net.config.max_positions - 1)
    limits = [min(most, 2 * length + 20) for length in batch.source_lengths_B.tolist()]  # the same in any batch
    never = torch.tensor([i for i in (special.pad, special.start) if i >= 0], device=device)
    ids_BT = torch.full((len(limits), 1), special.start, dtype=torch.long, device=device)
    cache: model.KeyValueCache = {}
    for step in range(max(limits)):
        rows = model.decode(net, ids_BT[:, -1:], memory, allowed, cache, step)
        logits_BV = model.logits(net, rows[:, 0]).float()
        logits_BV[:, never] = -torch.inf
        if step == 0:
            logits_BV[:, special.end] = -torch.inf  # prevents empty translations
        ids_BT = torch.cat([ids_BT, logits_BV.argmax(-1, keepdim=True)], dim=1)
        over = (ids_BT == special.end).any(1).tolist()
        if all(is_over or step + 1 >= limit for is_over, limit in zip(over, limits, strict=True)):
            break
    translations = []
    for ids, limit in zip(ids_BT[:, 1:].tolist(), limits, strict=True):
        end = ids.index(special.end) if special.end in ids else limit
        translations.append(ids[: min(end, limit)])
    return translations
