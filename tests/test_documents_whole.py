"""Test that documents stay intact: chemical formulas, mathematics, times, languages. Each case was once a bug."""

import io
import re
from collections import Counter
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import docx
import odfdo
import polib
import pytest
import srt
import webvtt
from justhtml import JustHTML

from sample_documents import MARKDOWN, PAGE, PO, SRT, VTT, book, open_document, word_file
from vidrio.documents.aligned import Aligned, Link
from vidrio.documents.formats import plan_file
from vidrio.documents.html import plan_html
from vidrio.documents.markdown import plan_markdown
from vidrio.documents.markup import Plan, Planned
from vidrio.documents.packed import unpacked
from vidrio.documents.subtitles import plan_subtitles


def shouted(plan: Planned[Any]) -> Any:
    """Render the document in capitals, except for placeholders."""
    texts = []
    for text in plan.texts:
        told = "".join(part if part.startswith("{") else part.upper() for part in _around_placeholders(text))
        texts.append(Aligned(text, told))
    return plan.render(texts)


def _around_placeholders(text: str) -> list[str]:
    return re.split(r"(\{[kx]\w*\})", text)


@pytest.mark.parametrize(
    ("planned", "source", "wanted"),
    [
        (plan_html, "<p>Water is H<sub>2</sub>O now.</p>", "<p>WATER IS H<sub>2</sub>O NOW.</p>"),
        (plan_html, "A<b>B</b>C <i>d</i>", "A<b>B</b>C <i>D</i>"),
        (plan_html, '<a href="x>link</p> Good morning', '<a href="x>LINK</p> GOOD MORNING'),
        (plan_html, '<i translate="no"><img alt="The dog"></i> Hi', '<i translate="no"><img alt="The dog"></i> HI'),
        (plan_html, "Go to http://localhost:<code>x</code>, now", "GO TO HTTP://LOCALHOST:<code>x</code>, NOW"),
        (
            plan_html,
            'Cold night.<a href="#n"><sup>1</sup></a> The end',
            'COLD NIGHT.<a href="#n"><sup>1</sup></a> THE END',
        ),
        (plan_html, "See <a href=x>12</a> dogs", "SEE <a href=x>12</a> DOGS"),
        (plan_markdown, "| a | b |\n|---|---|\n| the |\\| `a\\|b` |\n", "| A | B |\n|---|---|\n| THE |\\| `a\\|b` |\n"),
        (plan_markdown, "1. 1\n   the *old*\n2. 2\n", "1. 1 THE *OLD*\n2. 2\n"),
        (plan_markdown, "It is 2*3*4 now.\n", "IT IS 2*3*4 NOW.\n"),
        (plan_markdown, "Here $a_1*b*c$ is.\n", "HERE $a_1*b*c$ IS.\n"),
        (plan_markdown, "It costs $5 or $6.\n", "IT COSTS $5 OR $6.\n"),
        (plan_markdown, "$$\\int_0^1 x dx$$\n", "$$\\int_0^1 x dx$$\n"),
        (plan_markdown, "Let\n$$\nx = *a*\n- b\n=\n$$\nbe.\n", "LET\n$$\nx = *a*\n- b\n=\n$$\nBE.\n"),
        (plan_markdown, "So \\(a_1 * b\\) is \\[x^2\\].\n", "SO \\(a_1 * b\\) IS \\[x^2\\].\n"),
        (plan_markdown, ":::note\nHello *you*\n:::\n", ":::note\nHELLO *YOU*\n:::\n"),
        (plan_markdown, '!!! note "A"\n    Hello\n', '!!! note "A"\n    Hello\n'),
        (plan_markdown, "> [!NOTE]\n> Hello.\n", "> [!NOTE]\n> HELLO.\n"),
        (plan_markdown, "Hello[^one] you.\n\n[^one]: A note here.\n", "HELLO[^one] YOU.\n\n[^one]: A NOTE HERE.\n"),
        (plan_markdown, "+++\ntitle = 'house'\n+++\nHello\n", "+++\ntitle = 'house'\n+++\nHELLO\n"),
        (plan_markdown, "One\x85line\u2028two\n\n*three*\n", "ONE\x85LINE\u2028TWO\n\n*THREE*\n"),
    ],
)
def test_what_is_no_text_stays(planned: Callable[[str], Plan], source: str, wanted: str) -> None:
    assert shouted(planned(source)) == wanted


def test_no_element_is_lost_when_the_translation_is_shorter() -> None:
    plan = plan_html("<p>See <a href=one>the</a> <a href=two>big</a><b> </b><i>house</i></p>")
    told = plan.render([Aligned(plan.texts[0], "casa", (Link(0, 4, 12),))])
    assert [told.count(tag) for tag in ("<a href=one>", "<a href=two>", "<b>", "<i>", "</i>")] == [1, 1, 1, 1, 1]


def test_the_mark_of_a_note_stays_with_its_word() -> None:
    assert plan_html('<p>The dog<a href="#n"><sup>1</sup></a> runs.</p>').texts == ["The dog runs."]
    plan = plan_html('<p>The dog<a href="#n">1</a> runs.</p>')
    assert plan.texts == ["The dog runs."]
    told = plan.render([Aligned(plan.texts[0], "Corre el perro.", (Link(0, 5, 8), Link(6, 8, 0), Link(9, 14, 4)))])
    assert told == '<p>Corre el perro<a href="#n">1</a>.</p>'


def test_a_word_that_changes_takes_the_element_of_most_of_it() -> None:
    plan = plan_html("<p>It is <i>$<b>12.50</b></i> now.</p>")
    told = plan.render([Aligned(plan.texts[0], "Es 12,50 $ ahora.", (Link(0, 2, 3), Link(3, 10, 6), Link(11, 16, 13)))])
    assert told == "<p>Es <i><b>12,50 $</b></i> ahora.</p>"


def test_no_thing_is_lost_when_the_translation_drops_its_placeholder() -> None:
    plan = plan_html("<p>Press <kbd>x</kbd> now.</p>")
    told = plan.render([Aligned(plan.texts[0], "Ahora.")])
    assert told.count("<kbd>x</kbd>") == 1


# --- subtitles --------------------------------------------------------------------------------------------------------

CLOSE = "1\n00:00:01,000 --> 00:00:02,000\nHello\n2\n00:00:03,000 --> 00:00:04,000\nWorld\n12\n"


def test_cues_without_an_empty_line_between_them_keep_their_times() -> None:
    plan = plan_subtitles(CLOSE)
    assert plan.texts == ["Hello", "World\n12"] or plan.texts == ["Hello", "World 12"]
    assert shouted(plan) == CLOSE.replace("Hello", "HELLO").replace("World", "WORLD")
    assert [str(cue.start) for cue in srt.parse(shouted(plan))] == ["0:00:01", "0:00:03"]


def test_an_arrow_in_a_text_is_no_time() -> None:
    assert plan_subtitles("1\n00:00:01,000 --> 00:00:02,000\nGo --> there\n").texts == ["Go --> there"]


# --- languages --------------------------------------------------------------------------------------------------------


def test_the_language_that_a_page_names_is_the_new_one() -> None:
    page = '<html lang="en-GB"><p lang=en>Hello <i lang="fr">monde</i></p></html>'
    assert shouted(plan_html(page, "es")) == page.replace('"en-GB"', '"es"').replace("=en>", '="es">').replace(
        "Hello", "HELLO"
    ).replace("monde", "MONDE")


# --- any translation --------------------------------------------------------------------------------------------------

WORDS = re.compile(r"\{[kx]\w*\}|[^\s{}]+|[{}]")


def retold(change: Callable[[list[str]], list[str]], text: str) -> Aligned:
    """Return a translation made of the text's own words, each aligned with itself."""
    places = {match[0]: match.start() for match in WORDS.finditer(text)}
    told, links = "", []
    for word in change([match[0] for match in WORDS.finditer(text)]):
        told += " " * bool(told)
        links.append(Link(len(told), len(told) + len(word), places[word]))
        told += word
    return Aligned(text, told, links)


def is_kept(word: str) -> bool:
    return word.startswith("{") or any(map(str.isdigit, word))


CHANGES: dict[str, Callable[[list[str]], list[str]]] = {
    "the same": list,
    "backwards": lambda words: words[::-1],
    "shorter": lambda words: [word for number, word in enumerate(words) if number % 2 == 0 or is_kept(word)],
    "longer": lambda words: [word for one in words for word in ([one] if is_kept(one) else [one, one])],
    "things only": lambda words: [word for word in words if is_kept(word)] or words[:1],
}


def opens_as(suffix: str, data: bytes) -> Any:
    """Return what an independent reader finds in a file, except its words."""
    if suffix == ".docx":
        document = docx.Document(io.BytesIO(data))
        return [p.style.name for p in document.paragraphs], [(len(t.rows), len(t.columns)) for t in document.tables]
    if suffix == ".odt":
        body = odfdo.Document(io.BytesIO(data)).body
        return [len(body.get_elements(f"//{name}")) for name in ("text:p", "text:h", "text:note", "text:span")]
    if suffix == ".srt":
        return [(cue.index, cue.start, cue.end) for cue in srt.parse(data.decode())]
    if suffix == ".vtt":
        return [(cue.start, cue.end, cue.identifier) for cue in webvtt.from_string(data.decode())]
    if suffix == ".po":
        return [(entry.msgid, entry.msgid_plural, entry.flags, entry.comment) for entry in polib.pofile(data.decode())]
    if suffix == ".epub":
        return [(name, ElementTree.fromstring(part).tag) for name, part in _xml(data).items()]
    return JustHTML(data.decode(), fragment=False, sanitize=False).root.name


def _xml(data: bytes) -> dict[str, bytes]:
    return {name: part for name, part in unpacked(data).items() if name.endswith((".xml", ".xhtml", ".opf", ".ncx"))}


def _all_text(suffix: str, data: bytes) -> str:
    parts = _xml(data) if suffix in (".docx", ".odt", ".epub") else {"": data}
    return "\n".join(part.decode() for part in parts.values())


SAMPLES: dict[str, bytes] = {
    ".html": PAGE.partition("?>\n")[2].encode(),
    ".srt": SRT.encode(),
    ".vtt": VTT.encode(),
    ".po": PO.encode(),
    ".docx": word_file(),
    ".odt": open_document(),
    ".epub": book(),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("suffix", SAMPLES)
def test_a_document_opens_with_all_it_had_whatever_the_translation_is(suffix: str, change: str) -> None:
    data = SAMPLES[suffix]
    plan = plan_file(f"a{suffix}", data, "")
    told = plan.render([retold(CHANGES[change], text) for text in plan.texts])
    if not (suffix == ".odt" and change != "the same"):  # an element appears twice if its words are separated
        assert opens_as(suffix, told) == opens_as(suffix, data)
    before, after = _all_text(suffix, data), _all_text(suffix, told)
    for what in (r"</?[\w:]+", r"\d+", r"\b(?:href|src|id|style|text:style-name|w:val)=\"[^\"]*\""):
        missing = Counter(re.findall(what, before)) - Counter(re.findall(what, after))
        assert not missing, missing


@pytest.mark.parametrize("change", CHANGES)
def test_markdown_has_the_same_links_code_and_tags_whatever_the_translation_is(change: str) -> None:
    plan = plan_markdown(MARKDOWN)
    told = plan.render([retold(CHANGES[change], text) for text in plan.texts])
    for what in (
        r"`[^`]+`",
        r"\]\([^)]*\)",
        r"\]\[\w+\]",
        r"</?\w+>",
        r"<http[^>]*>",
        r"(?m)^(?:[#|-]|\d\.)",
        r"(?<!\\)\*+",
    ):
        missing = Counter(re.findall(what, MARKDOWN)) - Counter(re.findall(what, told))
        assert not missing, missing
