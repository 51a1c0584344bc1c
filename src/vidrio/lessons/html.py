"""Render a section of a lesson as HTML for the page, with commands linked to the corresponding views."""

import re
import shlex
from html import escape
from urllib.parse import unquote, urlencode

from markdown_it import MarkdownIt

from vidrio.lessons.run import NAMES, Language, sections

# Options that the page supports.
CHANGES = ("divisor", "layer-norm", "mask", "norm-epsilon", "positions", "scale", "set", "softmax", "without")
MEASURED = {"delete-words": "without", "hide-words": "without", "ablate-heads": "heads", "patch-from": "rows"}
LESSON_LINK = re.compile(r'href="([\w-]+)\.md(?:#([^"]*))?"')


def section_html(name: str, number: int, language: Language = "en") -> str:
    """Render a section. Raw HTML (`<details>`) is allowed, because the texts come from this package."""
    parts = map(str, sections(name, language)[number].parts)
    place = f"{name}/{number}"
    html: str = MarkdownIt("commonmark").enable("table").render("\n\n".join(parts))
    prompt = r"(^|<pre><code[^>]*>)\$ (vidrio .*)$"  # the first command in a block follows the tag
    html = re.sub(prompt, lambda match: match[1] + _linked(match[2], place), html, flags=re.MULTILINE)
    return LESSON_LINK.sub(lambda match: f'href="{_other(match[1], unquote(match[2] or ""), language)}"', html)


def _other(name: str, anchor: str, language: Language) -> str:
    """Return the page's URL fragment for a section, given the anchor of its heading."""
    titles = [section.title for section in sections(name, language)]
    slugs = [re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in titles]
    number = next((n for n, slug in enumerate(slugs) if slug == re.sub(r"^\d+-", "", anchor)), 0)
    return "#" + urlencode({"lesson": f"{name}/{number}"})


def _linked(line: str, place: str) -> str:
    """Return a command as HTML, linked if the page can show the same result."""
    fragment = fragment_of(line.replace("&quot;", '"').replace("&amp;", "&"), place)
    return f'$ <a href="{escape(fragment)}">{line}</a>' if fragment else f"$ {line}"


def fragment_of(command: str, place: str) -> str:
    """Return the page's URL fragment for a `vidrio look` or `vidrio why` command, or "" if the page cannot show it."""
    _, verb, *words = shlex.split(command)
    if verb not in ("look", "why"):
        return ""
    given, several = list[str](), list[tuple[str, str]]()
    view = {"lesson": place} | dict.fromkeys(("text", "model", "word", "rival", "other", "at", "open"), "")
    rest = iter(words)
    for word in rest:
        option = word.removeprefix("--")
        if option == word:
            given.append(word)
        elif option in CHANGES:
            several.append(("if", f"{option}:{next(rest)}"))
        elif option in MEASURED:
            several.append(("card", MEASURED[option]))
            if option == "patch-from":
                view["other"] = next(rest)
        elif option in ("model", "at", "precision", "not"):
            name, value = "rival" if option == "not" else option, next(rest)  # keep the first of several addresses
            view[name] = view.get(name) or value
        else:
            return ""
    view.pop("precision", "")
    address = given.pop(0) if verb == "why" else view["at"]
    if verb == "why" and not re.search(r"[.\[]", address):
        view["word"], address = address, ""
    view |= {"text": " ".join(given), "at": address if "[" in address else ""}
    view["open"] = (re.match(r"(?:enc|dec)\.\d+|\w+", address) or [""])[0]
    return "#" + urlencode([*((name, value) for name, value in view.items() if value), *several])


def contents(language: Language = "en") -> list[dict[str, object]]:
    """List the lessons with the titles of their sections."""
    return [{"name": name, "sections": [section.title for section in sections(name, language)]} for name in NAMES]
