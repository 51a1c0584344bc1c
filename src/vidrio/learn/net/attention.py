"""softmax(Q Kᵀ / √K) V, Eq. 1, for all sentences and heads at once, written for the machine at hand.

A CPU spends its time not in the two products but in the softmax of very short rows. So the forward and the backward
pass are written out here: rows of scores are laid down, not across (the softmax then runs over the first axis, at the
full width of the vector unit), and the backward pass needs no second look at the softmax.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from vidrio.learn.net.dropout import Dropout

NEVER = -math.inf  # a masked score; softmax turns it into exactly 0


def attend(q_BHLK: Tensor, k_BHMK: Tensor, v_BHMK: Tensor, allowed: Tensor | None, dropout: Dropout) -> Tensor:
    """Each of L rows gathers from M rows. `allowed` broadcasts to B, H, L, M; True where a row may look."""
    mask = dropout.mask((*q_BHLK.shape[:3], k_BHMK.shape[2]), q_BHLK.dtype, q_BHLK.device)
    way = attend_on_cpu if q_BHLK.device.type == "cpu" else attend_elsewhere
    return way(q_BHLK, k_BHMK, v_BHMK, allowed, mask)


def attend_on_cpu(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None, mask: Tensor | None) -> Tensor:
    out: Tensor = _Attend.apply(q, k, v, allowed, mask)  # type: ignore[no-untyped-call]
    return out


def attend_elsewhere(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None, mask: Tensor | None) -> Tensor:
    """PyTorch's own kernel, which a GPU has; it cannot take a dropout mask from outside."""
    if mask is None:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
    scores = q @ k.mT * (1 / math.sqrt(q.shape[-1]))
    weights = (scores if allowed is None else scores.masked_fill(~allowed, NEVER)).softmax(-1)
    return (weights * mask) @ v


def softmax_of_rows(scores_NLM: Tensor) -> Tensor:
    """softmax over the last axis, computed over the first of a transposed copy: many short rows at once."""
    N, L, M = scores_NLM.shape
    return (
        scores_NLM.view(N, L * M)
        .t()
        .contiguous()
        .view(L, M, N)
        .softmax(1)
        .view(L * M, N)
        .t()
        .contiguous()
        .view(N, L, M)
    )


class _Attend(torch.autograd.Function):
    """Eq. 1 with its derivative written out."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None, mask: Tensor | None) -> Tensor:
        B, H, L, K = q.shape
        M, scale = k.shape[2], 1 / math.sqrt(K)  # §3.2.1
        scores = torch.bmm(q.reshape(B * H, L, K), k.reshape(B * H, M, K).mT).view(B, H, L, M).mul_(scale)
        if allowed is not None:
            scores.masked_fill_(~allowed, NEVER)
        weights = softmax_of_rows(scores.view(B * H, L, M))
        used = weights if mask is None else weights * mask.view(B * H, L, M)
        out = torch.bmm(used, v.reshape(B * H, M, K)).view(B, H, L, K)
        ctx.save_for_backward(q, k, v, weights, mask, out)
        ctx.scale = scale
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights, mask, out = ctx.saved_tensors
        B, H, L, K = q.shape
        M = k.shape[2]
        grad = grads[0].reshape(B * H, L, K)
        grad_used = torch.bmm(grad, v.reshape(B * H, M, K).mT)
        if mask is None:
            used, grad_weights = weights, grad_used
        else:
            mask = mask.view(B * H, L, M)
            used, grad_weights = weights * mask, grad_used.mul_(mask)
        # softmax's derivative: s (g − Σ s g); that sum over M is also grad · out, a sum over the K of the head.
        sums = torch.linalg.vecdot(grad, out.view(B * H, L, K)).unsqueeze(-1)
        grad_scores = grad_weights.sub_(sums).mul_(weights).mul_(ctx.scale)
        grad_q = torch.bmm(grad_scores, k.reshape(B * H, M, K)).view(B, H, L, K)
        grad_k = torch.bmm(grad_scores.mT, q.reshape(B * H, L, K)).view(B, H, M, K)
        grad_v = torch.bmm(used.mT, grad).view(B, H, M, K)
        return grad_q, grad_k, grad_v, None, None
