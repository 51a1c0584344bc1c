"""The worked example: every deterministic number of the post, the right ones, and the walk in every dress.

golden/random_transformer.json was computed beforehand by a separate program, in float64.
"""

import json
import math
import re
import shlex
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from vidrio.commands.lesson import LESSONS
from vidrio.errors import VidrioError
from vidrio.glass.paper.attention import causal
from vidrio.glass.proof.receipts import At
from vidrio.lessons import printed, values_file
from vidrio.lessons.runs import MODES, Lesson
from vidrio.lessons.step import steps
from vidrio.lessons.values import Values, trained
from vidrio.lessons.walk_report import receipt_text, step_text
from vidrio.look.measures import cosines
from vidrio.look.writing import text_width
from vidrio.model.config import ModelConfig, SpecialIds
from vidrio.model.parameters import random_parameters

Run = Callable[..., subprocess.CompletedProcess[str]]

GOLDEN = json.loads((Path(__file__).parent / "golden" / "random_transformer.json").read_text("utf-8"))


def lesson(mode: str) -> Lesson:
    return Lesson(mode, trained() if mode == "trained" else values_file.of_the_post())


PRINTED, CORRECTED = lesson("printed"), lesson("corrected")

# --- as printed: every deterministic number, to every digit that the post prints --------------------------------------

# what it is in the post: run, address, the rows as printed
POST = {
    "positions": ("whole", "src.positions", "0 1 0 1 / 0.84 0.99 0 1"),
    "E": ("whole", "enc.in", "1 3 3 5 / 2.84 3.99 4 6"),
    "K1": ("whole", "enc.0.self.K.h0", "4 8 4 / 6.84 9.99 6.84"),
    "V1": ("whole", "enc.0.self.V.h0", "6 6 4 / 7.99 8.84 6.84"),
    "Q1": ("whole", "enc.0.self.Q.h0", "8 3 3 / 9.99 3.99 4"),
    "scores1": ("whole", "enc.0.self.scores.h0", "68 105.21 / 87.88 135.5517"),
    "scores1 / √3": ("whole", "enc.0.self.scaled.h0", "39.2598183 60.74302182 / 50.73754166 78.26081048"),
    "weights1": (
        *("whole", "enc.0.self.weights.h0"),
        "4.67695573e-10 1.00000000e+00 / 1.11377182e-12 1.00000000e+00",
    ),
    "attention1": ("whole", "enc.0.self.head.h0", "7.99 8.84 6.84 / 7.99 8.84 6.84"),
    "attention2": ("whole", "enc.0.self.head.h1", "8.84 3.99 7.99 / 8.84 3.99 7.99"),
    "weights2": (
        *("whole", "enc.0.self.weights.h1"),
        "1.10613872e-14 1.00000000e+00 / 4.95934510e-20 1.00000000e+00",
    ),
    "attention1, / 30": (
        *("by-30", "enc.0.self.head.h0"),
        "7.54348784 8.20276657 6.20276657 / 7.65266185 8.35857269 6.35857269",
    ),
    "attention2, / 30": (
        *("by-30", "enc.0.self.head.h1"),
        "8.45589591 3.85610456 7.72085664 / 8.63740591 3.91937741 7.84804146",
    ),
    "concatenated": (
        *("by-30", "enc.0.self.concat"),
        "7.54348784 8.20276657 6.20276657 8.45589591 3.85610456 7.72085664 /"
        "7.65266185 8.35857269 6.35857269 8.63740591 3.91937741 7.84804146",
    ),
    "W": (
        *("by-30", "enc.0.self.WO"),
        "0.79445237 0.1081456 0.27411536 0.78394531 / 0.29081936 -0.36187258 -0.32312791 -0.48530339 /"
        "-0.36702934 -0.76471963 -0.88058366 -1.73713022 / -0.02305587 -0.64315981 -0.68306653 -1.25393866 /"
        "0.29077448 -0.04121674 0.01509932 0.13149906 / 0.57451867 -0.08895355 0.02190485 0.24535932",
    ),
    "Z": (
        *("by-30", "enc.0.self.out"),
        "11.46394285 -13.18016471 -11.59340253 -17.04387829 / 11.62608573 -13.47454936 -11.87126395 -17.4926367",
    ),
    "E + Z": (
        *("reminder", "enc.0.self.sum"),
        "12.46394281 -10.18016469 -8.59340253 -12.04387833 / 14.46608569 -9.48454934 -7.87126395 -11.49263674",
    ),
    "μ, in code": ("by-30", "enc.0.self.norm.mean", "-4.58837567 -3.59559107"),
    "layer_norm(Z + E)": (
        *("by-30", "enc.0.self.norm.out"),
        "1.71887693 -0.56365339 -0.40370747 -0.75151608 / 1.71909039 -0.56050453 -0.40695381 -0.75163205",
    ),
    "SOS + position": ("decoder", "dec.in", "1 1 0 1"),
    "layer norm of SOS": ("decoder", "dec.0.self.norm.out", "0.17236212 1.54684892 -1.0828824 -0.63632864"),
    "probabilities": (
        *("softmax", "out.prob"),
        "0.01602618 0.06261303 0.38162024 0.03087794 0.0102383 0.00446011 0.01777314 0.00068275 0.46780959 0.00789871",
    ),
}


def as_printed(value: float, text: str) -> str:
    """The value with as many digits as the text has."""
    mantissa, e, _ = text.partition("e")
    decimals = len(mantissa.partition(".")[2])
    return f"{value:.{decimals}{'e' if e else 'f'}}"


def assert_printed(values: Sequence[float], texts: Sequence[str]) -> None:
    assert [as_printed(value, text) for value, text in zip(values, texts, strict=True)] == list(texts)


@pytest.mark.parametrize("what", POST)
def test_the_numbers_of_the_post_to_every_printed_digit(what: str) -> None:
    run, address, text = POST[what]
    array = np.atleast_2d(PRINTED.run(run).array(address))
    rows = [row.split() for row in text.split("/")]
    assert array.shape == (len(rows), len(rows[0]))
    for row, texts in zip(array, rows, strict=True):
        assert_printed(row.tolist(), texts)


def test_the_comparison_of_digits_can_fail() -> None:
    assert as_printed(0.99995, "0.99") == "1.00"
    assert as_printed(4.676955729e-10, "4.67695573e-10") == "4.67695573e-10"
    with pytest.raises(AssertionError):
        assert_printed([1.718877], ["1.718"])


def test_layer_norm_by_hand_as_printed() -> None:
    """The mean, the sum of squares, the variance and its root, from the repeated Z."""
    norm = {q: PRINTED.run("reminder").array(f"enc.0.self.norm.{q}") for q in ("mean", "var", "normed")}
    assert_printed(norm["mean"][:1].tolist(), ["-4.58837568"])
    # The second mean lies in the middle between two last digits; the post rounds it up, to -3.59559109.
    assert abs(norm["mean"][1] - -3.595591085) < 1e-14
    assert_printed([4 * norm["var"][0], norm["var"][0]], ["393.67443005013", "98.418607512533"])
    assert_printed(np.sqrt(norm["var"]).tolist(), ["9.9206152789297", "10.50653018"])
    first, *others = norm["normed"][0].tolist()
    assert_printed(others, ["-0.564", "-0.404", "-0.752"])
    # The post cuts the first one off (slip 7): 1.718, where rounding gives 1.719.
    assert f"{first:.6f}" == "1.718877"
    assert int(first * 1000) / 1000 == 1.718


def test_the_standard_deviations_in_code() -> None:
    assert_printed(np.sqrt(PRINTED.run("by-30").array("enc.0.self.norm.var")).tolist(), ["9.92061529", "10.50653019"])


def test_the_position_that_is_cut_off() -> None:
    """cos 0.01 is 0.99995: the post prints 0.99 (slip 2); all other positions of the post are rounded."""
    exact = printed.slipped_sinusoidal(2, 4)
    assert_printed(exact[1].tolist(), ["0.841470985", "0.999950000", "0.000100000", "1.000000000"])
    table = printed.positions(2, 4)
    assert table[1, 1] == 0.99
    rounded = exact.round(2)
    rounded[1, 1] = 0.99
    assert np.array_equal(table, rounded)


def test_the_first_score_by_hand() -> None:
    told = receipt_text(PRINTED.run("whole"), "enc.0.self.scores.h0[0,0]", 4).splitlines()
    assert "  = 8*4 + 3*8 + 3*4" in told
    assert "  = 32 + 24 + 12" in told
    assert "  = 68" in told


def test_softmax_of_one_two_three() -> None:
    assert_printed(PRINTED.machine.softmax(np.array([[1.0, 2.0, 3.0]]))[0].tolist(), ["0.09", "0.24", "0.67"])


def test_cosines() -> None:
    first = PRINTED.run("whole").array("src.embedding")
    assert_printed([cosines(first, first)[0, 1]], ["0.993807990"])
    assert "  = 40.0000 / (5.4772 * 7.3485) = 0.9938" in told(PRINTED, "How alike")
    table, words = PRINTED.generating.parameters["src.embed"], PRINTED.values.vocabulary
    rows = {word: table[words.index(word)] for word in words}
    pairs = [("hello", "world"), ("hello", "hola"), ("world", "mundo")]
    assert_printed(
        [cosines(rows[a][None], rows[b][None])[0, 0] for a, b in pairs], ["-0.242946", "-0.448763", "0.451260"]
    )


def test_the_vocabulary_is_given() -> None:
    assert " ".join(PRINTED.values.vocabulary) == "hello mundo world how ? EOS SOS a hola c"
    table = PRINTED.generating.parameters["src.embed"]
    assert table[0].tolist() == [-0.32106406, 2.09332588, -0.77994069, 0.92639774]
    assert table[9].tolist() == [0.65643157, 0.24935726, -0.80839751, -1.87156293]


# --- in full precision ------------------------------------------------------------------------------------------------

ADDRESSES = {
    **{"E": "enc.in", "Z": "enc.0.self.out", "res": "enc.0.self.sum", "concat": "enc.0.self.concat"},
    **{f"{letter}{h + 1}": f"enc.0.self.{letter}.h{h}" for letter in "QKV" for h in (0, 1)},
    **{f"{q}{h + 1}": f"enc.0.self.{q}.h{h}" for q in ("scores", "scaled", "weights", "head") for h in (0, 1)},
    **{"mu": "enc.0.self.norm.mean", "var": "enc.0.self.norm.var", "ln": "enc.0.self.norm.out"},
}


def with_the_texts_matrices() -> Lesson:
    """Two matrices of the post's text differ from its code (slip 3)."""
    values = values_file.of_the_post()
    WQ, WK = values.parameters["enc.0.self.WQ"].copy(), values.parameters["enc.0.self.WK"].copy()
    WQ[0, 3] = [1, 1, 0]
    WK[1, 2] = [1, 0, 1]
    parameters = {**values.parameters, "enc.0.self.WQ": WQ, "enc.0.self.WK": WK}
    return Lesson("printed", replace(values, parameters=parameters))


CHAINS = {
    "as_printed (code matrices, E rounded, scale 30, LN std+1e-6)": (lambda: PRINTED, "by-30"),
    "as_printed (scale sqrt3)": (lambda: PRINTED, "whole"),
    "corrected (paper PE, code matrices, scale sqrt3, LN sqrt(var+1e-5))": (lambda: CORRECTED, "whole"),
    "paper PE, code matrices, scale 30, LN sqrt(var+1e-5)": (lambda: CORRECTED, "by-30"),
    "text matrices, E rounded, scale 30": (with_the_texts_matrices, "by-30"),
}


@pytest.mark.parametrize("chain", GOLDEN)
def test_every_chain_in_full_precision(chain: str) -> None:
    make, run = CHAINS[chain]
    trace = make().run(run)
    for name, expected in GOLDEN[chain].items():
        computed = np.sqrt(trace.array("enc.0.self.norm.var")) if name == "std" else trace.array(ADDRESSES[name])
        np.testing.assert_allclose(computed, expected, rtol=0, atol=1e-12, err_msg=name)


# The right numbers, as an independent check wrote them down: run, address, rows.
RIGHT = [
    ("whole", "enc.in", [[1, 3, 3, 5], [2.8414709848, 3.5403023059, 4.0099998333, 5.9999500004]]),
    ("whole", "enc.0.self.K.h0", [[4, 8, 4], [6.8514708181, 9.5402523063, 6.8514708181]]),
    ("whole", "enc.0.self.Q.h0", [[8, 3, 3], [9.5402523063, 3.5403023059, 4.0099998333]]),
    ("whole", "enc.0.self.V.h0", [[6, 6, 4], [7.5503021392, 8.8414209852, 6.8514708181]]),
    ("whole", "enc.0.self.scores.h0", [[68, 103.9869359184], [82.5234270054, 126.6145343516]]),
    ("whole", "enc.0.self.scaled.h0", [[39.2598183049, 60.0368854447], [47.6449227960, 73.1009354912]]),
    ("whole", "enc.0.self.scores.h1", [[120, 171.3032148493], [162.3367796063, 230.7604161733]]),
    (
        *("whole", "enc.0.self.norm.out"),
        [
            [1.7120025012, -0.5249792500, -0.3826422867, -0.8043809645],
            [1.7140105247, -0.5559545369, -0.3758835880, -0.7821723999],
        ],
    ),
    ("by-30", "enc.0.self.weights.h0", [[0.2315526931, 0.7684473069], [0.1869876728, 0.8130123272]]),
    ("by-30", "enc.0.self.weights.h1", [[0.1531498169, 0.8468501831], [0.0927266483, 0.9072733517]]),
    (
        *("by-30", "enc.0.self.out"),
        [
            [10.8336644079, -13.1177861379, -11.6545720451, -17.3807800204],
            [10.9380898250, -13.3734158819, -11.9031808098, -17.7968270706],
        ],
    ),
    (
        *("by-30", "enc.0.self.norm.out"),
        [
            [1.7157940179, -0.5444810303, -0.3938182621, -0.7774947255],
            [1.7164935007, -0.5713948228, -0.3834301277, -0.7616685502],
        ],
    ),
]


@pytest.mark.parametrize(("run", "address", "rows"), RIGHT)
def test_the_right_numbers(run: str, address: str, rows: list[list[float]]) -> None:
    np.testing.assert_allclose(CORRECTED.run(run).array(address), rows, rtol=0, atol=1e-9)


def test_the_right_weights_and_what_they_leave_of_two_words() -> None:
    weights = CORRECTED.run("whole").array("enc.0.self.weights.h0")
    np.testing.assert_allclose(weights[:, 0], [9.4762037636e-10, 8.8022592435e-12], rtol=1e-9)
    Z = CORRECTED.run("whole").array("enc.0.self.out")
    np.testing.assert_allclose(
        Z[0], [11.21829346, -14.1263826334, -12.6409837014, -19.0421607889], rtol=0, atol=5e-9
    )  # the first is known to eight decimals
    assert 0 < np.abs(Z[0] - Z[1]).max() < 6e-9


# --- what the post drew, and what comes of other draws ----------------------------------------------------------------


def test_six_bare_blocks_overflow_as_printed_and_grow_as_corrected() -> None:
    assert np.isnan(PRINTED.run("bare").array("memory")).all()
    assert "The first NaN: enc.1.self.weights." in "\n".join(told(PRINTED, "blocks, one after"))
    first = printed.receipt_of(PRINTED.run("bare"), At("enc.1.self.weights.h1", (0, 0)))
    assert first.working(str)[-2:] == ["0.0 / 0.0", "nan"]  # every exponential is 0: the other way to NaN
    right = CORRECTED.run("bare").array("memory")
    assert np.isfinite(right).all()
    assert np.abs(right).max() > 1e6


def test_numbers_that_the_post_goes_on_with_are_marked() -> None:
    trace = PRINTED.run("decoder")
    assert set(trace.computed) == {"dec.0.self.out", "memory", "dec.0.cross.out"}
    assert trace.array("memory").tolist() == [[-1.5, 1.0, -0.8, 1.5], [1.0, -1.0, -0.5, 1.0]]
    assert any("given: the post goes on with this" in line for line in told(PRINTED, "The decoder asks the encoder"))
    assert not any(step.trace(CORRECTED).computed for step in steps(CORRECTED.values.config))


def test_what_the_post_goes_on_with_is_what_it_prints() -> None:
    assert PRINTED.run("linear").array("dec.out").tolist() == [[1, 0, 1, 0]]
    logits = "-0.39929948 0.96345013 2.77090264 0.25651866 -0.84738762 -1.67834992 -0.29583529 -3.55515281"
    assert_printed(PRINTED.run("softmax").array("out.logits")[0, :8].tolist(), logits.split())
    assert PRINTED.run("decoder").array("dec.0.self.out").tolist() == [
        [2.19334924, 10.61851198, -4.50089666, -2.76366551]
    ]
    assert PRINTED.run("decoder").array("dec.0.cross.out").tolist() == [
        [1.57651431, 4.92489307, -0.08644448, -0.46776051]
    ]


def test_a_rounded_position_agrees_as_far_as_it_was_rounded() -> None:
    """0.84 and 0.99 are what the post made of 0.8415 and 0.99995."""
    for column, printed_value in ((0, 0.84), (1, 0.99)):
        bill = printed.receipt_of(PRINTED.run("whole"), At("src.positions", (1, column)))
        assert bill.value == printed_value
        assert bill.compared.agrees
        assert bill.compared.difference > 1e-3


def test_what_the_post_contradicts_comes_out_right() -> None:
    trace = PRINTED.run("decoder")
    right = [0.084271292, 1.602923270, -0.854085977, -0.833108584]
    np.testing.assert_allclose(trace.array("dec.0.cross.norm.out")[0], right, atol=3e-9)
    last = trace.array("dec.0.ffn.norm.out")[0]
    assert abs(last.mean()) < 1e-12
    assert abs(last.std() - 1) < 1e-6


def test_the_trained_numbers_translate() -> None:
    words = lesson("trained").run("generation").chosen_tokens
    assert list(words) == ["hola", "mundo", "EOS"]
    lines = told(lesson("trained"), "Word after word")
    assert "Written: SOS hola mundo EOS" in lines
    factors, total = re.search(r"^  = (.*) = ([\d.]+)$", "\n".join(lines), re.MULTILINE).groups()  # type: ignore[union-attr]
    assert math.prod(map(float, factors.split(" * "))) == pytest.approx(float(total), abs=2e-4)


def test_what_the_post_prints_on_the_way_is_shown() -> None:
    """The sum of squares and the standard deviation; the words by probability, and the one that is taken."""
    lines = told(PRINTED, "Mean and variance", precision=8)
    assert {"393.67443005  441.54870578", "9.92061528  10.50653018"} <= set(lines)
    lines = told(PRINTED, "The likeliest word")
    words = [line.split()[0] for line in lines if "0.4678" in line or re.match(r"\w+ +0\.\d{4} ", line)]
    assert words[:5] == ["hola", "world", "mundo", "how", "SOS"]
    assert "Taken: hola" in lines


def test_a_trained_model_writes_until_it_ends() -> None:
    """The post's program stops after three words; a model that ends by itself need not."""
    longer = Lesson("trained", replace(trained(), sentence="hello world ?"), own=True)
    assert list(longer.run("generation").chosen_tokens) == ["hola", "mundo", "?", "EOS"]
    assert len(PRINTED.run("generation").chosen_tokens) == 3


def test_the_closest_two_rows_of_the_memory() -> None:
    one = Lesson("trained", replace(trained(), sentence="hello good world"), own=True)
    rows = one.run("whole").array("memory")
    apart = {(a, b): np.abs(rows[a] - rows[b]).max() for a in range(3) for b in range(a)}
    line = next(line for line in told(one, "the memory") if line.startswith("The closest two rows"))
    assert line.endswith(f"differ by {min(apart.values()):.2g}.")
    assert not any("nearly" in line for line in told(one, "the memory"))
    assert any("nearly" in line for line in told(PRINTED, "the memory"))


def test_the_traced_pass_is_what_was_generated() -> None:
    """Greedy decoding computes afresh for each word; the one pass over all of them chooses the same."""
    for one in (PRINTED, CORRECTED, lesson("trained")):
        for run in ("whole", "generation"):
            trace = one.run(run)
            assert trace.array("out.prob").argmax(axis=1).tolist() == trace.array("out.choice").tolist()


def test_the_posts_program_has_no_positions_and_no_mask() -> None:
    assert not PRINTED.run("generation").array("src.positions").any()
    assert PRINTED.generating.mask is not causal
    assert CORRECTED.run("generation").array("src.positions").any()
    assert CORRECTED.generating.mask is causal


# --- the walk ---------------------------------------------------------------------------------------------------------


def told(one: Lesson, title: str, precision: int = 4) -> list[str]:
    every = steps(one.values.config)
    n = next(n for n, step in enumerate(every, 1) if title in step.title)
    return step_text(one, every, n, precision, "AGAIN").splitlines()


def some_values(**sizes: object) -> Values:
    """Odd sizes, each different, so that a swapped axis cannot pass."""
    words = ("<pad>", "<unk>", "SOS", "EOS", "uno", "dos", "tres")
    config = ModelConfig(
        **{
            **{"source_vocabulary": len(words), "target_vocabulary": len(words), "max_positions": 9},
            **{"d_model": 6, "n_heads": 3, "d_head": 5, "d_ff": 11, "n_encoder_layers": 2, "n_decoder_layers": 1},
            **sizes,
        },
        special=SpecialIds(),
    )
    parameters = random_parameters(config, np.random.default_rng(2))
    return Values(
        about="", sentence="uno dos cuatro", vocabulary=words, config=config, score_divisor=2.0, parameters=parameters
    )


SHAPES: list[dict[str, object]] = [
    {},
    {"n_heads": 1, "d_head": 1, "d_ff": 1, "d_model": 2, "n_encoder_layers": 1},
    {"norm": "pre", "activation": "gelu"},
    {"positions": "learned", "tying": "none", "output_bias": True},
    {"positions": "none", "attention_bias": True, "activation": "swish"},
    {"positions": "sinusoidal-halves", "tying": "output", "source_end": False},
]


@pytest.mark.parametrize("mode", ["printed", "corrected"])
@pytest.mark.parametrize("sizes", SHAPES)
def test_the_walk_goes_through_any_values(sizes: dict[str, object], mode: str) -> None:
    values = some_values(**sizes)
    for sentence in (values.sentence, "tres"):
        one = Lesson(mode, replace(values, sentence=sentence), own=True)
        every = steps(values.config)
        for n, step in enumerate(every, 1):
            text = step_text(one, every, n, 3, "AGAIN")
            assert step.title in text
            assert "Slip" not in text, "the post's slips are not the reader's"


@pytest.mark.parametrize("mode", MODES)
def test_every_step_tells_where_what_and_how(mode: str) -> None:
    one = lesson(mode)
    every = steps(one.values.config)
    assert len(every) == 42
    assert len({step.title for step in every}) == 42
    for n, step in enumerate(every, 1):
        lines = step_text(one, every, n, 4, "AGAIN").splitlines()
        assert lines[0] == f"{n} of 42  {step.title}"
        assert lines[2].startswith("In the post: ")
        assert max(map(text_width, lines)) <= 80
        assert not [line for line in lines if line != line.rstrip()]
        trace = step.trace(one)
        for name in step.shows:
            assert any(line.startswith(name) for line in lines), name
            if trace.stage(name).kind == "value":
                place = printed.stage_of(trace, name).place
                assert place in " ".join(" ".join(lines).split()), name


@pytest.mark.parametrize("mode", MODES)
def test_what_is_worked_out_by_hand_agrees_with_the_machine(mode: str) -> None:
    """The receipt recomputes from the inputs, number by number; rounding must explain every difference."""
    one, seen = lesson(mode), 0
    for trace in {id(trace): trace for trace in (step.trace(one) for step in steps(one.values.config))}.values():
        for name, array in trace.values.items():
            if array.dtype.kind != "f" or not array.size:
                continue
            place = tuple(n - 1 for n in array.shape)
            bill = printed.receipt_of(trace, At(name, place))
            assert bill.compared.agrees, bill.at
            seen += 1
    assert seen > 1000


def test_the_posts_layer_norm_differs_from_the_right_one_by_more_than_rounding() -> None:
    """So the agreement just tested is with the post's own formula."""
    from vidrio.glass.proof.receipts import receipt

    at = At("enc.0.self.norm.normed", (0, 0))
    assert not receipt(PRINTED.run("by-30"), at).compared.agrees
    assert printed.receipt_of(PRINTED.run("by-30"), at).compared.agrees


def test_slips_are_flagged_where_they_happen() -> None:
    flagged = [number for step in steps(PRINTED.values.config) for number in step.slips]
    assert sorted(flagged) == list(range(1, 25)), "each slip of the post once"
    lines = told(CORRECTED, "Where a word stands")
    assert "! Slip 1, The Random Transformer; Encoder, positional encoding" in lines
    assert any(line.startswith("    right    columns 2i and 2i+1") for line in lines)
    assert any(line.startswith("    why      ") for line in lines)
    assert "! Slip 2: cos(0.01) ≈ 0.99, and so 3.99 in E. Right: vidrio lesson errata 2" in told(
        PRINTED, "Where a word stands"
    )


def test_precision_reaches_every_number() -> None:
    lines = told(PRINTED, "The scores are made smaller", precision=8)
    assert any("39.25981830  60.74302182" in line for line in lines)


# --- the command ------------------------------------------------------------------------------------------------------

WALK = ("lesson", "random-transformer")


def test_the_whole_walk_as_text(run_vidrio: Run) -> None:
    done = run_vidrio(*WALK)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("1 of 42  Words become numbers\n")
    assert "\n42 of 42  " in done.stdout


def test_one_step_some_steps_and_the_list(call_vidrio: Run) -> None:
    assert call_vidrio(*WALK, "--step", "10").stdout.count(" of 42  ") == 1
    some = call_vidrio(*WALK, "--from", "4", "--to", "6").stdout
    assert [line.split()[0] for line in some.splitlines() if " of 42  " in line] == ["4", "5", "6"]
    listed = call_vidrio(*WALK, "--list").stdout.splitlines()
    assert [int(line[:3]) for line in listed if line[:3].strip().isdigit()] == list(range(1, 43))
    assert [line for line in listed if line[:1].isalpha()][:2] == ["Encoder", "Decoder"]
    assert max(map(len, listed)) <= 80


def test_why_in_the_run_of_a_step(call_vidrio: Run) -> None:
    by_root = call_vidrio(*WALK, "--step", "13", "--why", "enc.0.self.weights.h0[world,hello]").stdout
    assert "1.11e-12" in by_root
    by_thirty = call_vidrio(*WALK, "--step", "16", "--why", "enc.0.self.weights.h0[world,hello]").stdout
    assert "= exp(2.9293) / (exp(2.9293) + exp(4.5184))" in by_thirty
    parameter = call_vidrio(*WALK, "--why", "enc.0.self.WQ.h0[3,1]").stdout
    assert "Made from nothing else" in parameter


def test_own_values(call_vidrio: Run, tmp_path: Path) -> None:
    assert call_vidrio(*WALK, "--write-values", "my.toml").returncode == 0
    assert values_file.read(tmp_path / "my.toml", None).sentence == "Hello World"
    assert call_vidrio(*WALK, "--write-values", "my.toml").returncode == 1
    (tmp_path / "mine.toml").write_text("[enc.0.self]\nWQ.h0 = [[1,0,0],[0,1,0],[0,0,1],[0,0,0]]\n")
    done = call_vidrio(*WALK, "--values", "mine.toml", "--step", "9")
    assert "0 hello  1.0000  3.0000  3.0000" in done.stdout
    assert call_vidrio(*WALK, "--values", "mine.toml", "--write-values", "full.toml").returncode == 0
    assert (
        values_file.read(tmp_path / "full.toml", None).parameters["enc.0.self.WQ"][0].tolist()
        == values_file.read(tmp_path / "mine.toml", values_file.of_the_post()).parameters["enc.0.self.WQ"][0].tolist()
    )


def test_other_sizes(call_vidrio: Run, tmp_path: Path) -> None:
    (tmp_path / "big.toml").write_text("draw = 3\n[config]\nn_heads = 3\nd_head = 2\nn_encoder_layers = 2\n")
    done = call_vidrio(*WALK, "--values", "big.toml")
    assert done.returncode == 0
    assert "2 layers: the memory" in done.stdout
    assert "enc.0.self.head.h2" in done.stdout


def test_another_sentence(call_vidrio: Run) -> None:
    done = call_vidrio(*WALK, "--sentence", "how a world", "--step", "1")
    assert "how is 3, a is 7, world is 2" in done.stdout


def test_a_model_folder_for_look(call_vidrio: Run, tmp_path: Path) -> None:
    assert call_vidrio(*WALK, "--as", "corrected", "--write-model", "mine").returncode == 0
    assert (tmp_path / "mine" / "config.json").is_file()
    assert "the post's slips are not in it" in call_vidrio(*WALK, "--write-model", "printed").stderr
    assert call_vidrio(*WALK, "--write-model", "mine").returncode == 1


def test_values_from_the_trained_model(call_vidrio: Run, tmp_path: Path) -> None:
    assert call_vidrio(*WALK, "--as", "trained", "--write-values", "learned.toml").returncode == 0
    done = call_vidrio(*WALK, "--values", "learned.toml", "--step", "41")
    assert "Written: SOS hola mundo EOS" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["--step", "43"], 1, "steps 1 to 42"),
        (["--step", "0"], 1, "steps 1 to 42"),
        (["--from", "9", "--to", "3"], 1, "there are no steps 9 to 3"),
        (["--step", "3", "--to", "5"], 2, "--step is one step"),
        (["--step", "three"], 2, "not a valid integer"),
        (["--as", "wrong"], 2, "is not one of"),
        (["--sentence", "buenos días"], 1, "the vocabulary does not hold 'buenos'"),
        (["--sentence", " "], 1, "no words"),
        (["--sentence", "a " * 65], 1, "the model holds 64"),
        (["--values", "nothing.toml"], 1, "No such file"),
        (["--why", "enc.0.self.scores.h7[0,0]"], 1, "enc.0.self.scores.h"),
        (["--why", "enc.0.self.scores.h0"], 1, "needs 2 indices"),
        (["--why", "???"], 1, "is not an address"),
        (["--precision", "99"], 2, "is not in the range"),
    ],
)
def test_nonsense_gets_a_message(arguments: list[str], code: int, told: str, call_vidrio: Run) -> None:
    done = call_vidrio(*WALK, *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_lesson_needs_a_name_that_there_is(call_vidrio: Run) -> None:
    listed = call_vidrio("lesson")
    assert (listed.returncode, listed.stderr) == (0, "")
    for name in LESSONS:
        assert f"\n  {name} " in listed.stdout
        help_text = call_vidrio("lesson", name, "--help").stdout
        assert max(map(len, help_text.splitlines())) <= 80
    wrong = call_vidrio("lesson", "random")
    assert wrong.returncode == 2
    assert "Did you mean 'random-transformer'?" in wrong.stderr


def test_errors_are_the_projects_own() -> None:
    with pytest.raises(VidrioError, match="needs 2 indices"):
        receipt_text(PRINTED.run("whole"), "enc.in[0]", 4)


def test_own_numbers_are_never_said_to_be_the_posts(call_vidrio: Run, tmp_path: Path) -> None:
    """By the post's arithmetic, but none of its intermediate results and slips, and nothing said of its numbers."""
    (tmp_path / "mine.toml").write_text("draw = 3\n")
    for own in (["--values", "mine.toml"], ["--sentence", "world"]):
        text = call_vidrio(*WALK, *own, "--as", "printed").stdout
        assert "by the post's arithmetic" not in text
        assert "given: the post" not in text
        assert "the post's own numbers" not in text
        assert "Slip" not in text
        assert "it chose its numbers" not in text
    assert "given: the post goes on with this" in call_vidrio(*WALK, "--step", "33").stdout


def test_what_is_said_fits_the_numbers() -> None:
    """Three statements that are true of the post's numbers and false of trained ones, or the other way round."""
    learned = lesson("trained")
    assert "it chose its numbers for easy sums" in " ".join(told(PRINTED, "How alike two words are"))
    assert "easy sums" not in " ".join(told(learned, "How alike two words are"))
    assert "have learned nothing" in " ".join(told(learned, "A table for the whole vocabulary"))
    assert "not trained" not in " ".join(told(learned, "Word after word"))
    assert any(line.startswith("No NaN: the softmax takes") for line in told(CORRECTED, "blocks, one after"))


def test_a_step_tells_its_run_once_runs_differ() -> None:
    """From where one address has two numbers, every step says which run its numbers are from."""
    for one in (PRINTED, CORRECTED):
        every = steps(one.values.config)
        first = next(n for n, step in enumerate(every, 1) if step.run_in(one) != "whole")
        for n in range(1, 43):
            lines = step_text(one, every, n, 4, "AGAIN").splitlines()
            assert any(line.startswith("Computed: ") for line in lines) == (n >= first), n


def test_a_single_head_a_single_layer_keep_the_numbering(call_vidrio: Run, tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text("draw = 1\n[config]\nn_heads = 1\nn_encoder_layers = 1\nn_decoder_layers = 1\n")
    listed = call_vidrio(*WALK, "--values", "one.toml", "--list").stdout
    for title in (
        " 15  The other heads",
        " 21  1 block, one after",
        " 27  1 layer: the memory",
        " 36  1 decoder layer ",
    ):
        assert title in listed
    assert "There is one head only." in call_vidrio(*WALK, "--values", "one.toml", "--step", "15").stdout


def test_the_sentences_unknown_words_are_named() -> None:
    text = " ".join(told(Lesson("trained", replace(trained(), sentence="Good morning"), own=True), "Words become"))
    assert "good is 10" in text
    assert "morning is not in the vocabulary and becomes <unk>, 15" in " ".join(text.split())


def test_nothing_of_a_file_can_move_the_terminal() -> None:
    values = replace(values_file.of_the_post(), about="\x1b[31mred\nnext\u202e" + "x" * 10_000)
    text = "\n".join(told(Lesson("corrected", values, own=True), "Words become"))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert len(text) < 5000
    assert "<U+001B>[31mred\\nnext<U+202E>" in text


def test_right_numbers_stand_beside_the_printed_ones() -> None:
    text = "\n".join(told(CORRECTED, "Residual connection and norm again"))
    assert "right, from the two rows that are printed:\n      0.08427129  1.60292327  -0.85408598  -0.83310858" in text


def test_a_command_to_copy_is_one_command(call_vidrio: Run) -> None:
    """Broken over two lines it is still what a shell takes for one; names with spaces are quoted."""
    lines = told(CORRECTED, "Scores become weights")
    command = "\n".join(lines[lines.index("Ask on:") + 1 :])
    assert shlex.split(command.replace("AGAIN", "vidrio lesson random-transformer --as corrected")) == [
        *("vidrio", "lesson", "random-transformer", "--as", "corrected", "--step", "13"),
        *("--why", "enc.0.self.weights.h0[0,0]"),
    ]
    text = call_vidrio(*WALK, "--sentence", "hello world", "--step", "5").stdout
    asked = shlex.split(text[text.index("Ask on:") + 7 :])
    assert asked[asked.index("--sentence") + 1] == "hello world"
