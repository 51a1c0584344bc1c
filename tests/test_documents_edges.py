"""Test documents and glossaries at the edges of their formats: real files contain all of these."""

import io
import struct
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from growth import takes_at_most
from sample_documents import archive, book, word_file
from vidrio.cli import main
from vidrio.documents.aligned import Aligned
from vidrio.documents.formats import plan_file
from vidrio.documents.html import plan_html
from vidrio.documents.markdown import plan_markdown
from vidrio.documents.markup import Plan
from vidrio.documents.packed import unpacked
from vidrio.documents.terms import hide, reveal
from vidrio.errors import DataError
from vidrio.text.mask import Masker
from vidrio.text.sentences import Splitter, split
from vidrio.translate.translator import Translator


def upper(plan: Plan) -> str:
    return plan.render([Aligned(text, text.upper()) for text in plan.texts])


CASES = {
    "a note without text": ('<p>Hello<sup><a href="#fn1"></a></sup></p>', '<p>HELLO<sup><a href="#fn1"></a></sup></p>'),
    "an anchor in a note": (
        '<p>night<sup><a id="r"></a>1</sup> ends</p>',
        '<p>NIGHT<sup><a id="r"></a>1</sup> ENDS</p>',
    ),
    "a line that is not translated": ('<p>One<hr class="notranslate"><p>Two', '<p>ONE<hr class="notranslate"><p>TWO'),
    "a closed picture": ('<p>One</p><svg class="i"/><p>Two</p>', '<p>ONE</p><svg class="i"/><p>TWO</p>'),
    "an item without an end tag": ('<ul><li translate="no">One<li>Two</ul>', '<ul><li translate="no">One<li>TWO</ul>'),
    "a paragraph without one": ('<p class="notranslate">One<p>Two</p>', '<p class="notranslate">One<p>TWO</p>'),
    "a byte-order mark": ("\ufeff<p>One</p>", "\ufeff<p>ONE</p>"),
}


@pytest.mark.parametrize("case", CASES)
def test_html_at_its_edges(case: str) -> None:
    source, expected = CASES[case]
    assert upper(plan_html(source)) == expected


def test_a_closed_picture_does_not_split_a_sentence() -> None:
    assert len(plan_html("<p>Press <svg/> to go.</p>").texts) == 1


def test_the_language_of_a_page_after_an_xml_declaration_is_updated() -> None:
    page = '<?xml version="1.0"?>\n<html lang="en"><body><p>One</p></body></html>'
    assert 'lang="es"' in upper(plan_html(page, "es"))


def test_an_xhtml_page_with_an_empty_script_is_translated() -> None:
    page = b'<html xmlns="http://www.w3.org/1999/xhtml"><head><script src="a.js"/></head><body><p>One</p></body></html>'
    plan = plan_file("a.xhtml", page, "es")
    assert plan.texts == ["One"]
    assert plan.render([Aligned("One", "Uno")]) == page.replace(b"One", b"Uno")


def test_markdown_with_tabs_and_quoted_html() -> None:
    assert upper(plan_markdown("- One old\n\tred dog.\n")) == "- ONE OLD RED DOG.\n"
    assert upper(plan_markdown("- The dog\n\tand cat\n      and cat\n")) == "- THE DOG AND CAT AND CAT\n"
    assert takes_at_most(8, lambda n: plan_markdown("- a\n" + "\ta\n" * n), 1000, 4000)
    assert upper(plan_markdown("> <div>\n> One\n> </div>\n\nTwo\n")) == "> <div>\n> One\n> </div>\n\nTWO\n"


def test_markdown_keeps_what_its_author_excluded() -> None:
    text = 'Hello <span translate="no">Red House</span> there.\n'
    assert upper(plan_markdown(text)) == 'HELLO <span translate="no">Red House</span> THERE.\n'


def test_a_message_with_unusual_escapes_is_left_untranslated() -> None:
    source = 'msgid "\\033[1mHello"\nmsgstr ""\n\nmsgid "One\\n"\nmsgstr ""\n'
    plan = plan_file("a.po", source.encode(), "es")
    assert plan.texts == ["One\n"]


def test_comments_before_a_fragment_take_linear_time() -> None:
    assert upper(plan_html("<!---->" * 2000 + "<p>One")) == "<!---->" * 2000 + "<p>ONE"


def test_a_long_line_of_rare_characters_is_split_in_linear_time() -> None:
    translator = Translator.load("en-es")
    splitter = Splitter(translator.source, Masker(translator.source, translator.about.symbols), 128)
    assert takes_at_most(8, lambda n: list(splitter.parts("5 § " * n, split("5 § " * n))), 2000, 8000)


def test_a_sentence_whose_format_was_changed_stays_whole() -> None:
    parts = unpacked(word_file())
    changed = b'<w:rPr><w:b/><w:rPrChange w:id="1" w:author="a"><w:rPr/></w:rPrChange></w:rPr>'
    document = parts["word/document.xml"].replace(b"<w:rPr><w:b/></w:rPr>", changed)
    assert changed in document
    assert (
        "The red house is very old."
        in plan_file("a.docx", archive({**parts, "word/document.xml": document}), "es").texts
    )


def test_a_book_with_obfuscated_fonts_is_no_encrypted_book() -> None:
    data = '<enc:EncryptedData><enc:EncryptionMethod Algorithm="{}"/></enc:EncryptedData>'
    fonts = data.format("http://www.idpf.org/2008/embedding")
    assert plan_file("a.epub", book(**{"META-INF/encryption.xml": f"<encryption>{fonts}</encryption>"}), "es").texts
    locked = f"<encryption>{fonts}{data.format('http://www.w3.org/2001/04/xmlenc#aes256-cbc')}</encryption>"
    with pytest.raises(DataError, match="encrypted"):
        plan_file("a.epub", book(**{"META-INF/encryption.xml": locked}), "es")


def test_no_more_than_the_declared_size_is_unpacked() -> None:
    """Declare 100 bytes in the directory for a part of 256 MiB."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as file, file.open("word/document.xml", "w") as part:
        for _ in range(256):
            part.write(b"\0" * (1 << 20))
    packed = bytearray(data.getvalue())
    place = packed.rindex(b"PK\x01\x02")
    packed[place + 24 : place + 28] = struct.pack("<I", 100)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="cannot be read"):
            plan_file("a.docx", bytes(packed), "es")
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_only_usual_compression_is_read(method: int) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as file:
        file.writestr("word/document.xml", "<w:document/>")
    with pytest.raises(DataError, match="unusual compression"):
        plan_file("a.docx", data.getvalue(), "es")


def test_a_term_that_matches_another_letter_is_left_alone() -> None:
    terms = (("\u00b5m", "micras"),)  # the micro sign; the text has the Greek letter
    assert hide("It is 5 \u03bcm wide.", terms).places == ()
    hidden = hide("It is 5 \u00b5m wide.", terms)
    assert reveal(hidden.text, hidden) == "It is 5 micras wide."


def test_a_document_and_a_page_keep_terms_through_two_models(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "terms.tsv").write_text("perro\tchucho\n", encoding="utf-8")
    command = ["translate", "-m", "es-en", "-m", "en-es", "--glossary", str(tmp_path / "terms.tsv"), "--format", "html"]
    assert main([*command, "<p>El perro duerme en la casa.</p>"]) == 0
    assert "chucho" in capsys.readouterr().out


def test_search_options_apply_to_documents(capsys: pytest.CaptureFixture[str]) -> None:
    page = "<p>The old dog is sleeping in the red house.</p>"
    assert main(["translate", "--format", "html", "--max-length", "2", page]) == 0
    assert len(capsys.readouterr().out) < 30


@pytest.mark.parametrize("longest", range(2, 8))
def test_a_number_that_the_length_limit_cuts_is_no_error(longest: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", "--max-length", str(longest), "He was born in 1984."]) == 0
    assert capsys.readouterr().out.strip()


def test_a_text_that_is_not_unicode_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", "--format", "html", "caf\udce9"]) == 1
    assert "not valid Unicode" in capsys.readouterr().err
