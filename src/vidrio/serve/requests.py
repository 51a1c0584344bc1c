"""Define the fields of requests (for OpenAPI, and for parsing JSON and forms) and the error responses.

Messages about missing or invalid fields match LibreTranslate's, because its clients rely on them.
"""

import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import parse_qsl

from fastapi import Request
from pydantic import BaseModel, BeforeValidator, Field, ValidationError
from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException

from vidrio.errors import ConfigError, ModelError, VidrioError

MAX_FIELDS, MAX_TERMS = 100, 1_000
LARGEST_PART = 1 << 30  # bytes; the size of the whole body is limited in guards.py
JSON, URLENCODED, MULTIPART = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"

log = logging.getLogger("vidrio.serve")


class Refusal(HTTPException):
    """An error response that refuses a request."""


def busy(status: int, error: str, seconds: float) -> Refusal:
    """Return a refusal that asks the client to retry after `seconds`."""
    return Refusal(status, error, {"Retry-After": str(max(1, round(seconds)))})


def bad(error: str) -> Refusal:
    return Refusal(400, f"Invalid request: {error}")


def refusal_of(error: VidrioError) -> Refusal:
    """Return the refusal for an error. The operator's errors, which may contain paths, are logged instead of being sent
    to the client."""
    if not isinstance(error, ModelError | ConfigError):
        return bad(f"{error.what}, {error.found}".rstrip(", "))
    log.error("%s", error)
    of_model = isinstance(error, ModelError)
    return Refusal(500, "The model cannot be loaded" if of_model else "The server is not set up as it should be")


def _from_json(value: Any) -> Any:
    """Parse a JSON request body, or a form field that contains JSON."""
    try:
        return json.loads(value) if isinstance(value, str | bytes) else value
    except (ValueError, RecursionError):
        raise Refusal(400, "Invalid JSON format") from None


Term = Annotated[str, Field(min_length=1, max_length=200)]
Glossary = Annotated[dict[Term, Term], Field(max_length=MAX_TERMS), BeforeValidator(_from_json)]


class Body(BaseModel):
    """The fields that all requests have."""

    api_key: Annotated[str, Field(description="An API key, if the server requires one")] = ""


class Detect(Body):
    q: Annotated[str, Field(description="A text", examples=["Hello world"])]


class Suggest(Body):
    q: Annotated[str, Field(description="The text", examples=["Hello world"])]
    s: Annotated[str, Field(description="A better translation", examples=["Hola mundo"])]
    source: Annotated[str, Field(description="The language of the text", examples=["en"])]
    target: Annotated[str, Field(description="The language of the translation", examples=["es"])]


class Languages(Body):
    source: Annotated[str, Field(description='The language of the text, or "auto"', examples=["en"])]
    target: Annotated[str, Field(description="The language to translate into", examples=["es"])]
    glossary: Annotated[Glossary, Field(description="Terms, each with its translation")] = {}

    @property
    def terms(self) -> tuple[tuple[str, str], ...]:
        return tuple(self.glossary.items())


class TranslateFile(Languages):
    file: Annotated[str, Field(description="The file", json_schema_extra={"format": "binary"})] = ""


class Translate(Languages):
    q: Annotated[str | list[str], Field(description="A text, or a list of texts", examples=["Hello world"])]
    format: Annotated[Literal["text", "html", "markdown"], Field(description="The format of q")] = "text"
    alternatives: Annotated[int, Field(ge=0, description="The maximum number of alternative translations")] = 0

    @property
    def texts(self) -> list[str]:
        return [self.q] if isinstance(self.q, str) else self.q


M = TypeVar("M", bound=Body)


async def read(model: type[M], request: Request, batch_limit: int = -1) -> M:
    """Read and validate a request body, as JSON or as a form. The number of texts is checked first, because validating
    thousands of texts delays other clients."""
    fields = await _fields(request)
    if isinstance(texts := fields.get("q"), list):
        hold("request", len(texts), "batch limit", batch_limit)
    return of_fields(model, fields)


async def _fields(request: Request) -> Mapping[str, Any]:
    if kind_of(request) == URLENCODED:
        return _texts(fields_of(await body_of(request)))
    if kind_of(request) == MULTIPART:
        async with form_of(request) as form:
            return _texts(form)
    return await json_of(request)


async def body_of(request: Request) -> bytes:
    """Read a request body. Unlike `request.body()`, this function does not keep the body until the response is sent."""
    return b"".join([part async for part in request.stream()])


def fields_of(body: bytes) -> dict[str, str]:
    """Parse a URL-encoded form."""
    try:
        text = body.decode("ascii")
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict"))
    except ValueError as error:
        raise bad(f"the form cannot be read: {error!s:.200}") from None


async def json_of(request: Request) -> dict[str, Any]:
    """Parse a body that must be a JSON object. The media type must be JSON, because pages on other websites cannot send
    JSON without a preflight."""
    if kind_of(request) != JSON:
        raise Refusal(415, f"Send JSON, with Content-Type: {JSON}")
    data = _from_json(await body_of(request) or b"{}")
    if not isinstance(data, dict):
        raise Refusal(400, "Invalid JSON format")
    return data


def kind_of(request: Request) -> str:
    """Return the media type of a request body, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def of_form(model: type[M], form: Mapping[str, Any]) -> M:
    """Validate the fields of a form."""
    return of_fields(model, _texts(form))


def _texts(form: Mapping[str, Any]) -> dict[str, str]:
    """Return a form's fields without files. Line breaks become \\n, because browsers send \\r\\n."""
    return {name: value.replace("\r\n", "\n") for name, value in form.items() if isinstance(value, str)}


def of_fields(model: type[M], fields: Mapping[str, Any]) -> M:
    """Validate fields. An empty field counts as missing."""
    try:
        return model.model_validate({name: value for name, value in fields.items() if value not in (None, "", [])})
    except ValidationError as error:
        raise bad(_in_words(error)) from None


def _in_words(error: ValidationError) -> str:
    problem = error.errors()[0]
    field, value = str(problem["loc"][0]), problem["input"]
    if problem["type"] == "missing":
        return f"missing {field} parameter"
    if field == "format":
        return f"{value!s:.20} format is not supported"
    if field == "alternatives":
        wrong = "must be a positive number" if problem["type"] == "greater_than_equal" else "is not a number"
        return f"alternatives parameter {wrong}"
    if field == "glossary":
        return f"glossary is not an object of at most {MAX_TERMS} terms and translations, each of 1 to 200 characters"
    texts = "a string or a list of strings" if field == "q" and error.title == "Translate" else "a string"
    return f"{field} parameter is not {texts}"


@asynccontextmanager
async def form_of(request: Request) -> AsyncIterator[FormData]:
    """Parse a multipart form, and close its uploads afterwards."""
    _, options = parse_options_header(request.headers["content-type"])
    if options.get(b"charset", b"utf-8").lower() not in (b"utf-8", b"utf8"):
        # Starlette would decode the fields with any codec that Python has. Some take quadratic time.
        raise bad("the form's charset is not UTF-8")
    try:
        form = await request.form(max_files=1, max_fields=MAX_FIELDS, max_part_size=LARGEST_PART)
    except Refusal:
        raise
    except (HTTPException, ValueError) as error:  # older versions of Starlette pass on the parser's ValueError
        raise bad(f"the form cannot be read: {getattr(error, 'detail', error)!s:.200}") from None
    try:
        yield form
    finally:
        await form.close()


def hold(what: str, number: int, name: str, limit: int) -> None:
    """Raise Refusal if a number exceeds its limit. −1 means no limit."""
    if limit != -1 and number > limit:
        raise bad(f"{what} ({number}) exceeds {name} ({limit})")


def described(model: type[BaseModel], *kinds: str) -> dict[str, Any]:
    """Return the OpenAPI description of a request body."""
    content = {kind: {"schema": model.model_json_schema()} for kind in kinds or (JSON, URLENCODED, MULTIPART)}
    return {"requestBody": {"required": True, "content": content}}
