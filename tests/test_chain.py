"""Test chains of models, in which each model translates the output of the previous model."""

import json
from pathlib import Path

import pytest

from vidrio.cli import main
from vidrio.translate.translator import Translator

SPANISH = ["El perro duerme en la casa.", "", "¿Dónde está la estación? Escriba a ana@example.org."]
CHAIN = ["-m", "es-en", "-m", "en-es"]


@pytest.fixture(scope="module")
def by_hand() -> list[tuple[str, str]]:
    """Translate with one model after the other, and return the English and the final Spanish texts."""
    to_english, back = Translator.load("es-en"), Translator.load("en-es")
    english = [to_english.translate(line).text for line in SPANISH]
    return [(between, back.translate(between).text) for between in english]


def test_a_text_and_lines(by_hand: list[tuple[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", *CHAIN, SPANISH[0]]) == 0
    assert capsys.readouterr().out == f"{by_hand[0][1]}\n"
    (tmp_path / "in.txt").write_text("\n".join(SPANISH), encoding="utf-8")
    assert main(["translate", *CHAIN, "-i", str(tmp_path / "in.txt"), "-o", str(tmp_path / "out.txt")]) == 0
    assert (tmp_path / "out.txt").read_text("utf-8").splitlines() == [after for _, after in by_hand]


def test_json_has_the_text_between(by_hand: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", *CHAIN, "--json", SPANISH[2]]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["text"], found["through"], found["translation"]) == (SPANISH[2], *by_hand[2])


def test_a_document_and_a_glossary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "glossary.tsv").write_text("perro\tchucho\n", encoding="utf-8")
    command = ["translate", *CHAIN, "--glossary", str(tmp_path / "glossary.tsv")]
    assert main([*command, SPANISH[0]]) == 0
    assert "chucho" in capsys.readouterr().out
    assert main(["translate", *CHAIN, "--format", "html", f"<p>{SPANISH[0]} <b>Hola</b></p>"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("<p>")
    assert "<b>Hola</b>" in out


REFUSED = {
    "another order": (["-m", "en-es", "-m", "en-es"], 1, "en-es writes es, en-es reads en"),
    "no translator": ([*CHAIN, "-m", "worked-example"], 1, "worked-example"),
    "a PO file": ([*CHAIN, "-i", "a.po"], 2, "one model"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_chained_is_refused(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    options, code, says = REFUSED[case]
    assert main(["translate", *options, *([] if case == "a PO file" else ["Hola"])]) == code
    assert says in capsys.readouterr().err
