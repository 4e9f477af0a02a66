"""The OpenAPI 3.1 description of the service, as JSON and as a page. The OpenAPI description is generated from the
table of operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain import __version__
from webfountain.service.pages.rendering import environment
from webfountain.service.problems import CONTENT_TYPE, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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
    """Render an OpenAPI document as an HTML page."""
    return environment().get_template("reference.html").render(description).encode()


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
    """Return the fields of the query type as OpenAPI parameters."""
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
