"""The reference page: every URL of the service as plain HTML, from the OpenAPI document."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["reference_page"]


def reference_page(description: Mapping[str, Any]) -> bytes:
    """Return an HTML page of an OpenAPI document. It needs no script and no style."""
    info = description["info"]
    lines = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        f"<title>{escape(info['title'])} {escape(info['version'])}</title></head><body><main>",
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1><p>{escape(info['summary'])} ",
        '<a href="openapi.json">openapi.json</a></p>',
        *(line for path, methods in description["paths"].items() for line in _operations(path, methods)),
        "</main></body></html>",
    ]
    return "\n".join(lines).encode()


def _operations(path: str, methods: Mapping[str, Any]) -> Iterator[str]:
    for method, each in methods.items():
        needs = "" if {} in each["security"] else " Needs the role operate."
        yield f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{escape(each['summary'])}{needs}</p>"
        if each["parameters"]:
            yield "<table><thead><tr><th>parameter<th>in<th>type<th>meaning</tr></thead><tbody>"
            yield from map(_parameter, each["parameters"])
            yield "</tbody></table>"


def _parameter(each: Mapping[str, Any]) -> str:
    kind = each["schema"].get("type", "")
    words = each.get("description", "") + (" Required." if each["required"] else "")
    cells = (each["name"], each["in"], str(kind), words)
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
