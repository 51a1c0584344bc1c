"""Test hostile documents: time and memory stay proportional to their size, and every rejection gives a reason."""

import gc
import io
import os
import re
import resource
import sys
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from functools import cache
from html import unescape
from pathlib import Path

import pytest

from growth import takes_at_most
from hostile_documents import SUFFIXES, TEXTS, hostile
from vidrio.documents.aligned import Aligned, Link
from vidrio.documents.formats import plan_file, plan_text
from vidrio.documents.html import plan_html
from vidrio.documents.markdown import plan_markdown
from vidrio.documents.markup import Plan
from vidrio.documents.packed import unpacked
from vidrio.documents.po import plan_po
from vidrio.documents.subtitles import plan_subtitles
from vidrio.errors import DataError


def reversed_words(plan: Plan) -> str:
    return plan.render([Aligned(text, " ".join(reversed(text.split(" ")))) for text in plan.texts])


GROWING: list[tuple[Callable[..., Plan], Callable[[int], str], int]] = [
    (plan_html, lambda n: "<span>" * n + "x" + "</span>" * n, 4000),
    (plan_html, lambda n: "<div>" * n + "x" + "</div>" * n, 4000),
    (plan_html, lambda n: "<p>" + "<b>word</b> " * n, 2000),
    (plan_html, lambda n: "<p>" + "<img> word " * n, 2000),
    (plan_html, lambda n: "<p>" + "<code>x</code> {k0_ word " * n, 1000),
    (plan_html, lambda n: "<p>" + "".join(f"<code>x</code> {{k {{x {{k{i}_ w " for i in range(n)), 500),
    (plan_html, lambda n: "<p>" + "</i>word<b>" * n, 2000),
    (plan_html, lambda n: "<i>a</p>" * n, 1000),
    (plan_html, lambda n: "<table>x" * n, 1000),
    (plan_html, lambda n: "<a b='" * n + "x", 20000),
    (plan_markdown, lambda n: "[a](b) " * n, 1000),
    (plan_markdown, lambda n: "[" * n, 10000),
    (plan_markdown, lambda n: "*a **b " * n, 1000),
    (plan_markdown, lambda n: "$a " * n, 2000),
    (plan_markdown, lambda n: "$$x\n" * n, 1000),
    (plan_markdown, lambda n: "\\(a " * n, 2000),
    (plan_markdown, lambda n: "`" * n + "a", 10000),
    (plan_markdown, lambda n: "> " * n + "a", 10000),
    (plan_markdown, lambda n: "|a" * n + "\n" + "|-" * n + "\n" + "|b" * n, 500),
    (plan_markdown, lambda n: "![a](b \\| c) " * n, 1000),
    (plan_markdown, lambda n: "<b>x</b> <" * n, 1000),
    (plan_subtitles, lambda n: "00:00:01,000 --> 00:00:02,000\n" + "word\n" * n, 4000),
    (plan_subtitles, lambda n: "00:00:01,000 --> 00:00:02,000\n" + "<b>" * n + "x" + "</b>" * n, 4000),
    (plan_subtitles, lambda n: "a-" * n, 100000),
    (plan_subtitles, lambda n: "1:" * n, 100000),
    (plan_text, lambda n: " " * n + "x", 200000),
    (plan_po, lambda n: 'msgid "' + "a" * n + '"\nmsgstr ""\n', 200000),
    (plan_po, lambda n: 'msgid ""\n' + '"a"\n' * n + 'msgstr ""\n', 4000),
    (plan_po, lambda n: "msgid" + " " * n + "x", 100000),
]


@pytest.mark.parametrize(("planned", "make", "size"), GROWING)
def test_time_grows_in_proportion_to_the_size(
    planned: Callable[..., Plan], make: Callable[[int], str], size: int
) -> None:
    """Allow 2.8 times the time for each doubling, so 7.8 times for both. Quadratic time would need 16 times."""

    def act(length: int) -> None:
        try:
            plan = planned(make(length), "es")
        except DataError:
            return
        reversed_words(plan)

    gc.disable()  # otherwise, objects that other tests have left would be scanned repeatedly
    try:
        assert takes_at_most(2.8**2, act, size // 2, 2 * size)
    finally:
        gc.enable()


# --- limits -----------------------------------------------------------------------------------------------------------


def stored(part: str, text: str) -> bytes:
    """Return an uncompressed archive with one part."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        file.writestr(part, text)
    return data.getvalue()


def document(text: str) -> bytes:
    return stored("word/document.xml", f'<w:document xmlns:w="w" xmlns:mc="mc">{text}</w:document>')


def nested(name: str, times: int, text: str = "<w:p><w:r><w:t>Hello</w:t></w:r></w:p>") -> str:
    return f"<{name}>" * times + text + f"</{name}>" * times


@pytest.mark.parametrize(
    ("name", "data", "error"),
    [
        ("a.docx", document("<w:p/>" * 500_000), "this document is too large"),
        ("a.docx", document(nested("w:pict", 1_000)), "nested too deeply"),
        ("a.docx", document(nested("w:drawing", 1_000)), "nested too deeply"),
        ("a.docx", document(nested("mc:AlternateContent", 1_000)), "nested too deeply"),
        (
            "a.odt",
            stored("content.xml", nested("draw:frame", 1_000, "").join(("<a xmlns:draw='d'>", "</a>"))),
            "nested",
        ),
        ("a.html", b"<b>" * 20_000 + b"x" + b"</b>" * 20_000, "nested too deeply"),
        ("a.html", b"<p>" + b"<ins>x" * 300 + b"</ins>x" * 300, "nested too deeply"),
        ("a.html", b"<br>x" * 100_001, "too many tags"),
        ("a.md", b"x " + b"<ins>x" * 300 + b"</ins>x" * 300, "nested too deeply"),
        ("a.srt", b"1\n00:00:01,000 --> 00:00:02,000\n" + b"<i>x" * 300 + b"</i>x" * 300, "nested too deeply"),
    ],
)
def test_what_is_too_large_or_too_deep_is_refused(name: str, data: bytes, error: str) -> None:
    began = time.process_time()
    with pytest.raises(DataError, match=error):
        plan_file(name, data, "es")
    assert time.process_time() - began < 10  # minutes without the limits


def test_what_is_deep_but_not_too_deep_comes_through() -> None:
    plan = plan_file("a.docx", document(nested("mc:AlternateContent", 200)), "es")
    assert (
        b'<w:t xml:space="preserve">Hola</w:t>'
        in unpacked(plan.render([Aligned("Hello", "Hola")]))["word/document.xml"]
    )


# --- hostile files ----------------------------------------------------------------------------------------------------

FEW, MANY = 40, 10_000
opened: dict[int, list[object]] = {}  # for each thread that is being recorded, the files and programs opened


def watch(event: str, given: tuple[object, ...]) -> None:
    found = opened.get(threading.get_ident())
    if (
        found is not None
        and event in ("open", "os.mkdir", "os.rename", "os.remove", "socket.connect", "subprocess.Popen", "os.system")
        and not str(given[0]).endswith((".py", ".pyc"))
    ):
        found.append((event, given[0]))


@cache
def watching() -> None:
    """Add the hook only once, because it cannot be removed."""
    sys.addaudithook(watch)


def backwards(text: str) -> Aligned:
    """Return a translation with the words in reverse order, each aligned with its source."""
    places = [match.span() for match in re.finditer(r"\S+", text)]
    told, links = text[: len(text) - len(text.lstrip())], []
    for start, end in reversed(places):
        told += " " * bool(links)
        links.append(Link(len(told), len(told) + end - start, start))
        told += text[start:end]
    return Aligned(text, told + text[len(text.rstrip()) :], links)


def parts_of(suffix: str, data: bytes) -> dict[str, str]:
    """Return the text of each part of a file."""
    if suffix in TEXTS:
        return {"": data.decode().removeprefix("\ufeff").replace("\r\n", "\n")}
    return {name: part.decode("utf-8", "replace") for name, part in unpacked(data).items()}


def letters(text: str) -> Counter[str]:
    """Count letters and digits, including those in tags. Words cannot be counted, because some may be joined."""
    return Counter(re.findall(r"\w", unescape(text)))


def hold(suffix: str, data: bytes) -> float:
    """Check that a document is refused or stays complete, and return the seconds that all steps take."""
    began, found = time.process_time(), list[object]()
    opened[threading.get_ident()] = found
    try:
        plan = plan_file(f"a{suffix}", data, "")
        same = plan.render([Aligned(text, text) for text in plan.texts])
        told = plan.render(list(map(backwards, plan.texts)))
    except DataError:
        return time.process_time() - began
    finally:
        del opened[threading.get_ident()]
    seconds = time.process_time() - began
    assert not found
    if not plan.texts:
        assert same == told == data
        return seconds
    before, unchanged, after = (parts_of(suffix, file) for file in (data, same, told))
    assert list(before) == list(unchanged) == list(after)
    for name, text in before.items():
        text = text.replace("\x00", "\ufffd") if suffix in (".html", ".md") else text
        text = text.replace("\r", "\n") if suffix == ".md" else text
        assert suffix == ".po" or plain(unchanged[name], suffix) == plain(text, suffix), name
        is_replaced = suffix == ".po" and "fuzzy" in text  # fuzzy translations and their flags are replaced
        assert is_replaced or not letters(text) - letters(after[name]), name
    return seconds


def plain(text: str, suffix: str) -> str:
    """Remove what may be written differently in the result."""
    text = re.sub(r"[\s>]+", "", text) if suffix == ".md" else text  # later lines of a quotation may lose their >
    return re.sub(r"[\"']", "", re.sub("<w:t(?: [^<>]*)?>", "<w:t>", text))


def size_of(suffix: str, data: bytes) -> int:
    """Return how many characters a parser must read."""
    try:
        return len(data) if suffix in TEXTS else len(data) + sum(map(len, unpacked(data).values()))
    except DataError:
        return len(data)


def hold_all(suffix: str, numbers: range) -> str:
    watching()
    hold(suffix, hostile(suffix, -1))  # imports all modules
    slowest = (0.0, 0)
    gc.collect()
    gc.freeze()  # otherwise, the time to scan what other tests have left would count
    try:
        for number in numbers:
            data = hostile(suffix, number)
            try:
                seconds = hold(suffix, data)
            except Exception as error:
                raise AssertionError(f"hostile({suffix!r}, {number})") from error
            slowest = max(slowest, (seconds, number))
            assert seconds < 0.5 + 5e-5 * size_of(suffix, data), f"hostile({suffix!r}, {number}) takes {seconds} s"
    finally:
        gc.unfreeze()
    return f"{suffix}: {len(numbers)} from {numbers.start}; slowest {slowest[0]:.2f} s, number {slowest[1]}"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_hostile_files_are_refused_or_come_through_whole(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    hold_all(suffix, range(FEW))
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_many_hostile_files_are_refused_or_come_through_whole(suffix: str) -> None:
    """VIDRIO_HOSTILE sets the number of documents, for example 100000, and VIDRIO_HOSTILE_FROM the first seed."""
    begin = int(os.environ.get("VIDRIO_HOSTILE_FROM", 1_000_000))
    print(hold_all(suffix, range(begin, begin + int(os.environ.get("VIDRIO_HOSTILE", MANY)))))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1 << 20  # KiB
