"""The terms of `vidrio translate --glossary`, in text that is translated line by line."""

from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vidrio.documents.terms import Hidden, Terms


class Glossary:
    """Hides the terms of texts, and puts their translations in, in order. Without a file it does neither."""

    def __init__(self, file: Path | None) -> None:
        self.terms: Terms = ()
        self._hidden: deque[Hidden] = deque()
        if file is not None:
            from vidrio.documents.terms import read_terms

            self.terms = read_terms(file)

    def hide(self, text: str) -> str:
        if not self.terms:
            return text
        from vidrio.documents.terms import hide

        self._hidden.append(hide(text, self.terms))
        return self._hidden[-1].text

    def reveal_first(self, translation: str) -> str:
        """The translation of the text that has waited for longest."""
        return self._revealed(translation, self._hidden.popleft()) if self._hidden else translation

    def reveal_last(self, translation: str) -> str:
        """One of several translations of the latest text."""
        return self._revealed(translation, self._hidden[-1]) if self._hidden else translation

    def _revealed(self, translation: str, hidden: "Hidden") -> str:
        from vidrio.documents.terms import reveal

        return reveal(translation, hidden)
