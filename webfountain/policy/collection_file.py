"""Read a policy file at the start of a crawl or after an edit, and return a `Collection`.

A policy that omits a key takes it from the policy that it extends, else from the preset of the same name (favor,
default, distrust). A list or table in a policy replaces the inherited list or table; the two are not merged.

Conditions that types cannot express are checked separately. For example, `max_delay` must not be less than `min_delay`,
and each named policy must exist.

A crawl polls its policy file and its seeds file with `stat`, and reads them only after an edit. An invalid edit is
refused as a whole. Valid edits of seeds, scope, policies, rules and switches take effect at once. Edits of the keys in
`AT_NEXT_START` take effect at the next start.
"""

from __future__ import annotations

import mimetypes
import operator
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain.errors import PolicyError
from webfountain.policy.collection import Collection, named_policies
from webfountain.policy.errors import at_key, cut, explain, reason_of
from webfountain.policy.patterns import compile_pattern
from webfountain.policy.rules import host_pattern
from webfountain.policy.tables import PRESETS, PolicyFile, PolicyTable, WhenTable
from webfountain.policy.units import Duration, Selector, Size, spell_duration
from webfountain.public_addresses import is_private_host
from webfountain.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

__all__ = [
    "CollectionInForce",
    "Edit",
    "PolicyPoll",
    "example",
    "example_folder",
    "parse_collection",
    "read_collection",
]

_FUNCTION: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)
_MEDIA_TYPE: Final = re.compile(r"\*/\*|[\w!#$&^.+-]+/(?:\*|[\w!#$&^.+-]+)", re.ASCII)
_PACKAGE: Final = Path(__file__).resolve().parents[1]
_PLACES: Final = (_PACKAGE / "policies", _PACKAGE.parent / "policies")
AT_NEXT_START: Final = (
    "collection.limits.pages",
    "collection.limits.domain_share",
    "politeness",
    "network",
    "repository",
    "changes",
    "cycle",
    "goal",
    "signals",
    "ranking",
    "discovery.nofollow",
    "discovery.sitemaps",
    "duplicates",
)
"""Tables and keys whose edits take effect only at the next start, because a running crawl cannot change them."""
_WEIGHING: Final = "policies (score, topic)"
"""Entry of `Edit.waits` for edited scores and topics: if the crawl has no ranking, these edits take effect only at the
next start.
"""
_Stamp = tuple[int, int, int] | None


def read_collection(path: str | Path) -> Collection:
    """Return the collection that a policy file describes, with every key, pattern and seed checked.

    Raises
    ------
    PolicyError
        ``FILE: key.path: VALUE what is wrong (allowed …)``. Correct the file and call again.
    """
    written, path = str(path), Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")  # Notepad starts a file with a byte order mark
    except FileNotFoundError:
        wrong = f"{written} is a URL; give a policy file" if "://" in written else f"{path}: there is no such file"
        seed = " that names it as a seed" if "://" in written else ""
        raise PolicyError(f"{wrong}{seed} (examples to copy are in {example_folder()})") from None
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(f"{path}: cannot be read: {reason_of(error)}") from None
    return parse_collection(text, path)


def parse_collection(text: str, path: Path) -> Collection:
    """Return the collection that the text of a policy file describes. Relative file names are resolved against the
    folder of `path`.
    """
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise PolicyError(f"{path}: not valid TOML: {error}") from None
    try:
        tables = msgspec.convert({**data, "policies": {}}, PolicyFile, dec_hook=_convert)
    except msgspec.ValidationError as error:
        raise PolicyError(f"{path}: {explain(str(error), data)}") from None
    tables = msgspec.structs.replace(tables, policies=_read_policies(data.get("policies", {}), path))
    _check_keys(path, tables)
    collection = Collection(path, tables, text=text)
    _check_seeds(collection)
    return collection


def _read_policies(written: object, path: Path) -> dict[str, PolicyTable]:
    """Return the policies by name, each with its own and its inherited keys.

    Each policy is checked separately, because msgspec's errors do not name the key of a dictionary.
    """
    if not isinstance(written, dict):
        raise at_key(path, "policies", written, "one table per policy, such as [policies.favor]")
    for name, table in written.items():
        if not isinstance(table, dict):
            raise at_key(path, f"policies.{name}", table, "a table")
    policies = {}
    for name, table in _extended(path, written).items():
        try:
            policies[name] = msgspec.convert(table, PolicyTable, dec_hook=_convert)
        except msgspec.ValidationError as error:
            reason = explain(str(error), table, within=f"policies.{name}", root=PolicyTable)
            raise PolicyError(f"{path}: {reason}") from None
    return {name: policies[name] for name in written}


def _convert(kind: type, value: object) -> object:
    """Convert a value to a type that msgspec does not know, such as a duration, size or pattern."""
    if isinstance(kind, type) and issubclass(kind, (Duration, Selector, Size)):
        return kind.parse(value)
    if not isinstance(value, str):
        raise ValueError("(allowed: a Python regular expression)")
    return compile_pattern(value)


def _extended(path: Path, written: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return each policy's own and inherited keys; a policy comes after the policy that it extends.

    Raises PolicyError if a policy extends an unknown policy, or if `extends` makes a cycle.
    """
    found: dict[str, dict[str, Any]] = {}
    for name in written:
        if name in found:
            continue
        for each in reversed(_chain(path, name, written, found)):
            own = written.get(each, {})
            base = own.get("extends")
            inherited = found[base] if isinstance(base, str) else PRESETS.get(each, {})
            # `extends` itself is never inherited: each policy with a base names its own.
            found[each] = {**inherited, **own}
    return {name: keys for name, keys in found.items() if name in written}


def _chain(path: Path, name: str, written: Mapping[str, Mapping[str, Any]], found: Container[str]) -> list[str]:
    """Follow `extends` from a policy, and return the policies on the way, except those in `found`."""
    chain = [name]
    while isinstance(base := written.get(chain[-1], {}).get("extends"), str) and base not in found:
        key = f"policies.{chain[-1]}.extends"
        if base in chain:
            cycle = " -> ".join((*chain[chain.index(base) :], base))
            raise at_key(path, key, base, f"a policy that does not extend it; this is a cycle: {cycle}")
        if base not in written and base not in PRESETS:
            raise at_key(path, key, base, f"a policy: {', '.join(sorted({*PRESETS, *written}))}")
        chain.append(base)
    return chain


def _check_keys(path: Path, tables: PolicyFile) -> None:
    """Check the keys that depend on each other, such as `min_delay` and `max_delay`. Raise PolicyError at the first
    wrong key.
    """
    politeness, cycle = tables.politeness, tables.cycle
    if politeness.max_delay < politeness.min_delay:
        allowed = f"politeness.min_delay or more: {spell_duration(politeness.min_delay)}"
        raise at_key(path, "politeness.max_delay", spell_duration(politeness.max_delay), allowed)
    if not politeness.accept:
        raise at_key(path, "politeness.accept", [], 'at least one media type, such as "text/html"')
    for number, kind in enumerate(politeness.accept):
        if not _MEDIA_TYPE.fullmatch(kind.strip()):
            raise at_key(path, f"politeness.accept[{number}]", kind, _media_type_words(kind))
    if cycle.fastest_s > cycle.period_s:
        allowed = f"cycle.period at most: {spell_duration(cycle.period)}"
        raise at_key(path, "cycle.fastest", spell_duration(cycle.fastest_s), allowed)
    if tables.goal is not None:
        if cycle.capacity_pages_per_period is None:
            allowed = "only with cycle.capacity_pages_per_period, the largest number of fetches that the goal may take"
            raise at_key(path, "goal.obsolete", tables.goal.obsolete, allowed)
        if cycle.strategy != "fountain":
            raise at_key(path, "goal.obsolete", tables.goal.obsolete, 'only with cycle.strategy = "fountain"')
    for name, policy in tables.policies.items():
        revisit = policy.revisit
        if revisit.max_interval is not None and revisit.max_interval < revisit.min_interval:
            allowed = f"min_interval or more: {spell_duration(revisit.min_interval)}"
            raise at_key(path, f"policies.{name}.revisit.max_interval", spell_duration(revisit.max_interval), allowed)
        _check_score(path, name, policy)
    _check_extractors(path, tables)
    _check_switches(path, tables)
    _check_rules(path, tables)
    for key, name in named_policies(tables):
        if name not in PRESETS and name not in tables.policies:
            raise at_key(path, key, name, f"a policy: {', '.join(sorted({*PRESETS, *tables.policies}))}")


def _media_type_words(written: str) -> str:
    """Describe which values `politeness.accept` allows, with a suggestion for a misspelled media type."""
    return f'{_meant(written)}a media type without parameters, such as "text/html", "image/*" or "*/*"'


def _meant(written: str) -> str:
    """Return "did you mean TYPE? " with the closest media type, or "" if no type is close."""
    extension = written.strip().lower().lstrip(".")
    kind = mimetypes.guess_type(f"x.{extension}")[0] if extension.isalnum() else written.partition(";")[0].strip()
    return f"did you mean {kind!r}? " if kind not in {None, written} and _MEDIA_TYPE.fullmatch(kind or "") else ""


def _check_extractors(path: Path, tables: PolicyFile) -> None:
    """Check `[content] extractors` without msgspec, because msgspec's errors do not name the key of a dictionary."""
    for kind, function in tables.content.extractors.items():
        if not _MEDIA_TYPE.fullmatch(kind) or "*" in kind or kind != kind.lower():
            raise at_key(path, "content.extractors", kind, f'{_meant(kind)}one media type, such as "application/pdf"')
        if not _FUNCTION.fullmatch(function):
            raise at_key(path, f"content.extractors.{kind!r}", function, 'a function, such as "my_project.pdf:extract"')


def _check_score(path: Path, name: str, policy: PolicyTable) -> None:
    if policy.score is None:
        return
    weights = policy.score.weights
    if not weights:
        raise at_key(path, f"policies.{name}.score", policy.score.weights, "at least one weight above 0")
    if "topic" in weights and policy.topic is None:
        raise at_key(path, f"policies.{name}.score.topic", weights["topic"], f"only with policies.{name}.topic")


def _check_switches(path: Path, tables: PolicyFile) -> None:
    has_topic = any(policy.topic is not None for policy in tables.policies.values())
    for number, switch in enumerate(tables.switch):
        when = switch.when
        if when == WhenTable(count=when.count):
            raise at_key(
                path, f"switch[{number}].when", {}, f"at least one of {', '.join(WhenTable.__struct_fields__)}"
            )
        if when.discovered is not None and when != WhenTable(count=when.count, discovered=when.discovered):
            raise at_key(
                path, f"switch[{number}].when.discovered", when.discovered, "only with count, without other conditions"
            )
        if when.duplicates is not None and not tables.duplicates.detect:
            raise at_key(
                path, f"switch[{number}].when.duplicates", when.duplicates, "only with duplicates.detect = true"
            )
        for key in ("similarity", "similarity_below"):
            if getattr(when, key) is not None and not has_topic:
                place = f"switch[{number}].when.{key}"
                raise at_key(
                    path, place, getattr(when, key), "only if a policy has a topic, such as policies.default.topic"
                )


def _check_rules(path: Path, tables: PolicyFile) -> None:
    for number, rule in enumerate(tables.rule):
        key = f"rule[{number}]"
        if rule.policy is None and rule.trust is None:
            raise at_key(path, key, {"match": rule.match}, "with policy, trust or both")
        if not rule.matches:
            raise at_key(path, f"{key}.match", [], 'a host such as "*.example.org", a regular expression, or a list')
        for match in rule.matches:
            try:
                if host_pattern(match) is None:
                    compile_pattern(match)
            except ValueError as error:
                raise PolicyError(f"{path}: {key}.match: {cut(match)} is not a host and {error}") from None


def _check_seeds(collection: Collection) -> None:
    """Raise PolicyError if there is no seed, if a private seed is not allowed, or if a crawl of public sites names no
    contact.
    """
    path, empty = collection.path, True
    allow_private, has_contact = collection.network.allow_private, collection.politeness.has_contact
    for url in collection.seeds():
        empty = False
        private = is_private_host(host_of(url))
        if private and not allow_private:
            raise PolicyError(
                f"{path}: network.allow_private: False refuses the seed {url!r}, whose address is private "
                "(set it to true if the address is yours)"
            )
        if not has_contact and (not private or collection.scope == "any"):
            raise PolicyError(
                f"{path}: politeness.user_agent: {collection.politeness.user_agent!r} gives no contact, but a crawl "
                f'of public addresses needs one (allowed: "{collection.politeness.robots_token}/1.0 '
                '(+https://example.org/bot)", with your own URL or e-mail address)'
            )
    if empty:
        raise PolicyError(f"{path}: collection.seeds is empty (allowed: URLs here or in collection.seeds_file)")


def example_folder() -> Path:
    """Return the folder of example policy files. In a git checkout, the folder is `policies` next to the package."""
    return next((place for place in _PLACES if place.is_dir()), _PLACES[0])


def example(name: str) -> Path:
    """Return the path of an example policy file such as ``demo.toml``."""
    return example_folder() / name


class CollectionInForce(msgspec.Struct, frozen=True, array_like=True):
    """The path and text of the policy file of a running crawl, as the store publishes them for other processes."""

    path: str
    text: str

    @classmethod
    def encode(cls, collection: Collection) -> bytes:
        """Serialise a collection's path and text for the store."""
        return msgspec.msgpack.encode(cls(str(collection.path.absolute()), collection.text))

    @classmethod
    def decode(cls, data: bytes) -> CollectionInForce:
        """Decode the bytes that `encode` returns."""
        return msgspec.msgpack.decode(data, type=cls)

    def read(self) -> Collection:
        """Parse the policy file's text. Raises PolicyError if the seeds file of the collection no longer exists."""
        return parse_collection(self.text, Path(self.path))


class Edit(msgspec.Struct, frozen=True):
    """What changed when a policy file or seeds file was edited.

    - `collection`: the collection to adopt; None if the edit is refused.
    - `error`: the reason of a refusal.
    - `waits`: changed tables and keys that take effect at the next start.
    """

    collection: Collection | None
    error: str | None = None
    waits: tuple[str, ...] = ()


class PolicyPoll:
    """Finds out whether the policy file or the seeds file of a collection was edited."""

    def __init__(self, collection: Collection) -> None:
        self._built_from = collection
        self._collection = collection
        self._seen = self._stamps()

    def poll(self) -> Edit | None:
        """Return what was edited since the last call, or None if no file changed. For an invalid file, the edit
        contains the error.
        """
        stamps = self._stamps()
        if stamps == self._seen:
            return None
        self._seen = stamps
        try:
            edited = read_collection(self._collection.path)
        except PolicyError as error:
            return Edit(None, str(error))
        if edited.name != self._collection.name:
            return Edit(
                None,
                f"{edited.path}: collection.name: {edited.name!r} is another collection; restart to use it",
            )
        is_moved = edited.seeds_file != self._collection.seeds_file
        self._collection = edited
        if is_moved:  # the stamp of the policy file stays: a second edit may have come while the first was read
            self._seen = stamps[0], self._stamps()[1]
        before = self._built_from
        waits = [each for each in AT_NEXT_START if _at(before, each) != _at(edited, each)]
        if edited.is_ranking and not before.is_ranking and "ranking" not in waits:
            waits.append(_WEIGHING)
        return Edit(edited, waits=tuple(waits))

    def _stamps(self) -> tuple[_Stamp, _Stamp]:
        seeds = self._collection.seeds_file
        return _stamp(self._collection.path), None if seeds is None else _stamp(seeds)


def _at(collection: Collection, key: str) -> object:
    """Return the value of a key such as "collection.limits.pages"."""
    return operator.attrgetter(key)(collection.tables)


def _stamp(path: Path) -> _Stamp:
    """Return a value that changes whenever the file is overwritten or replaced."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
