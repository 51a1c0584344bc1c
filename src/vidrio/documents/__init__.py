"""Translate marked-up text and files. Everything except the text is preserved."""

# Formats that are translated as a whole. They are listed here because the code that handles them is slow to import.
DOCUMENTS = frozenset(
    (".html", ".htm", ".xhtml", ".md", ".markdown", ".srt", ".vtt", ".docx", ".odt", ".epub", ".po", ".pot")
)

# Rejected formats: binary files, and text whose syntax a line-by-line translation would destroy.
_OTHERS = """
    .pdf .doc .docm .dotx .rtf .xls .xlsx .ods .ppt .pptx .odp .odg .ott .fodt .pages .key .mobi .azw3 .djvu .ps
    .zip .7z .rar .tar .png .jpg .jpeg .gif .webp .mp3 .mp4 .mkv .wav
    .ass .ssa .sub .sbv .ttml .csv .tsv .tex .latex .bib .rst .adoc .org .xml .svg .xlf .xliff .tmx .resx
    .json .jsonl .yaml .yml .toml .ini .properties .strings .arb .ipynb
    .py .js .ts .css .c .h .cpp .java .go .rs .rb .php .sh .sql
"""
OTHERS = frozenset(_OTHERS.split())
