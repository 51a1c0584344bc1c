"""Marked-up text and files: what is translated, and how everything else is preserved."""

# Files that are translated as a whole. The code for it takes long to import, so the names are listed here.
DOCUMENTS = frozenset(
    (".html", ".htm", ".xhtml", ".md", ".markdown", ".srt", ".vtt", ".docx", ".odt", ".epub", ".po", ".pot")
)

# Binary files, or text whose syntax a line-by-line translation destroys; they are refused.
_OTHERS = """
    .pdf .doc .docm .dotx .rtf .xls .xlsx .ods .ppt .pptx .odp .odg .ott .fodt .pages .key .mobi .azw3 .djvu .ps
    .zip .7z .rar .tar .png .jpg .jpeg .gif .webp .mp3 .mp4 .mkv .wav
    .ass .ssa .sub .sbv .ttml .csv .tsv .tex .latex .bib .rst .adoc .org .xml .svg .xlf .xliff .tmx .resx
    .json .jsonl .yaml .yml .toml .ini .properties .strings .arb .ipynb
    .py .js .ts .css .c .h .cpp .java .go .rs .rb .php .sh .sql
"""
OTHERS = frozenset(_OTHERS.split())
