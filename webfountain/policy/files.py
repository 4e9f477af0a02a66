"""A policy file becomes a `Collection`, or one line that says what is wrong with which key.

Place in the walk: before it. TOML is read with `tomllib` and checked against its tables; what types cannot say
(two keys that must agree, seeds that must be URLs, a contact for public crawls) is checked here. A seeds file
is streamed, never held. Whether a link belongs to the collection is the `judge`'s business.

The wording of a policy file's errors: key path, value, what is allowed. msgspec says where a value is wrong
(``$.cycle.periods``) and what it expected; people need the key as they wrote it, the value, and all that is allowed
there.

An edited policy file takes effect on a running crawl, or is refused in one line while the old one stays. Place in the
walk: beside it. The crawl polls now and then; a poll is a `stat` of the policy file and its seeds file, and only an
edit is read. What can change while a crawl runs is what the judge holds (scope, seeds, depth, discovery, policies,
switches, conflict): what objects were built from (`AT_NEXT_START`) takes effect at the next start, and an edit of it is
told so.
"""

from __future__ import annotations

import difflib
import operator
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain.errors import PolicyError, UrlError
from webfountain.policy import (
    PRESETS,
    Duration,
    PolicyFile,
    PolicyTable,
    SeedTable,
    Size,
    WhenTable,
    spell_duration,
    spell_size,
)
from webfountain.urls import canonical, host_of, is_private_host

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = [
    "AT_NEXT_START",
    "Collection",
    "CollectionInForce",
    "Edit",
    "PolicyPoll",
    "at_key",
    "describe",
    "explain",
    "parse_collection",
    "read_collection",
]

_PLACE: Final = re.compile(r" - at `\$\.?(.*)`$", re.DOTALL)
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`$", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(.*)`$")
_STEP: Final = re.compile(r"[^.\[\]]+")


def at_key(path: Path, key: str, value: object, allowed: str) -> PolicyError:
    """The error for a value that its key does not allow."""
    return PolicyError(f"{path}: {key}: {_cut(value)} is not allowed here (allowed: {allowed})")


def explain(message: str, data: dict[str, Any], *, within: str = "", root: type[msgspec.Struct] = PolicyFile) -> str:
    """``key.path: VALUE what is wrong (allowed …)`` from msgspec's message and the data that it checked.

    `root` is the table that the data was to be, `within` the key path where it stands in the file.
    """
    found = _PLACE.search(message)
    place = found[1] if found else ""
    complaint = message[: found.start()] if found else message
    unknown, missing = _UNKNOWN.match(complaint), _MISSING.match(complaint)
    if unknown:
        return _explain_unknown(place, unknown[1], within, root)
    if missing:
        return f"{_under(_under(within, place), missing[1])}: is missing (required)"
    value = _cut(_value_at(data, place))
    shown = _under(within, place)
    if complaint.startswith(("(", "is ")):
        return f"{shown}: {value} {complaint if complaint.startswith('is ') else f'is not allowed {complaint}'}"
    return f"{shown}: {value} is not allowed (allowed: {_words(_type_at(place, root)) or complaint})"


def _under(place: str, key: str) -> str:
    return f"{place}.{key}" if place and key else place or key


def _cut(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 100 else shown[:97] + "..."


def _explain_unknown(place: str, key: str, within: str, root: type[msgspec.Struct]) -> str:
    name = _under(_under(within, place), key)
    keys = _table_at(place, root).__struct_fields__
    near = difflib.get_close_matches(key, keys, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"{name}: is an unknown key ({hint}allowed: {', '.join(keys)})"


def _steps(place: str) -> list[str]:
    return _STEP.findall(place)


def _value_at(data: Any, place: str) -> object:
    """The value at a key path such as ``collection.seeds[3].url``."""
    for step in _steps(place):
        data = data[int(step)] if isinstance(data, list) else data[step]
    return data


def _type_at(place: str, root: type[msgspec.Struct]) -> msgspec.inspect.Type:
    """What msgspec expects at a key path below `root`."""
    kind: msgspec.inspect.Type = msgspec.inspect.type_info(root)
    for step in _steps(place):
        if isinstance(kind, msgspec.inspect.VarTupleType):
            kind = kind.item_type
        elif isinstance(kind, msgspec.inspect.UnionType):
            kind = next(t for t in kind.types if isinstance(t, msgspec.inspect.StructType))
            kind = _field(kind, step)
        elif isinstance(kind, msgspec.inspect.StructType):
            kind = _field(kind, step)
    return kind


def _field(kind: msgspec.inspect.StructType, name: str) -> msgspec.inspect.Type:
    return next(field.type for field in kind.fields if field.name == name)


def _table_at(place: str, root: type[msgspec.Struct]) -> type[msgspec.Struct]:
    kind = _type_at(place, root)
    types = kind.types if isinstance(kind, msgspec.inspect.UnionType) else (kind,)
    return next(t.cls for t in types if isinstance(t, msgspec.inspect.StructType))


def _words(kind: msgspec.inspect.Type) -> str:
    """What one type allows; "" for those whose own message says it."""
    match kind:
        case msgspec.inspect.VarTupleType(item_type=item):
            words = f"a list, each {_words(item) or 'a text'}"
        case msgspec.inspect.StructType():
            words = "a table"
        case msgspec.inspect.UnionType(types=types):
            words = " or ".join(filter(None, map(_words, types)))
        case _:
            words = _words_of_scalar(kind)
    return words


def _words_of_scalar(kind: msgspec.inspect.Type) -> str:
    match kind:
        case msgspec.inspect.LiteralType(values=values):
            words = " | ".join(map(repr, values))
        case msgspec.inspect.IntType(ge=low, le=high):
            words = "a whole number" + _range(low, high)
        case msgspec.inspect.FloatType(ge=low, gt=above, le=high):
            words = "a number" + (_range(low, high) if above is None else f" above {above:g}, up to {high:g}")
        case msgspec.inspect.BoolType():
            words = "true or false"
        case msgspec.inspect.StrType(pattern=pattern):
            words = f"a text that matches {pattern}" if pattern else "a text"
        case _:
            words = ""
    return words


def _range(low: float | None, high: float | None) -> str:
    """The bounds of a number; msgspec knows them as ge and le."""
    if low is None:
        return ""
    return f", {low:g} or more" if high is None else f", {low:g} to {high:g}"


class Collection:
    """A seed collection as its policy file describes it, all values in force."""

    __slots__ = (
        "_inline",
        "change",
        "changes",
        "conflict",
        "cycle",
        "depth",
        "discovery",
        "duplicates",
        "limits",
        "name",
        "network",
        "path",
        "policies",
        "politeness",
        "ranking",
        "repository",
        "scope",
        "seeds_file",
        "signals",
        "tables",
        "text",
    )

    def __init__(self, path: Path, tables: PolicyFile, *, text: str = "") -> None:
        self.path = path
        self.tables = tables
        self.text = text
        """The policy file as it was read; "" of a collection that was made of something else."""
        name = tables.collection.seeds_file
        self.seeds_file = None if name is None else path.parent / name
        self._inline = tuple(_inline_seeds(path, tables))
        presets = {name: msgspec.convert(preset, PolicyTable) for name, preset in PRESETS.items()}
        self.policies: dict[str, PolicyTable] = {**presets, **tables.policies}
        self.name = tables.collection.name
        """What the store is bound to."""
        self.scope = tables.collection.scope
        """Which links, redirects and sitemap URLs are kept."""
        self.depth = tables.collection.limits.depth
        """Hops from a seed at most."""
        self.limits = tables.collection.limits
        """How deep, how many, how much of one domain."""
        self.conflict = tables.conflict.rule
        """Which policy a page has that is found under several."""
        self.politeness = tables.politeness
        """How a site is asked."""
        self.network = tables.network
        """Which addresses may be asked."""
        self.changes = tables.changes
        """`[changes]`."""
        self.change = tables.change
        """Which changes count."""
        self.repository = tables.repository
        """What stays on disk."""
        self.cycle = tables.cycle
        """The time that is planned together."""
        self.signals = tables.signals
        """What tells that a page may have changed."""
        self.ranking = tables.ranking
        """How often the crawl's links are ranked, and where they are logged."""
        self.discovery = tables.discovery
        """How new URLs are found."""
        self.duplicates = tables.duplicates
        """What becomes of pages that repeat others."""

    @property
    def is_ranking(self) -> bool:
        """Whether pages have an importance beyond the trust of their link: ranked, weighed, or by a topic."""
        weighed = any(each.score is not None or each.topic is not None for each in self.policies.values())
        return self.ranking.every is not None or weighed

    def weights_of(self, policy: str) -> dict[str, float]:
        """The weights of what the importance of a policy's pages is made of; of a name that is gone, the default's."""
        score = self.policies.get(policy, self.policy).score
        if score is not None:
            return score.weights
        return {"pagerank": 1.0, "trust": 1.0} if self.is_trusting else {"pagerank": 1.0}

    @property
    def duplicates_revisit_s(self) -> float:
        """Seconds until a duplicate is fetched again."""
        asked = self.tables.duplicates.revisit
        return 30 * self.cycle.period_s if asked is None else float(asked)

    @property
    def policy(self) -> PolicyTable:
        """The rules of the policy named default."""
        return self.policies["default"]

    @property
    def policies_in_use(self) -> frozenset[str]:
        """The names of the policies that a page can be under."""
        return frozenset({name for _, name in _named_policies(self.tables)} | set(self.tables.policies) | {"default"})

    @property
    def is_trusting(self) -> bool:
        """Whether more than one policy is in use, or the one in use lets trust fade: then trust orders what is new."""
        used = self.policies_in_use
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


class CollectionInForce(msgspec.Struct, frozen=True, array_like=True):
    """The policy file that a crawl goes by, as it is kept in the store: its path and its text when it was read."""

    path: str
    text: str

    @classmethod
    def encode(cls, collection: Collection) -> bytes:
        """For the store's board."""
        return msgspec.msgpack.encode(cls(str(collection.path.absolute()), collection.text))

    @classmethod
    def decode(cls, data: bytes) -> CollectionInForce:
        """What `encode` wrote."""
        return msgspec.msgpack.decode(data, type=cls)

    def read(self) -> Collection:
        """The collection; PolicyError when a seeds file that it names is no longer there."""
        return parse_collection(self.text, Path(self.path))


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
    collection = Collection(path, tables, text=text)
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
    """Values of the tables that msgspec does not know: durations, sizes, patterns."""
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
        _check_score(path, name, policy)
    _check_switches(path, tables)
    for key, name in _named_policies(tables):
        if name not in PRESETS and name not in tables.policies:
            raise at_key(path, key, name, f"a policy: {', '.join(sorted({*PRESETS, *tables.policies}))}")


def _check_score(path: Path, name: str, policy: PolicyTable) -> None:
    if policy.score is None:
        return
    weights = policy.score.weights
    if not weights:
        raise at_key(path, f"policies.{name}.score", policy.score.weights, "weights of which one at least is above 0")
    if "topic" in weights and policy.topic is None:
        raise at_key(path, f"policies.{name}.score.topic", weights["topic"], f"with policies.{name}.topic")


def _check_switches(path: Path, tables: PolicyFile) -> None:
    has_topic = any(policy.topic is not None for policy in tables.policies.values())
    for number, switch in enumerate(tables.switch):
        when = switch.when
        if when == WhenTable(count=when.count):
            raise at_key(
                path, f"switch[{number}].when", {}, f"one at least of {', '.join(WhenTable.__struct_fields__)}"
            )
        if when.discovered is not None and when != WhenTable(count=when.count, discovered=when.discovered):
            raise at_key(path, f"switch[{number}].when.discovered", when.discovered, "with count, and nothing else")
        if when.duplicates is not None and not tables.duplicates.detect:
            raise at_key(path, f"switch[{number}].when.duplicates", when.duplicates, "with duplicates.detect = true")
        for key in ("similarity", "similarity_below"):
            if getattr(when, key) is not None and not has_topic:
                place = f"switch[{number}].when.{key}"
                raise at_key(path, place, getattr(when, key), "where a policy has a topic, as policies.default.topic")


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


AT_NEXT_START: Final = (
    "collection.limits.pages",
    "collection.limits.domain_share",
    "politeness",
    "network",
    "change",
    "repository",
    "changes",
    "cycle",
    "signals",
    "ranking",
    "discovery.nofollow",
    "discovery.sitemaps",
    "duplicates",
)
"""Tables and keys that a running crawl was built from."""
_WEIGHING: Final = "policies (score, topic)"
"""What waits where the crawl was built without any: nothing of its pages is weighed."""

_Stamp = tuple[int, int, int] | None


class Edit(msgspec.Struct, frozen=True):
    """What came of an edit: the collection to adopt, or why it is refused; changed tables and keys that must wait."""

    collection: Collection | None
    error: str | None = None
    waits: tuple[str, ...] = ()


class PolicyPoll:
    """Finds out when the files of a collection were edited."""

    def __init__(self, collection: Collection) -> None:
        self._built_from = collection
        self._collection = collection
        self._seen = self._stamps()

    def poll(self) -> Edit | None:
        """None unless a file changed since the last call; each edit is returned once, a broken one too."""
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
                None, f"{edited.path}: collection.name: {edited.name!r} is another collection's; restart for it"
            )
        self._collection = edited
        self._seen = self._stamps()  # it may name another seeds file now
        before = self._built_from
        waits = [each for each in AT_NEXT_START if _at(before, each) != _at(edited, each)]
        if edited.is_ranking and not before.is_ranking and "ranking" not in waits:
            waits.append(_WEIGHING)
        return Edit(edited, waits=tuple(waits))

    def _stamps(self) -> tuple[_Stamp, _Stamp]:
        seeds = self._collection.seeds_file
        return _stamp(self._collection.path), None if seeds is None else _stamp(seeds)


def _at(collection: Collection, key: str) -> object:
    """The value of a key path."""
    return operator.attrgetter(key)(collection.tables)


def _stamp(path: Path) -> _Stamp:
    """What changes with a file's content: an editor writes in place, or moves a new file there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
