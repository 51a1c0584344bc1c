"""Which files can be translated, by the end of their names."""

from collections.abc import Callable, Sequence
from pathlib import PurePath

from vidrio.documents.aligned import Aligned, Ask
from vidrio.documents.gettext import plan_po
from vidrio.documents.html import plan_html
from vidrio.documents.markdown import plan_markdown
from vidrio.documents.markup import FilePlan, Plan, joined
from vidrio.documents.packed import plan_docx, plan_epub, plan_odt
from vidrio.documents.plain import pieces
from vidrio.documents.subtitles import plan_subtitles
from vidrio.errors import DataError


def plan_text(source: str) -> Plan:
    return joined([Plan([Ask(piece)], lambda found: found[0].text) for piece in pieces(source)])


def of_text(planned: Callable[[str], Plan]) -> Callable[[bytes, str], FilePlan]:
    """A file of text: UTF-8, its byte-order mark and line ends kept."""

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

        return FilePlan(plan.asks, render)

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
        raise DataError("this kind of file is not supported", found=name, do=f"give one of {', '.join(SUFFIXES)}")
    plan = PLANS[suffix](data, target)
    if not any(any(map(str.isalpha, ask.text)) for ask in plan.asks):
        raise DataError("this file has no text to translate", found=f"{len(data):,} bytes", do="give another file")
    return plan
