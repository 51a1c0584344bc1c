"""A translation that looks as its source does: what LibreTranslate's clients rely on."""

MARKS = ".!?…。！？"


def as_source(source: str, translation: str) -> str:
    """With the final mark that the source has, or none, and in small letters if the source is."""
    text, found = source.rstrip(), translation.rstrip()
    rest = translation[len(found) :]
    if not text or not found:
        return translation
    if text[-1] not in MARKS:
        if found.endswith(".") and not found.endswith("..") and text[-1].isalnum():
            found = found[:-1]
    elif text[-1] in ".…" and found[-1].isalnum():
        found += text[-1]
    if text.islower() and found[:1].isupper() and not found[1:2].isupper():
        found = found[0].lower() + found[1:]
    elif text.isupper() and not found.isupper() and sum(map(str.isalpha, text)) > 1 and " " in text:
        found = found.upper()
    return found + rest
