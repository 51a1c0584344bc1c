"""A request's body → what it asks for. JSON and forms say the same; the words of refusals are LibreTranslate's."""

import json
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException

from vidrio.serve.refusal import Refusal, bad
from vidrio.serve.settings import Settings

FORMATS = ("text", "html", "markdown")
MOST_FIELDS, MOST_TERMS = 100, 1_000
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


@dataclass(frozen=True)
class TranslateAsk:
    """`POST /translate`."""

    texts: tuple[str, ...]
    many: bool  # q was a list, so the answer has lists
    source: str
    target: str
    format: str = "text"
    alternatives: int = 0
    glossary: tuple[tuple[str, str], ...] = ()  # terms with what stands for them


async def fields_of(request: Request) -> dict[str, Any]:
    """The fields of a request: of a JSON object or of a form."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in FORMS:
        form = await form_of(request)
        await form.close()
        return {name: _newlines(value) for name, value in form.items()}
    try:
        data = json.loads(await request.body() or b"{}")
    except (ValueError, RecursionError):
        raise Refusal(400, "Invalid JSON format") from None
    if not isinstance(data, dict):
        raise Refusal(400, "Invalid JSON format")
    return data


async def form_of(request: Request) -> FormData:
    try:
        largest = request.app.state.settings.body_limit
        return await request.form(max_files=1, max_fields=MOST_FIELDS, max_part_size=largest)
    except (MultiPartException, HTTPException, ValueError) as error:  # ValueError: bytes that are not UTF-8
        raise bad(f"the form cannot be read: {error!s:.200}") from None


def _newlines(value: Any) -> Any:
    """Browsers send forms with \\r\\n."""
    return "\n".join(value.split("\r\n")) if isinstance(value, str) else value


def translate_ask(fields: dict[str, Any], settings: Settings) -> TranslateAsk:
    """`POST /translate`, read and held to the limits."""
    texts, many = _texts(fields)
    source, target = needed(fields, "source"), needed(fields, "target")
    form = fields.get("format") or "text"
    if form not in FORMATS:
        raise bad(f"{form!s:.20} format is not supported")
    alternatives = _number(fields.get("alternatives") or 0, "alternatives")
    if settings.alternatives_limit != -1 and alternatives > settings.alternatives_limit:
        raise bad(f"alternatives ({alternatives}) exceeds limit ({settings.alternatives_limit})")
    if settings.batch_limit != -1 and len(texts) > settings.batch_limit:
        raise bad(f"request ({len(texts)}) exceeds batch limit ({settings.batch_limit})")
    return TranslateAsk(texts, many, source, target, form, alternatives, terms_of(fields))


def check_length(characters: int, limit: int) -> None:
    if limit != -1 and characters > limit:
        raise bad(f"request ({characters}) exceeds text limit ({limit})")


def _texts(fields: dict[str, Any]) -> tuple[tuple[str, ...], bool]:
    """q: a string, or a list of them."""
    q = fields.get("q")
    if q in (None, "", []):
        raise bad("missing q parameter")
    texts = q if isinstance(q, list) else [q]
    if not all(isinstance(text, str) for text in texts):
        raise bad("q parameter is not a string or a list of strings")
    return tuple(texts), isinstance(q, list)


def needed(fields: dict[str, Any], name: str) -> str:
    """A field that must be there and be a text."""
    value = fields.get(name)
    if value in (None, ""):
        raise bad(f"missing {name} parameter")
    if not isinstance(value, str):
        raise bad(f"{name} parameter is not a string")
    return value


def _number(value: Any, name: str) -> int:
    try:
        if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()) or len(str(value)) > 9:
            raise ValueError
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        raise bad(f"{name} parameter is not a number") from None
    if number < 0:
        raise bad(f"{name} parameter must be a positive number")
    return number


def terms_of(fields: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """`glossary`, an object of terms and their translations; `keep`, a list of terms that stay as they are."""
    glossary, keep = _parsed(fields.get("glossary")) or {}, _parsed(fields.get("keep")) or []
    if not isinstance(glossary, dict) or not isinstance(keep, list):
        raise bad("glossary is an object of terms, keep a list of terms")
    pairs = [*glossary.items(), *((term, term) for term in keep)]
    if len(pairs) > MOST_TERMS or not all(
        isinstance(part, str) and 0 < len(part) <= 200 for pair in pairs for part in pair
    ):
        raise bad(f"terms are texts of 1 to 200 characters, and at most {MOST_TERMS}")
    return tuple(pairs)


def _parsed(value: Any) -> Any:
    """A form holds it as JSON."""
    if not isinstance(value, str) or not value:
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise Refusal(400, "Invalid JSON format") from None
