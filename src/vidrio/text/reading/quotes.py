"""Quotation marks that a translation has lost at its beginning or its end: where they stood is plain, so they are put
back. For others, what stands between them is translated by itself (parts.py)."""

from vidrio.text.pattern import pattern

MARK = pattern('[«»“”„"]')
FIRST = pattern(r'\A[«“„"]')
LAST = pattern(r'[»”"]([.,;:!?…]*)\Z')  # what ends the sentence may come after it
BEFORE = frozenset(" \t\n\xa0([{¿¡—–-")  # what stands before a mark that opens, unless nothing does
KINDS = {"«": ("«", "»"), "»": ("«", "»"), "“": ("“", "”"), "”": ("“", "”")}
PLAIN = ('"', '"')  # read in all languages


def requoted(source: str, translation: str) -> str:
    """The translation with the marks that the sentence begins and ends with, if it has lost these and no others."""
    last = LAST.search(source)
    begins = FIRST.search(source) is not None and not FIRST.search(translation)
    ends = last is not None and not LAST.search(translation)
    if not (begins or ends) or not any(map(str.isalpha, translation)):
        return translation
    kept = MARK.search(translation)
    opening, closing = KINDS.get(kept[0], PLAIN) if kept else PLAIN
    mended = opening + translation if begins else translation
    if last and ends:
        mended = mended.removesuffix(last[1]) + closing + last[1]
    return mended if turns(mended) == turns(source) else translation


def turns(text: str) -> list[bool]:
    """Of each mark, whether it opens a quotation."""
    return [BEFORE.issuperset(text[max(0, mark.start() - 1) : mark.start()]) for mark in MARK.finditer(text)]
