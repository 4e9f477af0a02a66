"""A view: one row of the table of pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from webfountain.service.operation import NoParameters

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import msgspec

    from webfountain.api.collection import StoredCollection

__all__ = ["View"]


class View(NamedTuple):
    """A page of a collection: its path below the collection's, and the function that reads what it shows."""

    name: str
    """Name of the template, and of the page in the navigation."""
    path: str
    title: str
    read: Callable[[StoredCollection, Any], Mapping[str, Any]]
    """Function that reads the values of the template from the open collection and the query."""
    query: type[msgspec.Struct] = NoParameters
    form: type[msgspec.Struct] | None = None
    """Type of the form that an operator sends to the page."""
    act: Callable[[StoredCollection, Any], Mapping[str, Any]] | None = None
    """Function that carries out the form, and returns more values for the template."""
    in_menu: bool = True
    is_shared: bool = False
    """True if viewers at the same time share what is read: the page moves, so many keep it open."""
