"""Translate gettext's PO files. Only untranslated and fuzzy messages are translated. The language and the
charset in the header are updated. All other lines are copied."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from vidrio.documents.aligned import Aligned
from vidrio.documents.markup import Plan
from vidrio.errors import DataError

STATEMENT = re.compile(r'(?:(msgctxt|msgid_plural|msgid|msgstr(?:\[\d{1,2}\])?)\s*)?"((?:[^"\\]++|\\.)*+)"')
ESCAPES = {"\\": "\\", '"': '"', "n": "\n", "t": "\t", "r": "\r"}
ESCAPED = str.maketrans({sign: f"\\{name}" for name, sign in ESCAPES.items()})
LANGUAGE = re.compile(r"(?<=\"Language:)[^\"\\]*")
CHARSET = re.compile(r"(?<=charset=)[\w-]+")


@dataclass
class Message:
    """A message and the indices of the lines that may change."""

    sources: dict[str, str] = field(default_factory=dict)  # by keyword
    forms: dict[str, str] = field(default_factory=dict)  # the translations, one per plural form
    lines: list[int] = field(default_factory=list)  # lines that contain the translations
    fuzzy: list[int] = field(default_factory=list)  # lines that contain the fuzzy flag
    previous: list[int] = field(default_factory=list)  # lines that contain the previous source of a fuzzy translation
    is_left: bool = False  # whether it contains escapes such as \033, which a translation might not keep

    @property
    def texts(self) -> list[str]:
        """The strings to translate."""
        is_wanted = self.sources.get("msgid") and self.forms and (self.fuzzy or "" in self.forms.values())
        texts = (self.sources.get(name) for name in ("msgid", "msgid_plural"))
        return list(filter(None, texts)) if is_wanted and not self.is_left else []


def plan_po(source: str, target: str) -> Plan:
    """Return the plan of a catalogue. The texts are the untranslated and the fuzzy messages."""
    lines = source.split("\n")
    messages = list(_messages(lines))

    def render(found: Sequence[Aligned]) -> str:
        translations = iter(found)
        new: dict[int, list[str]] = {}
        for message in messages:
            if message.sources.get("msgid") == "" and target:
                new |= {at: [_in_language(lines[at], target)] for at in message.lines}
            elif texts := [next(translations).text for _ in message.texts]:
                new |= {at: [] for at in (*message.previous, *message.lines)}
                new |= {at: _without_fuzzy(lines[at]) for at in message.fuzzy}
                new[message.lines[0]] = list(_translated(message, texts))
        return "\n".join(line for at, old in enumerate(lines) for line in new.get(at, (old,)))

    return Plan([text for message in messages for text in message.texts], render)


def _messages(lines: Sequence[str]) -> Iterator[Message]:
    message, keyword = Message(), ""
    for at, line in enumerate(map(str.strip, lines)):
        found = STATEMENT.fullmatch(line)
        begins = (not found or found[1] in ("msgctxt", "msgid")) and bool(message.forms)
        if begins or not (line or keyword):
            yield message
            message, keyword = Message(), ""
        if found:
            _read(message, found, at, keyword)
            keyword = found[1] or keyword
        elif line.startswith("#,") and "fuzzy" in _flags(line):
            message.fuzzy.append(at)
        elif line.startswith("#|"):
            message.previous.append(at)
        elif line and not line.startswith("#"):
            raise _unreadable(at, line)
    yield message


def _read(message: Message, found: re.Match[str], at: int, before: str) -> None:
    """Add a string to its message. A string without a keyword continues the preceding string."""
    keyword = found[1] or before
    texts = message.forms if keyword.startswith("msgstr") else message.sources
    is_plural = "msgid_plural" in message.sources
    wrong_form = texts is message.forms and keyword.endswith("]") != is_plural
    if not keyword or (found[1] and (keyword in texts or wrong_form)):
        raise _unreadable(at, found[0])
    message.is_left |= any(sign not in ESCAPES for sign in re.findall(r"\\(.)", found[2]))
    text = re.sub(r"\\(.)", lambda match: ESCAPES.get(match[1], match[0]), found[2])
    texts[keyword] = texts.get(keyword, "") + text
    if texts is message.forms:
        message.lines.append(at)


def _unreadable(at: int, line: str) -> DataError:
    return DataError("this PO file cannot be read", found=f"line {at + 1}: {line[:80]}", do="correct this line")


def _flags(comment: str) -> list[str]:
    return [flag.strip() for flag in comment[2:].split(",")]


def _without_fuzzy(comment: str) -> list[str]:
    flags = [flag for flag in _flags(comment.lstrip()) if flag != "fuzzy"]
    return [f"#, {', '.join(flags)}"] if flags else []


def _translated(message: Message, texts: Sequence[str]) -> Iterator[str]:
    forms = message.forms
    if "msgid_plural" in message.sources and len(forms) == 1:
        forms = {"msgstr[0]": "", "msgstr[1]": ""}
    for keyword, old in forms.items():
        new = texts[0] if keyword in ("msgstr", "msgstr[0]") else texts[-1]
        yield from _statement(keyword, new if message.fuzzy or not old else old)


def _statement(keyword: str, text: str) -> list[str]:
    """Format a keyword and its string. As in gettext, each line of a multi-line string is on a line of its own."""
    lines = [f'"{line.translate(ESCAPED)}"' for line in re.findall(r"[^\n]*\n|[^\n]+", text)] or ['""']
    return [f"{keyword} {lines[0]}"] if len(lines) == 1 else [f'{keyword} ""', *lines]


def _in_language(line: str, target: str) -> str:
    return CHARSET.sub("UTF-8", LANGUAGE.sub(lambda _: f" {target.translate(ESCAPED)}", line))
