"""Test that protected spans are found."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from growth import takes_at_most
from vidrio.text.protect import spans


def found(text: str) -> list[tuple[str, str]]:
    return [(text[start:end], kind) for start, end, kind in spans(text)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("See https://example.org/a?b=c&d#e, or not.", [("https://example.org/a?b=c&d#e", "url")]),
        ("(https://en.wikipedia.org/wiki/Glass_(film))", [("https://en.wikipedia.org/wiki/Glass_(film)", "url")]),
        ("Go to www.example.com.", [("www.example.com", "url")]),
        ("Read example.com/docs/a.html now", [("example.com/docs/a.html", "domain")]),
        ("Write to ana.lopez+x@mail.example.co.uk!", [("ana.lopez+x@mail.example.co.uk", "email")]),
        ("It costs €18.10.", [("€18.10", "number")]),
        ("Cuesta 18,10 € y no $ 1,234.50", [("18,10 €", "number"), ("$ 1,234.50", "number")]),
        ("1 234 567 people, 12%, -3.5 °", [("1 234 567", "number"), ("12%", "number"), ("-3.5 °", "number")]),
        (
            "on 2024-05-17 or 17/05/2024 or 17.5.24",
            [("2024-05-17", "date"), ("17/05/2024", "date"), ("17.5.24", "date")],
        ),
        ("at 9:30 or 23:59:59", [("9:30", "time"), ("23:59:59", "time")]),
        ("In 2020 100 came", [("2020", "number"), ("100", "number")]),
        ("the 21st of 1, 2,3", [("1", "number"), ("2,3", "number")]),
        ("the 3rd, 100th, 1.er, 2.º, 3ª, 4to, 5 to 6", ["5", "6"]),
        ("Hello %1$s, %d of %(name)s: 100%% %-5.2f %ld", ["%1$s", "%d", "%(name)s", "100", "%%", "%-5.2f", "%ld"]),
        (
            "Hi {name}, {0}, {{ x }}, ${x}, $HOME, #{y}, %{z}",
            ["{name}", "{0}", "{{ x }}", "${x}", "$HOME", "#{y}", "%{z}"],
        ),
        ("{price:.2f} and %PATH% and [[link]]", ["{price:.2f}", "%PATH%", "[[link]]"]),
        ('a <b class="x y">bold</b><br/> &amp; &#39;', ['<b class="x y">', "</b>", "<br/>", "&amp;", "&#39;"]),
        ("if a < b and c > d, x <- 3", ["3"]),
        ("<!-- note --> text", [("<!-- note -->", "tag")]),
        ("open /usr/local/bin, ~/notes.txt, ./run.sh.", ["/usr/local/bin", "~/notes.txt", "./run.sh"]),
        (r"C:\Data\ana\a.txt and setup.py", [r"C:\Data\ana\a.txt", "setup.py"]),
        ("and/or, he/she, km/h, 1/2", ["1", "2"]),
        ("version 1.2.3, v2, v3.0-beta, 192.168.0.1.", ["1.2.3", "v2", "v3.0-beta", "192.168.0.1"]),
        ("1.234.567,89 y 1.234.567", [("1.234.567,89", "number"), ("1.234.567", "number")]),
        ("192.168.100.200", [("192.168.100.200", "version")]),
        ("run `pip install x` twice", [("`pip install x`", "code")]),
        ("30℃ for Brand™ №", [("30", "number"), ("℃", "emoji"), ("™", "emoji"), ("№", "emoji")]),
        ("①②③ steps", [("①②③", "emoji")]),
        ("hi 👩🏽\u200d🚀🇪🇸❤️1️⃣! 🇪🇸", [("👩🏽\u200d🚀🇪🇸❤️1️⃣", "emoji"), ("🇪🇸", "emoji")]),
        ("mail <a@b.org> or <https://a.org/b>", [("<a@b.org>", "tag"), ("<https://a.org/b>", "tag")]),
        ("<%= user %>, <?php x() ?>, [b]bold[/b], [note]", ["<%= user %>", "<?php x() ?>", "[b]", "[/b]"]),
        ("{n, plural, one {# file} other {# files}} of", ["{n, plural, one {# file} other {# files}}"]),
        (r"{\an8}Go %(s).2f, %A %B %d", [r"{\an8}", "%(s).2f", "%A", "%B", "%d"]),
        ("__NAME__ and ###T01### and @@x@@ and __bold__", ["__NAME__", "###T01###", "@@x@@"]),
        ("ask @ana_b about #glass, #12 and C#", [("@ana_b", "handle"), ("#glass", "handle"), ("#12", "handle")]),
        (
            "set max_length or --no-cache with Ctrl+C",
            [("max_length", "code"), ("--no-cache", "code"), ("Ctrl+C", "code")],
        ),
        ("_very_ good--really ____ word", []),
        ("read my_file.txt", [("my_file.txt", "domain")]),
        (
            "id 550e8400-e29b-41d4-a716-446655440000, commit 4d94054",
            ["550e8400-e29b-41d4-a716-446655440000", "4d94054"],
        ),
        ("key AB-9X7Z-QQ12, gate 42B, 10AM, COVID-19", ["AB-9X7Z-QQ12", "42B", "10", "19"]),
        ("20 ± 2 dollars, 5.2±0.3 kg, ± 4", ["20 ± 2", "5.2±0.3 kg", "4"]),
        ("-15 °C, 2.5 kg, 100 km/h, 20 m, 5 Mbit", ["-15 °C", "2.5 kg", "100 km/h", "20", "5"]),
        ("&lt;b&gt;5&lt;/b&gt; &lt; 6", ["&lt;b&gt;", "5", "&lt;/b&gt;", "&lt;", "6"]),
        ("H2O, mp3, B2B and iPhone are words.", []),
        ("IB3166 and A380, COVID-19", ["IB3166", "A380", "19"]),
        ("No numbers. No addresses: nothing, e.g. this.", []),
        ("I am 100% sure, 50% de descuento", ["100%", "50%"]),
    ],
)
def test_what_is_found(text: str, wanted: list[str | tuple[str, str]]) -> None:
    got = found(text)
    assert [g if isinstance(w, tuple) else g[0] for g, w in zip(got, wanted, strict=False)] == wanted
    assert len(got) == len(wanted)


pieces = st.lists(
    st.sampled_from(
        ["https://", "www.", "a.b", "@", "%", "%1$s", "{", "}", "{{x}}", "<", ">", "<b ", "&amp;", "1", ",", "."]
    )
    | st.text(max_size=3)
).map("".join)


@given(pieces)
@settings(max_examples=200)
def test_spans_are_in_order(text: str) -> None:
    place = 0
    for start, end, _ in spans(text):
        assert place <= start < end <= len(text)
        assert text[start:end].strip(), "never white space alone"
        place = end


UNITS = (
    *("a", "1", "1,", "<", "<a ", "<a b=", "<!--", "{", "{{", "%", "%1", "www.", "(", "http://(", "@", "a@", "a."),
    *("/a", "&a", "`", "👍\u200d", "_", "a_", "#", "--a", "A-1", "{a, plural,", "[b", "<%", "1a", "Ctrl+"),
)


@pytest.mark.parametrize("unit", UNITS)
def test_time_grows_with_length_and_no_faster(unit: str) -> None:
    # Ten times the text takes 10 times as long if the time is linear, and 100 times if it is quadratic.
    assert takes_at_most(40, lambda length: spans(unit * (length // len(unit))), 4_000, 40_000)
