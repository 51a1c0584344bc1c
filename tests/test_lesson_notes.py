"""The second document's lesson: its slips' right values, its claims measured, every section readable."""

import math

import numpy as np
import pytest

from vidrio.cli import main
from vidrio.errors import InputError
from vidrio.glass.paper.attention import allowed_LM
from vidrio.glass.paper.positions import sinusoidal
from vidrio.glass.paper.transformer import encode
from vidrio.glass.paper.variants import zero_after
from vidrio.lessons import notes_attention, notes_positions, notes_text
from vidrio.lessons.machines import random_machine
from vidrio.lessons.notes import SECTIONS, section_text
from vidrio.lessons.notes_attention import PRINTED_WEIGHTS, future_share, leak, masked, measure_heads
from vidrio.lessons.pages import pages, size
from vidrio.look.writing import text_width

# --- the mask ---------------------------------------------------------------------------------------------------------


def test_zeros_do_not_hide() -> None:
    seen = masked(np.log(PRINTED_WEIGHTS))
    assert future_share(seen.zero_scores).round(3).tolist() == [0.949, 0.909, 0.847, 0.726, 0.548, 0]
    row = masked(np.array([[2.0, 1.0, 0.5]] * 3))
    assert row.zero_scores[0].round(9).tolist() == [0.786986042, 0.106506979, 0.106506979]
    assert row.hidden[0].tolist() == [1, 0, 0]


def test_the_right_rows() -> None:
    seen = masked(np.log(PRINTED_WEIGHTS))
    right = [
        [1],
        [0.308458, 0.691542],
        [0.271719, 0.243993, 0.484288],
        [0.277778, 0.169312, 0.272487, 0.280423],
        [0.176755, 0.191283, 0.184019, 0.173123, 0.274818],
        [0.194805, 0.113886, 0.202797, 0.102897, 0.156843, 0.228771],
    ]
    for t, row in enumerate(right):
        assert seen.hidden[t, : t + 1].round(6).tolist() == row
    assert (seen.hidden[~allowed_LM(6, 6)] == 0).all()
    assert np.allclose(seen.renormalised, seen.hidden, atol=1e-15)


def test_the_printed_table_is_after_the_softmax() -> None:
    assert PRINTED_WEIGHTS.sum(axis=1).round(3).tolist() == [1, 1, 1.001, 1, 1, 1.001]
    assert zero_after(PRINTED_WEIGHTS).sum(axis=1).round(3).tolist() == [0.268, 0.402, 0.541, 0.756, 0.826, 1.001]


def test_renormalising_breaks_where_everything_allowed_has_vanished() -> None:
    seen = masked(np.array([[0.0, 2000.0], [0.0, 0.0]]))
    assert np.isnan(seen.renormalised[0]).all()
    assert seen.hidden[0].tolist() == [1, 0]


def test_zeros_leak_the_future_into_a_decoder() -> None:
    assert leak("causal") == 0
    assert leak("zeros") > 1e-3


# --- heads ------------------------------------------------------------------------------------------------------------


def test_heads_see_the_whole_row() -> None:
    seen = measure_heads()
    assert seen.values["self.Q.h0"].shape == (6, 128)
    assert seen.values["self.concat"].shape == (6, 512)
    assert all(moved > 0 for moved in seen.moved)
    assert seen.moved_sliced[:3] == [0, 0, 0]
    assert seen.moved_sliced[3] == pytest.approx(1)
    assert seen.slices_as_heads == 0
    assert (seen.mixed, seen.mixed_without) == (1.0, 0.25)


# --- positions --------------------------------------------------------------------------------------------------------


def test_offsets_are_rotations() -> None:
    table = sinusoidal(300, 16)
    for distance in (1, 7, 250):
        assert notes_positions.rotation_error(table, distance) < 1e-12
    shuffled = table[np.random.default_rng(0).permutation(300)]
    assert notes_positions.rotation_error(shuffled, 1) > 0.1  # the measure can fail
    R = notes_positions.rotation(1, 3, 16)
    assert np.allclose(R @ R.T, np.eye(2))


def test_without_positions_words_cannot_be_told_apart() -> None:
    none, sine = (notes_positions.measure_orders(kind) for kind in ("none", "sinusoidal"))
    assert none.cats_differ < 1e-12
    assert none.moved < 1e-12
    assert sine.cats_differ > 0.05
    assert sine.moved > 0.05


def test_a_table_has_an_end_and_sines_can_be_lengthened() -> None:
    for kind in ("learned", "sinusoidal"):
        machine = random_machine(notes_positions.CAT_WORDS, d_model=4, positions=kind, max_positions=6)
        with pytest.raises(InputError, match="longer than the model's positions"):
            encode(machine, [0] * 7)
        assert notes_positions.beyond_the_table(kind).startswith("refused: ")
    longer = notes_positions.lengthened(random_machine(["a"], d_model=4, max_positions=6), 7)
    assert encode(longer, [0] * 7).shape == (7, 4)
    assert np.array_equal(encode(longer, [0] * 6), encode(random_machine(["a"], d_model=4, max_positions=6), [0] * 6))


def test_two_sums_are_wrong() -> None:
    wrong = [notes_positions.PRINTED_SUMS[n] for n in notes_positions.wrong_sums()]
    assert [round(a + b, 3) for _, a, b, _ in wrong] == [7454.523, 10049.690]
    assert [printed for *_, printed in wrong] == [5292.638, 15409.093]


# --- words ------------------------------------------------------------------------------------------------------------


def test_forced_rows_are_aligned_and_blind_to_the_future() -> None:
    seen = notes_text.measure_forcing()
    assert list(seen.trace.target_tokens) == ["SOS", "hola", "mundo"]
    assert seen.expected == ["hola", "mundo", "EOS"]
    assert (seen.prob_T > 0.9).all()  # it has learned this sentence
    assert seen.moved_T[:2].tolist() == [0, 0]
    assert seen.moved_T[2] > 0


def test_special_tokens() -> None:
    tokenizer = notes_text.small_tokenizer()
    special = tokenizer.special
    assert [tokenizer.id(name) for name in ("[pad]", "[unk]", "[start]", "[end]")] == [
        special.pad,
        special.unk,
        special.start,
        special.end,
    ]
    assert special.end not in tokenizer.encode("el [end]")
    assert tokenizer.encode("lunes") == [special.unk]


def test_every_step_names_numbers_that_there_are() -> None:
    trace = notes_text.first_step()
    steps = pages("notes")["structure"]["step"]
    assert len(steps) == 10
    for step in steps:
        for address in step["addresses"]:
            assert address in trace.values


def test_the_logit_by_hand_is_the_logit(capsys: pytest.CaptureFixture[str]) -> None:
    trace = notes_text.first_step()
    word = int(trace.values["out.logits"][0].argmax())
    text = section_text("structure", 12)
    text = text[text.index("By hand") : text.index("From the second word")].replace("\n", " ")
    assert f"logit of {trace.vocabulary[word]} " in text
    product = text[text.index("it =") + 4 : text.rindex("=")]
    terms = [[float(f) for f in term.strip(" ()").split(")(")] for term in product.split(" + ")]
    assert sum(math.prod(term) for term in terms) == pytest.approx(trace.values["out.logits"][0, word], abs=1e-9)


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("precision", ["0", "4", "17"])
def test_every_section_reads_in_80_columns(section: str, precision: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lesson", "notes", section, "--precision", precision]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.startswith(f"{section}: ")
    assert "By hand" in captured.out
    if precision == "4":
        assert max(map(text_width, captured.out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("section", "slips"),
    [
        ("positions", (26, 28)),
        ("sums", (27,)),
        ("heads", (30,)),
        ("mask", (25, 29)),
        ("structure", (32,)),
        ("forcing", (33,)),
    ],
)
def test_slips_are_flagged_where_they_happen(section: str, slips: tuple[int, ...]) -> None:
    text = section_text(section, 4)
    for number in slips:
        assert f"Slip {number}," in text


def test_the_list_and_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lesson", "notes"]) == 0
    listed = capsys.readouterr().out
    assert all(f"  {section} " in listed for section in SECTIONS)
    assert main(["lesson", "notes", "all"]) == 0
    told = capsys.readouterr().out
    places = [told.index(f"{section}: {pages('notes')[section]['about']}") for section in SECTIONS]
    assert places == sorted(places)


def test_an_unknown_section_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lesson", "notes", "masks"]) == 1
    assert "nearest: mask" in capsys.readouterr().err


def test_only_what_is_0_is_said_to_be_0() -> None:
    assert [size(x) for x in (0.0, 1e-15, 0.25)] == ["0", "1e-15", "0.25"]


def test_claims_hold_for_other_draws() -> None:
    for seed in (1, 2, 3):
        assert notes_positions.measure_orders("none", seed).moved < 1e-12
        assert notes_positions.measure_orders("sinusoidal", seed).moved > 0.01
        assert notes_attention.leak("causal", seed) == 0
        assert notes_attention.leak("zeros", seed) > 1e-4
