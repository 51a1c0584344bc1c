"""Test which pairs are excluded and why, and that held-out pairs share no sentences with training pairs."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidrio.data.clean import REASONS, Limits, Tally, fault, scripts_of, suited, tidy
from vidrio.data.prepare import COPY, PARTS, TRAIN, CleaningOptions, Prepared, clean, hold_out
from vidrio.data.progress import Progress
from vidrio.data.read import corpora
from vidrio.errors import DataError
from vidrio.text.fold import fold

LATIN = Limits(source_scripts=frozenset({"LATIN"}), target_scripts=frozenset({"LATIN"}))


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("Hello world", "Hola mundo", ""),
        ("", "Hola", "empty"),
        ("Hello", "", "empty"),
        ("word " * 201, "palabra", "too long"),
        ("cafÃ© is coffee", "el cafÃ© es cafÃ©", "broken encoding"),
        ("Itâ€™s here", "Está aquí", "broken encoding"),
        ("Â¿What?", "¿Qué?", "broken encoding"),
        ("Ð¿Ñ€Ð¸Ð²ÐµÑ‚", "hola", "broken encoding"),
        ("what\ufffd", "qué", "broken encoding"),
        ("a\x07b", "c", "control characters"),
        ("a\ufeffb", "c", "control characters"),
        ("Copyright by the authors", "Copyright by the authors.", "identical sides"),
        ("New York", "New York", ""),
        ("12 34 56 78", "12 34 56 78", ""),
        ("How are you today?", "Как вы сегодня поживаете?", "wrong script"),
        ("The word мир means peace and world.", "La palabra мир significa paz y mundo.", ""),
        ("Yes.", "Sí, por supuesto que sí, cómo no, con mucho gusto y en seguida voy.", "length ratio"),
        ("No!", "¡Claro que no!", ""),
        ("It costs 25 dollars, not 52.", "Cuesta 25 dólares, no 53.", "numbers differ"),
        ("In 1984 he left.", "Se fue entonces.", "numbers differ"),
        ("It costs 1,234.50.", "Cuesta 1.234,50.", ""),
        ("I have 2 dogs.", "Tengo dos perros.", ""),
        ("It is 9 a.m.", "Son las 9 de la mañana.", ""),
        ("Ñ» is a quotation's end", "«la letra Ñ» termina", ""),
        ("👩‍🚀 in space", "👩‍🚀 en el espacio", ""),
    ],
)
def test_each_rule_alone(source: str, target: str, reason: str) -> None:
    assert fault(tidy(source), tidy(target), LATIN) == reason
    assert not reason or reason in REASONS


@pytest.mark.parametrize(
    ("limits", "source", "target"),
    [
        (Limits(longest=0), "word " * 201, "palabra " * 201),
        (Limits(ratio=0), "a", "b" * 900),
        (Limits(numbers=False), "12345", "54321"),
        (Limits(identical=0), "one two three", "one two three"),
        (Limits(), "hello", "привет"),
        (Limits(), "我喜欢在周末读书", "I like to read books at the weekend"),
    ],
)
def test_each_rule_can_be_turned_off(limits: Limits, source: str, target: str) -> None:
    assert fault(source, target, limits) == ""


@given(st.text(), st.text())
def test_any_two_texts_can_be_tested(source: str, target: str) -> None:
    source, target = tidy(source), tidy(target)
    assert fault(source, target, LATIN) in ("", *REASONS)
    if not fault(source, target, LATIN):
        assert not set(source + target) & set("\t\n\r"), "the pair fits on one line of a TSV file"
        assert source == source.strip() != ""


def test_limits_suit_the_data() -> None:
    assert suited(Limits(), [("hello", "привет, Anna"), ("yes", "да")]).target_scripts == {"CYRILLIC", "LATIN"}
    assert suited(Limits(), [("hello", "привет")] * 9).source_scripts == {"LATIN"}
    assert suited(Limits(), []).source_scripts == frozenset()
    assert scripts_of(["Ω α β", "a"]) == {"GREEK", "LATIN"}
    assert scripts_of(["Ω α β" * 9, "a"]) == {"GREEK"}
    twice = suited(Limits(), [("a" * 100, "b" * 50)])
    assert twice.usual_ratio == pytest.approx(2, rel=0.02)
    assert fault("a" * 400, "b" * 100, Limits()) == "length ratio"
    assert fault("a" * 400, "b" * 100, twice) == ""


# --- folding ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Hello, World!", "hello world"),
        ("  ¿Qué  TAL? ", "qué tal"),
        ("cafe\u0301 STRAẞE", "café strasse"),
        ("?!", "?!"),
        ("नमस्ते दुनिया।", "नमस्ते दुनिया"),
        ("", ""),
    ],
)
def test_folding(text: str, folded: str) -> None:
    assert fold(text) == folded


# --- splitting --------------------------------------------------------------------------------------------------------

sides = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=60, unique=True)


def keys(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    numbers = np.array(pairs, dtype=np.uint64).reshape(-1, 2)
    return numbers[:, 0] * np.uint64(0x9E3779B97F4A7C15), numbers[:, 1] * np.uint64(0xC2B2AE3D27D4EB4F)


NONE = np.zeros(0, np.uint64), np.zeros(0, np.uint64)


@given(sides, st.integers(0, 5), st.integers(0, 5), st.randoms(use_true_random=False))
def test_held_out_pairs_share_no_side_with_those_that_are_learned_from(
    pairs: list[tuple[int, int]], dev: int, test: int, random: object
) -> None:
    part = hold_out(*keys(pairs), (dev, test), NONE)
    assert (part == 1).sum() == min(dev, len(pairs))
    assert (part == 2).sum() == min(test, max(0, len(pairs) - dev))
    held = [pair for pair, p in zip(pairs, part, strict=True) if p > TRAIN]
    learned = [pair for pair, p in zip(pairs, part, strict=True) if p == TRAIN]
    for side in (0, 1):
        assert not {pair[side] for pair in held} & {pair[side] for pair in learned}
    order = np.array(random.sample(range(len(pairs)), len(pairs)), dtype=np.int64)  # type: ignore[attr-defined]
    shuffled = hold_out(*keys([pairs[i] for i in order]), (dev, test), NONE)
    assert shuffled.tolist() == part[order].tolist(), "the order of the files does not matter"


def test_pairs_whose_sides_stand_nowhere_else_are_held_out_first() -> None:
    pairs = [(0, i) for i in range(11)] + [(100, 100)]
    assert hold_out(*keys(pairs), (1,), NONE).tolist() == [TRAIN] * 11 + [1]
    both = hold_out(*keys(pairs), (2,), NONE).tolist()
    assert (both.count(1), both.count(COPY)) == (2, 10)


# --- all steps together -----------------------------------------------------------------------------------------------


Kept = tuple[str, str, str]  # source, target and part
Sieve = Callable[..., tuple[list[Kept], Tally]]


@pytest.fixture
def sieve(tmp_path: Path) -> Sieve:
    def run(rows: list[tuple[str, str]], **options: object) -> tuple[list[Kept], Tally]:
        path = tmp_path / "p.tsv"
        path.write_text("".join(f"{s}\t{t}\n" for s, t in rows), encoding="utf-8")
        (work := tmp_path / "work").mkdir(exist_ok=True)
        clean(work, corpora([str(path)], columns=("1", "2")), CleaningOptions(**options), Progress())  # type: ignore[arg-type]
        found = Prepared.load(work)
        assert sorted(file.name for file in work.iterdir()) == ["data.json", "dev.tsv", "test.tsv", "train.tsv"]
        assert found.tally.read == found.tally.kept + sum(found.tally.skipped.values())
        assert set(found.tally.skipped) <= set(REASONS)
        return [(*pair, part) for part in PARTS for pair in found.read(part)], found.tally

    return run


def test_duplicates_are_counted(sieve: Sieve) -> None:
    rows = [
        ("Hello!", "¡Hola!"),
        ("Hello!", "¡Hola!"),
        ("hello", "hola"),
        ("Hello!", "¡Buenas!"),
        (" Bye\u2028now ", "x"),
    ]
    kept, tally = sieve(rows)
    assert [kept_pair[:2] for kept_pair in kept] == [("Hello!", "¡Hola!"), ("Hello!", "¡Buenas!"), ("Bye now", "x")]
    assert tally.skipped == {"duplicate": 2}
    assert tally.samples["duplicate"][0][0].endswith("p.tsv:2")
    assert len(sieve(rows, duplicates=True)[0]) == 5


def test_given_sets_are_kept_apart(sieve: Sieve, tmp_path: Path) -> None:
    (tmp_path / "test.en").write_text("Good morning!\n", encoding="utf-8")
    (tmp_path / "test.es").write_text("¡Buenos días!\n", encoding="utf-8")
    apart = tuple(corpora([str(tmp_path / "test.en"), str(tmp_path / "test.es")]))
    rows = [("good morning", "buen día"), ("Good day", "Buenos días"), ("Good night", "Buenas noches")]
    kept, tally = sieve(rows, apart=apart)
    assert [source for source, _, _ in kept] == ["Good night"]
    assert tally.skipped == {"repeats a held-out sentence": 2}
    all_held = [(f"one{i}", f"uno{i}") for i in range(30)] + rows
    kept, _ = sieve(all_held, apart=apart, held_out=(3, 0))
    assert not {"good morning", "Good day"} & {source for source, _, _ in kept}, "not in a held-out part either"


def test_never_more_than_a_tenth_is_held_out(sieve: Sieve) -> None:
    kept, _ = sieve([(f"word{i}", f"palabra{i}") for i in range(50)], held_out=(100, 100))
    assert sum(part != "train" for _, _, part in kept) == 4


def test_three_pairs_are_too_few(sieve: Sieve) -> None:
    rows = [("a", "b"), ("c", "d"), ("c", "d"), ("e", "")]
    with pytest.raises(DataError, match=r"100 are needed(.|\n)*4 pairs read, 2 left \(1 empty\)"):
        sieve(rows, least=100)
