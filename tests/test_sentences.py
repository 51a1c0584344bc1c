"""Test that sentences are split where a reader would split them, and that no text is lost."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from growth import takes_at_most
from vidrio.text.sentences import split


def sentences(text: str, **options: int) -> list[str]:
    return [text[start:end] for start, end in split(text, **options)]


@pytest.mark.parametrize(
    ("language", "marked"),
    [
        ("de", "Das kostet z. B. 5 Euro.| Am 3. Oktober kam Dr. Müller nach St. Gallen.| 😀 Ende."),
        ("de-AT", "Eine Überschrift|\n\nDas ist Dr. Müllers Haus.| Ja?"),
        ("hi", "मैं घर जा रहा हूँ।| तुम कहाँ हो?| वह आया।"),
        ("el", "Πού είσαι;| Είμαι εδώ."),
    ],
)
def test_sentences_of_other_languages_are_found_by_their_own_rules(language: str, marked: str) -> None:
    text = marked.replace("|", "")
    assert [text[start:end] for start, end in split(text, language)] == [part.strip() for part in marked.split("|")]
    assert split(text, "es_MX") == split(text, "en") == split(text)


# "|" marks the boundary between two sentences.
@pytest.mark.parametrize(
    "marked",
    [
        "Hello world.",
        "Hello.| How are you?| I'm fine!| Thanks…| Bye",
        "Dr. Smith met Mrs. Jones and Prof. J. R. R. Tolkien in St. Louis.| They talked.",
        "He arrived at 5 p.m. on Jan. 5 with Mr. Brown.| It rained.",
        "She works for Acme Inc. in the U.S. Army.| The pay is good, etc.| It is late.",
        "I live in the U.S.| The weather is fine.",
        "It costs $3.50, or 1,234.5 in version 2.0.1.| See p. 5, fig. 3 and No. 7.| No.| I said no.",
        "Visit www.example.com or https://example.org/a.b?c=d.| Then write to a.b@example.com.",
        "He said, “Stop!” and left.| “Go away.”| She cried.",
        '"Are you there?" asked Tom.| "Yes!"| (He was.)| Good.',
        "Wait... what?| Well... no.| Really?!| Yes!!!",
        "Use e.g. Python, i.e. a language, vs. Java etc. and so on.| Next.",
        "Vitamin C. The end.".replace(". T", ".| T"),
        "It happened two months ago.| Last winter was cold.| May I?| Mar is a sea.",
        "El Sr. López y la Sra. García viven en EE. UU. desde 1990, en la Avda. Goya n.º 5.| Fin.",
        "Murió en el 323 a. C.| Fue rey.| Véase la pág. 5 y el art. 14.| Nada más.",
        "¿Qué tal?| ¡Muy bien!| ¿Y tú?| Yo también… creo.| ¡Adiós!",
        "¡Hola! ¿qué tal?".replace("! ", "!| "),
        "—¿Vienes?| —No. —dijo él.| —¡Vete! —gritó ella.",
        "«No lo sé.»| Se fue.| «¿Quién es?», preguntó.",
        "Ud. es D. Juan.| Yo no.",
        "1. Open the door.|\n2. Close it.|\nIV. Go.|\na. Rest.",
        "- one item|\n- another item|\n* a third|\n\nA heading|\n\nText.",
        "First paragraph without a full stop|\n\nSecond paragraph.|\r\n\r\nThird.",
        "This line is wrapped at a width of some fifty\ncharacters and goes on here.| It ends here.",
        "A short title|\nIt was a dark night.|\nIt rained.",
        "Name|\tage of the dog|\t 5\n",
        "这是第一句。|这是第二句！|真的吗？",
        "node.js and 3.14 and a.b.c are not ends.| This is.",
        "Yahoo! is a name.| Good.",
        "x = f(a). y",
        "hello my friend.| how are you?| i am fine!| bye",  # lowercase only
        'use e.g. this, etc. and so on.| "why?" he asked... then he left.',
        "hola.| ¿qué tal?| estoy bien.| murió en el 323 a. c. y ya",
        "node.js came at 5. then what, j. smith",
    ],
)
def test_sentences_as_a_reader_sees_them(marked: str) -> None:
    wanted = [part.strip() for part in marked.split("|")]
    assert sentences(marked.replace("|", "")) == wanted


texts = st.one_of(
    st.text(),
    st.text(alphabet=" \n\r\t.!?…,;:—-\"'“”«»()[]¿¡aAbB1\u0301\u2028\u00a0。"),
    st.lists(
        st.sampled_from(
            ["Mr.", "Dr.", "Hello", "world.", "¿Qué", "tal?", "etc.", "U.S.", "5.", "\n", " ", "  ", "\n\n"]
        )
    ).map(" ".join),
)


@given(texts)
@example("")
@example("\n \t")
@settings(max_examples=200)
def test_nothing_but_white_space_lies_between_sentences(text: str) -> None:
    spans = split(text)
    place = 0
    for start, end in spans:
        assert not text[place:start].strip(), "only white space before a sentence"
        assert place <= start < end
        assert text[start:end] == text[start:end].strip()
        place = end
    assert not text[place:].strip()
    pieces = [text[a:b] for a, b in zip([0, *(e for _, e in spans)], [*(s for s, _ in spans), len(text)], strict=True)]
    rebuilt = "".join(gap + text[s:e] for gap, (s, e) in zip(pieces, spans, strict=False)) + pieces[-1]
    assert rebuilt == text


@pytest.mark.parametrize(
    "unit", ["Mr. ", ".", "a.", '."', "\n", "A ", "1. ", "x", "e\u0301", "a\n", ") ", "Hello there. "]
)
def test_time_grows_with_length_and_no_faster(unit: str) -> None:
    assert takes_at_most(40, lambda length: split(unit * (length // len(unit))), 10_000, 100_000)
