"""Change the language that a document names to that of the translation. The language of a quotation stays."""

from collections.abc import Sequence

from vidrio.documents.markup import Token, escape, with_values

ROOTS = ("html", "package", "ncx")  # whose language is the document's
NAMES = ("lang", "xml:lang")


def of_page(tokens: Sequence[Token], target: str) -> list[Token]:
    """A page of HTML or a part of a book in its new language."""
    root = next((token for token in tokens if token.kind == "start" and token.name in ROOTS), None)
    main = _language(root) if root and target else ""
    new = dict.fromkeys(NAMES, escape(target))
    return [with_values(one, new) if main and one.kind != "end" and _language(one) == main else one for one in tokens]


def _language(token: Token) -> str:
    """The language that a tag names, without a country."""
    values = (token.attributes.get(name, "") for name in NAMES)
    return next(filter(None, values), "").partition("-")[0].strip().lower()
