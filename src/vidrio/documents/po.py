"""gettext's PO files: untranslated messages are translated; all other lines are copied."""

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
    """A message. Its translations are the lines from `first` to before `last`."""

    texts: dict[str, str] = field(default_factory=dict)  # by keyword
    fuzzy: list[int] = field(default_factory=list)  # lines with this flag
    previous: list[int] = field(default_factory=list)  # lines with the previous source of a fuzzy translation
    first: int = 0
    last: int = 0

    @property
    def sources(self) -> list[str]:
        return [text for name in ("msgid", "msgid_plural") if (text := self.texts.get(name))]

    @property
    def forms(self) -> dict[str, str]:
        """The translations: one, or one for each plural form."""
        return {keyword: text for keyword, text in self.texts.items() if keyword.startswith("msgstr")}

    @property
    def is_wanted(self) -> bool:
        return bool(self.texts.get("msgid") and self.last and (self.fuzzy or not all(self.forms.values())))


def plan_po(source: str, target: str) -> Plan:
    """The plan of a catalogue: its untranslated and fuzzy messages."""
    lines = source.split("\n")
    messages = list(_messages(lines))
    wanted = [message for message in messages if message.is_wanted]

    def render(found: Sequence[Aligned]) -> str:
        translations = iter(found)
        new: dict[int, list[str]] = {}
        for message in messages:
            if message.texts.get("msgid") == "" and target:
                new |= {at: [_in_language(lines[at], target)] for at in range(message.first, message.last)}
        for message in wanted:
            texts = [next(translations).text for _ in message.sources]
            new |= {at: [] for at in (*message.previous, *range(message.first, message.last))}
            new |= {at: _without_fuzzy(lines[at]) for at in message.fuzzy}
            new[message.first] = list(_translated(message, texts))
        return "\n".join(line for at, old in enumerate(lines) for line in new.get(at, (old,)))

    return Plan([text for message in wanted for text in message.sources], render)


def _messages(lines: Sequence[str]) -> Iterator[Message]:
    message, keyword = Message(), ""
    for at, line in enumerate(map(str.strip, lines)):
        found = STATEMENT.fullmatch(line)
        may_begin = not found or found[1] in ("msgctxt", "msgid")
        if (may_begin and keyword.startswith("msgstr")) or not (line or keyword):
            yield message
            message, keyword = Message(), ""
        if found:
            keyword = _read(message, found, keyword, at)
        elif line.startswith("#,") and "fuzzy" in _flags(line):
            message.fuzzy.append(at)
        elif line.startswith("#|"):
            message.previous.append(at)
        elif line and not line.startswith("#"):
            raise _unreadable(at, line)
    yield message


def _read(message: Message, found: re.Match[str], keyword: str, at: int) -> str:
    """Add a string to its message. Without a keyword it continues the last one. Returns the keyword."""
    if found[1]:
        keyword = found[1]
        is_form = keyword.startswith("msgstr")
        if keyword in message.texts or (is_form and keyword.endswith("]") != ("msgid_plural" in message.texts)):
            raise _unreadable(at, found[0])
        message.texts[keyword] = ""
    if not keyword:
        raise _unreadable(at, found[0])
    message.texts[keyword] += re.sub(r"\\(.)", lambda match: ESCAPES.get(match[1], match[0]), found[2])
    if keyword.startswith("msgstr"):
        message.first, message.last = message.first or at, at + 1
    return keyword


def _unreadable(at: int, line: str) -> DataError:
    return DataError("this PO file cannot be read", found=f"line {at + 1}: {line[:80]}", do="correct this line")


def _flags(comment: str) -> list[str]:
    return [flag.strip() for flag in comment[2:].split(",")]


def _without_fuzzy(comment: str) -> list[str]:
    flags = [flag for flag in _flags(comment.lstrip()) if flag != "fuzzy"]
    return [f"#, {', '.join(flags)}"] if flags else []


def _translated(message: Message, texts: Sequence[str]) -> Iterator[str]:
    forms = message.forms
    if "msgid_plural" in message.texts and len(forms) == 1:
        forms = {"msgstr[0]": "", "msgstr[1]": ""}
    for keyword, old in forms.items():
        new = texts[0] if keyword in ("msgstr", "msgstr[0]") else texts[-1]
        yield from _statement(keyword, new if message.fuzzy or not old else old)


def _statement(keyword: str, text: str) -> list[str]:
    """A string of several lines is written line by line, as gettext does."""
    lines = [f'"{line.translate(ESCAPED)}"' for line in re.findall(r"[^\n]*\n|[^\n]+", text)] or ['""']
    return [f"{keyword} {lines[0]}"] if len(lines) == 1 else [f'{keyword} ""', *lines]


def _in_language(line: str, target: str) -> str:
    return CHARSET.sub("UTF-8", LANGUAGE.sub(lambda _: f" {target.translate(ESCAPED)}", line))
