"""The errors that numpy raises when a file is not an array file."""

from __future__ import annotations

from tokenize import TokenError
from typing import Final

__all__ = ["UNREADABLE"]

UNREADABLE: Final = (EOFError, SyntaxError, TokenError, TypeError, KeyError, OverflowError, MemoryError)
"""The errors, besides ValueError, that numpy raises for an invalid header of an array file."""
