"""What training makes small: how wrong the model is on a batch, cross-entropy with label smoothing, §5.4; with R-Drop
also how far two predictions of the same are apart. And its gradient.

The probabilities of a whole batch over a vocabulary of thousands are the largest thing in training. They are never all
there: some hundred rows at a time go from logits to probabilities to gradient while they are in the cache.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from vidrio.learn.batches import Batch
from vidrio.learn.net import model

CHUNK = 1 << 22  # logits at a time


def objective(net: model.Network, batch: Batch, smoothing: float) -> tuple[Tensor, Tensor]:
    """The loss summed over a batch: with label smoothing, and without."""
    rows_ND, targets = predict(net, batch).flatten(0, -2), batch.expected_BT.flatten()
    return smoothed_cross_entropy(rows_ND, *model.output(net), targets, smoothing)


def objective_twice(net: model.Network, batch: Batch, smoothing: float, r_drop: float) -> tuple[Tensor, Tensor]:
    """The same with R-Drop: each sentence goes through the model twice, with other values dropped. The loss is the mean
    of both, plus α (KL(p‖q) + KL(q‖p)) / 4: half of the paper's, so that a gradient is as long as without.
    """
    rows = predict(net, batch.twice())
    # Sentence by sentence → target by target, the two predictions of each next to each other.
    rows_BT2D = rows.view(len(batch.expected_BT), 2, -1, rows.shape[-1]).transpose(1, 2)
    targets = batch.expected_BT.flatten().repeat_interleave(2)
    loss, nll = smoothed_cross_entropy(rows_BT2D.flatten(0, -2), *model.output(net), targets, smoothing, r_drop)
    return loss / 2, nll / 2


def gradient_of(net: model.Network, batch: Batch, smoothing: float, r_drop: float = 0.0) -> tuple[Tensor, float]:
    """The gradient of the loss summed over a batch, as one flat vector; and the loss without smoothing."""
    loss, nll = objective_twice(net, batch, smoothing, r_drop) if r_drop else objective(net, batch, smoothing)
    loss.backward()
    return model.gradient(net), nll.item()


def predict(net: model.Network, batch: Batch) -> Tensor:
    """The rows from which the expected tokens (or the class) are predicted. Teacher forcing: the decoder reads the
    right answer so far, whatever it would have said itself.
    """
    if not net.config.has_encoder:
        return model.decode(net, batch.target_BT)
    memory = model.encode(net, batch.source_BS, batch.source_lengths_B)
    if not net.config.has_decoder:
        return model.pool(memory, batch.source_lengths_B)
    allowed = model.within_lengths(batch.source_BS, batch.source_lengths_B)
    return model.decode(net, batch.target_BT, memory, allowed)


# --- cross-entropy ----------------------------------------------------------------------------------------------------


def smoothed_cross_entropy(
    rows_ND: Tensor, W_VD: Tensor, b_V: Tensor | None, targets_N: Tensor, smoothing: float, r_drop: float = 0.0
) -> tuple[Tensor, Tensor]:
    """The loss of predicting `targets` after `rows`, summed over them; and the same without smoothing, to report.

    With smoothing ε the right answer is not "this word, surely" but 1 − ε on this word and ε spread over all V words. A
    target below 0 stands for no prediction (padding) and is left out.

    With R-Drop's weight α each target comes twice, one after the other: predicted with one dropout and with another.
    For each such two, p and q, α (KL(p‖q) + KL(q‖p)) / 2 is added to the loss (Liang et al. 2021, "R-Drop", §2.1).
    """
    wanted = _Wanted(targets_N, smoothing, r_drop, torch.is_grad_enabled())
    loss, nll = _Loss.apply(rows_ND, W_VD, b_V, wanted)  # type: ignore[no-untyped-call]
    return loss, nll


def disagreement(p_N2V: Tensor) -> tuple[Tensor, Tensor]:
    """KL(p‖q) + KL(q‖p), summed over N pairs of distributions, and its gradient by the logits of each of them.

    By the logits of p it is p (log p/q − KL(p‖q)), from the first, + p − q, from the second; by those of q the same,
    with p and q in each other's place.
    """
    log_p = p_N2V.clamp_min(torch.finfo(p_N2V.dtype).tiny).log_()
    log_ratio = log_p - log_p.flip(1)  # log p/q, and log q/p
    kl_N21 = torch.linalg.vecdot(p_N2V, log_ratio).unsqueeze(-1)
    return kl_N21.sum(dtype=torch.float64), log_ratio.sub_(kl_N21 - 1).mul_(p_N2V).sub_(p_N2V.flip(1))


class _Wanted(NamedTuple):
    """What the loss is of; and whether its gradient is wanted too."""

    targets_N: Tensor
    smoothing: float
    r_drop: float
    gradient: bool


class _Loss(torch.autograd.Function):
    """The gradient of the logits is p − q, q the right answer: worked out while p is at hand, on the way forward."""

    @staticmethod
    def forward(
        ctx: Any, all_rows_ND: Tensor, W_VD: Tensor, b_V: Tensor | None, wanted: _Wanted
    ) -> tuple[Tensor, Tensor]:
        all_targets_N, smoothing, r_drop, learning = wanted
        real = (all_targets_N >= 0).nonzero().squeeze(1)
        some_left_out = len(real) < len(all_targets_N)
        rows_ND = all_rows_ND.index_select(0, real) if some_left_out else all_rows_ND
        targets_N1 = (all_targets_N.index_select(0, real) if some_left_out else all_targets_N).unsqueeze(1)
        V = len(W_VD)
        loss = torch.zeros((), dtype=torch.float64, device=rows_ND.device)
        nll = torch.zeros_like(loss)
        wide = torch.float32 if rows_ND.dtype == torch.bfloat16 else rows_ND.dtype
        grad_rows = torch.empty_like(rows_ND)
        grad_W = torch.zeros(W_VD.shape, dtype=wide, device=W_VD.device)
        grad_b = None if b_V is None else torch.zeros(V, dtype=wide, device=W_VD.device)
        # Σ_v logit_v of a row is the row times the sum of all words' rows.
        W_sum_D, b_sum = W_VD.sum(0, dtype=wide), 0.0 if b_V is None else b_V.sum(dtype=wide)
        times = 2 if r_drop else 1  # that each target comes; those of one are not parted
        size = times * max(1, CHUNK // (times * V))
        for start in range(0, len(rows_ND), size):
            rows, targets = rows_ND[start : start + size], targets_N1[start : start + size]
            logits = F.linear(rows, W_VD, b_V)
            p = logits.softmax(-1)
            p_right = p.gather(1, targets).to(wide)
            log_p = p_right.clamp_min(torch.finfo(wide).tiny).log_()
            # Σ_v log p_v = Σ_v logit_v − V log Σ exp, and log Σ exp = logit − log p of any one word.
            log_sum = logits.gather(1, targets).to(wide) - log_p
            mean_log_p = (rows.to(wide) @ W_sum_D + b_sum).unsqueeze(1) / V - log_sum
            nll -= log_p.sum(dtype=torch.float64)
            loss -= ((1 - smoothing) * log_p + smoothing * mean_log_p).sum(dtype=torch.float64)
            apart, grad_apart = disagreement(p.to(wide).view(-1, 2, V)) if r_drop else (0.0, None)
            loss += r_drop / 2 * apart
            if not learning:
                continue
            grad_logits = p.sub_(smoothing / V) if smoothing else p
            places = targets.squeeze(1) + V * torch.arange(len(rows), device=rows.device)
            right = (p_right - smoothing / V - (1 - smoothing)).to(p.dtype)
            grad_logits.view(-1).index_copy_(0, places, right.squeeze(1))
            if grad_apart is not None:
                grad_logits += grad_apart.view(-1, V).mul_(r_drop / 2)
            torch.mm(grad_logits, W_VD, out=grad_rows[start : start + size])
            grad_W += grad_logits.t() @ rows
            if grad_b is not None:
                grad_b += grad_logits.sum(0, dtype=wide)
        if some_left_out:
            grad_rows = torch.zeros_like(all_rows_ND).index_copy_(0, real, grad_rows)
        ctx.save_for_backward(grad_rows, grad_W.to(W_VD.dtype), None if grad_b is None else grad_b.to(rows_ND.dtype))
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_rows, grad_W, grad_b = ctx.saved_tensors
        by = grads[0]
        return grad_rows * by, grad_W * by, None if grad_b is None else grad_b * by, None
