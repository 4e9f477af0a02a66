"""Import each public name of the package only when it is first used, so that `import webfountain` is fast."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["lazy_names"]


def lazy_names(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a function `__getattr__` for a module, which imports each public name at its first use.

    Parameters
    ----------
    places : module -> its public names, separated by blanks; ``name=defined`` if the module has it under another name
    """
    found = {name.partition("=")[0]: (module, name) for module, names in places.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in found:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, defined = found[name]
        return getattr(importlib.import_module(module), defined.rpartition("=")[2])

    return find
