"""Test that other programs open translated files of every format, with their formatting. Unusable files fail."""

import io
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import docx
import odfdo
import polib
import pytest
import srt
import webvtt
from fastapi.testclient import TestClient

from sample_documents import PAGE, PO, SRT, archive, book, open_document, word_file
from vidrio.documents import DOCUMENTS
from vidrio.documents.aligned import Aligned, aligned_by
from vidrio.documents.formats import SUFFIXES, plan_file
from vidrio.documents.packed import tokens, unpacked
from vidrio.documents.subtitles import plan_subtitles
from vidrio.errors import DataError
from vidrio.serve.app import create_app
from vidrio.serve.settings import Settings
from vidrio.translate.translator import Translator


@cache
def translator() -> Translator:
    return Translator.load("en-es")


def through(name: str, data: bytes) -> bytes:
    plan = plan_file(name, data, "es")
    return plan.render(aligned_by(translator(), plan.texts))


# --- office -----------------------------------------------------------------------------------------------------------


def test_a_file_of_word_opens_with_its_formatting() -> None:
    document = docx.Document(io.BytesIO(through("a.docx", word_file())))
    bold = document.paragraphs[1]
    assert bold.text == "La casa roja es muy vieja."
    assert [run.text.strip() for run in bold.runs if run.bold] == ["casa roja"]
    assert document.paragraphs[0].style.name == "Heading 1"
    assert document.paragraphs[2].style.name == "List Bullet"
    assert document.paragraphs[2].text == "El perro es viejo."
    assert [cell.text for cell in document.tables[0].rows[0].cells] == ["El gato es nuevo.", "12"]
    assert document.paragraphs[3].text == "Compré un coche nuevo\nBuenos días."
    assert any(run.italic and "coche nuevo" in run.text for run in document.paragraphs[3].runs)
    assert document.sections[0].header.paragraphs[0].text == "La casa es roja."


def test_an_open_document_opens_with_its_formatting() -> None:
    document = odfdo.Document(io.BytesIO(through("a.odt", open_document())))
    assert document.body.headers[0].inner_text == "La casa"
    [bold] = [span.inner_text for span in document.body.get_elements("//text:span")]
    assert bold == "casa roja"
    assert document.body.get_paragraphs(content="muy vieja")
    [note] = document.body.get_notes()
    assert note.note_body == "El perro es viejo."
    whole = document.get_part("content.xml").serialize().decode()
    assert (
        re.sub(r"<text:note .*</text:note>|<[^>]*>", "", whole.partition("</text:h>")[2]).count(
            "Compré un coche nuevo."
        )
        == 1
    )


# --- books ------------------------------------------------------------------------------------------------------------


def test_a_book_keeps_all_but_its_words() -> None:
    told = through("a.epub", book())
    parts = unpacked(told)
    page = parts["OEBPS/one.xhtml"].decode()
    assert "<p>La <b>casa roja</b> es muy vieja.<br/>El perro es viejo." in page
    assert 'alt="El gato es viejo."' in page
    assert "if (a < b) {}" in page
    assert tags(page) == tags(PAGE)
    assert "<dc:language>es</dc:language>" in parts["OEBPS/c.opf"].decode()
    assert "La vieja casa" in parts["OEBPS/c.opf"].decode()
    assert "<text>La casa</text>" in parts["OEBPS/toc.ncx"].decode()
    assert list(parts) == list(unpacked(book()))
    assert parts["OEBPS/a.png"] == b"\x89PNG\x00"


def tags(page: str) -> list[str]:
    return re.findall(r"</?\w+", page.partition("<html")[2])


# --- text -------------------------------------------------------------------------------------------------------------


def test_subtitles_keep_their_times_lines_and_tags() -> None:
    wanted = SRT
    for source, target in (
        ("<i>The house</i> is red.\nThe dog is old.", "<i>La casa</i> es roja.\nEl perro es viejo."),
        ("- Good morning.\n- Where is my book?", "- Buenos días.\n- ¿Dónde está mi libro?"),
        ("The cat is new.", "El gato es nuevo."),
    ):
        wanted = wanted.replace(source, target)
    translated = through("a.srt", SRT.encode()).decode()
    assert translated == wanted
    cues = list(srt.parse(translated))
    assert [(cue.index, cue.start, cue.end) for cue in cues] == [(c.index, c.start, c.end) for c in srt.parse(SRT)]
    assert cues[1].content == "- Buenos días.\n- ¿Dónde está mi libro?"


def test_notes_and_styles_of_vtt_stay() -> None:
    source = "WEBVTT\n\nNOTE The house\n\nSTYLE\n::cue { color: red }\n\n"
    source += "00:01.000 --> 00:02.000 line:0\n<v Tom>The dog is old.</v>\n"
    told = through("a.vtt", source.encode()).decode()
    assert told == source.replace("The dog is old.", "El perro es viejo.")
    [cue] = webvtt.from_string(told)
    assert (cue.start, cue.text, cue.voice) == ("00:00:01.000", "El perro es viejo.", "Tom")
    assert plan_subtitles("WEBVTT\n").texts == []


def test_po_files_get_what_they_lack() -> None:
    catalogue = polib.pofile(through("a.po", PO.encode()).decode())
    assert catalogue.find("The dog is old.").msgstr == "El perro es viejo."
    assert catalogue.find("The house").msgstr == "Mi casa"
    plural = catalogue.find("I have %d car.")
    assert all(text.count("%d") == 1 for text in plural.msgstr_plural.values())
    assert catalogue.metadata["Language"] == "es"
    assert "python-format" in plural.flags


def test_the_rest_of_a_po_file_stays() -> None:
    odd = """# Translators: nobody\r
msgid ""\r
msgstr "Language: en\\nContent-Type: text/plain; charset=ISO-8859-1\\n"\r
\r
#: a.c:1\r
#, fuzzy, c-format\r
#| msgid "The cat"\r
msgctxt "menu"\r
msgid ""\r
"Say \\"hello\\"\\n"\r
"The \tdog is old."\r
msgstr "old"\r
\r
msgid   "The house"\r
msgstr "Mi casa"\r
\r
#~ msgid "gone"\r
#~ msgstr "ido"\r
"""
    plan = plan_file("a.po", odd.encode(), "es")
    assert plan.texts == ['Say "hello"\nThe \tdog is old.']
    told = plan.render([Aligned("", 'Di "hola"\nEl perro')]).decode()
    assert told == odd.replace('#, fuzzy, c-format\r\n#| msgid "The cat"\r\n', "#, c-format\r\n").replace(
        'msgstr "old"', 'msgstr ""\r\n"Di \\"hola\\"\\n"\r\n"El perro"'
    ).replace("Language: en", "Language: es").replace("ISO-8859-1", "UTF-8")


def test_the_forms_of_a_plural_that_are_there_stay() -> None:
    half = 'msgid "%d car"\nmsgid_plural "%d cars"\nmsgstr[0] ""\nmsgstr[1] "coches: %d"\n'
    plan = plan_file("a.po", half.encode(), "es")
    told = plan.render([Aligned("", "%d coche"), Aligned("", "%d coches")]).decode()
    assert told == half.replace('msgstr[0] ""', 'msgstr[0] "%d coche"')


def test_a_po_file_is_never_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("secret.po", str(tmp_path / "secret.po")):
        Path(name).write_text(PO)
        with pytest.raises(DataError, match="cannot be read"):
            plan_file("x.po", name.encode(), "es")


def test_text_keeps_its_line_ends_and_its_mark() -> None:
    assert through("a.txt", "\ufeffThe dog is old.\r\n\r\nGood morning.\r\n".encode()) == (
        "\ufeffEl perro es viejo.\r\n\r\nBuenos días.\r\n".encode()
    )
    assert through("A.HTM", b"<p>The dog is old.") == b"<p>El perro es viejo."
    assert through("a.md", b"# The dog is old.\n") == b"# El perro es viejo.\n"


# --- unusable files ---------------------------------------------------------------------------------------------------


def bomb() -> bytes:
    return archive({"word/document.xml": b"0" * (40 << 20)})


LAUGHS = '<!DOCTYPE a [<!ENTITY b "ha"><!ENTITY c "&b;&b;&b;">]><w:document><w:p><w:t>&c;</w:t></w:p></w:document>'


@pytest.mark.parametrize(
    ("name", "data", "error"),
    [
        ("a.pdf", b"%PDF", "is not supported"),
        ("a", b"text", "is not supported"),
        ("a.ass", b"[Events]\nDialogue: 0,0:00:01.00,0:00:02.00,,,0,0,0,,Hello", "is not supported"),
        ("a.csv", b"1,hello", "is not supported"),
        ("a.tex", b"\\section{Hello}", "is not supported"),
        ("a.txt", b"\xff\xfe", "is not UTF-8"),
        ("a.po", b'msgid "hello"\nmsgstr "', "cannot be read"),
        ("a.docx", b"no archive", "cannot be read"),
        ("a.docx", archive({"x": "y"}), "does not match its extension"),
        ("a.odt", archive({"x": "y"}), "does not match its extension"),
        ("a.docx", archive({"word/document.xml": "<w:p>"}), "is not XML in UTF-8"),
        ("a.docx", archive({"word/document.xml": LAUGHS}), "declares entities"),
        ("a.docx", archive({"../x": "y"}), "unsafe name"),
        ("a.docx", archive({"/x": "y"}), "unsafe name"),
        ("a.docx", bomb(), "too large when unpacked"),
        ("a.epub", archive({"x": "y"}), "does not match its extension"),
        ("a.epub", book(**{"META-INF/encryption.xml": "<EncryptedData/>"}), "encrypted"),
        ("a.odt", archive({"META-INF/manifest.xml": "<manifest:encryption-data/>"}), "encrypted"),
    ],
)
def test_what_cannot_be_handled_is_an_error(name: str, data: bytes, error: str) -> None:
    with pytest.raises(DataError, match=error):
        through(name, data)


def empty_document() -> bytes:
    file = io.BytesIO()
    docx.Document().save(file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.txt", b""), ("a.txt", b"12 :-)\r\n"), ("a.html", b"<p>12</p>"), ("a.docx", empty_document()), ("a.srt", b"")],
)
def test_a_file_without_text_comes_back_unchanged(name: str, data: bytes) -> None:
    assert through(name, data) == data


@pytest.mark.parametrize(("name", "make"), [("a.docx", word_file), ("a.odt", open_document), ("a.epub", book)])
def test_a_damaged_archive_is_refused_or_says_the_same(name: str, make: Callable[[], bytes]) -> None:
    """Check that changed contents are found by their checksum. Dates and attributes may change."""
    whole = make()
    parts, refused = unpacked(whole), 0
    places = range(0, len(whole), max(1, len(whole) // 60))
    for at in places:
        broken = bytearray(whole)
        broken[at] ^= 0xFF
        try:
            plan_file(name, bytes(broken), "es")
        except DataError:
            refused += 1
        else:
            assert unpacked(bytes(broken)) == parts, at
    assert refused > len(places) // 2


def test_xml_comes_out_as_it_went_in() -> None:
    for source in (PAGE, "<a b='&lt;'>x &amp; y<!-- c --><?p q?><d/><![CDATA[<e>]]></a>"):
        assert "".join(token.raw for token in tokens(source.encode(), "it")) == source


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_translates_files(
    run_vidrio: Callable[..., Any], call_vidrio: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "in.docx").write_bytes(word_file())
    done = run_vidrio("translate", "--input", "in.docx", "--output", "out.docx")
    assert done.returncode == 0, done.stderr
    assert docx.Document(str(tmp_path / "out.docx")).paragraphs[2].text == "El perro es viejo."
    done = run_vidrio("translate", "--format", "html", "<p>The <b>red house</b> is very old.</p>")
    assert done.stdout == "<p>La <b>casa roja</b> es muy vieja.</p>\n"
    (tmp_path / "terms.tsv").write_text("house\tmansión\n")
    done = run_vidrio("translate", "--glossary", "terms.tsv", stdin="The house is red.\n\nGood morning.\n")
    assert "mansión" in done.stdout.splitlines()[0]
    assert done.stdout.splitlines()[1:] == ["", "Buenos días."]
    for name in ("in.pdf", "in.csv", "in.tex", "in.ass"):
        (tmp_path / name).write_bytes(b"The house, 12\n")
        done = call_vidrio("translate", "--input", name, "--output", "out")
        assert done.returncode == 1
        assert "is not supported" in done.stderr
        assert not (tmp_path / "out").exists()
    assert run_vidrio("translate", "--format", "text", "--input", "in.csv").stdout == "La casa, 12\n"
    assert call_vidrio("translate", "--format", "html", "--json", "x").returncode == 2
    assert {*DOCUMENTS, ".txt"} == set(SUFFIXES)


# --- the server -------------------------------------------------------------------------------------------------------


def serving(folder: Path, **given: Any) -> TestClient:
    return TestClient(
        create_app("en-es", settings=Settings(page=False, files=folder, **given)), base_url="http://localhost"
    )


def upload(on: TestClient, name: str, data: bytes, **fields: Any) -> Any:
    return on.post("/translate_file", files={"file": (name, data)}, data={"source": "en", "target": "es", **fields})


def test_the_server_translates_files(tmp_path: Path) -> None:
    with serving(tmp_path) as on:
        answer = upload(on, "../my file.docx", word_file())
        where = answer.json()["translatedFileUrl"]
        assert re.fullmatch(r"http://localhost/download_file/[0-9a-f]{32}\.my%20file\.docx", where)
        file = on.get(where)
        assert "attachment" in file.headers["content-disposition"]
        assert docx.Document(io.BytesIO(file.content)).paragraphs[2].text == "El perro es viejo."
        where = upload(on, "a.srt", SRT.encode(), source="auto").json()["translatedFileUrl"]
        assert "Buenos días." in on.get(where).text
        assert on.get("/frontend/settings").json()["supportedFilesFormat"] == list(SUFFIXES)


def test_names_and_places_of_files_are_the_server_s_own(tmp_path: Path) -> None:
    with serving(tmp_path / "files", file_limit=50_000) as on:
        for name in ("x", "../x", "%2e%2e%2fx", "0" * 32, "0" * 32 + ".x", "..%5c..%5cetc", "job.json"):
            assert on.get(f"/download_file/{name}").status_code == 404, name
        assert upload(on, "a.txt", b"a" * 200_000).status_code == 413
        assert on.post("/translate_file", data={"source": "en", "target": "es"}).status_code == 400
    with TestClient(create_app("lesson", settings=Settings(page=False)), base_url="http://localhost") as on:
        assert upload(on, "a.txt", b"hello").json() == {"error": "Files translation are disabled on this server."}
