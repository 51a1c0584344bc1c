"""Test marked-up text: every tag is kept and placed around the corresponding words, and nothing else changes."""

import re
from collections import Counter
from functools import cache
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from justhtml import JustHTML
from markdown_it import MarkdownIt

from sample_documents import MARKDOWN
from vidrio.documents.aligned import Aligned, Link, aligned_by
from vidrio.documents.html import plan_html
from vidrio.documents.inline import Element, Inline, Piece, carry, written
from vidrio.documents.markdown import plan_markdown
from vidrio.documents.markup import Plan, escape
from vidrio.documents.terms import hide, read_terms, reveal
from vidrio.errors import DataError
from vidrio.serve.app import create_app
from vidrio.serve.settings import Settings
from vidrio.translate.translator import Translator


@cache
def translator() -> Translator:
    return Translator.load("en-es")


def translated(plan: Plan) -> str:
    return plan.render(aligned_by(translator(), plan.texts))


def unchanged(plan: Plan) -> str:
    """Render the plan with every text as its own translation."""
    return plan.render([Aligned(text, text) for text in plan.texts])


def reversed_words(plan: Plan) -> str:
    """Render the plan with the words of each text in reverse order, aligned with their sources."""
    found = []
    for source in plan.texts:
        places = [match.span() for match in re.finditer(r"\S+", source)]
        text, links = "", []
        for number, (start, end) in enumerate(reversed(places)):
            text += " " * (number > 0)
            links.append(Link(len(text), len(text) + end - start, start))
            text += source[start:end]
        found.append(Aligned(source, text, tuple(links)))
    return plan.render(found)


# --- HTML -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("<p>The house is red.</p>", "<p>La casa es roja.</p>"),
        (
            '<p>The <b>red house</b> is <a href="x?a=1&b=2">very old</a>.</p>',
            '<p>La <b>casa roja</b> es <a href="x?a=1&b=2">muy vieja</a>.</p>',
        ),
        (
            "I bought <em>a <strong>new</strong> car</em> yesterday.",
            "Ayer compré <em>un coche <strong>nuevo</strong></em>.",
        ),
        ('<img src=a alt="The dog is old."><br>', '<img src=a alt="El perro es viejo."><br>'),
        ("The house is red.<br>The dog is old.", "La casa es roja.<br>El perro es viejo."),
        ("<ul><li>The dog is old.<li>The house is red.</ul>", "<ul><li>El perro es viejo.<li>La casa es roja.</ul>"),
        ("<p>&lt;b&gt; &amp; &copy;</p>", "<p>&lt;b&gt; &amp; &copy;</p>"),
        ("<h1>The house is red</h1>", "<h1>La casa es roja</h1>"),
        ("", ""),
        ("<p>  </p>\n", "<p>  </p>\n"),
    ],
)
def test_tags_land_on_their_words(source: str, wanted: str) -> None:
    assert translated(plan_html(source)) == wanted


@pytest.mark.parametrize(
    "part",
    [
        '<script>var a = "<b>The house</b>" < 3;</script>',
        "<style>p { color: red }</style>",
        "<!-- The house is red. -->",
        "<!doctype html>",
        '<div translate="no">The <b>house</b></div>',
        '<p class="x notranslate">The house</p>',
        "<textarea>The house</textarea>",
        "<svg><text>The house</text></svg>",
        "<template><p>The house</p></template>",
        "<p>12 &nbsp; € 👍</p>",
        '<a href="The house" data-x="a > b">12</a>',
    ],
)
def test_what_is_not_to_be_translated_is_not_touched(part: str) -> None:
    source = f"{part}<p>The dog is old.</p>{part}"
    assert translated(plan_html(source)) == f"{part}<p>El perro es viejo.</p>{part}"


def test_code_and_names_within_a_sentence_stay_in_it() -> None:
    told = translated(plan_html('Press <kbd>Ctrl &lt; S</kbd> to see <i translate="no">Big Red House</i> now.'))
    assert told.count("<kbd>Ctrl &lt; S</kbd>") == 1
    assert told.count('<i translate="no">Big Red House</i>') == 1
    assert len(plan_html("Press <code>x</code> and <!-- c --> go.").texts) == 1


def test_attributes_are_translated_and_cannot_break_out() -> None:
    plan = plan_html("<input placeholder='say \"hello\"' title=house data-title='alt=\"x\"'>")
    assert plan.texts == ['say "hello"', "house"]
    told = plan.render([Aligned("", '"><script>'), Aligned("", "casa & <b>")])
    want = '<input placeholder="&quot;&gt;&lt;script&gt;" title="casa &amp; &lt;b&gt;" data-title=\'alt="x"\'>'
    assert told == want


def test_a_translation_is_never_markup() -> None:
    plan = plan_html("<p>Hello <b>you</b></p>")
    told = plan.render([Aligned("Hello you", "<script>alert(1)</script> & you", (Link(28, 31, 6),))])
    assert "<script>" not in told
    assert "&lt;script&gt;" in told


TAGS = ("b", "i", "a", "span", "p", "div", "li", "ul", "table", "td", "code", "br", "script", "pre", "h1", "button")
BITS = ("The house", " is red. ", "&amp;", "<", ">", "&", "<!-- x -->", "<!--", "]]>", "\x00", "\n", '"', " a < b ")


@st.composite
def pages(draw: st.DrawFn) -> str:
    """Draw random, often malformed HTML."""
    parts = st.one_of(
        st.sampled_from(BITS),
        st.sampled_from([f"<{tag}>" for tag in TAGS] + [f"</{tag}>" for tag in TAGS]),
        st.sampled_from(
            ['<a href="x" title="The dog">', "<img alt='A dog' src=x>", "<b translate=no>", "<p class", "</"]
        ),
        st.text(max_size=6),
    )
    return "".join(draw(st.lists(parts, max_size=14)))


def tags(page: str) -> Counter[str]:
    """Count the elements and comments that a parser finds, without the text."""
    found: Counter[str] = Counter()
    waiting: list[Any] = [JustHTML(page, fragment=True, sanitize=False).root]
    while waiting:
        node = waiting.pop()
        waiting += getattr(node, "children", None) or ()
        attributes = {
            name: "" if name in ("alt", "title") else value
            for name, value in (getattr(node, "attrs", None) or {}).items()
        }
        if not node.name.startswith("#text"):
            found[f"{node.name} {sorted(attributes.items())}"] += 1
    return found


@given(pages())
def test_any_page_comes_out_with_the_same_tags(page: str) -> None:
    plan = plan_html(page)
    assert tags(unchanged(plan)) == tags(page.replace("\x00", "\ufffd"))


WELL_FORMED = (
    "<p>one two <b>three <i>four</i> five</b> <a href=x id=y>six</a> seven <img src=z> eight</p>",
    "<p><b>one</b> <i>two</i> three <code>x</code> four <span>five <u>six</u></span></p>",
    "<li>one <a href=x><img src=y></a> two <b>three</b></li>",
)


@pytest.mark.parametrize("page", WELL_FORMED)
def test_words_in_any_order_keep_their_tags(page: str) -> None:
    told = reversed_words(plan_html(page))
    assert tags(told) == tags(page)
    assert around(told) == around(page)


def around(page: str) -> dict[str, list[str]]:
    """Return the names of the elements around each word."""
    found = {}
    waiting: list[tuple[Any, list[str]]] = [(JustHTML(page, fragment=True, sanitize=False).root, [])]
    while waiting:
        node, names = waiting.pop()
        found |= dict.fromkeys((node.data or "").split() if node.name == "#text" else (), names)
        waiting += [(child, [*names, node.name]) for child in getattr(node, "children", None) or ()]
    return found


# --- pieces -----------------------------------------------------------------------------------------------------------


def test_an_element_whose_words_are_gone_takes_the_nearest() -> None:
    source = Inline((Piece((), "go "), Piece((0,), "to"), Piece((), " the house")), (Element("<b>", "</b>"),))
    found = Aligned(source.text, "a casa", (Link(2, 6, 10),))
    assert "<b>" in written(carry(source, found), source.elements, escape)


# --- Markdown ---------------------------------------------------------------------------------------------------------


def structure(text: str) -> list[str]:
    """Return what a parser finds in a Markdown text, without the words and the order of inline elements."""
    found = []
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        inlines = sorted(f"{c.type} {c.attrs.get('href', c.attrs.get('src', ''))}" for c in token.children or ())
        kinds = sorted({kind for kind in inlines if not kind.startswith(("text", "softbreak"))})
        code = token.content if token.type in ("fence", "code_block") else ""
        found.append(f"{token.type} {token.info} {code} {kinds}")
    return found


def test_markdown_keeps_its_structure() -> None:
    told = translated(plan_markdown(MARKDOWN))
    assert structure(told) == structure(MARKDOWN)
    assert "title: The house\n" in told
    assert "puerta roja](http://x.y" in told
    assert "> El perro es viejo." in told
    assert "`the code`" in told
    assert "<div>La casa <b>es</b> roja.</div>" in told


def test_markdown_does_not_become_what_it_was_not() -> None:
    plan = plan_markdown("Hello.\n\nGood morning.\n\n| a |\n|---|\n| b |\n")
    told = plan.render([Aligned("", "# *x* <b> [y](z)"), Aligned("", "1. one"), Aligned("", "a"), Aligned("", "b|c")])
    assert structure(told) == structure("Hello.\n\nGood morning.\n\n| a |\n|---|\n| b |\n")


# --- terms ------------------------------------------------------------------------------------------------------------

TERMS = (("dashboard", "panel de control"), ("Red House", "Red House"), ("C++", "C++"), ("red", "carmesí"))


def test_terms_are_found_as_words_and_put_back() -> None:
    hidden = hide("Dashboard of the Red House, dashboards, C++ or http://red.org/red red.", TERMS)
    assert hidden.text == "{t0} of the {t1}, dashboards, {t2} or http://red.org/red {t3}."
    assert reveal("{t1} {t0} {t3}", hidden) == "Red House panel de control carmesí"
    assert hide("The {t0} red.", TERMS).text == "The {t0} {term0}."


def test_a_file_of_terms(tmp_path: Any) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("# terms\ndashboard\tpanel\n\nVidrio\n")
    assert read_terms(path) == (("dashboard", "panel"), ("Vidrio", "Vidrio"))
    path.write_text("a\tb\tc\n")
    with pytest.raises(DataError, match="line 1 is not a term"):
        read_terms(path)
    path.write_bytes(b"\xff")
    with pytest.raises(DataError, match="is not UTF-8"):
        read_terms(path)


# --- the server -------------------------------------------------------------------------------------------------------


def test_the_server_translates_marked_text_and_terms() -> None:
    client = TestClient(create_app(None, settings=Settings(page=False)), base_url="http://localhost")

    def ask(**fields: Any) -> Any:
        answer = client.post("/translate", json={"source": "en", "target": "es", **fields})
        assert answer.status_code == 200, answer.text
        return answer.json()

    page = "<p>The <b>red house</b> is old.</p>"
    assert ask(q=page, format="html") == {"translatedText": "<p>La <b>casa roja</b> es vieja.</p>"}
    assert ask(q=page, format="html", alternatives=2)["alternatives"] == []
    assert ask(q="The *house* is red.", format="markdown") == {"translatedText": "La *casa* es roja."}
    assert "panel" in ask(q="Open the dashboard.", glossary={"dashboard": "panel"})["translatedText"]
    told = ask(q="Open the <i>dashboard</i>.", glossary={"dashboard": "a < b", "Open": "Open"}, format="html")
    assert "a &lt; b" in told["translatedText"]
    assert "Open" in told["translatedText"]
