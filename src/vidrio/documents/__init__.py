"""Marked-up text and files: what is translated of them, and how the rest comes through whole."""

# Files that are translated as a whole. The rest of this room, which knows how, takes long to import.
DOCUMENTS = frozenset((".html", ".htm", ".xhtml", ".md", ".markdown", ".srt", ".vtt", ".docx", ".odt", ".epub", ".po"))

# Files that are no text, and would only be garbled line by line; they are refused.
OTHERS = frozenset((".pdf", ".doc", ".rtf", ".xls", ".xlsx", ".ods", ".ppt", ".pptx", ".odp", ".mobi", ".azw3", ".zip"))
