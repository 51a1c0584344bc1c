"""PO files of gettext: messages without a translation get one; every other line stays as it is."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from vidrio.documents.aligned import Aligned
from vidrio.documents.markup import Plan
from vidrio.errors import DataError

STATEMENT = re.compile(r'(?:(msgctxt|msgid_plural|msgid|msgstr)(?:\[(\d{1,2})\])?\s*)?"((?:[^"\\]++|\\.)*+)"')
ESCAPES = {"\\": "\\", '"': '"', "n": "\n", "t": "\t", "r": "\r"}
LANGUAGE = re.compile(r"(?<=\"Language:)[^\"\\]*")
CHARSET = re.compile(r"(?<=charset=)[\w-]+")


@dataclass
class Message:
    """A message, and where its lines stand; of translations from `first` to before `last`."""

    texts: dict[str, str] = field(default_factory=dict)  # by keyword
    forms: dict[int, str] = field(default_factory=dict)  # its translations; 0 if it has one form only
    flags: list[int] = field(default_factory=list)
    previous: list[int] = field(default_factory=list)  # what a fuzzy translation was of
    is_fuzzy: bool = False
    first: int = 0
    last: int = 0

    @property
    def sources(self) -> list[str]:
        return [text for name in ("msgid", "msgid_plural") if (text := self.texts.get(name))]

    @property
    def is_wanted(self) -> bool:
        has_all = bool(self.forms) and all(self.forms.values())
        return bool(self.texts.get("msgid")) and self.last > 0 and (self.is_fuzzy or not has_all)


def plan_po(source: str, target: str) -> Plan:
    """What to translate of a catalogue: messages that have no translation, or a fuzzy one."""
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
            new |= {at: _without_fuzzy(lines[at]) for at in message.flags}
            new[message.first] = list(_translated(message, texts))
        return "\n".join(line for at, old in enumerate(lines) for line in new.get(at, (old,)))

    return Plan([text for message in wanted for text in message.sources], render)


def _messages(lines: Sequence[str]) -> Iterator[Message]:
    message, keyword, form = Message(), "", 0
    for at, line in enumerate(lines):
        line = line.strip()
        found, is_comment = STATEMENT.fullmatch(line), line.startswith("#")
        if not line:
            if keyword in ("", "msgstr"):
                yield message
                message, keyword = Message(), ""
            continue
        if not found and not is_comment:
            raise _unreadable(at, line)
        begins = is_comment or (found and found[1] in ("msgctxt", "msgid"))
        if begins and keyword == "msgstr":
            yield message
            message, keyword = Message(), ""
        if not found:
            _read_comment(message, at, line)
            continue
        if found[1]:
            keyword, form = found[1], int(found[2] or 0)
            is_twice = keyword in message.texts or (keyword == "msgstr" and form in message.forms)
            if is_twice or (found[2] and "msgid_plural" not in message.texts):
                raise _unreadable(at, line)
            if keyword == "msgstr":
                message.first = message.first or at
        text = _unescaped(found[3])
        if keyword == "msgstr":
            message.forms[form] = message.forms.get(form, "") + text
            message.last = at + 1
        elif keyword:
            message.texts[keyword] = message.texts.get(keyword, "") + text
        else:
            raise _unreadable(at, line)
    yield message


def _unreadable(at: int, line: str) -> DataError:
    return DataError("this PO file cannot be read", found=f"line {at + 1}: {line[:80]}", do="correct this line")


def _read_comment(message: Message, at: int, comment: str) -> None:
    if comment.startswith("#,") and "fuzzy" in _flags(comment):
        message.is_fuzzy = True
        message.flags.append(at)
    elif comment.startswith("#|"):
        message.previous.append(at)


def _flags(comment: str) -> list[str]:
    return [flag.strip() for flag in comment[2:].split(",")]


def _without_fuzzy(comment: str) -> list[str]:
    flags = [flag for flag in _flags(comment.lstrip()) if flag != "fuzzy"]
    return [f"#, {', '.join(flags)}"] if flags else []


def _translated(message: Message, texts: Sequence[str]) -> Iterator[str]:
    if "msgid_plural" not in message.texts:
        yield from _statement("msgstr", texts[0])
        return
    for form in sorted(message.forms) if len(message.forms) > 1 else (0, 1):
        there = "" if message.is_fuzzy else message.forms.get(form, "")
        yield from _statement(f"msgstr[{form}]", there or (texts[-1] if form else texts[0]))


def _statement(keyword: str, text: str) -> list[str]:
    """A string of several lines has a line for each, as gettext writes it."""
    lines = [f'"{_escaped(line)}"' for line in re.findall(r"[^\n]*\n|[^\n]+", text)] or ['""']
    return [f"{keyword} {lines[0]}"] if len(lines) == 1 else [f'{keyword} ""', *lines]


def _in_language(line: str, target: str) -> str:
    return CHARSET.sub("UTF-8", LANGUAGE.sub(lambda _: f" {_escaped(target)}", line))


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: ESCAPES.get(match[1], match[0]), text)


def _escaped(text: str) -> str:
    codes = {sign: f"\\{name}" for name, sign in ESCAPES.items()}
    return "".join(codes.get(sign, sign) for sign in text)
