"""`/docs`: the API's description as a plain page, made from its OpenAPI. No script, nothing from elsewhere."""

from collections.abc import Iterator
from html import escape
from typing import Any

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}: the API</title>
<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="docs.css"></head>
<body><h1>{title}: the API</h1><p>The same for programs: <a href="openapi.json">openapi.json</a>.</p>
{routes}</body></html>
"""
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem }
html { color-scheme: light dark }
section { border-top: 1px solid #8888; margin-top: 1.5rem } h2 { font: 1.1rem monospace } pre { overflow-x: auto }
td { vertical-align: top; padding: .1rem 1rem .1rem 0 } td:first-child { font-family: monospace }
"""


def page(description: dict[str, Any]) -> str:
    routes = "".join(
        route(method, path, told) for path, methods in description["paths"].items() for method, told in methods.items()
    )
    return PAGE.format(title=escape(description["info"]["title"]), routes=routes)


def route(method: str, path: str, told: dict[str, Any]) -> str:
    content = told.get("requestBody", {}).get("content", {})
    schema: dict[str, Any] = next((kind["schema"] for kind in content.values()), {})
    fields = "".join(_fields(schema))
    answers = "".join(
        f"<tr><td>{escape(status)}</td><td>{escape(answer['description'])}</td></tr>"
        for status, answer in told.get("responses", {}).items()
    )
    kinds = f"<p>{escape(', '.join(content))}</p>" if content else ""
    return (
        f"<section><h2>{method.upper()} {escape(path)}</h2><p>{escape(told.get('summary', ''))}</p>{kinds}"
        f"<table>{fields}</table><table>{answers}</table></section>\n"
    )


def _fields(schema: dict[str, Any]) -> Iterator[str]:
    for name, field in schema.get("properties", {}).items():
        must = " (required)" if name in schema.get("required", []) else ""
        kind = field.get("type") or " or ".join(one.get("type", "") for one in field.get("anyOf", [])) or "choice"
        words = f"{field.get('description', '')}{must}"
        yield f"<tr><td>{escape(name)}</td><td>{escape(kind)}</td><td>{escape(words)}</td></tr>"
