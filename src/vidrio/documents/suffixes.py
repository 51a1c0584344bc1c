"""Which files are translated as a whole, by the end of their names. Apart from formats.py, which knows how, since that
takes long to import for a line of text."""

DOCUMENTS = frozenset((".html", ".htm", ".xhtml", ".md", ".markdown", ".srt", ".vtt", ".docx", ".odt", ".epub", ".po"))

# What is no text, and would only be garbled line by line; it is refused.
OTHERS = frozenset((".pdf", ".doc", ".rtf", ".xls", ".xlsx", ".ods", ".ppt", ".pptx", ".odp", ".mobi", ".azw3", ".zip"))
