"""Test what-ifs: their effects on the numbers, their errors, and the comparison with the original run."""

import json
from dataclasses import replace

import numpy as np
import pytest

from traced import make_machine, make_trace, run
from vidrio.errors import ConfigError
from vidrio.glass import maths
from vidrio.glass.checking import check
from vidrio.glass.compared import compare, first, layer_of
from vidrio.glass.maths import softmax
from vidrio.glass.positions import slipped_sinusoidal
from vidrio.glass.receipts import locate, receipt
from vidrio.glass.trace import Trace, parse_address
from vidrio.glass.whatif import WhatIf, parse
from vidrio.hypothesis import default_options
from vidrio.look.changed import as_data, look_changed, view, with_changes
from vidrio.look.run import look, open_model
from vidrio.look.translated import read_as_translated
from vidrio.model.json_text import json_text
from vidrio.search import Tree


def tried(
    asked: list[tuple[str, str]], choice: str = "paper", dtype: type = np.float64, **sizes
) -> tuple[Trace, Trace]:
    """Return the traces before and after these changes."""
    machine = make_machine(choice, dtype, **sizes)
    before = run(machine)
    changed = parse(asked, before).apply(machine)
    with np.errstate(all="ignore"):
        after = run(changed)
    return before, after


def all_follow(trace: Trace) -> bool:
    """Return whether every number follows from its inputs by the changed machine's own formulas."""
    return not check(trace).exceptions


# --- each change ------------------------------------------------------------------------------------------------------

EVERY = [
    ("without", "layer-norm"),
    ("without", "residual"),
    ("without", "positions"),
    ("without", "scaling"),
    ("without", "embedding-scale"),
    ("without", "cross"),
    ("without", "ffn"),
    ("without", "enc.1"),
    ("without", "dec.0.cross"),
    ("softmax", "naive"),
    ("mask", "off"),
    ("mask", "zeros"),
    ("heads-off", "enc.1.self.h0,dec.0.cross.h2"),
    ("hide", "0,2"),
    ("positions", "none"),
    ("positions", "sinusoidal-halves"),
    ("positions", "sinusoidal-marian"),
    ("positions", "seed"),
    ("divisor", "30"),
    ("norm-epsilon", "0.5"),
    ("change-dtype", "float16"),
    ("change-dtype", "int8"),
    ("change-dtype", "float32"),
    ("set", "enc.0.self.WQ.h1[2,3]=0.5"),
    ("set", "dec.0.cross.weights.h0[3,s28]=0.25"),
    ("scale", "enc.0.ffn.W1=2"),
    ("scale", "enc.0.self.scores.h0=2"),
]
UNCHANGED = {("softmax", "naive")}
OTHERS = ("pre-gelu-halves", "swish-learned-biases")


@pytest.mark.parametrize(
    ("choice", "change"), [(choice, change) for n, change in enumerate(EVERY) for choice in ("paper", OTHERS[n % 2])]
)
def test_every_change_has_receipts_and_an_effect(choice: str, change: tuple[str, str]) -> None:
    before, after = tried([change], choice)
    assert all_follow(after)
    moved = np.abs(after.array("out.prob").astype(np.float64) - before.array("out.prob")).max()
    config = before.machine.config
    same = change in UNCHANGED or change[1] == config.positions
    same |= change[1] == "embedding-scale" and not config.scale_embeddings
    assert moved < 1e-12 if same else moved > 1e-9


def test_silent_sub_layers_and_heads_give_zeros() -> None:
    before, after = tried([("without", "enc.1"), ("without", "cross"), ("heads-off", "dec.1.self.h1")])
    for name in ("enc.1.self.out", "enc.1.ffn.out", "dec.0.cross.out", "dec.1.cross.out", "dec.1.self.head.h1"):
        assert not after.array(name).any()
        assert before.array(name).any()
        assert after.computed[name].any()
    assert after.array("enc.0.ffn.out").any()
    assert after.array("dec.1.self.head.h0").any()


def test_a_mask_of_zeros_hides_nothing() -> None:
    later = np.triu(np.ones((7, 7), dtype=bool), 1)
    before, after = tried([("mask", "zeros")])
    assert (after.array("dec.0.self.masked.h0")[later] == 0).all()
    assert (before.array("dec.0.self.masked.h0")[later] == -np.inf).all()
    assert (after.array("dec.0.self.weights.h0")[later] > 0).all()


def test_the_naive_softmax_overflows_where_the_stable_one_does_not() -> None:
    x, x32 = np.array([709.0, 710.0]), np.array([88.0, 89.0], dtype=np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(maths.naive_softmax(x), [0.0, np.nan])
        assert np.isnan(maths.naive_softmax(x32)[1])
        assert maths.naive_softmax(x32).dtype == np.float32
    np.testing.assert_allclose(softmax(x), [0.268941421, 0.731058579], atol=1e-9)


def test_the_slipped_positions_are_the_worked_examples() -> None:
    expected = [[0, 1, 0, 1], [0.841470985, 0.999950000, 0.0001, 0.9999999999995]]
    np.testing.assert_allclose(slipped_sinusoidal(2, 4), expected, atol=1e-9)
    trace = tried([("positions", "seed")], d_model=4)[1]
    own = receipt(trace, locate(trace, parse_address("src.positions[1,1]")))
    assert own.working(lambda value: f"{value:g}") == [
        "cos(1 / 10000^(2 / 4))",
        "cos(1 / 10000^0.5)",
        "cos(1 / 100)",
        "cos(0.01)",
        "0.99995",
    ]


def test_parameters_are_changed_in_a_copy() -> None:
    machine = make_machine()
    before = run(machine)
    whatif = parse(
        [("set", "enc.0.self.WQ.h1[2,3]=0.5"), ("scale", "embed[t5,*]=3"), ("set", "enc.0.ffn.b1=0")], before
    )
    changed = whatif.apply(machine)
    ours, theirs = machine.parameters, changed.parameters
    difference = theirs["enc.0.self.WQ"] - ours["enc.0.self.WQ"]
    assert np.flatnonzero(difference).tolist() == [np.ravel_multi_index((1, 2, 3), difference.shape)]
    assert theirs["enc.0.self.WQ"][1, 2, 3] == 0.5
    np.testing.assert_array_equal(theirs["embed"][5], 3 * ours["embed"][5])
    np.testing.assert_array_equal(np.delete(theirs["embed"], 5, 0), np.delete(ours["embed"], 5, 0))
    assert not theirs["enc.0.ffn.b1"].any()
    assert ours["enc.0.ffn.b1"].any()


def test_numbers_on_the_way_are_changed_by_place_or_token() -> None:
    _, after = tried([("set", "enc.0.self.weights.h0[s3,s28]=0.5"), ("scale", "dec.0.self.V.h1[2,*]=-1")])
    assert after.array("enc.0.self.weights.h0")[0, 3] == 0.5
    np.testing.assert_array_equal(after.array("dec.0.self.V.h1")[2], -after.computed["dec.0.self.V.h1"][2])
    np.testing.assert_array_equal(after.array("dec.0.self.V.h1")[1], after.computed["dec.0.self.V.h1"][1])


# --- refused changes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("without", "layernorm"), "layer-norm"),
        (("without", "enc.7"), "enc.1"),
        (("softmax", "fast"), "is not one of naive"),
        (("mask", "on"), "off, zeros"),
        (("heads-off", "enc.1.self.h9"), "enc.1.self.h2"),
        (("heads-off", "enc.1.self"), "enc.1.self.h0"),
        (("positions", "cosine"), "sinusoidal"),
        (("divisor", "much"), "not a number"),
        (("norm-epsilon", "0"), "not above 0"),
        (("change-dtype", "int4"), "int8, float16, float32, float64"),
        (("set", "enc.0.self.WQ.h1[2,3]"), "=VALUE"),
        (("set", "enc.0.self.WQ[1,2,3]=1"), "enc.0.self.WQ.h0"),
        (("set", "enc.0.self.WQ.h1[99,3]=1"), "0 to 11"),
        (("set", "embed[s99,0]=1"), "t9"),
        (("set", "src.ids[0]=1"), "determined by the text"),
        (("set", "out.score[0]=1"), "determined by the text"),
    ],
    ids=str,
)
def test_what_cannot_be_changed_is_refused_with_what_can(change: tuple[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse([change], make_trace())
    assert message in str(refused.value)
    assert f"--{change[0]} {change[1]}" in str(refused.value)


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as refused:
        parse([("softmax", "fast"), ("mask", "off"), ("divisor", "much"), ("without", "enc.9")], make_trace())
    assert all(word in str(refused.value) for word in ("fast", "much", "enc.9"))
    assert "--mask" not in str(refused.value)


def test_a_model_without_a_part_cannot_lose_it() -> None:
    for change in (("mask", "off"), ("without", "cross"), ("heads-off", "dec.0.self.h0")):
        with pytest.raises(ConfigError):
            parse([change], make_trace("classifier"))


# --- before and after -------------------------------------------------------------------------------------------------


def test_nothing_changed_is_nothing_changed() -> None:
    trace = make_trace()
    compared = compare(trace, trace)
    assert all(changed.largest == 0 for changed in compared.layers.values())
    assert compared.kl == (0.0,) * 7
    assert (compared.first_nan, compared.first_infinite, compared.notes) == (None, None, ())
    assert not WhatIf()


def test_the_largest_change_of_each_layer_is_told_in_the_order_of_the_way() -> None:
    before, after = tried([("set", "dec.1.ffn.W1[3,4]=9")])
    layers = compare(before, after).layers
    assert list(layers) == ["embed", "src", "enc", "enc.0", "enc.1", "memory", "tgt", "dec", "dec.0", "dec.1", "out"]
    assert {layer for layer, changed in layers.items() if changed.largest} == {"dec.1", "dec", "out"}
    difference = np.abs(after.array("out.logits") - before.array("out.logits"))
    assert layers["out"].largest == difference.max()
    assert layers["out"].address == "out.logits[{},{}]".format(*np.unravel_index(difference.argmax(), (7, 29)))
    assert layer_of("enc.10.self.Q.h0") == "enc.10"


def test_how_far_probabilities_moved() -> None:
    before, after = tried([("divisor", "1")])
    p, q = before.array("out.prob"), after.array("out.prob")
    np.testing.assert_allclose(compare(before, after).kl, (p * np.log(p / q)).sum(axis=1), rtol=1e-9)
    before, after = tried([("divisor", "1")], "classifier")
    assert len(compare(before, after).kl) == 1


def test_steps_that_saw_other_words_are_not_compared() -> None:
    before, after = make_trace(), make_trace()
    after.target_tokens = [*after.target_tokens[:3], "t1", *after.target_tokens[4:]]
    compared = compare(before, after)
    assert compared.shared_steps == 3
    assert len(compared.kl) == 3
    after.values["dec.out"] = after.values["dec.out"].copy()
    after.values["dec.out"][4] += 1  # a step that saw other tokens
    assert all(changed.largest == 0 for changed in compare(before, after).layers.values())
    after.values["dec.out"][2] += 1
    assert any(changed.largest for changed in compare(before, after).layers.values())


def test_the_first_nan_is_the_first_along_the_way() -> None:
    trace = make_trace()
    for name, place in (("dec.0.self.Q.h0", (5, 1)), ("dec.1.ffn.out", (3, 2)), ("out.prob", (4, 0))):
        trace.values[name] = trace.values[name].copy()
        trace.values[name][place] = np.nan
    assert first(trace, np.isnan) == "dec.0.self.Q.h0[5,1]"
    trace.values["memory"] = trace.values["memory"].copy()
    trace.values["memory"][4, 0] = np.nan
    assert first(trace, np.isnan) == "memory[4,0]"
    assert first(trace, np.isinf) is None  # the mask's −∞ does not count
    trace.values["out.logits"] = trace.values["out.logits"].copy()
    trace.values["out.logits"][2, 7] = np.inf
    assert first(trace, np.isinf) == "out.logits[2,7]"


# --- the report -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ([("softmax", "naive"), ("divisor", "0.0001")], ["first NaN: enc.0.self.weights.h0[0,0]", "became NaN"]),
        ([("mask", "off")], ["from the last step", "dec.0"]),
        ([("scale", "memory=1")], ["Nothing changed: every number is the same."]),
        ([("set", "dec.0.self.Q.h0[2,1]=9"), ("without", "positions")], ["--set dec.0.self.Q.h0[2,1]=9", "before"]),
    ],
    ids=str,
)
def test_what_changed_in_words_and_as_json(asked: list[tuple[str, str]], told: list[str]) -> None:
    seen = look_changed(open_model("lesson"), "hello world", asked)
    text = "\n".join(view(seen))
    assert all(part in text for part in told), text
    assert max(map(len, text.splitlines())) <= 80
    data = json.loads(json_text(as_data(seen)))
    assert [change["option"] for change in data["changes"]] == [f"--{option} {words}" for option, words in asked]
    assert data["before"] == seen.before.translation == "hola mundo"


def test_without_text_nothing_can_change() -> None:
    assert "nothing can change" in "\n".join(view(look_changed(open_model("lesson"), "", [("softmax", "naive")])))


# --- what-ifs that run in the engine ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "asked",
    [
        [("heads-off", "dec.1.self.h3,enc.0.self.h1")],
        [("hide", "5")],
        [("hide", "▁car"), ("heads-off", "dec.1.cross.h5")],
        [("prefix", "Ayer he"), ("hide", "1,2")],
        [("pin", "▁un ▁coche </s>"), ("hide", "1")],
        [("draw", "seed=3"), ("heads-off", "dec.1.cross.h5")],
    ],
    ids=str,
)
def test_the_engine_runs_a_what_if_as_numpy_does(asked: list[tuple[str, str]]) -> None:
    model = open_model("en-es")
    printed = read_as_translated(model, "I bought a new car.", default_options(model.config)).printed
    assert printed
    before = look(model, "I bought a new car.", target=printed)
    alone = replace(before, model=replace(before.model, in_engine=None))
    by_engine, by_numpy = (with_changes(run, model, asked) for run in (before, alone))
    assert by_engine.after.model.in_engine
    assert not by_numpy.after.model.in_engine
    for kept in ("values", "computed"):
        ours, reference = (getattr(run.after.trace, kept) for run in (by_engine, by_numpy))
        assert ours.keys() == reference.keys()
        assert not [name for name in reference if ours[name].tobytes() != reference[name].tobytes()]
    ours, reference = ([h._replace(attention=None) for h in run.after.hypotheses] for run in (by_engine, by_numpy))
    assert ours == reference
    assert by_engine.compared == by_numpy.compared
    assert by_engine.compared.first_infinite is None


def test_only_numpy_runs_a_what_if_that_is_no_intervention() -> None:
    model = open_model("en-es")
    printed = read_as_translated(model, "Hello.", default_options(model.config)).printed
    tried = look_changed(model, "Hello.", [("without", "dec.1.cross"), ("hide", "0")], target=printed, tree=Tree())
    assert not tried.after.model.in_engine
    assert tried.after.tree


def test_every_position_hidden_is_refused() -> None:
    with pytest.raises(ConfigError, match="every source position is hidden"):
        look_changed(open_model("lesson"), "hello world", [("hide", "0,1"), ("hide", "1,0")])
    with pytest.raises(ConfigError, match="not on axis"):
        look_changed(open_model("lesson"), "hello world", [("hide", "9")])
