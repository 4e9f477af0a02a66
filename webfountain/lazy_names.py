"""Lazy names: each public name of the package is imported when it is first used. So `import webfountain` is fast."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["lazy_names"]


def lazy_names(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a module's `__getattr__`.

    Parameters
    ----------
    places : public name -> ``module:name``, the place where the name is defined
    """

    def find(name: str) -> Any:
        place = places.get(name)
        if place is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, defined = place.partition(":")
        return getattr(importlib.import_module(module), defined)

    return find
