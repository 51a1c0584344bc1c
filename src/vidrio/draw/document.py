"""What all pages have in common: one file with its style in it, contents, sections. No network, no script."""

from collections.abc import Iterable, Sequence
from importlib.resources import files

from vidrio.draw.html import text

Section = tuple[str, str, str]  # anchor, title, body; one without a body is left out


def document(
    title: str, header: Iterable[str], sections: Iterable[Section], footer: str, styles: Sequence[str] = ("page.css",)
) -> str:
    """A whole page."""
    drawn = [section for section in sections if section[2]]
    contents = "".join(f'<li><a href="#{anchor}">{text(name)}</a></li>' for anchor, name, _ in drawn)
    css = "".join(files("vidrio.draw").joinpath(name).read_text("utf-8") for name in styles)
    lines = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        # Nothing may be fetched, by this page or by anything put into it.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{text(title)}</title>\n<style>\n{css}</style>\n</head>\n<body>",
        *header,
        f'<nav aria-label="Contents"><ol>{contents}</ol></nav>\n<main>',
        *(f'<section id="{anchor}">\n<h2>{text(name)}</h2>\n{body}\n</section>' for anchor, name, body in drawn),
        f"</main>\n{footer}\n</body>\n</html>",
    ]
    return "\n".join(lines) + "\n"


def column_heads(names: Sequence[str]) -> str:
    """The first row of a table: what its columns are."""
    return "".join(f'<th scope="col" class="word">{text(name)}</th>' if name else "<td></td>" for name in names)


def scrolling(name: str, head: str, body: str) -> str:
    """A table for reading, in a frame that scrolls where the page is too narrow for it."""
    thead = f"<thead><tr>{head}</tr></thead>" if head else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{name}"><table class="large">'
        f"{thead}<tbody>{body}</tbody></table></div>"
    )
