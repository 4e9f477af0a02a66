"""The OpenAPI 3.1 description of the service, as JSON and as a page. The table of operations is the source."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain import __version__
from webfountain.service.problems import CONTENT_TYPE, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webfountain.service.operation import Operation

__all__ = ["description", "reference_page"]

_REF: Final = "#/components/schemas/{name}"


def description(operations: Sequence[Operation], *, base_path: str) -> dict[str, Any]:
    """Return the OpenAPI document of operations."""
    types = [Problem, *_types(operations)]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    schema_of = {str(kind): schema for kind, schema in zip(types, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = _described(each, schema_of, components)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "webfountain",
            "version": __version__,
            "summary": "Collections of an incremental crawler: read, wait for changes, leave notes.",
        },
        "servers": [{"url": base_path or "/"}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "webfountain_session"},
            },
        },
        "tags": [{"name": name} for name in dict.fromkeys(each.tag for each in operations)],
    }


def reference_page(description: Mapping[str, Any]) -> bytes:
    """Return an OpenAPI document as an HTML page without scripts and styles."""
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


def _types(operations: Iterable[Operation]) -> list[Any]:
    found: dict[str, Any] = {}
    for each in operations:
        for kind in (each.answer, each.query, each.body):
            if kind is not None:
                found.setdefault(str(kind), kind)
    return list(found.values())


def _described(each: Operation, schema_of: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": each.name,
        "summary": each.summary,
        "tags": [each.tag],
        "parameters": [*_path_parameters(each), *_query_parameters(each, schema_of, components)],
        "responses": {
            "200": {"description": each.summary, "content": _content(each, schema_of)},
            "default": {
                "description": "What is wrong, and where.",
                "content": {CONTENT_TYPE: {"schema": schema_of[str(Problem)]}},
            },
        },
        "security": {"operate": [{"token": []}, {"session": []}], "read": [{}, {"token": []}], None: [{}]}[each.role],
    }
    if each.body is not None:
        body = {"application/json": {"schema": schema_of[str(each.body)]}}
        found["requestBody"] = {"required": True, "content": body}
    return found


def _content(each: Operation, schema_of: dict[str, Any]) -> dict[str, Any]:
    if each.media != "application/json":
        return {each.media: {"schema": {"type": "string"}}}
    content: dict[str, Any] = {each.media: {"schema": schema_of[str(each.answer)]}}
    if "feed" in each.query.__struct_fields__:
        content["text/event-stream"] = {"schema": {"type": "string"}}
    return content


def _path_parameters(each: Operation) -> list[dict[str, Any]]:
    if "{collection}" not in each.path:
        return []
    return [{"name": "collection", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}]


def _query_parameters(each: Operation, schema_of: dict[str, Any], components: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the fields of the query type as parameters. Remove the type's schema from the components."""
    name = schema_of[str(each.query)]["$ref"].rpartition("/")[2]
    schema = components[name]
    required = set(schema.get("required", ()))
    return [
        {
            "name": field,
            "in": "query",
            "required": field in required,
            "description": of.get("description", ""),
            "schema": {key: value for key, value in of.items() if key != "description"},
        }
        for field, of in schema.get("properties", {}).items()
    ]


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
