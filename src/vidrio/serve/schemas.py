"""What requests hold, for the API's description. They are read by `asks.py`, whose refusals clients know by heart."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

Api = Annotated[str, Field(description="An API key, if the server wants one")]


class TRANSLATE(BaseModel):
    q: Annotated[str | list[str], Field(description="A text, or several", examples=["Hello world"])]
    source: Annotated[str, Field(description='Its language, or "auto"', examples=["en"])]
    target: Annotated[str, Field(description="The language to translate into", examples=["es"])]
    format: Annotated[Literal["text", "html", "markdown"], Field(description="What q is")] = "text"
    alternatives: Annotated[int, Field(ge=0, description="Other translations, so many at most")] = 0
    glossary: Annotated[dict[str, str], Field(description="Terms, each with its translation")] = {}
    keep: Annotated[list[str], Field(description="Terms that stay as they are")] = []
    api_key: Api = ""


class DETECT(BaseModel):
    q: Annotated[str, Field(description="A text", examples=["Hello world"])]
    api_key: Api = ""


class SUGGEST(BaseModel):
    q: Annotated[str, Field(description="The text", examples=["Hello world"])]
    s: Annotated[str, Field(description="A better translation", examples=["Hola mundo"])]
    source: Annotated[str, Field(description="The language of the text", examples=["en"])]
    target: Annotated[str, Field(description="The language of the translation", examples=["es"])]


class FILE(BaseModel):
    file: Annotated[str, Field(description="The file", json_schema_extra={"format": "binary"})]
    source: Annotated[str, Field(description='Its language, or "auto"', examples=["en"])]
    target: Annotated[str, Field(description="The language to translate into", examples=["es"])]
    api_key: Api = ""


def body(model: type[BaseModel], *kinds: str) -> dict[str, Any]:
    """The description of a request's body, as JSON and as a form."""
    kinds = kinds or ("application/json", "application/x-www-form-urlencoded", "multipart/form-data")
    schema = model.model_json_schema() | {"title": model.__name__.title()}
    refused = {"application/json": {"schema": {"type": "object", "properties": {"error": {"type": "string"}}}}}
    statuses = {400: "A field is missing or wrong", 403: "The API key is wrong", 413: "The request is too large"}
    statuses |= {408: "It came too slowly", 429: "Too many requests", 503: "The server is busy"}
    return {
        "requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}},
        "responses": {str(status): {"description": what, "content": refused} for status, what in statuses.items()},
    }
