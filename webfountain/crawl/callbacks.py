"""Convert callbacks of requests to names and back, because a store cannot contain functions.

Methods of the spider, functions of its package, and a `functools.partial` of either can be stored. A lambda or a method
of another object cannot be stored. Looking up a name imports nothing and runs no code of the spider, because an
attacker may have changed the names in the store.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from typing import TYPE_CHECKING, Any

from webfountain.crawl.values import NameMissing, UnstorableValue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy import Spider

__all__ = ["Callbacks"]


class Callbacks:
    """Converter between the callbacks of one spider and their names."""

    def __init__(self, spider: Spider) -> None:
        self._spider = spider
        self._names: dict[Any, str] = {}

    def name(self, callback: Callable[..., Any] | None) -> Any:
        """Return the method name under which a callback is stored, or a dict for a function or a `functools.partial`.

        Raises
        ------
        UnstorableValue
            if the callback has no name; keep the request in memory.
        """
        if callback is None:
            return None
        if type(callback) is functools.partial:
            return {"partial": self.name(callback.func), "args": list(callback.args), "kwargs": callback.keywords}
        if inspect.isfunction(callback):
            return self._name_of_function(callback)
        function = getattr(callback, "__func__", None)
        owner = getattr(callback, "__self__", None)
        if function is None or (owner is not self._spider and owner not in type(self._spider).__mro__):
            raise UnstorableValue(f"{callback!r} is not a method of the spider")
        if function not in self._names:
            self._names[function] = self._find(callback, function)
        return self._names[function]

    def callback(self, name: Any) -> Any:
        """Return the callback for a stored name.

        Raises
        ------
        NameMissing
            if there is no such method or function, perhaps only in this version of the project.
        """
        if name is None:
            return None
        if isinstance(name, dict) and "partial" in name:
            return functools.partial(self.callback(name["partial"]), *name["args"], **name["kwargs"])
        if isinstance(name, dict) and "function" in name:
            if (function := self._function_at(name.get("module"), name["function"])) is None:
                raise NameMissing(f"the package of the spider {self._spider.name!r} has no function {name!r}")
            return function
        if not isinstance(name, str) or self._function_of(name) is None:
            raise NameMissing(f"the spider {self._spider.name!r} has no method {name!r}")
        return getattr(self._spider, name)

    def _find(self, callback: Callable[..., Any], function: Any) -> str:
        """Return the name of the spider attribute that contains the callback."""
        for name in (getattr(function, "__name__", ""), *self._attributes()):
            if self._function_of(name) is function:
                return str(name)
        raise UnstorableValue(f"no attribute of the spider is the callback {callback!r}")

    def _name_of_function(self, function: Callable[..., Any]) -> Any:
        """Return the name of a static method of the spider, or of a function of a module."""
        name = function.__name__
        if isinstance(inspect.getattr_static(self._spider, name, None), staticmethod):
            if self._function_of(name) is function:
                return name
        elif self._function_at(function.__module__, name) is function:
            return {"module": function.__module__, "function": name}
        raise UnstorableValue(f"{function!r} is neither a method nor a function of the spider's package")

    def _function_at(self, module: Any, name: Any) -> Any:
        """Return a function that a loaded module of the spider's package defines, or None."""
        package = type(self._spider).__module__.partition(".")[0]
        if not isinstance(module, str) or not isinstance(name, str) or module.partition(".")[0] != package:
            return None
        found = vars(sys.modules[module]).get(name) if module in sys.modules else None
        return found if inspect.isfunction(found) and found.__module__ == module else None

    def _attributes(self) -> Iterator[str]:
        yield from vars(self._spider)
        for kind in type(self._spider).__mro__:
            yield from vars(kind)

    def _function_of(self, name: str) -> Any:
        """Return the function behind a method of the spider, or None if the spider has no method of this name."""
        found = inspect.getattr_static(self._spider, name, None)
        if isinstance(found, types.MethodType):  # set on the instance
            return found.__func__ if found.__self__ is self._spider else None
        if isinstance(found, classmethod | staticmethod):
            found = found.__func__
        return found if inspect.isfunction(found) and name not in vars(self._spider) else None
