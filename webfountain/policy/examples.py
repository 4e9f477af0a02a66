"""Find the example policy files: in the package if installed from a wheel, beside it in a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Final

__all__ = ["example", "example_folder"]

_PACKAGE: Final = Path(__file__).resolve().parents[1]
_PLACES: Final = (_PACKAGE / "policies", _PACKAGE.parent / "policies")


def example_folder() -> Path:
    """Return the folder of the examples; if there is none, the folder where they would be installed."""
    return next((place for place in _PLACES if place.is_dir()), _PLACES[0])


def example(name: str) -> Path:
    """Return the path of an example such as ``demo.toml``."""
    return example_folder() / name
