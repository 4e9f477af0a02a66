"""A collection: the seeds, limits and policies of one crawl, as its policy file describes them.

`collection_file` makes collections from policy files. A seeds file may be very large, so it is read line by line.
"""

from __future__ import annotations

import difflib
import importlib.util
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

import msgspec

from webfountain.errors import PolicyError, UrlError
from webfountain.policy.errors import cut, reason_of
from webfountain.policy.patterns import Pattern
from webfountain.policy.rules import RuleBook
from webfountain.policy.tables import PRESETS, GoalTable, PolicyFile, PolicyTable, SeedTable
from webfountain.policy.units import Duration, Selector, Size, spell_duration, spell_size
from webfountain.urls import canonical, site_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Collection", "describe", "named_policies", "notes_on"]

_COMMENT: Final = re.compile(r"(?:^|\s)#.*")
_WILDCARD: Final = re.compile(r"/\*(?!\$)")
_EMBEDDED: Final = ("image/", "text/css", "text/javascript", "application/javascript", "font/", "audio/", "video/")
"""Media types of resources that pages embed."""


class Collection:
    """A collection as its policy file describes it, with defaults for the keys that the file omits."""

    def __init__(self, path: Path, tables: PolicyFile, *, text: str = "") -> None:
        self.path = path
        self.tables = tables
        self.text = text
        """Text of the policy file as it was read; "" if there is no file."""
        name = tables.collection.seeds_file
        self.seeds_file = None if name is None else path.parent / name
        self._inline = tuple(_inline_seeds(path, tables))
        presets = {name: msgspec.convert(preset, PolicyTable) for name, preset in PRESETS.items()}
        self.policies: dict[str, PolicyTable] = {**presets, **tables.policies}
        self.rules = RuleBook(tables.rule)
        """`[[rule]]`, compiled."""
        self.name = tables.collection.name
        self.scope = tables.collection.scope
        """Which links, redirects and sitemap URLs are kept."""
        self.limits = tables.collection.limits
        """Limits: the depth, the number of pages, and the share of fetches from one domain."""
        self.conflict = tables.conflict.rule
        """Which policy a page gets if links give it different policies."""
        self.politeness = tables.politeness
        """How often a site may be requested, with which User-Agent and limits."""
        self.network = tables.network
        """Which addresses may be requested."""
        self.changes = tables.changes
        """`[changes]`."""
        self.change = tables.change
        """Which differences between two versions of a page count as a change."""
        self.repository = tables.repository
        """What is stored on disk."""
        self.cycle = tables.cycle
        """The length of a cycle and of its periods."""
        self.signals = tables.signals
        """Which facts decide when a page is fetched again, such as its importance and a sitemap's dates."""
        self.ranking = tables.ranking
        """How often pages are ranked by links, and where the links are logged."""
        self.discovery = tables.discovery
        """How new URLs are found."""
        self.duplicates = tables.duplicates
        """What happens to pages that repeat other pages."""

    @property
    def goal(self) -> GoalTable | None:
        """Return the goal for the share of obsolete copies. Without a goal (None), the crawl makes as many fetches as
        its capacity allows.
        """
        return self.tables.goal

    @property
    def is_ranking(self) -> bool:
        """Return whether the importance of pages depends on links, scores or topics, and not only on trust."""
        weighed = any(each.score is not None or each.topic is not None for each in self.policies.values())
        return self.ranking.every is not None or weighed

    @property
    def is_blending(self) -> bool:
        """Return whether never-crawled pages are ordered by a blend of several orders (`core.order_blend`).

        With blending, the score `pagerank` of a never-crawled page comes from its position in the blended order. A
        policy that weighs backlinks switches blending off, because such a policy needs the pure PageRank.
        """
        weighs = any("backlinks" in self.weights_of(policy) for policy in self.policies)
        return self.ranking.every is not None and self.limits.pages is None and not weighs

    def weights_of(self, policy: str) -> dict[str, float]:
        """Return the weights of the scores that make up the importance of a policy's pages. For an unknown policy name,
        return the weights of the default policy.
        """
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
        """Return the rules of the policy "default"."""
        return self.policies["default"]

    @property
    def policies_in_use(self) -> frozenset[str]:
        """Return the names of all policies that a page of this collection can have."""
        return frozenset({name for _, name in named_policies(self.tables)} | set(self.tables.policies) | {"default"})

    @property
    def is_trusting(self) -> bool:
        """Return whether new pages are ordered by trust."""
        used = self.policies_in_use
        fades = any(self.policies[name].dampening < 1 or self.policies[name].splitting for name in used)
        return fades or len(used | {"default"}) > 1 or any(rule.trust is not None for rule in self.tables.rule)

    def named_seeds(self) -> Iterator[tuple[str, str]]:
        """Yield (canonical URL, policy) of each seed for which the policy file names a policy."""
        return ((url, policy) for url, policy in self._inline if policy is not None)

    def seeds(self) -> Iterator[str]:
        """Yield the canonical seed URLs."""
        return (url for url, _ in self.seeds_with_policies())

    def seeds_with_policies(self) -> Iterator[tuple[str, str]]:
        """Yield (canonical URL, policy) of each seed. Seeds of the policy file come before seeds of the seeds file.

        Raises
        ------
        PolicyError
            at a line of the seeds file that is not a URL; the text names file and line.
        """
        for url, policy in self.seed_lines():
            yield url, self.policy_of_seed(url, policy)

    def seed_lines(self) -> Iterator[tuple[str, str | None]]:
        """Yield (canonical URL, policy) of each seed. The policy is None if the seed's line names no policy."""
        yield from self._inline
        if self.seeds_file is not None:
            for url in _read_seeds(self.seeds_file, self.path):
                yield url, None

    def seed_lines_of_file(self) -> Iterator[tuple[str, str | None]]:
        """Yield the entries of `seed_lines` that come from the policy file itself."""
        return iter(self._inline)

    def trust_of_seeds(self) -> Iterator[tuple[str, float]]:
        """Yield (canonical URL, trust) of each seed."""
        for url, policy in self.seed_lines():
            rule = None if policy is not None else self.rules.find(url)
            trust = None if rule is None else rule.trust
            yield url, self.policies[self.policy_of_seed(url, policy)].trust if trust is None else trust

    def policy_of_seed(self, url: str, named: str | None) -> str:
        """Return the policy of a seed: the policy `named` in the seed's line, else the policy of a matching
        ``[[rule]]``, else `collection.policy`.
        """
        rule = None if named is not None else self.rules.find(url)
        return named or (rule and rule.policy) or self.tables.collection.policy


def named_policies(tables: PolicyFile) -> Iterator[tuple[str, str]]:
    """For each key in a policy file whose value names a policy, yield (key, policy)."""
    yield "collection.policy", tables.collection.policy
    for number, seed in enumerate(tables.collection.seeds):
        if isinstance(seed, SeedTable) and seed.policy is not None:
            yield f"collection.seeds[{number}].policy", seed.policy
    for name, policy in tables.policies.items():
        yield f"policies.{name}.otherwise", policy.otherwise
    for number, rule in enumerate(tables.rule):
        if rule.policy is not None:
            yield f"rule[{number}].policy", rule.policy
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
    if len(url.split()) > 1:
        raise PolicyError(f"{place}: {cut(url)} is not one URL (a blank in a URL is written %20)")
    try:
        found = canonical(url)
    except UrlError as error:
        raise PolicyError(f"{place}: {error}") from None
    if "*" in site_of(found):
        raise PolicyError(
            f"""{place}: {cut(url)} is not one host (collection.scope = "domain" includes all of a domain)"""
        )
    return found


def _read_seeds(file: Path, policy_file: Path) -> Iterator[str]:
    """Yield the seeds of a file with one URL per line. A comment starts with ``#``, at the beginning of a line or after
    a blank.
    """
    try:
        with file.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                url = _COMMENT.sub("", line).strip()
                if url:
                    yield _seed(url, f"{file}:{number}")
    except (OSError, UnicodeDecodeError) as error:
        place = f"{policy_file}: collection.seeds_file"
        raise PolicyError(f"{place}: {str(file)!r} cannot be read: {reason_of(error)}") from None


def notes_on(collection: Collection) -> list[str]:
    """Return warnings, one sentence each, about values that are valid but may not do what the author expects."""
    tables = collection.tables
    return [*_embedded_types(collection), *_wildcards(tables), *_unused_policies(tables), *_idle_keys(tables)]


def _embedded_types(collection: Collection) -> Iterator[str]:
    embedded = [kind for kind in collection.politeness.accept if kind.strip().lower().startswith(_EMBEDDED)]
    if embedded:
        yield (
            f"politeness.accept: {', '.join(embedded)}: fetched only if a page links to it (<a href>), not if a "
            f"page embeds it (<img>, style sheets, scripts)"
        )


def _wildcards(tables: PolicyFile) -> Iterator[str]:
    """Yield a warning for each regular expression that looks like a path with a wildcard, for example ``/blog/*``."""
    patterns = [
        *((f"rule[{number}].match", each) for number, rule in enumerate(tables.rule) for each in rule.matches),
        *((f"policies.{name}.allow", each.pattern) for name, table in tables.policies.items() for each in table.allow),
        *((f"policies.{name}.deny", each.pattern) for name, table in tables.policies.items() for each in table.deny),
    ]
    for key, pattern in patterns:
        if _WILDCARD.search(pattern):
            yield f"{key}: {pattern!r}: in a regular expression /* means any number of slashes (did you mean /.*?)"


def _unused_policies(tables: PolicyFile) -> Iterator[str]:
    used = {"default", *(name for _, name in named_policies(tables))}
    used |= {table.extends for table in tables.policies.values() if table.extends is not None}
    for name in tables.policies:
        if name not in used:
            near = difflib.get_close_matches(name.lower(), PRESETS, n=1)
            meant = f" (did you mean {near[0]}?)" if near and near[0] != name else ""
            yield f"policies.{name}: no seed, rule, switch or other policy names it, so no page gets it{meant}"


def _idle_keys(tables: PolicyFile) -> Iterator[str]:
    """Yield a warning for each key that has no effect because another key or a Python module is missing."""
    for name, table in tables.policies.items():
        ranked = {"pagerank", "backlinks"} & (set() if table.score is None else table.score.weights.keys())
        if ranked and tables.ranking.every is None:
            yield f"policies.{name}.score: {', '.join(sorted(ranked))}: no effect without ranking.every"
    for kind, function in tables.content.extractors.items():
        if not any(fnmatchcase(kind, accepted.strip().lower()) for accepted in tables.politeness.accept):
            yield f"content.extractors: politeness.accept leaves {kind} out, so none is fetched"
        package = re.split("[.:]", function)[0]
        if importlib.util.find_spec(package) is None:  # `find_spec` of a module in a package would import the package
            yield f"content.extractors: {function}: Python finds no module {package} (install it, or set PYTHONPATH)"


def describe(collection: Collection) -> dict[str, Any]:
    """Return all values of a collection, one dictionary per table, with durations and sizes as texts with units."""
    shown: dict[str, Any] = {field: _shown(getattr(collection.tables, field)) for field in PolicyFile.__struct_fields__}
    written = {"default", *collection.tables.policies, *(name for _, name in named_policies(collection.tables))}
    shown["policies"] = {name: _shown(table) for name, table in collection.policies.items() if name in written}
    shown["collection"]["seeds"] = sum(1 for _ in collection.seeds())
    shown["politeness"]["robots_token"] = collection.politeness.robots_token
    shown["cycle"]["fastest"] = spell_duration(collection.cycle.fastest_s)
    return shown


def _shown(value: object) -> Any:
    """Convert a table, list, pattern or number to values that JSON can express."""
    if isinstance(value, msgspec.Struct):
        return {field: _shown(getattr(value, field)) for field in value.__struct_fields__}
    if isinstance(value, tuple):
        return [_shown(item) for item in value]
    if isinstance(value, dict):
        return {name: _shown(item) for name, item in value.items()}
    if isinstance(value, (Duration, Size)):
        return spell_duration(value) if isinstance(value, Duration) else spell_size(value)
    if isinstance(value, Pattern):
        return value.pattern
    return str(value) if isinstance(value, Selector) else value
