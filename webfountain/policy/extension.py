"""Policies that extend others: a key that a policy omits comes from the policy that it extends.

Place in the walk: while a policy file is read, before its tables are checked (`policy.collection_file`). A key is
inherited or replaced as a whole (`deny`, `revisit`, …); values are never merged. A policy with the name of a preset
(favor, default, distrust) and without `extends` starts from the preset's keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webfountain.policy.tables import PRESETS

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

__all__ = ["ExtensionError", "extended"]


class ExtensionError(ValueError):
    """Error of a policy that cannot extend the named one: `policy` and `value` are the place, `allowed` the valid
    values.
    """

    def __init__(self, policy: str, value: str, allowed: str) -> None:
        super().__init__(f"policies.{policy}.extends: {value!r} (allowed: {allowed})")
        self.policy = policy
        self.value = value
        self.allowed = allowed


def extended(written: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return each policy's own and inherited keys, with extended policies before those that extend them.

    Raises
    ------
    ExtensionError
        if a policy extends an unknown policy or, directly or through others, itself. Name another policy there.
    """
    found: dict[str, dict[str, Any]] = {}
    for name in written:
        if name in found:
            continue
        for each in reversed(_chain(name, written, found)):
            own = written.get(each, {})
            base = own.get("extends")
            inherited = found[base] if isinstance(base, str) else PRESETS.get(each, {})
            # `extends` itself is never inherited: each policy with a base names it.
            found[each] = {**inherited, **own}
    return {name: keys for name, keys in found.items() if name in written}


def _chain(name: str, written: Mapping[str, Mapping[str, Any]], found: Container[str]) -> list[str]:
    """Return a policy, the policy that it extends, and so on, up to a policy that is already resolved."""
    chain = [name]
    while isinstance(base := written.get(chain[-1], {}).get("extends"), str) and base not in found:
        _check(chain[-1], base, written, chain)
        chain.append(base)
    return chain


def _check(name: str, base: str, written: Mapping[str, object], path: list[str]) -> None:
    if base in path:
        cycle = " -> ".join((*path[path.index(base) :], base))
        raise ExtensionError(name, base, f"a policy that does not extend it; here is a cycle: {cycle}")
    if base not in written and base not in PRESETS:
        raise ExtensionError(name, base, f"a policy: {', '.join(sorted({*PRESETS, *written}))}")
