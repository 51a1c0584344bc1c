"""Cross-entropy loss with label smoothing (§5.4), and its gradient.

The logits of an entire batch would be the largest tensor in a step. The logits and their gradients are therefore
computed for a few hundred rows at a time, so that they fit in the cache.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from vidrio.learn import model
from vidrio.learn.batches import Batch

CHUNK = 1 << 22  # number of logits to compute at a time


def objective(net: model.Network, batch: Batch, smoothing: float) -> tuple[Tensor, Tensor]:
    """Return the loss summed over a batch, with and without label smoothing."""
    rows_ND, targets = predict(net, batch).flatten(0, -2), batch.expected_BT.flatten()
    return smoothed_cross_entropy(rows_ND, *model.output(net), targets, smoothing)


def gradient_of(net: model.Network, batch: Batch, smoothing: float) -> tuple[Tensor, float]:
    """Return the gradient of the loss summed over a batch, as a flat vector, and the loss without smoothing."""
    loss, nll = objective(net, batch, smoothing)
    loss.backward()
    return model.gradient(net), nll.item()


def predict(net: model.Network, batch: Batch) -> Tensor:
    """Return the final hidden states, from which the logits are computed. The decoder is teacher-forced."""
    if not net.config.has_encoder:
        return model.decode(net, batch.target_BT)
    memory = model.encode(net, batch.source_BS, batch.source_lengths_B)
    if not net.config.has_decoder:
        return model.pool(memory, batch.source_lengths_B)
    allowed = model.within_lengths(batch.source_BS, batch.source_lengths_B)
    return model.decode(net, batch.target_BT, memory, allowed)


# --- cross-entropy ----------------------------------------------------------------------------------------------------


def smoothed_cross_entropy(
    rows_ND: Tensor, W_VD: Tensor, b_V: Tensor | None, targets_N: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Return the loss summed over the rows, with and without smoothing. Rows with negative targets are padding.

    With smoothing ε, the target distribution is 1 − ε for the correct token plus ε / V for each of the V tokens.
    """
    real = targets_N >= 0
    if not bool(real.all()):
        rows_ND, targets_N = rows_ND[real], targets_N[real]
    wanted = _Wanted(targets_N, smoothing, torch.is_grad_enabled())
    loss, nll = _Loss.apply(rows_ND, W_VD, b_V, wanted)  # type: ignore[no-untyped-call]
    return loss, nll


class _Wanted(NamedTuple):
    """The targets, the smoothing, and whether to compute the gradient."""

    targets_N: Tensor
    smoothing: float
    gradient: bool


class _Loss(torch.autograd.Function):
    """The loss. The forward pass also computes the logits' gradient, p − q, where q is the target distribution."""

    @staticmethod
    def forward(ctx: Any, rows_ND: Tensor, W_VD: Tensor, b_V: Tensor | None, wanted: _Wanted) -> tuple[Tensor, Tensor]:
        targets_N, smoothing, learning = wanted
        V = len(W_VD)
        loss = torch.zeros((), dtype=torch.float64, device=rows_ND.device)
        nll = torch.zeros_like(loss)
        wide = torch.float32 if rows_ND.dtype == torch.bfloat16 else rows_ND.dtype
        grad_rows = torch.empty_like(rows_ND)
        grad_W = torch.zeros(W_VD.shape, dtype=wide, device=W_VD.device)
        grad_b = None if b_V is None else torch.zeros(V, dtype=wide, device=W_VD.device)
        # Σ_v logit_v is the dot product of a row and the sum of W_VD's rows, plus the sum of the biases.
        W_sum_D, b_sum = W_VD.sum(0, dtype=wide), 0.0 if b_V is None else b_V.sum(dtype=wide)
        size = max(1, CHUNK // V)
        for start in range(0, len(rows_ND), size):
            rows, targets_N1 = rows_ND[start : start + size], targets_N[start : start + size].unsqueeze(1)
            logits = F.linear(rows, W_VD, b_V)
            p = logits.softmax(-1)
            p_right = p.gather(1, targets_N1).to(wide)
            log_p = p_right.clamp_min(torch.finfo(wide).tiny).log_()
            # Σ_v log p_v = Σ_v logit_v − V log Σ exp, and log Σ exp = logit − log p of any token.
            log_sum = logits.gather(1, targets_N1).to(wide) - log_p
            mean_log_p = (rows.to(wide) @ W_sum_D + b_sum).unsqueeze(1) / V - log_sum
            nll -= log_p.sum(dtype=torch.float64)
            loss -= ((1 - smoothing) * log_p + smoothing * mean_log_p).sum(dtype=torch.float64)
            if not learning:
                continue
            grad_logits = p.sub_(smoothing / V) if smoothing else p
            grad_logits.scatter_(1, targets_N1, (p_right - smoothing / V - (1 - smoothing)).to(p.dtype))
            torch.mm(grad_logits, W_VD, out=grad_rows[start : start + size])
            grad_W += grad_logits.t() @ rows
            if grad_b is not None:
                grad_b += grad_logits.sum(0, dtype=wide)
        ctx.save_for_backward(grad_rows, grad_W.to(W_VD.dtype), None if grad_b is None else grad_b.to(rows_ND.dtype))
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_rows, grad_W, grad_b = ctx.saved_tensors
        by = grads[0]
        return grad_rows * by, grad_W * by, None if grad_b is None else grad_b * by, None
