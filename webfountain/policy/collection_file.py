"""Read a policy file: return a `Collection`, or an error of one line that names the wrong key.

`tomllib` reads the TOML, which is then checked against the tables. `key_checks` checks what types cannot express.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec

from webfountain.errors import PolicyError
from webfountain.policy.collection import Collection
from webfountain.policy.errors import at_key, explain, reason_of
from webfountain.policy.extension import ExtensionError, extended
from webfountain.policy.key_checks import check_keys, check_seeds
from webfountain.policy.patterns import compile_pattern
from webfountain.policy.tables import PolicyFile, PolicyTable
from webfountain.policy.units import Duration, Size

__all__ = ["parse_collection", "read_collection"]


def read_collection(path: str | Path) -> Collection:
    """Return the collection that a policy file describes, with every key, pattern and seed checked.

    Raises
    ------
    PolicyError
        ``FILE: key.path: VALUE what is wrong (allowed …)``. Correct the file and call again.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")  # Notepad starts a file with a byte order mark
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(f"{path}: cannot be read: {reason_of(error)}") from None
    return parse_collection(text, path)


def parse_collection(text: str, path: Path) -> Collection:
    """Return the collection that the text of a policy file describes. Errors name `path`, and relative file names
    start from its folder.
    """
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise PolicyError(f"{path}: is no TOML: {error}") from None
    try:
        tables = msgspec.convert({**data, "policies": {}}, PolicyFile, dec_hook=_convert)
    except msgspec.ValidationError as error:
        raise PolicyError(f"{path}: {explain(str(error), data)}") from None
    tables = msgspec.structs.replace(tables, policies=_read_policies(data.get("policies", {}), path))
    check_keys(path, tables)
    collection = Collection(path, tables, text=text)
    check_seeds(collection)
    return collection


def _read_policies(written: object, path: Path) -> dict[str, PolicyTable]:
    """Return the policies by name. Each policy is checked separately, because msgspec's errors do not name the key of
    a dictionary.

    A key that a table omits comes from the policy that it extends, or from the preset of the same name.
    """
    if not isinstance(written, dict):
        raise at_key(path, "policies", written, "one table per policy, such as [policies.favor]")
    for name, table in written.items():
        if not isinstance(table, dict):
            raise at_key(path, f"policies.{name}", table, "a table")
    try:
        merged = extended(written)
    except ExtensionError as error:
        raise at_key(path, f"policies.{error.policy}.extends", error.value, error.allowed) from None
    policies = {}
    for name, table in merged.items():
        try:
            policies[name] = msgspec.convert(table, PolicyTable, dec_hook=_convert)
        except msgspec.ValidationError as error:
            reason = explain(str(error), table, within=f"policies.{name}", root=PolicyTable)
            raise PolicyError(f"{path}: {reason}") from None
    policies = {name: policies[name] for name in written}
    return policies


def _convert(kind: type, value: object) -> object:
    """Convert values of types that msgspec does not know: durations, sizes, patterns."""
    if isinstance(kind, type) and issubclass(kind, (Duration, Size)):
        return kind.parse(value)
    if not isinstance(value, str):
        raise ValueError("(allowed: a Python regular expression)")
    return compile_pattern(value)
