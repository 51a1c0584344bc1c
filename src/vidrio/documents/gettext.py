"""PO files: what has no translation yet gets one; the rest stays."""

from collections.abc import Sequence

from vidrio.documents.aligned import Aligned, Ask
from vidrio.documents.markup import FilePlan
from vidrio.errors import DataError


def plan_po(data: bytes, target: str) -> FilePlan:
    """What to translate of a PO file."""
    import polib

    try:
        catalogue = polib.pofile(data.decode("utf-8-sig"))
    except (OSError, ValueError, IndexError, KeyError) as error:
        raise DataError("this PO file cannot be read", found=f"{error!s:.200}", do="save it again") from None
    entries = [entry for entry in catalogue if entry.msgid and not entry.translated() and not entry.obsolete]
    texts = [text for entry in entries for text in (entry.msgid, entry.msgid_plural) if text]

    def render(found: Sequence[Aligned]) -> bytes:
        answers = iter(found)
        for entry in entries:
            one = next(answers).text
            if entry.msgid_plural:
                many = next(answers).text
                entry.msgstr_plural = {number: many if number else one for number in entry.msgstr_plural or (0, 1)}
            else:
                entry.msgstr = one
            entry.flags = [flag for flag in entry.flags if flag != "fuzzy"]
        catalogue.metadata["Language"] = target
        return f"{catalogue}\n".encode()

    return FilePlan([Ask(text) for text in texts], render)
