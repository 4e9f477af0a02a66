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
    "collection.seeds_file": "File of seeds, one per line. `#` begins a comment, at the start of a line or after a URL "
    "and a blank.",
    "collection.scope": "Which discovered URLs are kept: those on a seed's `site`, those on a seed's registered "
    "`domain` (such as `user.github.io`), or `any`. If a seed redirects to the https or www. form of its site, the "
    "URLs of this form are kept too.",
    "collection.policy": "Policy of the seeds that name no policy.",
    "collection.limits.depth": "Maximum number of hops from a seed; with 0 only the seeds are crawled.",
    "collection.limits.pages": "Maximum number of pages in the collection. In a full collection, more important pages "
    "replace less important ones. Without this key, the collection grows.",
    "collection.limits.domain_share": "Largest share of a period's fetches that one registered domain may take.",
    "politeness.user_agent": "User-Agent header, with a contact if the crawl may request public addresses. Its first "
    "token is the crawler's name in robots.txt.",
    "politeness.min_delay": "Shortest time between two requests to a site.",
    "politeness.delay_factor": "After a request, the delay is this many times the request's duration, but at most "
    "`max_delay`.",
    "politeness.max_delay": "Longest delay, even if `delay_factor` or a Crawl-delay asks for more.",
    "politeness.concurrency": "Maximum number of simultaneous requests to a site and, with `per_ip`, to an address.",
    "politeness.per_ip": "Sites at the same address share the limits of one site. If a host has several addresses, "
    "only the first one that answers counts.",
    "politeness.timeout": "Longest duration of a fetch, from the first attempt to connect to the last byte.",
    "politeness.max_bytes": "Maximum size of a body, before and after decompression. The crawl aborts the fetch of a "
    "larger body, which counts as failed.",
    "politeness.min_bytes_per_second": "Lowest speed of a transfer. The crawl aborts a transfer that is slower for ten "
    "seconds.",
    "politeness.accept": "Media types to fetch, such as `image/*`. The crawl aborts the fetch of any other type after "
    "its headers. It does not fetch the images, style sheets and scripts that a page embeds.",
    "network.allow_private": "Allow requests to loopback and private addresses.",
    "network.verify_tls": "Verify certificates as browsers do. Sites with an invalid certificate then have the error "
    "`certificate`. Off by default, as in most crawlers, because many sites have expired certificates. Switch it on if "
    "the copies must be safe from changes on the network path.",
    "content.text": "The text that is compared for changes and given to readers: `all` the visible text of a page, or "
    "only its `main` content, without navigation, banners and footers.",
    "content.metadata": "Keep the metadata that a page gives about itself (title, description, language, author, "
    "times, canonical URL, type) in its record and in the WARC files.",
    "change.min_change": "A difference counts as a change if the resemblance of the two texts is below 1 minus this "
    "value. With 0, any different byte counts; if other keys exclude parts of a page, any difference in the rest "
    "counts.",
    "change.select": "CSS selectors. Only the elements that they select count.",
    "change.ignore": "CSS selectors of elements that do not count.",
    "change.ignore_text": "Regular expressions. Text in a line that one of them matches does not count.",
    "change.ignore_kinds": "Kinds of text that do not count: `numbers`, `dates` (dates and times), `case` (upper and "
    "lower case).",
    "change.learn": "Learn which lines of pages are noise: lines at a position that differs at nearly every visit, "
    "even at two visits seconds apart, and lines that come and go as often as they stay. Noise does not count until it "
    "has stayed the same for some visits. At most 2 % of the visits are extra visits to find noise.",
    "change.always": "CSS selectors of elements that are never learned as noise.",
    "changes.diff": "Store a unified diff with each change, at most 20 kB. It compares the texts (`true` or `text`), "
    "their `markdown`, or the `html`.",
    "changes.keep": "How long the change log keeps an entry.",
    "changes.max_entries": "Maximum number of entries in the change log.",
    "repository.keep": "`newest` deletes each WARC file without a newest copy of a page; `all` keeps every version of "
    "every page.",
    "repository.max_bytes": "Maximum size of the repository folder. The crawl ends if the newest copies alone need "
    'more. Without this key, and with `keep = "newest"`, the folder grows to about three times the size of the newest '
    "copies.",
    "repository.answers": "Also record answers without a copy, such as redirects and 404s, and robots.txt and "
    'sitemaps. Default: true with `keep = "all"`, else false.',
    "cycle.periods": "Number of time periods that one plan covers.",
    "cycle.period": "Length of a time period.",
    "cycle.fastest": "Mean change interval of the pages that change most often (bucket 0). Default: a 96th of "
    "`cycle.period`.",
    "cycle.capacity_pages_per_period": "Maximum number of fetches per period. Without this key, the crawl fetches as "
    "fast as politeness allows.",
    "cycle.strategy": "How the crawl divides its fetches: by strategy 1, 2 or 3 of Edwards 2001, or by `fountain`, "
    "which also estimates how urgent each page is.",
    "duplicates.detect": "Detect duplicates: pages that repeat other pages, on any site. A duplicate points to the "
    "page that it repeats, and is rarely fetched. Its links are not followed.",
    "duplicates.resemblance": "A page is a duplicate of another page if the resemblance of their texts is at least "
    "this value.",
    "duplicates.revisit": "Time until a duplicate is fetched again. Default: 30 periods.",
    "goal": "`{ obsolete, longer_than }`: at most the share `obsolete` of the copies may be out of date for longer "
    "than `longer_than`. Without `longer_than`, every copy that is out of date counts. The crawl fetches known pages "
    "only as often as the goal requires, up to the capacity.",
    "signals.importance": "Let the freshness of important pages count more. A page without an importance counts by its "
    "depth.",
    "signals.lastmod": "Use the dates of pages in sitemaps and feeds. A page whose date is later than our copy is due "
    "or, under a budget, more urgent. The crawl learns how reliable the dates of each site are.",
    "ranking.every": "Time between two rankings of pages by their links. A separate process makes the rankings, more "
    "often while the collection grows. Rankings take at most a twentieth of the CPU time, plus 15 s at the beginning. "
    "Without this key, the crawl neither logs nor ranks links.",
    "ranking.links": "Folder or fsspec URL of the link log (Parquet). Default: `links` beside the store.",
    "discovery.nofollow": "Obey rel=nofollow, robots meta tags and X-Robots-Tag headers.",
    "discovery.sitemaps": "Read the sitemaps that robots.txt lists. Of their URLs, the crawl takes those on the "
    "sitemap's own site and on the site whose robots.txt lists the sitemap.",
    "discovery.max_url_length": "Maximum length of a URL, in characters.",
    "discovery.max_repeated_segments": "Maximum number of times that a URL may repeat a path segment or a query "
    "parameter. The crawl refuses a URL with more as a crawler trap.",
    "discovery.calendar_years": "From one page of a calendar to another, links are followed up to this many years "
    "after the current year.",
    "policies.default.extends": "Another policy, from which this policy takes every key that it does not set. Without "
    "`extends`, a policy named favor, default or distrust begins with the preset of that name.",
    "policies.default.trust": "Trust of the policy's seeds, from 0 to 1. A page that comes to this policy from another "
    "one gets at most this trust. If a switch moves a page here from a policy of less trust, the page gets exactly "
    "this trust.",
    "policies.default.dampening": "Trust of a linked page, as a share of the linking page's trust.",
    "policies.default.splitting": "Divide the trust that a page passes on among its links.",
    "policies.default.spread": "How far links pass the policy on: within a page's `site`, within its registered "
    "`domain`, or to `any` page.",
    "policies.default.otherwise": "Policy of linked pages beyond the `spread`.",
    "policies.default.follow": "Follow the links of pages under this policy.",
    "policies.default.allow": "Regular expressions. A URL must match at least one of them. Without this key, all URLs "
    "are allowed.",
    "policies.default.deny": "Regular expressions. A URL that matches one of them is refused, even if it is already "
    "queued.",
    "policies.default.score": "Weights of the scores that make up a page's importance: `{ pagerank, trust, backlinks, "
    "topic, location }`. Without this key, importance is trust, if policies give pages different trust.",
    "policies.default.topic": "`{ query, min_similarity }`: a page is on topic if its similarity to the query is at "
    "least `min_similarity` (default `0.1`). Two kinds of waiting pages are fetched first: pages whose URL or link "
    "text is on topic, and pages within three links of a page on topic.",
    "policies.default.revisit.min_interval": "Shortest time until a page is fetched again. Only `now` and, without a "
    "budget, a sitemap can cause an earlier fetch.",
    "policies.default.revisit.max_interval": "Longest time until a page with a copy is fetched again.",
    "rule": "`[[rule]]`: gives the pages that `match` this `policy`, this `trust`, or both, whichever page links to "
    "them. `match` is a host, a regular expression that is searched in the URL, or a list of both. The host "
    "`example.org` stands for itself alone, `*.example.org` for all hosts below it too. The first rule that matches a "
    "page counts. Without `trust`, the page gets the trust of the policy; without `policy`, the page keeps the policy "
    "that it inherits.",
    "switch": "`[[switch]]`: a fetched page that meets all conditions of `when` gets the policy `to`. Links found on "
    'the page later inherit this policy. With `also = "discovered"`, pages that were discovered through this page '
    "earlier get the policy too. Conditions: `text` (a pattern that the text contains at least `count` times), "
    "`status`, `language` or `language_not` (lists), `similarity` or `similarity_below`, `duplicates` (the share of "
    "duplicates on the page's site). The condition `discovered` stands alone: of the fetched pages that were "
    "discovered through this page, at least this share, and at least `count`, were switched to the same policy.",
    "conflict.rule": "If several links lead to a page, one of them sets its policy and trust: the `first`, the "
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

All commands take `--store URL`, the URL of the frontier's store. The environment variable `WEBFOUNTAIN_STORE` can set
it too; the default is `rocksdb://.webfountain`. [many-ants.md](many-ants.md) lists the URLs of stores on servers. With
`--json`, a command that prints something prints one JSON document. `pages`, `texts` and `changes` print JSON lines.

Exit status: 0 if done, 1 if the crawl or command failed, 2 for wrong arguments or input. For a wrong policy file, an
error of one line names the file, the key and the value. Ctrl-C or SIGTERM ends a crawl within 10 s with status 0; a
second signal ends it at once.
"""
SETTINGS_HEAD = """# Settings

This page is generated from `webfountain/config.py`.

Settings belong to an installation; the rules of a collection are in its policy file. Settings come from `settings.py`
of a Scrapy project, from `-s NAME=VALUE`, or from the options of `webfountain crawl`. A crawl does not start with an
unknown setting or a wrong value.
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
