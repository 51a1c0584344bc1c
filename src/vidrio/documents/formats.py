"""Which files can be translated, by the end of their names; here those of plain text and of gettext."""

import re
from collections.abc import Callable, Sequence
from pathlib import PurePath

from vidrio.documents.aligned import Aligned
from vidrio.documents.html import plan_html
from vidrio.documents.markdown import plan_markdown
from vidrio.documents.markup import FilePlan, Plan, joined
from vidrio.documents.packed import plan_docx, plan_epub, plan_odt
from vidrio.documents.subtitles import plan_subtitles
from vidrio.errors import DataError

# A long text is translated in pieces: none holds others up, and each can be sent when it is there. No sentence goes
# over an empty line, so what comes out is the same.
BREAK = re.compile(r"(?:[^\S\n]*\n){2,}")
PIECE = 1_000  # characters, from which on the next empty line ends a piece


def pieces(text: str) -> list[str]:
    """A text cut at empty lines into pieces that make it up again."""
    found, start = [], 0
    for gap in BREAK.finditer(text):
        if gap.end() - start >= PIECE:
            found.append(text[start : gap.end()])
            start = gap.end()
    return [*found, text[start:]] if start < len(text) or not found else found


def plan_text(source: str) -> Plan:
    return joined([Plan([piece], lambda found: found[0].text) for piece in pieces(source)])


def plan_po(data: bytes, target: str) -> FilePlan:
    """A PO file: what has no translation yet gets one; the rest stays."""
    import polib

    try:
        catalogue = polib.pofile(data.decode("utf-8-sig"))
    except (OSError, ValueError, IndexError, KeyError) as error:
        raise DataError("this PO file cannot be read", found=f"{error!s:.200}", do="save it again") from None
    entries = [entry for entry in catalogue if entry.msgid and not entry.translated() and not entry.obsolete]

    def render(found: Sequence[Aligned]) -> bytes:
        translations = iter(found)
        for entry in entries:
            one = next(translations).text
            if entry.msgid_plural:
                many = next(translations).text
                entry.msgstr_plural = {number: many if number else one for number in entry.msgstr_plural or (0, 1)}
            else:
                entry.msgstr = one
            entry.flags = [flag for flag in entry.flags if flag != "fuzzy"]
        catalogue.metadata["Language"] = target
        return f"{catalogue}\n".encode()

    return FilePlan([text for entry in entries for text in (entry.msgid, entry.msgid_plural) if text], render)


def of_text(planned: Callable[[str], Plan]) -> Callable[[bytes, str], FilePlan]:
    """A file of text: UTF-8, with its byte-order mark and its line ends."""

    def plan_file(data: bytes, target: str) -> FilePlan:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError("this file is not UTF-8", found=str(error), do="convert it to UTF-8") from None
        mark, windows = "\ufeff" * text.startswith("\ufeff"), "\r\n" in text
        plan = planned(text.removeprefix(mark).replace("\r\n", "\n"))

        def render(found: Sequence[Aligned]) -> bytes:
            text = mark + plan.render(found)
            return (text.replace("\n", "\r\n") if windows else text).encode("utf-8", "replace")

        return FilePlan(plan.texts, render)

    return plan_file


PLANS: dict[str, Callable[[bytes, str], FilePlan]] = {
    ".txt": of_text(plan_text),
    **dict.fromkeys((".html", ".htm", ".xhtml"), of_text(plan_html)),
    **dict.fromkeys((".md", ".markdown"), of_text(plan_markdown)),
    **dict.fromkeys((".srt", ".vtt"), of_text(plan_subtitles)),
    ".docx": plan_docx,
    ".odt": plan_odt,
    ".epub": plan_epub,
    ".po": plan_po,
}
SUFFIXES = tuple(PLANS)


def suffix_of(name: str) -> str:
    return PurePath(name).suffix.lower()


def plan_file(name: str, data: bytes, target: str) -> FilePlan:
    """What to translate of a file. One in which nothing is found is an error: it would come back as it was."""
    suffix = suffix_of(name)
    if suffix not in PLANS:
        raise DataError("this kind of file is not supported", found=name, do=f"use one of {', '.join(SUFFIXES)}")
    plan = PLANS[suffix](data, target)
    if not any(any(map(str.isalpha, text)) for text in plan.texts):
        raise DataError("this file has no text to translate", found=f"{len(data):,} bytes", do="choose another file")
    return plan
