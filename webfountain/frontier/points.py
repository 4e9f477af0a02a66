"""Points: named moments at which the parts of a list act, such as stages and orders.

A part inherits from a class that does nothing at any point, and overrides the points at which it acts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["methods_at"]

_Part = TypeVar("_Part")
_P = ParamSpec("_P")
_R = TypeVar("_R")


def methods_at(parts: Sequence[_Part], point: Callable[Concatenate[_Part, _P], _R]) -> list[Callable[_P, _R]]:
    """Return, in order, the methods that parts define for a point. A part that inherits `point` does nothing there."""
    name = point.__name__
    return [getattr(part, name) for part in parts if getattr(type(part), name) is not point]
