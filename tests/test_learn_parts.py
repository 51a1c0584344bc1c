"""Test each part of training separately: gradients, loss, dropout, schedules, batches, Adam, Muon."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from parity_models import make_config, make_parameters
from tolerances import BFLOAT16, FLOAT32, FLOAT64, SAME_CODE
from vidrio.learn import batches, loss, model
from vidrio.learn.batches import IGNORE, collate, in_memory, plan, stream
from vidrio.learn.loss import objective
from vidrio.learn.model import Dropout as Drop
from vidrio.learn.model import attend
from vidrio.learn.parameters import Adam, Parameters, clip, learning_rate, update_by_muon
from vidrio.model.config import CELLS, ModelConfig, SpecialIds

F64 = torch.float64


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


# --- attention --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("short", [128, 0])
@pytest.mark.parametrize("hide", ["nothing", "padding", "future"])
def test_attention_and_its_gradient(hide: str, short: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare Vidrio's and PyTorch's implementations with Eq. 1 and with finite differences."""
    monkeypatch.setattr(model, "SHORT", short)
    L, M = (7, 7) if hide == "future" else (7, 5)
    q, k, v = normal(2, 3, L, 4), normal(2, 3, M, 4, seed=1), normal(2, 3, M, 4, seed=2)
    allowed = None
    if hide == "padding":
        allowed = torch.ones(2, 1, 1, M, dtype=torch.bool)
        allowed[1, ..., 3:] = False
    if hide == "future":
        allowed = torch.ones(L, M, dtype=torch.bool).tril()
    scores = q @ k.mT / 2
    expected = (scores if allowed is None else scores.masked_fill(~allowed, -math.inf)).softmax(-1) @ v
    torch.testing.assert_close(attend(q, k, v, allowed), expected, rtol=0, atol=FLOAT64)
    rough = attend(*(x.bfloat16() for x in (q, k, v)), allowed)
    torch.testing.assert_close(rough.double(), expected, rtol=0, atol=BFLOAT16)
    assert torch.autograd.gradcheck(lambda *qkv: attend(*qkv, allowed), [x.requires_grad_() for x in (q, k, v)])


# --- the loss ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("bias", [False, True])
def test_loss_is_pytorchs_and_its_gradient_is_right(
    smoothing: float, bias: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss, "CHUNK", 31 * 4)  # several chunks
    x, W = normal(11, 12).requires_grad_(), normal(31, 12, seed=1).requires_grad_()
    b = normal(31, seed=2).requires_grad_() if bias else None
    targets = torch.tensor([3, 0, 30, IGNORE, 7, 7, 1, IGNORE, 9, 12, 30])
    inputs = [x, W] if b is None else [x, W, b]

    def ours(*given: torch.Tensor) -> torch.Tensor:
        return loss.smoothed_cross_entropy(given[0], given[1], given[2] if bias else None, targets, smoothing)[0]

    def theirs(smoothing: float) -> torch.Tensor:
        logits = torch.nn.functional.linear(x, W, b)
        return torch.nn.functional.cross_entropy(
            logits, targets, ignore_index=IGNORE, label_smoothing=smoothing, reduction="sum"
        )

    torch.testing.assert_close(ours(*inputs), theirs(smoothing), rtol=0, atol=FLOAT64)
    nll = loss.smoothed_cross_entropy(x, W, b, targets, smoothing)[1]
    torch.testing.assert_close(nll, theirs(0.0), rtol=0, atol=FLOAT64)
    assert torch.autograd.gradcheck(ours, inputs)


# --- the whole gradient -----------------------------------------------------------------------------------------------


def example_batch(config: ModelConfig) -> batches.Batch:
    pairs = [([5, 7, 9], [4, 8]), ([6, 5], [9, 8, 7, 4]), ([11, 12, 7, 5, 6], [10])]
    if config.shape == "encoder":
        pairs = [(source, [n]) for n, (source, _) in enumerate(pairs)]
    return collate(in_memory(pairs), np.arange(3), config)


@pytest.mark.parametrize(
    ("shape", "changes"),
    [
        *(("encoder-decoder", {}), ("encoder", {}), ("decoder", {})),
        ("encoder-decoder", {"decoder_cell": "ssru", "special": SpecialIds(pad=-1, start=-1)}),
        ("decoder", {"decoder_cell": "ssru"}),
    ],
    ids=["encoder-decoder", "encoder", "decoder", "recurrent", "recurrent decoder"],
)
@pytest.mark.parametrize("tying", ["all", "none"])
def test_gradient_of_every_parameter_by_finite_differences(shape: str, tying: str, changes: dict[str, Any]) -> None:
    """Check that a step in a random direction changes the loss as the flat gradient predicts."""
    config = make_config(
        **changes,
        shape=shape,
        tying=tying,
        positions="learned",
        norm="pre",
        attention_bias=True,
        output_bias=True,
        activation="gelu",
    )
    batch = example_batch(config)
    weights = Parameters.from_arrays(config, make_parameters(config), F64)

    def value(flat: torch.Tensor) -> float:
        return float(objective(model.build(Parameters(config, flat)), batch, 0.1)[0].detach())

    net = model.build(weights)
    objective(net, batch, 0.1)[0].backward()
    gradient = weights.gradient((net.parameters, net.tables))
    untouched = [name for name, part in weights.views(gradient).items() if not part.any()]
    assert not untouched, "a parameter that no gradient reaches"
    for seed in range(5):
        direction, epsilon = normal(len(weights.flat), seed=seed), 1e-5
        ahead, behind = value(weights.flat + epsilon * direction), value(weights.flat - epsilon * direction)
        assert (ahead - behind) / (2 * epsilon) == pytest.approx(
            float(gradient @ direction), abs=1e-7 * float(gradient.norm() * direction.norm())
        )


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("shape", ["encoder-decoder", "encoder", "decoder"])
def test_batching_and_padding_change_no_gradient(shape: str, cell: str) -> None:
    config = make_config(shape=shape, source_end=shape != "encoder", decoder_cell=cell)
    weights = Parameters.from_arrays(config, make_parameters(config), F64)
    pairs = [([5, 7, 9], [4, 8]), ([6, 5], [9, 8, 7, 4]), ([11, 12, 7, 5, 6], [10])]
    if shape == "encoder":
        pairs = [(source, [n]) for n, (source, _) in enumerate(pairs)]

    def gradient(indices: list[int]) -> torch.Tensor:
        net = model.build(weights)
        objective(net, collate(in_memory(pairs), np.array(indices), config), 0.1)[0].backward()
        return weights.gradient((net.parameters, net.tables))

    together, alone = gradient([0, 1, 2]), sum(gradient([n]) for n in range(3))
    torch.testing.assert_close(together, alone, rtol=0, atol=FLOAT64)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, FLOAT32), (torch.bfloat16, BFLOAT16)])
def test_lower_precision_stays_near(dtype: torch.dtype, tolerance: float) -> None:
    """Check that gradients in float32 and bfloat16 have nearly the direction and length of the float64 gradient."""
    config = make_config(tying="all")
    batch = example_batch(config)
    exact = Parameters.from_arrays(config, make_parameters(config), F64)
    rough = Parameters.from_arrays(config, make_parameters(config), torch.float32)
    gradients = []
    for weights, precision in ((exact, F64), (rough, dtype)):
        net = model.build(weights, precision, Drop(0.1, (1,)))
        value, _ = objective(net, batch, 0.1)
        value.backward()
        gradients.append(weights.gradient((net.parameters, net.tables)).double())
    difference = (gradients[1] - gradients[0]).norm() / gradients[0].norm()
    assert difference < tolerance


def test_frequent_words_keep_their_gradient_in_bfloat16() -> None:
    """One word occurs two thousand times. A sum of its small gradients in bfloat16 would lose precision."""
    config = make_config(tying="none")
    pairs = in_memory([([5] * 10, [6] * 10)] * 200)
    batch = collate(pairs, np.arange(200), config)
    found = []
    for weights, precision in (
        (Parameters.from_arrays(config, make_parameters(config), F64), F64),
        (Parameters.from_arrays(config, make_parameters(config), torch.float32), torch.bfloat16),
    ):
        net = model.build(weights, precision)
        objective(net, batch, 0.1)[0].backward()
        found.append(weights.views(weights.gradient((net.parameters, net.tables)))["src.embed"][5].double())
    assert (found[1] - found[0]).norm() / found[0].norm() < BFLOAT16


# --- dropout ----------------------------------------------------------------------------------------------------------


def test_dropout_drops_its_share_and_keeps_the_mean() -> None:
    cpu = torch.device("cpu")
    mask = Drop(0.3, (1,)).mask((1000, 1000), torch.float32, cpu)
    assert mask is not None
    assert float((mask == 0).float().mean()) == pytest.approx(77 / 256, abs=0.002)
    assert float(mask.mean()) == pytest.approx(1, abs=0.003)
    assert len(mask.unique()) == 2
    for rate in (0.0, 0.001):  # rounds to 0/256
        assert Drop(rate, (1,)).mask((4, 5), F64, cpu) is None
    x, y = normal(40, 50), normal(40, 50, seed=1)
    added = Drop(0.5, (7,)).add(x, y) - x
    torch.testing.assert_close(added, y * Drop(0.5, (7,)).mask((40, 50), F64, cpu), rtol=0, atol=SAME_CODE)


# --- schedules, Adam and Muon -----------------------------------------------------------------------------------------


def test_schedules() -> None:
    """Check Eq. 3, D^−½ · min(n^−½, n · w^−1.5), and the other schedules at their start, middle and end."""
    for n in (1, 10, 3999, 4000, 4001, 100_000):
        rate = learning_rate("inverse-sqrt", (512 * 4000) ** -0.5, 4000, n, 0.0)
        assert rate == pytest.approx(512**-0.5 * min(n**-0.5, n * 4000**-1.5), rel=1e-12)
    for kind, middle, end in (("linear", 1.0, 0.0), ("cosine", 1.0, 0.0), ("constant", 2.0, 2.0)):
        rates = [learning_rate(kind, 2.0, 10, *place) for place in ((5, 0.0), (1000, 0.5), (1000, 1.0))]
        assert rates == pytest.approx([1.0, middle, end])


def test_adam_is_pytorchs() -> None:
    start, decay = normal(10), (torch.arange(10) % 2).to(F64) * 0.01
    ours, theirs = start.clone(), start.clone()
    adam = Adam.start(ours)
    groups = [
        {"params": [torch.nn.Parameter(theirs[n : n + 1].clone())], "weight_decay": float(decay[n])} for n in range(10)
    ]
    reference = torch.optim.AdamW(groups, lr=0.01, betas=(0.9, 0.98), eps=1e-9)
    for step in range(20):
        gradient = normal(10, seed=step) * 10.0 ** (step % 3)
        adam.update(ours, gradient, 0.01, decay)
        for n, group in enumerate(reference.param_groups):
            group["params"][0].grad = gradient[n : n + 1].clone()
        reference.step()
    expected = torch.cat([group["params"][0].detach() for group in reference.param_groups])
    torch.testing.assert_close(ours, expected, rtol=0, atol=FLOAT64)


def test_muon_is_pytorchs_in_layers_and_adam_elsewhere() -> None:
    config = make_config(attention_bias=True)
    ours = Parameters.from_arrays(config, make_parameters(config))
    adam, other, only_adam = Adam.start(ours.flat), Adam.start(ours.flat), ours.flat.clone()
    theirs = [matrix.clone().requires_grad_() for matrix in ours.matrices(ours.flat)]
    muon = torch.optim.Muon(theirs, lr=0.01, weight_decay=0, momentum=0.9, adjust_lr_fn="match_rms_adamw")
    for seed in range(4):
        gradient = normal(len(ours.flat), seed=seed).float()
        update_by_muon(adam, ours, gradient, 0.01)
        other.update(only_adam, gradient, 0.01)
        for matrix, part in zip(theirs, ours.matrices(gradient), strict=True):
            matrix.grad = part.clone()
        muon.step()
    for matrix, reference in zip(ours.matrices(ours.flat), theirs, strict=True):
        torch.testing.assert_close(matrix, reference.detach(), rtol=0, atol=4 * 0.01 * BFLOAT16)
    assert adam.step == 4
    rest = torch.ones_like(ours.flat)
    for matrix in ours.matrices(rest):
        matrix.zero_()
    assert torch.equal(ours.flat[rest == 1], only_adam[rest == 1])
    by_name = replace(ours, flat=rest).to_arrays()
    assert not any(by_name[name].any() for name in ("enc.0.self.WQ", "dec.1.ffn.W2"))
    assert all(value.all() for name, value in by_name.items() if value.ndim == 1 or name == "embed")


def test_clip() -> None:
    gradient = torch.tensor([3.0, 4.0])
    assert clip(gradient, 10) == 5
    assert gradient.tolist() == [3, 4]
    assert clip(gradient, 1) == 5
    assert gradient.norm().item() == pytest.approx(1)
    assert clip(torch.tensor([3.0, 4.0]), 0) == 5
    many = torch.randn(200_001, generator=torch.Generator().manual_seed(1))
    assert clip(many, 0) == pytest.approx(float(many.double().norm()), rel=1e-13)


# --- batches ----------------------------------------------------------------------------------------------------------


def of_lengths(sources: np.ndarray, targets: np.ndarray) -> batches.Examples:
    return in_memory([([5] * int(n), [6] * int(m)) for n, m in zip(sources, targets, strict=True)])


LENGTHS = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=200)


@given(lengths=LENGTHS, most=st.integers(20, 2000), seed=st.integers(0, 99))
def test_every_pair_once_and_no_batch_too_large(lengths: list[tuple[int, int]], most: int, seed: int) -> None:
    sources, targets = (np.array(side) for side in zip(*lengths, strict=True))
    batches = plan(of_lengths(sources, targets), most, 512, (seed, 0))
    assert sorted(i for batch in batches for i in batch.tolist()) == list(range(len(lengths)))
    for batch in batches:
        cost = (sources[batch].max() + 1 + targets[batch].max() + 1) * len(batch)
        assert cost <= most or len(batch) == 1


def test_long_pairs_are_left_out() -> None:
    examples = of_lengths(np.array([3, 12, 3, 9]), np.array([3, 3, 10, 9]))
    assert [sorted(batch.tolist()) for batch in plan(examples, 100, 10, (1,))] == [[0, 3]]


def test_weights_decide_how_often_pairs_are_seen() -> None:
    """The first 100 pairs have weight 2, the next 50 have 0, and the last 1,000 have 0.3, drawn anew in every epoch."""
    repeats = [(100, 2.0), (50, 0.0), (1000, 0.3)]
    first, second = (batches.epoch_pairs(repeats, np.random.default_rng(seed)) for seed in (0, 1))
    counts = np.bincount(first, minlength=1150)
    assert (counts[:100] == 2).all()
    assert not counts[100:150].any()
    assert counts[150:].sum() == 300
    assert counts[150:].max() == 1
    assert set(first.tolist()) != set(second.tolist())


def test_a_stream_goes_on_from_any_position() -> None:
    random = np.random.default_rng(0)
    pairs = in_memory([([5] * int(n), [6] * int(m)) for n, m in random.integers(1, 9, size=(50, 2))])
    whole = stream(pairs, 60, 512, 3, (0, 0))
    batches = [next(whole) for _ in range(40)]
    for place in (1, 7, 19, 33):
        rest = stream(pairs, 60, 512, 3, batches[place - 1].position)
        for expected in batches[place:]:
            batch = next(rest)
            assert (batch.position, batch.epoch) == (expected.position, expected.epoch)
            np.testing.assert_array_equal(batch.pairs, expected.pairs)


def test_a_batch_is_shifted_by_one() -> None:
    """Check teacher forcing: the decoder's input and the expected tokens, row by row."""
    config = make_config()
    special = config.special
    batch = collate(in_memory([([5, 7], [4, 8, 9]), ([6], [10])]), np.array([0, 1]), config)
    assert batch.source_BS.tolist() == [[5, 7, special.end], [6, special.end, special.pad]]
    assert batch.source_lengths_B.tolist() == [3, 2]
    assert batch.target_BT.tolist() == [[special.start, 4, 8, 9], [special.start, 10, special.pad, special.pad]]
    assert batch.expected_BT.tolist() == [[4, 8, 9, special.end], [10, special.end, IGNORE, IGNORE]]
    assert (batch.n_predictions, batch.n_tokens) == (6, 11)
