"""A training step taken apart: held to the glass engine, to formulas written out here, and to PyTorch's own Adam."""

import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from io import StringIO
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from parity_models import SOURCE, make_config, make_parameters
from small_models import rewrite_config, write_model
from small_run import train_small
from tolerances import BFLOAT16, FLOAT64
from vidrio.cli import main
from vidrio.errors import AddressError, InputError, RunError
from vidrio.glass.paper import transformer as glass
from vidrio.learn import run_files
from vidrio.learn.next_step import Rules, first_step, next_step
from vidrio.learn.one_step import Seen
from vidrio.learn.optimiser import Adam
from vidrio.learn.parameters import Parameters
from vidrio.learn.state import resume, save_state
from vidrio.look.run import open_model
from vidrio.look.training import disagreement, run
from vidrio.look.writing import text_width
from vidrio.model.config import ModelConfig
from vidrio.model.folder import read_config, read_parameters

WORDS = [4, 11, 4, 28, 9]  # what should come out, without special tokens
CHANGES = [
    {},
    {"norm": "pre", "activation": "gelu", "attention_bias": True, "output_bias": True},
    {"tying": "all", "positions": "learned"},
    {"tying": "output", "source_end": False},
    {"shape": "decoder"},
    {"shape": "encoder"},
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_small(tmp_path_factory.mktemp("run"))


def seen_of(changes: dict[str, object], smoothing: float = 0.1) -> tuple[Seen, ModelConfig]:
    config = make_config(**changes)
    target = [2] if config.shape == "encoder" else WORDS
    source = SOURCE if config.has_encoder else []
    return Seen.of(config, make_parameters(config), source, target, smoothing), config


# --- the loss ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_the_forward_pass_is_that_of_glass(changes: dict[str, object]) -> None:
    seen, config = seen_of(changes)
    machine = glass.build(config, make_parameters(config))
    source = [*SOURCE, config.special.end] if config.source_end else SOURCE
    if config.shape == "encoder":
        expected = np.log(glass.classify(machine, source))[None]
    else:
        target = [config.special.start, *WORDS]
        expected = np.log(glass.translate_forced(machine, source if config.has_encoder else (), target))
        assert seen.read == target
        assert seen.expected == [*WORDS, config.special.end]
    np.testing.assert_allclose(seen.log_p_TV, expected, rtol=0, atol=FLOAT64)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_the_loss_is_the_cross_entropy_with_the_smoothed_answer(changes: dict[str, object], smoothing: float) -> None:
    seen, _ = seen_of(changes, smoothing)
    T, V = seen.log_p_TV.shape
    q_TV = np.full((T, V), smoothing / V)
    q_TV[np.arange(T), seen.expected] += 1 - smoothing
    losses_T = -(q_TV * seen.log_p_TV).sum(1)
    np.testing.assert_allclose(seen.losses_T2[:, 0], losses_T, rtol=0, atol=FLOAT64)
    np.testing.assert_allclose(seen.losses_T2[:, 1], -seen.log_p_T, rtol=0, atol=FLOAT64)
    assert seen.loss == pytest.approx(losses_T.mean(), abs=FLOAT64)


def test_ranks_count_the_likelier_words() -> None:
    seen, _ = seen_of({})
    for t, token in enumerate(seen.expected):
        order = np.argsort(-seen.log_p_TV[t])
        assert seen.ranks_T[t] == 1 + list(order).index(token)


# --- gradients --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_every_kind_of_parameter_has_the_gradient_that_the_losses_say(changes: dict[str, object]) -> None:
    seen, _ = seen_of(changes)
    random = np.random.default_rng(3)
    for name, gradient in seen.gradients.items():
        index = tuple(int(random.integers(n)) for n in gradient.shape)
        place = seen.place(name, index)
        assert float(seen.gradient[place]) == gradient[index]
        up, down = seen.moved(place, 1e-5)
        assert (up - down) / 2e-5 == pytest.approx(gradient[index], abs=2e-7), name


def test_a_place_is_that_of_the_parameter_named() -> None:
    seen, config = seen_of({})
    place = seen.place("dec.1.cross.WV", (2, 7, 4))
    flat = seen.parameters.flat.clone()
    flat[place] += 1
    before, after = seen.parameters.to_arrays(), replace(seen.parameters, flat=flat).to_arrays()
    changed = {name: np.argwhere(before[name] != after[name]).tolist() for name in before}
    assert {name: where for name, where in changed.items() if where} == {"dec.1.cross.WV": [[2, 7, 4]]}
    assert Parameters(config, flat).to_arrays()["dec.1.cross.WV"][2, 7, 4] == before["dec.1.cross.WV"][2, 7, 4] + 1


def test_the_best_distance_is_better_than_large_and_small_ones() -> None:
    seen, _ = seen_of({"activation": "gelu"})  # without kinks
    name = max(seen.gradients, key=lambda name: float(np.abs(seen.gradients[name]).max()))
    where = np.unravel_index(int(np.abs(seen.gradients[name]).argmax()), seen.gradients[name].shape)
    differences = seen.differences(seen.place(name, tuple(int(i) for i in where)))
    best = next(d for d in differences if d.best)
    assert best.relative_error < 1e-8
    assert best.relative_error < differences[0].relative_error
    assert best.relative_error < differences[-1].relative_error
    assert len([d for d in differences if d.best]) == 1


def test_a_word_that_is_nowhere_has_the_gradient_zero() -> None:
    seen, _ = seen_of({})
    absent = next(i for i in range(29) if i not in SOURCE and i != 3)
    differences = seen.differences(seen.place("src.embed", (absent, 0)))
    assert {(d.gradient, d.quotient, d.relative_error) for d in differences} == {(0.0, 0.0, 0.0)}


# --- one parameter's life ---------------------------------------------------------------------------------------------


def rules_with(seen: Seen, steps: int, **changes: object) -> Rules:
    """A memory of some steps before."""
    generator = torch.Generator().manual_seed(1)
    adam, flat = Adam.start(seen.parameters.flat), seen.parameters.flat.clone()
    for _ in range(steps):
        adam.update(flat, torch.randn(len(flat), generator=generator, dtype=torch.float64), 1e-3)
    values = {"smoothing": 0.1, "longest": 0.0, "rate": 1e-3, "adam": adam if steps else None, **changes}
    return Rules(**values)  # type: ignore[arg-type]


def test_a_life_is_a_step_of_pytorchs_own_adam() -> None:
    seen, _ = seen_of({})
    place = seen.place("dec.0.ffn.W2", (3, 1))
    other = torch.nn.Parameter(seen.parameters.flat.clone())
    theirs = torch.optim.Adam([other], lr=1e-3, betas=(0.9, 0.98), eps=1e-9)
    other.grad = seen.gradient.clone()
    theirs.step()
    life = seen.life(place, rules_with(seen, 0))
    assert life.new == pytest.approx(other[place].item(), abs=1e-15)
    assert life.mean == pytest.approx(theirs.state[other]["exp_avg"][place].item(), abs=1e-18)
    assert life.square == pytest.approx(theirs.state[other]["exp_avg_sq"][place].item(), abs=1e-20)
    assert (life.step, life.factor) == (1, 1.0)


def test_a_life_after_some_steps_written_out() -> None:
    seen, _ = seen_of({})
    place, rules = seen.place("enc.1.self.WQ", (0, 2, 3)), rules_with(seen, 7, longest=0.25)
    life = seen.life(place, rules)
    g = life.gradient * min(1, 0.25 / float(seen.gradient.norm()))
    m, v = 0.9 * life.mean_before + 0.1 * g, 0.98 * life.square_before + 0.02 * g * g
    new = life.value - 1e-3 * (m / (1 - 0.9**8)) / (math.sqrt(v / (1 - 0.98**8)) + 1e-9)
    assert life.clipped == pytest.approx(g, rel=1e-12)
    assert (life.mean, life.square, life.new) == pytest.approx((m, v, new), rel=1e-12)
    assert life.step == 8
    assert life.mean_before != 0


def test_a_life_by_muon_written_out() -> None:
    """A matrix of a layer goes by Muon; a gain, and the table of words, by Adam."""
    seen, _ = seen_of({})
    rules = rules_with(seen, 7, longest=0.25, optimiser="muon")
    assert rules.adam is not None
    place = seen.place("enc.1.ffn.W2", (5, 3))
    life = seen.life(place, rules)
    mean = replace(seen.parameters, flat=rules.adam.mean).to_arrays()["enc.1.ffn.W2"]
    g = seen.gradients["enc.1.ffn.W2"] * min(1, 0.25 / float(seen.gradient.norm()))
    ahead = 0.9 * (0.9 * mean + 0.1 * g) + 0.1 * g
    left, lengths, right = np.linalg.svd(ahead, full_matrices=False)
    lengths /= np.linalg.norm(ahead)
    for _ in range(5):
        lengths = 3.4445 * lengths - 4.7750 * lengths**3 + 2.0315 * lengths**5
    along = 0.2 * math.sqrt(max(ahead.shape)) * (left * lengths @ right)[5, 3]
    assert life.ahead == pytest.approx(ahead[5, 3], rel=1e-9)
    assert life.turned == pytest.approx(along, abs=BFLOAT16)  # PyTorch's Muon computes in bfloat16
    assert life.new == pytest.approx(life.value - 1e-3 * life.turned, rel=1e-12)
    for name, index in (("enc.0.self.norm.gain", (1,)), ("src.embed", (3, 2))):
        place = seen.place(name, index)
        assert seen.life(place, rules) == seen.life(place, replace(rules, optimiser="adam"))


def test_looking_changes_nothing() -> None:
    seen, _ = seen_of({})
    rules = rules_with(seen, 3, longest=0.1, optimiser="muon")
    assert rules.adam is not None
    kept = [x.clone() for x in (seen.parameters.flat, seen.gradient, rules.adam.mean, rules.adam.square)]
    first = seen.life(5, rules)
    assert seen.life(5, rules) == first
    assert rules.adam.step == 3
    for before, now in zip(
        kept, (seen.parameters.flat, seen.gradient, rules.adam.mean, rules.adam.square), strict=True
    ):
        assert torch.equal(before, now)


# --- where a run was left ---------------------------------------------------------------------------------------------


def test_the_next_step_goes_on_with_the_runs_own_memory(trained: Path) -> None:
    config, _ = read_config(trained)
    found = resume(trained / "run", config, torch.device("cpu"))
    assert found is not None
    tensors, numbers = found[0].tensors(), found[0].numbers()
    rules = next_step(trained, config)
    assert rules.adam is not None
    assert rules.parameters is not None
    assert numbers["step"] == rules.adam.step == 150
    assert rules.smoothing == 0.1
    assert rules.rate == 0.01  # the run has ended and its rate is 0: the highest, and it says so
    assert "come down to 0" in rules.rate_told
    seen = Seen.of(config, read_parameters(trained), [5, 6], [7], rules.smoothing)
    place = seen.place("embed", (5, 0))
    life = seen.life(place, rules)
    assert life.step == 151
    assert life.value == tensors["parameters"][place].item()
    assert life.mean_before == tensors["adam.mean"][place].item() != 0
    assert life.gradient == float(replace(seen, parameters=rules.parameters).gradient[place])


def test_in_the_middle_of_a_run_the_rate_is_the_schedules(trained: Path, tmp_path: Path) -> None:
    config, _ = read_config(trained)
    found = resume(trained / "run", config, torch.device("cpu"))
    assert found is not None
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "plan.json").write_bytes((trained / "run" / "plan.json").read_bytes())
    save_state(tmp_path / "run", replace(found[0], share=0.25, step=37, ended=False))
    rules = next_step(tmp_path, config)
    assert rules.rate == pytest.approx(0.01 * 0.75)
    assert "25%" in rules.rate_told


def test_without_a_run_the_next_step_is_a_first_one(tmp_path: Path) -> None:
    config = write_model(tmp_path / "model")
    rules = next_step(tmp_path / "model", config, 0.3)
    assert rules == first_step(tmp_path / "model", 0.3)
    assert (rules.adam, rules.smoothing, rules.longest) == (None, 0.3, 1.0)


def test_a_run_of_another_model_is_refused(trained: Path, tmp_path: Path) -> None:
    config = write_model(tmp_path / "model")
    (tmp_path / "model" / "run").symlink_to(trained / "run")
    with pytest.raises(RunError, match="the run of another model"):
        next_step(tmp_path / "model", config)


@pytest.mark.parametrize("plan", ["{}", '{"recipe": 3}', '{"task": "translate", "recipe": {"stop": {}, "speed": 3}}'])
def test_a_plan_that_is_none_is_told(tmp_path: Path, plan: str) -> None:
    write_model(tmp_path / "model")
    (tmp_path / "model" / "run").mkdir()
    (tmp_path / "model" / "run" / "plan.json").write_text(plan)
    with pytest.raises(RunError, match="is no plan of a run"):
        first_step(tmp_path / "model")


# --- snapshots --------------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**7), st.integers(1, 9))
def test_the_steps_that_are_kept_are_few_and_never_come_back(step: int, most: int) -> None:
    kept, before = run_files.kept_steps(step, most), run_files.kept_steps(max(0, step - 1), most)
    assert kept[0] == 0
    assert len(kept) <= most + 1
    assert max(kept) <= step
    assert step == 0 or max(kept) > step / 2
    assert set(kept) <= {*before, step}  # what was let go is not wanted again
    assert (step in kept) == run_files.is_due(step)


def test_snapshots_are_what_is_kept(tmp_path: Path) -> None:
    for step in range(1201):
        if run_files.is_due(step):
            run_files.keep_snapshot(tmp_path, step, {"x": np.array([float(step)])})
    found = run_files.snapshots(tmp_path)
    assert [step for step, _ in found] == run_files.kept_steps(1200) == [0, 8, 16, 32, 64, 128, 256, 512, 1024]
    assert [float(read_parameters(folder)["x"][0]) for _, folder in found] == [step for step, _ in found]


def test_large_models_keep_fewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_files, "ROOM", 4000)
    for step in (0, 1, 2, 4, 8, 16, 32, 64):
        run_files.keep_snapshot(tmp_path, step, {"x": np.zeros(125)})  # 1,000 bytes
    assert [step for step, _ in run_files.snapshots(tmp_path)] == [0, 8, 16, 32, 64]


def test_a_run_leaves_its_ages(trained: Path) -> None:
    steps = [step for step, _ in run_files.snapshots(trained / "run")]
    assert steps == run_files.kept_steps(150) == [0, 1, 2, 4, 8, 16, 32, 64, 128]


# --- the command ------------------------------------------------------------------------------------------------------


def said(*arguments: str) -> tuple[int, str, str]:
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["look", *arguments])
    return code, out.getvalue(), err.getvalue()


PAIR = ("the cat sees two books", "--target", "el gato ve dos libros")


def test_training_on_a_pair_is_told_in_80_columns(trained: Path) -> None:
    code, out, err = said("-m", str(trained), *PAIR, "--training")
    assert code == 0, err
    words = r"▁el +▁gato +▁ve +▁dos +▁libros"
    assert re.search(rf"reads +<s> +{words}\n +should say +{words} +</s>\n", out)
    assert "Checked: every logit is the glass engine's" in out
    assert [line for line in out.splitlines() if text_width(line) > 80 and "vidrio look" not in line] == []
    model = open_model(trained)
    seen, looked = run(model, PAIR[0], PAIR[2], first_step(trained))
    assert disagreement(seen, looked) < FLOAT64
    assert f"{seen.loss:.4f}" in out
    for t, word in enumerate(["▁el", "▁gato", "▁ve", "▁dos", "▁libros", "</s>"]):
        p, nll = math.exp(seen.log_p_T[t]), seen.losses_T2[t, 1]
        assert re.search(rf"  {t}  {re.escape(word)} +{p:.4f} +{nll:.4f} +{seen.ranks_T[t]}\b", out)


def test_the_shares_of_the_parts_make_the_whole(trained: Path) -> None:
    _, out, _ = said("-m", str(trained), *PAIR, "--training", "--precision", "9")
    part = out.partition("part by part")[2].partition("|x| is")[0]
    rows = [line.split() for line in part.splitlines() if re.match(r"  [a-z][\w.]* +[\d,]+ ", line)]
    *parts, whole = rows
    assert whole[0] == "all"
    assert sum(int(row[1].replace(",", "")) for row in parts) == int(whole[1].replace(",", ""))
    assert math.sqrt(sum(float(row[2]) ** 2 for row in parts)) == pytest.approx(float(whole[2]), abs=1e-7)


def computed(line: str) -> float:
    """The value of a line like `= 0.9 · (-1e-3) + 0.1 · 2.5²`, by Python."""
    code = line.strip().removeprefix("=").replace("·", "*").replace("−", "-").replace("^", "**").replace("²", "**2")
    code = re.sub(r"√([\w.+-]+?)(?= |\))", r"math.sqrt(\1)", code)
    return float(eval(code, {"math": math, "min": min}))


@pytest.mark.parametrize("address", ["enc.0.self.WQ.h1[2,3]", "embed[▁gato,5]", "dec.0.ffn.norm.gain[7]"])
def test_every_formula_of_a_life_gives_the_number_beside_it(trained: Path, address: str) -> None:
    code, out, err = said("-m", str(trained), *PAIR, "--life", address, "--precision", "15")
    assert code == 0, err
    lines = re.sub(r"\n {10}(?=\S)", " ", out).splitlines()  # formulas that were wrapped
    checked = 0
    for above, line in pairwise(lines):
        if re.match(r" {8}= [-(\d]|        = min", line):
            assert computed(line) == pytest.approx(float(above.split()[-1]), rel=1e-9, abs=1e-14), (above, line)
            checked += 1
    assert checked == 7  # clipping, the clipped gradient, both means, both put right, the new value
    assert [line for line in out.splitlines() if text_width(line) > 80] == []


def test_a_gradient_is_told_with_its_check(trained: Path) -> None:
    code, out, err = said("-m", str(trained), *PAIR, "--gradient", "dec.0.cross.WV.h0[2,3]")
    assert code == 0, err
    full = float(re.search(r"in full (\S+)", out)[1])  # type: ignore[index]
    row = re.search(r"→ +(\S+) +(\S+) +(\S+) +(\S+) +(\S+)", out)
    assert row is not None
    h, up, down, quotient, off_by = map(float, row.groups())
    assert (up - down) / (2 * h) == pytest.approx(quotient, abs=1e-6)  # the losses are printed with 12 decimals
    assert quotient == pytest.approx(full, rel=1e-5)
    assert off_by < 1e-5


def test_json_holds_the_same(trained: Path) -> None:
    address = "enc.0.ffn.W1[1,2]"
    code, out, err = said(
        "-m",
        str(trained),
        *PAIR,
        "--training",
        "--gradient",
        address,
        "--life",
        address,
        "--json",
        "--smoothing",
        "0.2",
    )
    assert code == 0, err
    data = json.loads(out)
    assert data["smoothing"] == 0.2
    assert [token["should_say"] for token in data["tokens"]] == ["▁el", "▁gato", "▁ve", "▁dos", "▁libros", "</s>"]
    mean = sum(token["loss"] for token in data["tokens"]) / 6
    assert data["loss"]["mean"] == pytest.approx(mean, abs=1e-12)
    squares = sum(length**2 for length in data["gradient_length_of"].values())
    assert data["gradient_length"] == pytest.approx(math.sqrt(squares), rel=1e-12)
    assert data["gradients"][0]["address"] == address
    assert len(data["gradients"][0]["differences"]) == 10
    assert data["lives"][0]["step"] == 151
    assert data["differs_from_glass_by"] < FLOAT64


def test_the_ages_of_a_model(trained: Path) -> None:
    code, out, err = said("-m", str(trained), PAIR[0], "--history", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert [age["step"] for age in told["ages"]] == [0, 1, 2, 4, 8, 16, 32, 64, 128, None]
    assert told["tokens"] == ["▁el", "▁gato", "▁ve", "▁dos", "▁libros", "</s>"]
    first, last = told["ages"][0], told["ages"][-1]
    assert last["says"] == "el gato ve dos libros"
    assert first["says"] != last["says"]
    assert np.prod(first["p"]) < 1e-9 < 0.01 < np.prod(last["p"])
    assert math.exp(last["log_p"]) >= np.prod(last["p"])  # the search may not take every word: p of the others is more
    assert told["attention"] == "dec.0.cross"
    for age in told["ages"]:
        assert all(1 / 6 <= share <= 1 for share in age["share"])
        assert all(0 <= bits <= math.log2(6) + 1e-12 for bits in age["entropy"])
    assert last["reads"][0] == "▁the"


def test_the_ages_as_text(trained: Path) -> None:
    code, out, err = said(
        "-m", str(trained), PAIR[0], "--history", "--at", "dec.0.cross.weights.h1", "--precision", "2"
    )
    assert code == 0, err
    assert "What each token reads: dec.0.cross.weights.h1" in out
    assert [line for line in out.splitlines() if text_width(line) > 80 or line != line.rstrip()] == []
    _, given, _ = said("-m", str(trained), PAIR[0], "--history", "--target", "el perro")
    assert "How sure it is of “▁el ▁perro </s>”" in given


def test_a_young_model_is_not_let_go_on_forever(trained: Path, tmp_path: Path) -> None:
    young = tmp_path / "young"
    young.mkdir()
    for name in ("config.json", "tokenizer.json", "run"):
        (young / name).symlink_to(trained / name)
    (young / "model.safetensors").symlink_to(trained / "run/snapshots/step-00000000/model.safetensors")
    rewrite_config(young)
    code, out, err = said("-m", str(young), PAIR[0], "--history", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert len(told["tokens"]) + told["left_out"] <= 20  # 2 · 5 + 10 tokens at most
    assert not told["ages"][-1]["ended"]


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("the cat", "--training"), "give --target TRANSLATION"),
        (("", "--target", "el gato", "--training"), "nothing to learn from an empty text"),
        (("the cat", "--target", "el gato", "--gradient", "enc.0.self.Q.h0[0,0]"), "is no parameter"),
        (("the cat", "--target", "el gato", "--life", "enc.0.self.WX"), "the nearest: enc.0.self.W"),
        (("the cat", "--target", "el gato", "--life", "embed[gata,0]"), "the nearest tokens: "),
        (("the cat", "--history", "--at", "enc.0.self"), "is no cross-attention of this model"),
        (("", "--history"), "there is nothing to follow"),
    ],
)
def test_what_cannot_be_is_refused(trained: Path, arguments: tuple[str, ...], told: str) -> None:
    code, out, err = said("-m", str(trained), *arguments)
    assert (code, out) == (1, "")
    assert told in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("the cat", "--target", "el gato", "--training", "--heads"),
        ("the cat", "--target", "el gato", "--training", "--without", "residual"),
        ("the cat", "--history", "--training"),
        ("the cat", "--history", "--at", "dec.0.cross", "--at", "dec.0.cross"),
        ("the cat", "--smoothing", "0.2"),
    ],
)
def test_views_that_do_not_go_together(trained: Path, arguments: tuple[str, ...]) -> None:
    code, out, err = said("-m", str(trained), *arguments)
    assert (code, out) == (2, "")
    assert "Error:" in err


def test_a_model_without_snapshots_has_no_history(tmp_path: Path) -> None:
    write_model(tmp_path / "model")
    code, _, err = said("-m", str(tmp_path / "model"), "bala core", "--history")
    assert code == 1
    assert "this model has no history" in err


def test_a_classifier_and_a_decoder_alone(tmp_path: Path) -> None:
    write_model(tmp_path / "classifier", shape="encoder", target_vocabulary=0, n_classes=3, tying="none")
    code, out, err = said("-m", str(tmp_path / "classifier"), "bala core", "--target", "2", "--training")
    assert code == 0, err
    assert "class 2" in out
    assert "Teacher forcing" not in out
    code, _, err = said("-m", str(tmp_path / "classifier"), "bala core", "--target", "nine", "--training")
    assert "is no class of this model" in err
    write_model(tmp_path / "decoder", shape="decoder", source_vocabulary=0, tying="output")
    code, out, err = said("-m", str(tmp_path / "decoder"), "bala core", "--training")
    assert code == 0, err
    assert re.search(r"should say +bala +core +</s>", out)
    code, _, err = said("-m", str(tmp_path / "decoder"), "bala core", "--target", "x", "--training")
    assert "learns from one text" in err


def test_errors_are_of_the_kinds_that_say_so(trained: Path) -> None:
    from vidrio.look import history as training_history
    from vidrio.look import training as training_seen
    from vidrio.look import training_numbers

    model = open_model(trained)
    with pytest.raises(InputError):
        training_seen.pair_of(model, "the cat", None)
    with pytest.raises(AddressError):
        training_history.history(model, "the cat", where="dec.7.cross")
    seen, looked = run(model, "the cat", "el gato", first_step(trained))
    with pytest.raises(AddressError):
        list(training_numbers.gradient(seen, looked, "out.prob[0]"))


def without_torch(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    code = "import sys; sys.modules['torch'] = None\nfrom vidrio.cli import main\nsys.exit(main(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=folder, capture_output=True, text=True, timeout=60
    )


def test_on_a_light_install_the_ages_are_there_and_the_gradients_name_the_extra(trained: Path, tmp_path: Path) -> None:
    done = without_torch(["look", "-m", str(trained), *PAIR, "--training"], tmp_path)
    assert done.returncode == 1
    assert 'pip install "vidrio[train]"' in done.stderr
    done = without_torch(["look", "-m", str(trained), PAIR[0], "--history"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "el gato ve dos libros" in done.stdout


@pytest.fixture(autouse=True)
def _in_one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
