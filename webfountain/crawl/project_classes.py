"""Classes of a project whose instances requests may carry: Items, dataclasses, attrs, pydantic, Enums, named tuples.

A class is found by its path among the loaded modules. A class that is not loaded is imported only if it is in a package
of the project. An instance gets its fields back without a call of ``__init__``.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
from enum import Enum
from typing import TYPE_CHECKING, Any

import attr
from itemadapter import ItemAdapter
from scrapy import Item

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ClassMissing", "ProjectClasses", "UnstorableValue", "content_of", "kind_of", "path_of"]


class UnstorableValue(Exception):
    """A value that cannot be stored as data. The text says which."""


class ClassMissing(ValueError):
    """A stored instance whose class this process does not have, or may not make."""


class ProjectClasses:
    """A lookup of classes by path. `packages`: names of the top-level packages from which a class may be imported."""

    def __init__(self, packages: Iterable[str] = ()) -> None:
        self._packages = frozenset(packages)

    def class_at(self, path: str) -> type[Any]:
        """Return the class at ``module:qualified.name``. Raise ClassMissing if there is none."""
        module_name, _, name = path.partition(":") if ":" in path else path.rpartition(".")
        module = sys.modules.get(module_name)
        if module is None and module_name.partition(".")[0] in self._packages:
            try:
                module = importlib.import_module(module_name)
            except ImportError as error:
                raise ClassMissing(f"{path} cannot be imported ({error})") from None
        found: Any = module
        for part in name.split("."):
            found = None if found is None else vars(found).get(part)
        if not isinstance(found, type):
            raise ClassMissing(f"the class {path} is not loaded")
        return found

    def instance(self, kind: str, path: str, content: Any) -> Any:
        """Return an instance, made without its ``__init__``. Its class must still be of the same kind."""
        cls = self.class_at(path)
        if kind != kind_of(cls):
            raise ClassMissing(f"{path_of(cls)} is not a {kind} any more")
        if kind == "enum":
            name, value = content
            return cls.__members__[name] if name in cls.__members__ else cls(value)
        if kind == "namedtuple":
            return tuple.__new__(cls, content)
        if kind == "pydantic":
            return cls.model_construct(**content)
        instance: Any = object.__new__(cls)
        if kind == "item":
            instance._values = content
        else:
            for name, value in content.items():
                object.__setattr__(instance, name, value)
        return instance


def path_of(cls: type) -> str:
    """Return the path by which `ProjectClasses.class_at` finds a class. Raise UnstorableValue if there is none, for
    example for a class made in a function.
    """
    path = f"{cls.__module__}:{cls.__qualname__}"
    try:
        found: object = ProjectClasses().class_at(path)
    except ClassMissing:
        found = None
    if found is not cls:
        raise UnstorableValue(f"{path} cannot be imported under its name")
    return path


def kind_of(cls: type[Any]) -> str | None:
    """Return the kind of a project's class; None for all others."""
    if issubclass(cls, tuple):
        return "namedtuple" if hasattr(cls, "_fields") else None
    kinds = {
        "enum": issubclass(cls, Enum),
        "item": issubclass(cls, Item),
        "dataclass": dataclasses.is_dataclass(cls),
        "attrs": attr.has(cls),
        "pydantic": ItemAdapter.is_item_class(cls) and hasattr(cls, "model_construct"),
    }
    return next((kind for kind, holds in kinds.items() if holds), None)


def content_of(kind: str, value: Any) -> Any:
    """Return the fields of an instance, or the name and value of an Enum."""
    if kind == "enum":
        return [value.name, value.value]
    if kind == "namedtuple":
        return list(value)
    return dict(ItemAdapter(value))
