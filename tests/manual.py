"""The documents that follow from the code: ``python -m tests.manual`` writes them.

`docs/commands.md` and `docs/settings.md` are generated whole, the table of keys in `docs/policies.md` between two
comments. `tests/test_documents.py` compares them with what is committed.
"""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from webfountain import cli
from webfountain.config import settings
from webfountain.policy.collection import describe
from webfountain.policy.collection_file import parse_collection

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
DOCS = ROOT / "docs"

MEANING = {
    "collection.name": "Name of the collection. A store belongs to one collection.",
    "collection.seeds": "URLs to begin with, each a string or a table `{ url = …, policy = … }`.",
    "collection.seeds_file": "File of seeds, one per line; `#` begins a comment, after a URL and a blank, too.",
    "collection.scope": "Which discovered URLs are kept: those on a seed's `site`, those on its registered `domain` "
    "(such as `user.github.io`), or `any`. If a seed redirects to the https or www. form of its site, this form is in "
    "scope too.",
    "collection.policy": "Policy of the seeds that name no policy.",
    "collection.limits.depth": "Maximum number of hops from a seed; with 0 only the seeds are crawled.",
    "collection.limits.pages": "Size of the collection: when it is full, less important pages are replaced. "
    "Without it the collection grows.",
    "collection.limits.domain_share": "Largest part of a period's fetches for one registered domain.",
    "politeness.user_agent": "User agent, with a contact for public addresses. Its first token is the name in "
    "robots.txt.",
    "politeness.min_delay": "Shortest time between two requests to a site.",
    "politeness.delay_factor": "The delay is this many times the duration of the last request, up to `max_delay`.",
    "politeness.max_delay": "Longest delay, even if `delay_factor` or a Crawl-delay asks for more.",
    "politeness.concurrency": "Number of requests to a site (and address) at the same time.",
    "politeness.per_ip": "Sites with the same address share the limits of one site. If a host has several addresses, "
    "the first one that answers counts.",
    "politeness.timeout": "Longest time of a fetch, from the first attempt to connect to the last byte.",
    "politeness.max_bytes": "Largest body, also after decompression; a larger one is cut and the fetch fails.",
    "politeness.min_bytes_per_second": "A body that arrives more slowly for ten seconds is cut.",
    "politeness.accept": "Media types to fetch, such as `image/*`; others are cut after the headers. Images, style "
    "sheets and scripts that a page embeds are not fetched.",
    "network.allow_private": "Allow loopback and private addresses.",
    "network.verify_tls": "Check certificates as browsers do; a site whose certificate fails then has the error "
    "`certificate`. Off by default, as in most crawlers, because many sites have expired certificates. Switch it "
    "on if copies must be safe from changes on the network path.",
    "content.text": "The part of a page that is compared for changes and given to readers: `all` (the visible text), "
    "or `main` (the main content without navigation, banners and footers).",
    "content.metadata": "Keep what a page says about itself (title, description, language, author, times, canonical "
    "URL, type) in its record and in the WARC files.",
    "change.min_change": "A change counts if the resemblance of the texts is below 1 minus this value. With 0 any "
    "different byte counts. If the next keys or `content.text` leave something out, any difference in the rest counts.",
    "change.select": "CSS selectors: only these elements count.",
    "change.ignore": "CSS selectors of elements that do not count.",
    "change.ignore_text": "Regular expressions; the text that they find in a line does not count.",
    "change.ignore_kinds": "Kinds of text that do not count: `numbers`, `dates` (and times), `case` (of letters).",
    "change.learn": "Learn which lines are noise: positions that differ at nearly every visit, also between two "
    "visits seconds apart, and lines that come and go as often as they stay. They do not count until they rest. At "
    "most 2 % of the visits are made to find them.",
    "change.always": "CSS selectors of elements that are never learned as noise.",
    "changes.diff": "Keep a unified diff of the texts with each change, at most 20 kB: `true` or `text`, `markdown`, "
    "`html`.",
    "changes.keep": "How long entries of the change log are kept.",
    "changes.max_entries": "Largest number of entries of the change log.",
    "repository.keep": "`newest` deletes WARC files without a newest copy; `all` keeps every version.",
    "repository.max_bytes": "Largest size of the folder. The crawl ends if the newest copies alone need more. Without "
    'this key, the folder grows to about three times the size of the newest copies (with `keep = "newest"`).',
    "repository.answers": "Also record redirects, 404s and other answers without a copy, robots.txt and sitemaps. "
    'Default: true with `keep = "all"`, else false.',
    "cycle.periods": "Number of time periods that are planned together.",
    "cycle.period": "Length of a time period.",
    "cycle.fastest": "Mean change interval of the fastest pages (bucket 0); a 96th of the period unless set.",
    "cycle.capacity_pages_per_period": "Maximum number of fetches per period; without it the crawl fetches as fast as "
    "politeness allows.",
    "cycle.strategy": "What a plan optimises: strategy 1, 2 or 3 of Edwards 2001, or `fountain` with its own signals.",
    "duplicates.detect": "Detect pages that repeat other pages, on any site. Such a page points to the page that it "
    "repeats and is fetched rarely, and its links are not followed.",
    "duplicates.resemblance": "A page repeats another one if the resemblance of their texts is at least this value.",
    "duplicates.revisit": "Time until a duplicate is fetched again; 30 periods unless set.",
    "goal": "`{ obsolete, longer_than }`: at most the share `obsolete` of the copies may be out of date for longer "
    "than `longer_than`. Without `longer_than`, every copy that is out of date counts. The crawl fetches known pages "
    "only as often as the goal requires, up to the capacity.",
    "signals.importance": "Weigh a page's freshness by its importance or, if it has none, by its depth.",
    "signals.lastmod": "Make a page due if a sitemap or feed gives a later date than our copy's; under a budget, make "
    "it more urgent. The crawl learns for each site how reliable its dates are.",
    "ranking.every": "Time between two rankings of the crawl's links, in a separate process; shorter while the "
    "collection grows. Rankings take at most a twentieth of the CPU time, plus 15 s at the beginning. Without this key "
    "no link is logged or ranked.",
    "ranking.links": "Folder or fsspec URL of the link log (Parquet); `links` beside the store unless set.",
    "discovery.nofollow": "Honour rel=nofollow, robots meta tags and X-Robots-Tag.",
    "discovery.sitemaps": "Read the sitemaps that robots.txt names. A sitemap can name pages of its own site and of "
    "the site whose robots.txt names it; others are ignored.",
    "discovery.max_url_length": "Longest URL, in characters.",
    "discovery.max_repeated_segments": "A path that repeats a segment more often is a trap and is refused.",
    "discovery.calendar_years": "How many years from today the pages of a calendar are followed.",
    "policies.default.extends": "Policy whose keys this policy begins with. A policy named favor, default or distrust "
    "that extends nothing begins with the preset of that name.",
    "policies.default.trust": "Trust of its seeds, 0 to 1. It is also the upper bound for pages that come from "
    "another policy to this one. If a switch moves a page from a policy of less trust, the page gets this trust.",
    "policies.default.dampening": "Trust of a linked page, as a share of the linking page's trust.",
    "policies.default.splitting": "Divide a page's trust among its links.",
    "policies.default.spread": "How far links inherit the policy: on its `site`, its registered `domain`, or `any`.",
    "policies.default.otherwise": "Policy of links beyond `spread`.",
    "policies.default.follow": "Follow the links of its pages.",
    "policies.default.allow": "Regular expressions, one of which a URL must match; without any, all URLs are allowed.",
    "policies.default.deny": "Regular expressions; a URL that matches one is refused, also when it is queued already.",
    "policies.default.score": "Weights of a page's importance: `{ pagerank, trust, backlinks, topic, location }`. "
    "Without it importance is trust, if policies give pages different trust.",
    "policies.default.topic": "`{ query, min_similarity }`: a page with at least this similarity (`0.1` unless set) "
    "is on topic. Two kinds of pages go first: those that are on topic by a link's text or their URL, and those "
    "within three links of a page on topic.",
    "policies.default.revisit.min_interval": "Shortest time until a page is fetched again, except by `now` or, without "
    "a budget, by a sitemap.",
    "policies.default.revisit.max_interval": "Longest time until a page with a copy is fetched again.",
    "rule": "`[[rule]]`: pages that `match` get this `policy`, this `trust`, or both, whichever page links to them. "
    "`match` is a host (`example.org` is that host alone, `*.example.org` includes all hosts below it), a regular "
    "expression that is searched in the URL, or a list of them. The first rule that matches counts. Without `trust`, "
    "the policy's trust holds; without `policy`, the page keeps the policy that it inherits.",
    "switch": "`[[switch]]`: a page that meets all conditions of `when` gets the policy `to`, and links found later "
    'inherit it. With `also = "discovered"`, the pages discovered through it earlier get it, too. Conditions: '
    "`text` (a pattern that is found `count` times), `status`, `language` or `language_not` (lists), `similarity` or "
    "`similarity_below`, `duplicates` (the share of duplicates on its site). Or the only condition is `discovered`: "
    "the share of the pages discovered through the page that were switched to the same policy, at least `count` of "
    "them.",
    "conflict.rule": "A page to which several links lead gets its policy and trust from the `first`, the "
    "`most-trusted` or the `least-trusted` link.",
}
"""Each key of a policy file in a sentence."""
MEANING |= {
    f"policies.default.{key}": f"Like `{key}`, for the pages of this policy alone. Default: the collection's value."
    for key in MEANING
    if key.startswith(("content.", "change."))
}

_MINIMAL = '[collection]\nname = "x"\nseeds = ["http://127.0.0.1/"]\n[network]\nallow_private = true\n'


def settings_table() -> str:
    """Every WEBFOUNTAIN_* setting."""
    rows = ["| setting | default | unit | meaning |", "|---|---|---|---|"]
    for setting in settings():
        default = "" if setting.default is None or setting.default is msgspec.NODEFAULT else f"`{setting.default}`"
        rows.append(f"| `{setting.name}` | {default} | {setting.unit} | {setting.sentence} |")
    return "\n".join(rows)


def policy_table() -> str:
    """Every key of a policy file with its default."""
    defaults = describe(parse_collection(_MINIMAL, Path("x.toml")))
    rows = ["| key | default | meaning |", "|---|---|---|"]
    for key, value in _flat(defaults):
        if key in _DERIVED:
            continue
        shown = {"collection.name": "", "collection.seeds": "", "network.allow_private": "`false`"}.get(key)
        rows.append(f"| `{key}` | {_shown(value) if shown is None else shown} | {MEANING[key]} |")
    return "\n".join(rows)


_DERIVED = {"politeness.robots_token"}
"""What `policy check --json` tells beside the keys."""


def _flat(tables: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tables.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _shown(value: object) -> str:
    if value is None or value == []:
        return ""
    if isinstance(value, list):
        return ", ".join(f"`{item}`" for item in value)
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name."""
    for name in cli.COMMANDS:
        found = cli.command_of(name)
        if isinstance(found, click.Group):
            yield from ((f"{name} {each}", command) for each, command in found.commands.items())
        else:
            yield name, found


def command_section(name: str, command: click.Command) -> str:
    """Usage, help, options and example of a command, as Markdown."""
    context = click.Context(command, info_name=f"webfountain {name}")
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [f"## {name}", f"`webfountain {name} {usage}`", " ".join((command.help or "").split("\n\n", 1)[0].split())]
    parts += [" ".join(each.split()) for each in (command.help or "").split("\n\n")[1:]]
    rows = [option_row(each, context) for each in command.params if isinstance(each, click.Option)]
    parts.append("\n".join(["| option | meaning |", "|---|---|", *rows]))
    if command.epilog:
        example, _, more = command.epilog.partition("\n\n\b\n")
        parts.append("```\n" + example.removeprefix("Example: ").strip() + "\n```")
        if more:
            sentence, _, code = more.partition("\n")
            parts += [sentence, "```python\n" + textwrap.dedent(code.replace("\b\n", "")).strip() + "\n```"]
    return "\n\n".join(part for part in parts if part)


def option_row(option: click.Option, context: click.Context) -> str:
    names, meaning = option.get_help_record(context) or (", ".join(option.opts), option.help or "")
    return f"| `{names.replace('|', ' ')}` | {' '.join(meaning.split()).replace('|', chr(92) + '|')} |"


COMMANDS_HEAD = """# Commands

This page is generated from the help texts: `webfountain COMMAND --help` prints the same.

All commands take `--store URL`, the place of the frontier. The environment variable `WEBFOUNTAIN_STORE` sets it too;
the default is `rocksdb://.webfountain`. [many-ants.md](many-ants.md) lists stores on servers. Commands that print take
`--json`, and then print one JSON document. `pages`, `texts` and `changes` print JSON lines.

Exit status: 0 if done, 1 if the crawl or command failed, 2 for wrong arguments or input. One line names file, key and
value. Ctrl-C or SIGTERM ends a crawl within 10 s with status 0; a second one ends it at once.
"""
SETTINGS_HEAD = """# Settings

This page is generated from `webfountain/config.py`.

A setting concerns an installation; the rules of a collection are in its policy file. Settings come from `settings.py`
of a Scrapy project, from `-s NAME=VALUE`, or from the options of `webfountain crawl`. An unknown name or a wrong value
is an error at the start.
"""


def commands_page() -> str:
    """Text of docs/commands.md."""
    listed = "\n".join(f"- [{name}](#{name.replace(' ', '-')})" for name, _ in commands())
    return "\n\n".join([COMMANDS_HEAD.strip(), listed, *(command_section(*each) for each in commands())]) + "\n"


def settings_page() -> str:
    """Text of docs/settings.md."""
    return SETTINGS_HEAD + "\n" + settings_table() + "\n"


def policies_page() -> str:
    """Text of docs/policies.md, its table of keys made anew."""
    text = (DOCS / "policies.md").read_text(encoding="utf-8")
    pattern = re.compile(r"(<!-- policy keys -->\n).*?(<!-- /policy keys -->)", re.DOTALL)
    assert pattern.search(text), "docs/policies.md has no place for the table of keys"
    return pattern.sub(lambda found: found[1] + policy_table() + "\n" + found[2], text)


CLASSES_HEAD = """# Classes

Every public class of the frontier and of its store, with the first sentence of its documentation. `python -m
tests.manual` writes this page; `tests/test_names.py` checks that no class is missing. [glossary.md](glossary.md)
explains the words.
"""


def public_classes(room: str) -> Iterator[tuple[str, ast.ClassDef]]:
    """Module and definition of every public class of a package."""
    for path in sorted((ROOT / "webfountain" / room).rglob("*.py")):
        module = ".".join(path.relative_to(ROOT / "webfountain").with_suffix("").parts)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield module, node


def classes_page() -> str:
    """Text of docs/classes.md."""
    parts = [CLASSES_HEAD]
    for room in CLASS_ROOMS:
        rows = ["| class | module | what it is |", "|---|---|---|"]
        for module, node in public_classes(room):
            text = " ".join((ast.get_docstring(node) or "").split())
            first = re.split(r"(?<=[.!?])\s+(?=[A-Z`])", text)[0].replace("|", "\\|").replace("``", "`")
            rows.append(f"| `{node.name}` | `{module}` | {first} |")
        parts.append(f"## {room}\n\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


CLASS_ROOMS = ("frontier", "store")
"""Packages whose classes docs/classes.md lists."""
PAGES = {"commands.md": commands_page, "settings.md": settings_page, "policies.md": policies_page}
"""File in docs -> function that makes its text."""


if __name__ == "__main__":
    for page, make in {**PAGES, "classes.md": classes_page}.items():
        (DOCS / page).write_text(make(), encoding="utf-8")
