"""Test that sentence pairs are read from every supported format, and that malformed input is reported."""

import csv
import gzip
import lzma
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vidrio.data.clean import REASONS, Tally
from vidrio.data.read import Pair, corpora, described, read, read_lines, texts
from vidrio.errors import DataError

PAIRS = [("Hello world", "Hola mundo"), ("How are you?", "¿Qué tal?"), ("I see 2 dogs.", "Veo 2 perros.")]
WANTED = [Pair(source, target, line) for line, (source, target) in enumerate(PAIRS, 1)]


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def pairs_of(*names: object, **options: object) -> tuple[list[Pair], Tally]:
    tally = Tally()
    found = corpora([str(name) for name in names], **options)  # type: ignore[arg-type]
    return [pair for corpus in found for pair in read(corpus, tally)], tally


def tsv(pairs: list[tuple[str, ...]] | list[tuple[str, str]]) -> str:
    return "".join("\t".join(row) + "\n" for row in pairs)


# --- file formats -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)])
def test_tsv_plain_and_compressed(tmp_path: Path, suffix: str, pack: Callable[[bytes], bytes]) -> None:
    path = write(tmp_path / f"pairs.tsv{suffix}", pack(tsv(PAIRS).encode()))
    assert pairs_of(path)[0] == WANTED


def test_csv_with_commas_quotes_and_line_ends_inside(tmp_path: Path) -> None:
    rows = [("id", "en", "es"), ("1", 'He said "hi", twice', 'Dijo "hola",\ndos veces'), ("2", "a;b", "c")]
    with (tmp_path / "p.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    pairs, _ = pairs_of(tmp_path / "p.csv", columns=("en", "es"))
    assert [pair[:2] for pair in pairs] == [rows[1][1:], rows[2][1:]]
    turned, _ = pairs_of(tmp_path / "p.csv", columns=("3", "2"), languages=("en", "es"))
    assert turned[0][:2] == (rows[1][2], rows[1][1])
    assert pairs_of(write(tmp_path / "q.csv", "en;es\na;b\n"), languages=("en", "es"))[0] == [Pair("a", "b", 2)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("dog,perro\ncat,gato\n", [("dog", "perro"), ("cat", "gato")]),
        ('"Hello, Tom.",Hola\nno,no\n', [("Hello, Tom.", "Hola"), ("no", "no")]),
        ("English;Spanish\ndog;perro\n", [("dog", "perro")]),
        ("text,texto\ndog,perro\n", [("text", "texto"), ("dog", "perro")]),
        ("id,text,class\n1,good day,praise\n", [("good day", "praise")]),
        ("source,target\nsource,fuente\n", [("source", "fuente")]),
        ("7,dog,perro\n8,cat,gato\n9,man,hombre\n", [("dog", "perro"), ("cat", "gato"), ("man", "hombre")]),
    ],
)
def test_csv_with_a_header_or_without(tmp_path: Path, text: str, wanted: list[tuple[str, str]]) -> None:
    """Without a header, the first row is a pair like the others."""
    assert [pair[:2] for pair in pairs_of(write(tmp_path / "p.csv", text))[0]] == wanted
    if text.startswith("dog"):
        assert [pair[:2] for pair in pairs_of(tmp_path / "p.csv", columns=("2", "1"))[0]] == [w[::-1] for w in wanted]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("{s}\t{t}", "source, target"),
        ("{s}\t{t}\tCC-BY 2.0 (France) Attribution: tatoeba.org #1 (a) & #2 (b)", "of 3 columns, 1 as source, 2"),
        ("1276\t{s}\t2481\t{t}", "2 as source, 4"),
        ("eng\tspa\t{s}\t{t}", "3 as source, 4"),
        ("europarl\t{s}\t{t}", "2 as source, 3"),
    ],
)
def test_known_layouts_are_recognised(tmp_path: Path, row: str, told: str) -> None:
    path = write(tmp_path / "p.txt", "".join(row.format(s=s, t=t) + "\n" for s, t in PAIRS * 3))
    pairs, _ = pairs_of(path)
    assert [pair[:2] for pair in pairs] == PAIRS * 3
    assert told in corpora([str(path)])[0].layout.words


@pytest.mark.parametrize(("rows", "labels"), [(300, 9), (40, 9), (12, 2)])
@pytest.mark.parametrize("form", ["{label}\t{s}\t{t}", "{s}\t{label}\t{t}", "{n}\t{label}\t{s}\t{t}"])
def test_a_column_of_labels_is_not_a_text(tmp_path: Path, form: str, rows: int, labels: int) -> None:
    """In written.tsv.xz, for example, the columns are the origin of the pair, the English and the Spanish."""
    lines = [form.format(n=n, label=f"from-{n % labels}", s=f"I am {n}.", t=f"Soy {n}.") for n in range(rows)]
    path = write(tmp_path / "p.tsv.xz", lzma.compress("\n".join(lines).encode()))
    assert [pair[:2] for pair in pairs_of(path)[0]] == [(f"I am {n}.", f"Soy {n}.") for n in range(rows)]


def test_what_was_recognised_is_shown_with_the_first_pairs(tmp_path: Path) -> None:
    path = write(tmp_path / "p.tsv", tsv([("a", *pair) for pair in [*PAIRS, ("x\x1b" * 99, "y")]]))
    [corpus] = corpora([str(path)])
    layout, *pairs = described(corpus, 4)
    assert layout == f"{path}: of 3 columns, 2 as source, 3 as target"
    assert pairs[:3] == [f"  {source} → {target}" for source, target in PAIRS]
    assert pairs[3] == f"  {'x·' * 30}… → y"
    [lines] = texts([str(write(tmp_path / "t", "one\ntwo\n"))])
    assert described(lines, 1) == [f"{tmp_path / 't'}: one text per line", "  one"]


def test_columns_can_be_chosen(tmp_path: Path) -> None:
    path = write(tmp_path / "p.tsv", "note\ten\tes\n" + tsv([("x y", s, t) for s, t in PAIRS]))
    by_name, _ = pairs_of(path, columns=("en", "es"))
    assert [pair[:2] for pair in by_name] == PAIRS
    assert [pair[:2] for pair in pairs_of(path, languages=("en", "es"))[0]] == PAIRS
    assert pairs_of(path, columns=("3", "2"))[0][1][:2] == ("Hola mundo", "Hello world")
    with pytest.raises(DataError, match=r"does not have --columns en,fr(.|\n)*note \| en \| es"):
        pairs_of(path, columns=("en", "fr"))


def test_several_corpora_with_weights(tmp_path: Path) -> None:
    one = write(tmp_path / "one.tsv", tsv(PAIRS))
    en, es = write(tmp_path / "x.en", "Yes.\n"), write(tmp_path / "x.es", "Sí.\n")
    found = corpora([f"{one}@2.5", str(en), f"{es}@0.5"])
    assert [(c.form, c.weight) for c in found] == [("tsv", 2.5), ("text", 0.5)]
    assert pairs_of(f"{one}@2.5", en, es)[0] == [*WANTED, Pair("Yes.", "Sí.", 1)]
    odd = write(tmp_path / "name@3", tsv(PAIRS))
    assert corpora([str(odd)])[0].weight == 1, "a file that is really called so"
    with pytest.raises(DataError, match="the weight 0"):
        corpora([f"{one}@0"])


def test_lines_of_text_are_pairs_with_themselves(tmp_path: Path) -> None:
    path = write(tmp_path / "p.txt", "one\ttwo\n\nthree\n")
    [corpus], tally = texts([str(path)]), Tally()
    assert list(read(corpus, tally)) == [Pair("one\ttwo", "one\ttwo", 1), Pair("", "", 2), Pair("three", "three", 3)]
    [nowhere] = texts([str(tmp_path / "nowhere.txt")])
    with pytest.raises(DataError, match="there is no file"):
        list(read(nowhere, tally))


# --- bad input --------------------------------------------------------------------------------------------------------


def test_files_of_other_lengths_are_refused(tmp_path: Path) -> None:
    one, two = write(tmp_path / "a.en", "a\n" * 1000), write(tmp_path / "a.es", "b\n" * 998)
    with pytest.raises(DataError, match=r"same number of lines(.|\n)*a\.en: 1,000, .*a\.es: 998"):
        pairs_of(one, two)


def test_a_file_with_one_column_has_no_pairs(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"does not have two columns(.|\n)*found: Hello"):
        pairs_of(write(tmp_path / "p.tsv", "Hello\nworld\n"))
    with pytest.raises(DataError, match="found: a·b"):
        pairs_of(write(tmp_path / "p.tsv", "a\x1bb\n"))
    with pytest.raises(DataError, match="no file of translations follows it"):
        pairs_of(write(tmp_path / "p.txt", "Hello\nworld\n"))


@pytest.mark.parametrize("name", ["p.tsv", "p.csv"])
def test_an_empty_file_has_no_pairs(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="contains no sentence pairs"):
        pairs_of(write(tmp_path / name, b"\n"))


def test_rows_without_a_column_are_counted_and_bytes_that_are_no_text_are_marked(tmp_path: Path) -> None:
    good = b"Hello\tHola\n"
    lines = [
        b"\xef\xbb\xbf" + good,
        b"caf\xe9\tcaf\xc3\xa9\n",
        b"one column\n",
        b"Hello\tHola\r\n",
        b"\n",
        b"Hello\tHola",
    ]
    path = write(tmp_path / "p.tsv", b"".join(lines))
    with pytest.raises(DataError, match="two columns"):
        pairs_of(path)  # one line has no tab, so the columns are ambiguous
    pairs, tally = pairs_of(path, columns=("1", "2"))
    assert pairs == [
        Pair("Hello", "Hola", 1),
        Pair("caf\ufffd", "café", 2),
        *(Pair("Hello", "Hola", n) for n in (4, 6)),
    ]
    assert (tally.read, tally.skipped) == (5, {"column missing": 1})
    assert tally.samples["column missing"] == [[f"{path}:3", "one column", ""]]
    assert set(tally.skipped) <= set(REASONS)


def test_other_encodings_are_refused(tmp_path: Path) -> None:
    for name in ("utf-16", "utf-32"):
        path = write(tmp_path / "p.tsv", tsv(PAIRS).encode(name))
        with pytest.raises(DataError, match="byte-order mark of UTF-16 or UTF-32"):
            pairs_of(path)


@pytest.mark.parametrize(("name", "pack"), [("p.tsv.gz", gzip.compress), ("p.tsv.xz", lzma.compress)])
def test_damaged_files_are_refused(tmp_path: Path, name: str, pack: Callable[[bytes], bytes]) -> None:
    whole = pack(random.Random(1).randbytes(100_000).hex().encode() + b"\ta\n")
    for data in (whole[: len(whole) // 2], b"something else", b""):
        with pytest.raises(DataError):
            pairs_of(write(tmp_path / name, data))


def test_csv_that_is_none(tmp_path: Path) -> None:
    path = write(tmp_path / "p.csv", 'en,es\na,b\nc,"' + "x,y\n" * 100_000)
    with pytest.raises(DataError, match="unpaired quotation mark"):
        pairs_of(path)


@given(data=st.binary(max_size=300))
@settings(max_examples=100)
def test_any_bytes_give_lines_or_a_data_error(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = write(tmp_path_factory.mktemp("any") / "p.tsv", data)
    try:
        lines = list(read_lines(path))
    except DataError:
        return
    assert len(lines) == len(data.split(b"\n")) - (data.endswith(b"\n") or not data)
