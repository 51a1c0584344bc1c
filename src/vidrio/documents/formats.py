"""Select a file's planner by its extension, and provide the planner for plain text."""

import re
from collections.abc import Callable, Sequence
from pathlib import PurePath

from vidrio.documents.aligned import Aligned
from vidrio.documents.html import plan_html
from vidrio.documents.markdown import plan_markdown
from vidrio.documents.markup import FilePlan, Plan, has_letters, joined
from vidrio.documents.packed import plan_docx, plan_epub, plan_odt, plan_xhtml
from vidrio.documents.po import plan_po
from vidrio.documents.subtitles import plan_subtitles
from vidrio.errors import DataError

# A long text is translated in pieces, so that it does not delay other requests and progress can be shown. Because no
# sentence crosses a blank line, this does not change the translation.
BREAK = re.compile(r"\n(?:[^\S\n]*\n)+")
PIECE = 1_000  # minimum characters per piece; a piece ends at the next blank line


def pieces(text: str) -> list[str]:
    """Split text at blank lines. Concatenating the pieces gives the original text."""
    found, start = [], 0
    for gap in BREAK.finditer(text):
        if gap.end() - start >= PIECE:
            found.append(text[start : gap.end()])
            start = gap.end()
    return [*found, text[start:]] if start < len(text) or not found else found


def plan_text(source: str, target: str = "") -> Plan:
    return joined([Plan([piece], lambda found: found[0].text) for piece in pieces(source)])


def of_text(planned: Callable[[str, str], Plan]) -> Callable[[bytes, str], FilePlan]:
    """Wrap a text planner so that it handles UTF-8 files, preserving their byte-order mark and Windows line endings."""

    def plan_file(data: bytes, target: str) -> FilePlan:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError("this file is not UTF-8", found=str(error), do="convert it to UTF-8") from None
        mark, windows = "\ufeff" * text.startswith("\ufeff"), "\r\n" in text
        plan = planned(text.removeprefix(mark).replace("\r\n", "\n"), target)

        def render(found: Sequence[Aligned]) -> bytes:
            text = mark + plan.render(found)
            return (text.replace("\n", "\r\n") if windows else text).encode()

        return FilePlan(plan.texts, render)

    return plan_file


PLANS: dict[str, Callable[[bytes, str], FilePlan]] = {
    ".txt": of_text(plan_text),
    **dict.fromkeys((".html", ".htm"), of_text(plan_html)),
    ".xhtml": plan_xhtml,
    **dict.fromkeys((".md", ".markdown"), of_text(plan_markdown)),
    **dict.fromkeys((".srt", ".vtt"), of_text(plan_subtitles)),
    ".docx": plan_docx,
    ".odt": plan_odt,
    ".epub": plan_epub,
    **dict.fromkeys((".po", ".pot"), of_text(plan_po)),
}
SUFFIXES = tuple(PLANS)


def suffix_of(name: str) -> str:
    return PurePath(name).suffix.lower()


def plan_file(name: str, data: bytes, target: str) -> FilePlan:
    """Return the plan of a file. A file without text is rendered unchanged."""
    suffix = suffix_of(name)
    if suffix not in PLANS:
        raise DataError(
            "this file format is not supported",
            found=name[-80:],
            do=f"convert it to one of {', '.join(SUFFIXES)}; --format text translates it line by line",
        )
    plan = PLANS[suffix](data, target)
    if not any(map(has_letters, plan.texts)):
        return FilePlan([], lambda found: data)
    return plan
