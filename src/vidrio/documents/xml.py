"""XML as tokens that make it up again, by expat. Entities of its own are refused: they can grow without end."""

from collections.abc import Callable
from html import unescape
from typing import Any
from xml.parsers import expat

from vidrio.documents.markup import Token
from vidrio.errors import DataError

Event = tuple[int, str, str, Any]  # where it begins in the bytes, its kind, its name, an element's attributes


def tokens(data: bytes, what: str) -> list[Token]:
    """The tokens of an XML file; `what` it is, for the message if it is none."""
    events: list[Event] = []
    parser = expat.ParserCreate()
    parser.buffer_text = False

    def noting(kind: str) -> Callable[..., None]:
        def note(name: str = "", attributes: Any = None, *more: Any) -> None:
            events.append((parser.CurrentByteIndex, kind, name, attributes))

        return note

    def refuse(*declared: Any) -> None:
        raise DataError(f"{what} declares entities", found=str(declared[0])[:80], do="replace them with their text")

    parser.StartElementHandler, parser.EndElementHandler = noting("start"), noting("end")
    parser.CharacterDataHandler = noting("text")
    parser.CommentHandler = parser.ProcessingInstructionHandler = noting("thing")
    parser.StartCdataSectionHandler, parser.EndCdataSectionHandler = noting("literal"), noting("literal end")
    parser.EntityDeclHandler = refuse
    parser.DefaultHandler = noting("other")
    try:
        data.decode("utf-8")
        parser.Parse(data, True)
    except (expat.ExpatError, UnicodeDecodeError, LookupError) as error:
        raise DataError(f"{what} is not XML in UTF-8", found=str(error), do="save it again") from None
    return _cut(data, events)


def _cut(data: bytes, events: list[Event]) -> list[Token]:
    """Each event with the bytes from where it begins to where the next one does."""
    found: list[Token] = []
    ends = [*(event[0] for event in events[1:]), len(data)]
    literal = False
    for (at, kind, name, attributes), end in zip(events, ends, strict=True):
        raw = data[at:end].decode("utf-8")
        literal = kind == "literal" or (literal and kind != "literal end")
        if literal or kind == "literal end":
            found.append(Token("thing", raw))
        elif kind == "text" or (kind == "other" and raw.startswith("&")):
            if found and found[-1].kind == "text":
                raw = found.pop().raw + raw
            found.append(Token("text", raw, text=unescape(raw)))
        elif kind == "end" and found and found[-1].kind == "start" and not found[-1].raw:  # <br/>: both at one place
            found[-1] = Token("thing", raw, name, attributes=found[-1].attributes)
        elif kind == "start":
            found.append(Token("start", raw, name, attributes=attributes))
        elif kind == "end":
            found.append(Token("end", raw, name))
        else:
            found.append(Token("thing", raw, "" if kind == "thing" else "what stands before the text"))
    return found
