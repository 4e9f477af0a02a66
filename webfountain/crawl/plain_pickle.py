"""Read the pickles in scrapy-redis's queue as data, without running code in them.

A pickle is a program that may call any named function. The reader accepts only a few containers and time classes of the
standard library, and refuses all other names. The number of values in a pickle is limited, because a few bytes may
expand to many values.
"""

from __future__ import annotations

import collections
import datetime
import decimal
import io
import pickle
from typing import Any, Final

from webfountain.errors import InputError

__all__ = ["PickleRefused", "read_pickle"]

MAX_BYTES: Final = 10_000_000
MAX_VALUES: Final = 1_000_000
_ALLOWED: Final[dict[tuple[str, str], Any]] = {
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("datetime", "datetime"): datetime.datetime,
    ("datetime", "date"): datetime.date,
    ("datetime", "time"): datetime.time,
    ("datetime", "timedelta"): datetime.timedelta,
    ("datetime", "timezone"): datetime.timezone,
    ("decimal", "Decimal"): decimal.Decimal,
}


class PickleRefused(InputError):
    """Error for a pickle that uses a class or function other than the allowed ones."""


class _DataUnpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str) -> Any:
        """Return the class of an allowed name; raise PickleRefused for any other name."""
        found = _ALLOWED.get((module_name, global_name))
        if found is None:
            raise PickleRefused(f"it names {module_name}.{global_name}")
        return found

    def persistent_load(self, pid: Any) -> Any:
        """Raise PickleRefused for a reference to an object outside the pickle."""
        raise PickleRefused("it refers to data outside itself")


def read_pickle(data: bytes) -> Any:
    """Return the value of a pickle that contains only plain data.

    Raises
    ------
    PickleRefused
        if the pickle contains another name or is too large, or if the data is not a pickle.
    """
    if len(data) > MAX_BYTES:
        raise PickleRefused(f"it is {len(data):,} bytes long (at most {MAX_BYTES:,})")
    try:
        value = _DataUnpickler(io.BytesIO(data)).load()
    except PickleRefused:
        raise
    except Exception as error:
        # The data may come from a stranger, and the unpickler has as many kinds of errors as opcodes.
        raise PickleRefused(f"it is not a pickle ({type(error).__name__})") from None
    _count(value)
    return value


def _count(value: Any) -> None:
    """Raise PickleRefused for a value with too many parts, such as a value that contains itself."""
    left, waiting = MAX_VALUES, [value]
    while waiting:
        found = waiting.pop()
        left -= 1
        if left < 0:
            raise PickleRefused(f"it contains more than {MAX_VALUES:,} values")
        if isinstance(found, dict):
            waiting += found.keys()
            waiting += found.values()
        elif isinstance(found, list | tuple | set | frozenset):
            waiting += found
