"""The language that a document names: its own becomes the new one, and that of a quotation stays."""

from collections.abc import Iterable, Mapping, Sequence

from vidrio.documents.markup import Token, escape, with_values

ROOTS = ("html", "package", "ncx")  # whose language is that of the document


def language_of(token: Token, names: Iterable[str]) -> str:
    """The language in the first of these attributes, without a country."""
    values = (token.attributes.get(name, "") for name in names)
    return next(filter(None, values), "").partition("-")[0].strip().lower()


def _replaced(tokens: Iterable[Token], main: str, values: Mapping[str, str], element: str = "") -> list[Token]:
    """The tokens with these values for attributes, the first of which names a language, where that is `main`."""

    def is_main(token: Token) -> bool:
        return token.kind != "end" and element in ("", token.name) and language_of(token, values) == main

    return [with_values(token, values) if main and is_main(token) else token for token in tokens]


def of_parts(
    parts: Mapping[str, Sequence[Token]], styles: str, element: str, values: Mapping[str, str]
) -> dict[str, list[Token]]:
    """The parts of an office file in the language of `values`. What the styles name first is its own until now."""
    name, new = next(iter(values.items()))
    named = (token for token in parts.get(styles, ()) if token.name == element and token.attributes)
    main = next((language_of(token, (name,)) for token in named), "") if new else ""
    return {part: _replaced(tokens, main, values, element) for part, tokens in parts.items()}


def of_page(tokens: Sequence[Token], target: str) -> list[Token]:
    """A page of HTML or a part of a book in its new language."""
    root = next((token for token in tokens if token.kind == "start" and token.name in ROOTS), None)
    main = language_of(root, ("lang", "xml:lang")) if root and target else ""
    return _replaced(tokens, main, dict.fromkeys(("lang", "xml:lang"), escape(target)))
