"""A policy file becomes a `Collection`, or one line that says what is wrong with which key.

Place in the walk: before it. TOML is read with `tomllib` and checked against `tables`; what types cannot say
(two keys that must agree, seeds that must be URLs, a contact for public crawls) is checked here. A seeds file
is streamed, never held. Whether a link belongs to the collection is the `judge`'s business.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from webfountain.errors import PolicyError, UrlError
from webfountain.policy.messages import at_key, explain
from webfountain.policy.network import is_private_host
from webfountain.policy.tables import PRESETS, PolicyFile, PolicyTable, SeedTable
from webfountain.policy.units import Duration, Size, spell_duration, spell_size
from webfountain.urls import canonical, host_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webfountain.policy.tables import (
        ChangesTable,
        ChangeTable,
        CycleTable,
        DiscoveryTable,
        NetworkTable,
        PolitenessTable,
        RepositoryTable,
        Scope,
        SignalsTable,
    )

__all__ = ["Collection", "describe", "parse_collection", "read_collection"]


class Collection:
    """A seed collection as its policy file describes it, all values in force."""

    __slots__ = ("_inline", "path", "policies", "seeds_file", "tables")

    def __init__(self, path: Path, tables: PolicyFile) -> None:
        self.path = path
        self.tables = tables
        name = tables.collection.seeds_file
        self.seeds_file = None if name is None else path.parent / name
        self._inline = tuple(_inline_seeds(path, tables))
        presets = {name: msgspec.convert(preset, PolicyTable) for name, preset in PRESETS.items()}
        self.policies: dict[str, PolicyTable] = {**presets, **tables.policies}

    @property
    def name(self) -> str:
        """What the store is bound to."""
        return self.tables.collection.name

    @property
    def scope(self) -> Scope:
        """Which links, redirects and sitemap URLs are kept."""
        return self.tables.collection.scope

    @property
    def depth(self) -> int:
        """Hops from a seed at most."""
        return self.tables.collection.limits.depth

    @property
    def politeness(self) -> PolitenessTable:
        """How a site is asked."""
        return self.tables.politeness

    @property
    def network(self) -> NetworkTable:
        """Which addresses may be asked."""
        return self.tables.network

    @property
    def changes(self) -> ChangesTable:
        """`[changes]`."""
        return self.tables.changes

    @property
    def change(self) -> ChangeTable:
        """Which changes count."""
        return self.tables.change

    @property
    def repository(self) -> RepositoryTable:
        """What stays on disk."""
        return self.tables.repository

    @property
    def cycle(self) -> CycleTable:
        """The time that is planned together."""
        return self.tables.cycle

    @property
    def signals(self) -> SignalsTable:
        """What tells that a page may have changed."""
        return self.tables.signals

    @property
    def discovery(self) -> DiscoveryTable:
        """How new URLs are found."""
        return self.tables.discovery

    @property
    def policy(self) -> PolicyTable:
        """The rules of the policy named default."""
        return self.policies["default"]

    @property
    def is_trusting(self) -> bool:
        """Whether more than one policy is in use, or the one in use lets trust fade: then trust orders what is new."""
        used = {name for _, name in _named_policies(self.tables)} | set(self.tables.policies)
        fades = any(self.policies[name].dampening < 1 or self.policies[name].splitting for name in used)
        return fades or len(used | {"default"}) > 1

    def named_seeds(self) -> Iterator[tuple[str, str]]:
        """(canonical URL, policy) of those seeds of the policy file that name a policy."""
        return ((url, policy) for url, policy in self._inline if policy is not None)

    def seeds(self) -> Iterator[str]:
        """Canonical seed URLs: `seeds_with_policies` without the policies."""
        return (url for url, _ in self.seeds_with_policies())

    def seeds_with_policies(self) -> Iterator[tuple[str, str]]:
        """(canonical URL, policy) of each seed, those of the policy file first, then the seeds file's, line by line.

        Raises
        ------
        PolicyError
            at a line of the seeds file that is no URL; the text names file and line.
        """
        standard = self.tables.collection.policy
        for url, policy in self._inline:
            yield url, policy or standard
        if self.seeds_file is not None:
            for url in _read_seeds(self.seeds_file, self.path):
                yield url, standard


def read_collection(path: str | Path) -> Collection:
    """The collection that a policy file describes, every key, pattern and seed checked.

    Raises
    ------
    PolicyError
        ``FILE: key.path: VALUE what is wrong (allowed …)``. Mend the file and call again.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")  # Notepad begins a file with a mark
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(f"{path}: cannot be read: {_reason(error)}") from None
    return parse_collection(text, path)


def parse_collection(text: str, path: Path) -> Collection:
    """The same from the text of a policy file; `path` is named in errors and is home of relative file names."""
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise PolicyError(f"{path}: is no TOML: {error}") from None
    try:
        tables = msgspec.convert({**data, "policies": {}}, PolicyFile, dec_hook=_convert)
    except msgspec.ValidationError as error:
        raise PolicyError(f"{path}: {explain(str(error), data)}") from None
    tables = msgspec.structs.replace(tables, policies=_read_policies(data.get("policies", {}), path))
    _check_keys(path, tables)
    collection = Collection(path, tables)
    _check_seeds(collection)
    return collection


def _read_policies(written: object, path: Path) -> dict[str, PolicyTable]:
    """The policies by name, each checked alone, for msgspec's errors do not name the key of a dictionary.

    Keys that the table of a preset policy leaves out are the preset's.
    """
    if not isinstance(written, dict):
        raise at_key(path, "policies", written, "a table for each policy, as [policies.favor]")
    policies = {}
    for name, table in written.items():
        if not isinstance(table, dict):
            raise at_key(path, f"policies.{name}", table, "a table")
        try:
            policies[name] = msgspec.convert({**PRESETS.get(name, {}), **table}, PolicyTable, dec_hook=_convert)
        except msgspec.ValidationError as error:
            reason = explain(str(error), table, within=f"policies.{name}", root=PolicyTable)
            raise PolicyError(f"{path}: {reason}") from None
    return policies


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _convert(kind: type, value: object) -> object:
    """Values of `tables` that msgspec does not know: durations, sizes, patterns."""
    if isinstance(kind, type) and issubclass(kind, (Duration, Size)):
        return kind.parse(value)
    if not isinstance(value, str):
        raise ValueError("(allowed: a Python regular expression)")
    try:
        return re.compile(value)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"is no Python regular expression: {error}") from None


def _check_keys(path: Path, tables: PolicyFile) -> None:
    """What two keys must keep together."""
    politeness, cycle = tables.politeness, tables.cycle
    if politeness.max_delay < politeness.min_delay:
        allowed = f"politeness.min_delay or more: {spell_duration(politeness.min_delay)}"
        raise at_key(path, "politeness.max_delay", spell_duration(politeness.max_delay), allowed)
    if cycle.fastest_s > cycle.period_s:
        allowed = f"cycle.period at most: {spell_duration(cycle.period)}"
        raise at_key(path, "cycle.fastest", spell_duration(cycle.fastest_s), allowed)
    for name, policy in tables.policies.items():
        revisit = policy.revisit
        if revisit.max_interval is not None and revisit.max_interval < revisit.min_interval:
            allowed = f"min_interval or more: {spell_duration(revisit.min_interval)}"
            raise at_key(path, f"policies.{name}.revisit.max_interval", spell_duration(revisit.max_interval), allowed)
    for key, name in _named_policies(tables):
        if name not in PRESETS and name not in tables.policies:
            raise at_key(path, key, name, f"a policy: {', '.join(sorted({*PRESETS, *tables.policies}))}")


def _named_policies(tables: PolicyFile) -> Iterator[tuple[str, str]]:
    """(key, policy) wherever a policy file names one."""
    yield "collection.policy", tables.collection.policy
    for number, seed in enumerate(tables.collection.seeds):
        if isinstance(seed, SeedTable) and seed.policy is not None:
            yield f"collection.seeds[{number}].policy", seed.policy
    for name, policy in tables.policies.items():
        yield f"policies.{name}.otherwise", policy.otherwise
    for number, switch in enumerate(tables.switch):
        yield f"switch[{number}].to", switch.to


def _inline_seeds(path: Path, tables: PolicyFile) -> Iterator[tuple[str, str | None]]:
    for number, seed in enumerate(tables.collection.seeds):
        key = f"collection.seeds[{number}]"
        if isinstance(seed, SeedTable):
            yield _seed(seed.url, f"{path}: {key}.url"), seed.policy
        else:
            yield _seed(seed, f"{path}: {key}"), None


def _seed(url: str, place: str) -> str:
    try:
        return canonical(url)
    except UrlError as error:
        raise PolicyError(f"{place}: {error}") from None


def _read_seeds(file: Path, policy_file: Path) -> Iterator[str]:
    """Seeds of a file, one URL a line; ``#`` starts a comment line."""
    try:
        with file.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                url = line.strip()
                if url and not url.startswith("#"):
                    yield _seed(url, f"{file}:{number}")
    except (OSError, UnicodeDecodeError) as error:
        place = f"{policy_file}: collection.seeds_file"
        raise PolicyError(f"{place}: {str(file)!r} cannot be read: {_reason(error)}") from None


def _check_seeds(collection: Collection) -> None:
    """At least one; private ones only where allowed; public ones only with a contact."""
    path, empty = collection.path, True
    allow_private, has_contact = collection.network.allow_private, collection.politeness.has_contact
    for url in collection.seeds():
        empty = False
        private = is_private_host(host_of(url))
        if private and not allow_private:
            raise PolicyError(
                f"{path}: network.allow_private: False refuses the seed {url!r}, whose address is private "
                "(allowed: true where it is yours)"
            )
        if not has_contact and (not private or collection.scope == "any"):
            raise PolicyError(
                f"{path}: politeness.user_agent: {collection.politeness.user_agent!r} has no contact, which a crawl "
                f'of public addresses needs (allowed: as "{collection.politeness.robots_token}/1.0 '
                '(+https://example.org/bot)" or with an e-mail address)'
            )
    if empty:
        raise PolicyError(f"{path}: collection.seeds: () is empty (allowed: URLs here or in collection.seeds_file)")


def describe(collection: Collection) -> dict[str, Any]:
    """What is in force, units spelled out: one dictionary per table, for people and for JSON."""
    shown: dict[str, Any] = {field: _shown(getattr(collection.tables, field)) for field in PolicyFile.__struct_fields__}
    written = {"default", *collection.tables.policies, *(name for _, name in _named_policies(collection.tables))}
    shown["policies"] = {name: _shown(table) for name, table in collection.policies.items() if name in written}
    shown["collection"]["seeds"] = sum(1 for _ in collection.seeds())
    shown["politeness"]["robots_token"] = collection.politeness.robots_token
    shown["cycle"]["fastest"] = spell_duration(collection.cycle.fastest_s)
    return shown


def _shown(value: object) -> Any:
    """A table, a list, a pattern or a number as plain data."""
    if isinstance(value, msgspec.Struct):
        return {field: _shown(getattr(value, field)) for field in value.__struct_fields__}
    if isinstance(value, tuple):
        return [_shown(item) for item in value]
    if isinstance(value, dict):
        return {name: _shown(item) for name, item in value.items()}
    if isinstance(value, Duration):
        return spell_duration(value)
    if isinstance(value, Size):
        return spell_size(value)
    return value.pattern if isinstance(value, re.Pattern) else value
