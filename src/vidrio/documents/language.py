"""Set the declared language of a document to the target language. Parts in other languages keep theirs."""

from collections.abc import Sequence

from vidrio.documents.markup import Token, escape, with_values

ROOTS = ("html", "package", "ncx")  # root elements, which declare the language of the document
NAMES = ("lang", "xml:lang")


def of_page(tokens: Sequence[Token], target: str) -> list[Token]:
    """Set the language of an HTML page or of a part of a book."""
    root = next((token for token in tokens if token.kind == "start" and token.name in ROOTS), None)
    main = _language(root) if root and target else ""
    new = dict.fromkeys(NAMES, escape(target))
    return [with_values(one, new) if main and one.kind != "end" and _language(one) == main else one for one in tokens]


def _language(token: Token) -> str:
    """Return the language declared by a tag, without its region."""
    values = (token.attributes.get(name, "") for name in NAMES)
    return next(filter(None, values), "").partition("-")[0].strip().lower()
