"""Mistakes that people make, as a table: each is one line with the right status, and a hint where one is possible."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from webfountain import cli
from webfountain.records import Link
from webfountain.store.opening import open_store
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
GOOD = """[collection]
name = "good"
seeds = ["http://127.0.0.1:1/"]
[network]
allow_private = true
"""
PUBLIC = """[collection]
name = "good"
seeds = ["https://example.org/"]
[politeness]
user_agent = "mine/1.0 (+https://example.org/bot)"
"""


def seeded(seed: str) -> str:
    """A policy file of one seed."""
    return PUBLIC.replace('"https://example.org/"]', f'"{seed}"]')


def collecting(line: str) -> str:
    """A policy file with one line more in [collection]."""
    return GOOD.replace("[network]", f"{line}\n[network]")


class Mistake(NamedTuple):
    """A command line, what its one line of complaint says, and its status."""

    arguments: str
    says: str
    status: int = 2


# ------------------------------------------------------------------ policy files

FILES: dict[str, tuple[str, str]] = {
    "no table": ("", "collection is missing (required)"),
    "no name": ("[collection]\nseeds = ['http://a.org/']\n", "collection.name is missing (required)"),
    "no TOML": ("[collection\n", "not valid TOML"),
    "YAML": ("collection:\n  name: x\n", "not valid TOML"),
    "JSON": ('{"collection": {}}', "not valid TOML"),
    "a key twice": (GOOD + "allow_private = true\n", "not valid TOML"),
    "a table twice": (GOOD + "[network]\n", "not valid TOML"),
    "True for true": (GOOD.replace("= true", "= True"), "not valid TOML"),
    "a text without quotes": (GOOD.replace('"good"', "good"), "not valid TOML"),
    "mistyped table": (GOOD.replace("[network]", "[netwrok]"), "netwrok is an unknown key (did you mean network?"),
    "mistyped key": (GOOD + "[politeness]\nmindelay = '1s'\n", "did you mean min_delay?"),
    "key in the wrong table": (GOOD + "[cycle]\nmin_delay = '1s'\n", "cycle.min_delay is an unknown key"),
    "name with a blank": (GOOD.replace('"good"', '"my news"'), "collection.name: 'my news'"),
    "empty name": (GOOD.replace('"good"', '""'), "collection.name: ''"),
    "name as a number": (GOOD.replace('"good"', "7"), "collection.name: 7"),
    "no seeds": (GOOD.replace('["http://127.0.0.1:1/"]', "[]"), "collection.seeds is empty"),
    "seeds as a text": (GOOD.replace('["http://127.0.0.1:1/"]', '"http://127.0.0.1:1/"'), "collection.seeds:"),
    "a seed without a scheme": (seeded("example.org"), "did you mean https://example.org/?"),
    "a seed without a scheme, with www": (seeded("www.example.org/news"), "did you mean https://www.example.org/news?"),
    "a seed with a mistyped scheme": (seeded("htps://example.org/"), "did you mean https://example.org/?"),
    "a seed without a colon": (seeded("https//example.org/"), "did you mean https://example.org/?"),
    "a seed of another scheme": (seeded("ftp://example.org/"), "'ftp://example.org/' is not an absolute"),
    "a seed with a password": (seeded("https://me:secret@example.org/"), "'https://***@example.org/' is not"),
    "a seed that is a path": (seeded("/news"), "'/news' is not an absolute"),
    "a seed for all hosts of a domain": (
        seeded("https://*.example.org/"),
        """collection.seeds[0]: 'https://*.example.org/' is not one host (collection.scope = "domain" includes""",
    ),
    "two seeds in one text": (seeded("https://a.org/ https://b.org/"), "is not one URL (a blank in a URL is written %"),
    "an empty seed": (seeded(""), "collection.seeds[0]: ''"),
    "a seed table without a URL": (
        GOOD.replace('["http://127.0.0.1:1/"]', '[{ policy = "favor" }]'),
        "url is missing",
    ),
    "a seed under no policy": (
        GOOD.replace('["http://127.0.0.1:1/"]', '[{ url = "http://127.0.0.1:1/", policy = "best" }]'),
        "collection.seeds[0].policy: 'best'",
    ),
    "a private seed unasked": (GOOD.replace("= true", "= false"), "network.allow_private: False refuses the seed"),
    "a public crawl without a contact": (PUBLIC.replace(" (+https://example.org/bot)", ""), "gives no contact"),
    "a seeds file that is not there": (
        GOOD.replace("seeds = [", 'seeds_file = "x.txt"\nseeds = ['),
        "'x.txt' cannot be read",
    ),
    "scope of no kind": (collecting('scope = "host"'), "collection.scope: 'host'"),
    "depth below zero": (collecting("limits.depth = -1"), "collection.limits.depth: -1"),
    "depth as a text": (collecting('limits.depth = "3"'), "collection.limits.depth: '3'"),
    "no pages": (collecting("limits.pages = 0"), "collection.limits.pages: 0"),
    "a share above one": (collecting("limits.domain_share = 50"), "collection.limits.domain_share: 50"),
    "a policy that is not there": (collecting('policy = "best"'), "collection.policy: 'best'"),
    "a delay without a unit": (GOOD + "[politeness]\nmin_delay = 5\n", "politeness.min_delay: 5"),
    "a delay in words": (
        GOOD + '[politeness]\nmin_delay = "five seconds"\n',
        "allowed: a number with ms, s, m, h, d or w",
    ),
    "a delay below zero": (GOOD + '[politeness]\nmin_delay = "-1s"\n', "politeness.min_delay: '-1s'"),
    "a longest delay below the shortest": (GOOD + '[politeness]\nmin_delay = "9m"\n', "politeness.max_delay"),
    "no timeout": (GOOD + '[politeness]\ntimeout = "0s"\n', "politeness.timeout: '0s'"),
    "no slots": (GOOD + "[politeness]\nconcurrency = 0\n", "politeness.concurrency: 0"),
    "a size without a unit": (GOOD + '[politeness]\nmax_bytes = "10"\n', "politeness.max_bytes: '10'"),
    "a size in KiB": (GOOD + '[politeness]\nmax_bytes = "10 KiB"\n', "politeness.max_bytes: '10 KiB'"),
    "a user agent of two lines": (GOOD + '[politeness]\nuser_agent = "a\\nb"\n', "politeness.user_agent:"),
    "accept an extension": (GOOD + '[politeness]\naccept = ["html"]\n', "did you mean 'text/html'?"),
    "accept an extension with a dot": (GOOD + '[politeness]\naccept = [".pdf"]\n', "did you mean 'application/pdf'?"),
    "accept with a parameter": (
        GOOD + '[politeness]\naccept = ["text/html; charset=utf-8"]\n',
        "did you mean 'text/html'?",
    ),
    "accept half a type": (GOOD + '[politeness]\naccept = ["text/"]\n', "politeness.accept[0]: 'text/'"),
    "accept a text": (GOOD + '[politeness]\naccept = "text/html"\n', "politeness.accept: 'text/html'"),
    "private as a text": (GOOD.replace("= true", '= "yes"'), "network.allow_private: 'yes'"),
    "verify as a number": (GOOD + "verify_tls = 1\n", "network.verify_tls: 1"),
    "a change above one": (GOOD + "[change]\nmin_change = 5\n", "change.min_change: 5"),
    "copies of no kind": (GOOD + '[repository]\nkeep = "latest"\n', "repository.keep: 'latest'"),
    "a cycle without periods": (GOOD + "[cycle]\nperiods = 0\n", "cycle.periods: 0"),
    "a period of no length": (GOOD + '[cycle]\nperiod = "0d"\n', "cycle.period: '0d'"),
    "a fastest above the period": (GOOD + '[cycle]\nfastest = "2d"\n', "cycle.fastest: '2d'"),
    "a strategy of no kind": (GOOD + "[cycle]\nstrategy = 4\n", "cycle.strategy: 4"),
    "a strategy as a text": (GOOD + '[cycle]\nstrategy = "3"\n', "cycle.strategy: '3'"),
    "no budget": (GOOD + "[cycle]\ncapacity_pages_per_period = 0\n", "cycle.capacity_pages_per_period: 0"),
    "a broken pattern": (GOOD + "[policies.default]\ndeny = ['(']\n", "policies.default.deny"),
    "a glob for a pattern": (GOOD + "[policies.default]\ndeny = ['*.zip']\n", "policies.default.deny"),
    "a pattern outside a list": (GOOD + "[policies.default]\ndeny = 'zip'\n", "policies.default.deny: 'zip'"),
    "trust above one": (GOOD + "[policies.default]\ntrust = 2\n", "policies.default.trust: 2"),
    "a spread of no kind": (GOOD + '[policies.favor]\nspread = "host"\n', "policies.favor.spread: 'host'"),
    "otherwise nobody": (GOOD + '[policies.favor]\notherwise = "x"\n', "policies.favor.otherwise: 'x'"),
    "a longest interval below the shortest": (
        GOOD + '[policies.default]\nrevisit = { min_interval = "2d", max_interval = "1d" }\n',
        "max_interval",
    ),
    "weights of nothing": (GOOD + "[policies.default]\nscore = { }\n", "policies.default.score"),
    "a topic's weight without a topic": (
        GOOD + "[policies.default]\nscore = { topic = 1 }\n",
        "policies.default.score.topic",
    ),
    "a switch that asks nothing": (GOOD + '[[switch]]\nwhen = { }\nto = "distrust"\n', "switch[0].when"),
    "a switch to nobody": (GOOD + "[[switch]]\nwhen = { status = 404 }\nto = 'bad'\n", "switch[0].to: 'bad'"),
    "a status of no kind": (
        GOOD + "[[switch]]\nwhen = { status = 99 }\nto = 'distrust'\n",
        "switch[0].when.status: 99",
    ),
    "a language by its name": (GOOD + "[[switch]]\nwhen = { language = ['German'] }\nto = 'distrust'\n", "language"),
    "duplicates undetected": (
        GOOD + "[[switch]]\nwhen = { duplicates = 0.5 }\nto = 'distrust'\n",
        "duplicates.detect = true",
    ),
    "a conflict of no kind": (GOOD + '[conflict]\nrule = "best"\n', "conflict.rule: 'best'"),
    # ------- of later keys
    "a rule as a table": (GOOD + "[rule]\nmatch = 'a.org'\n", "rule: {'match': 'a.org'} is not allowed"),
    "a rule for nothing": (GOOD + "[[rule]]\npolicy = 'favor'\n", "rule[0].match is missing"),
    "a rule for no host": (GOOD + "[[rule]]\nmatch = []\ntrust = 1\n", "rule[0].match: [] is not allowed"),
    "a rule that gives nothing": (GOOD + "[[rule]]\nmatch = 'a.org'\n", "with policy, trust or both"),
    "a rule for nobody's policy": (GOOD + "[[rule]]\nmatch = 'a.org'\npolicy = 'fav'\n", "rule[0].policy: 'fav'"),
    "a rule of too much trust": (GOOD + "[[rule]]\nmatch = 'a.org'\ntrust = 5\n", "rule[0].trust: 5"),
    "a rule with a broken pattern": (GOOD + "[[rule]]\nmatch = '^https://(a'\ntrust = 1\n", "rule[0].match:"),
    "a switch as a table": (GOOD + "[switch]\nto = 'favor'\n", "allowed: a list, each a table"),
    "a switch that only counts": (GOOD + "[[switch]]\nwhen = { count = 3 }\nto = 'favor'\n", "switch[0].when"),
    "a switch with two kinds of condition": (
        GOOD + "[[switch]]\nwhen = { discovered = 0.5, text = 'x' }\nto = 'distrust'\n",
        "only with count, without other conditions",
    ),
    "a policy that extends itself": (GOOD + "[policies.a]\nextends = 'a'\n", "this is a cycle: a -> a"),
    "a policy that extends nobody": (GOOD + "[policies.a]\nextends = 'favour'\n", "policies.a.extends: 'favour'"),
    "a policy as a text": (GOOD + "[policies]\ndefault = 'favor'\n", "policies.default: 'favor'"),
    "policies as a list": (GOOD + "[[policies]]\nname = 'favor'\n", "one table per policy, such as [policies.favor]"),
    "a seed with trust": (GOOD.replace('["http://127.0.0.1:1/"]', '[{ url = "http://a/", trust = 1 }]'), ".trust is"),
    "content of a third kind": (GOOD + "[content]\ntext = 'markdown'\n", "content.text: 'markdown'"),
    "an extractor for an extension": (
        GOOD + "[content.extractors]\npdf = 'a:b'\n",
        "content.extractors: 'pdf' is not allowed here (allowed: did you mean 'application/pdf'?",
    ),
    "an extractor for many types": (GOOD + "[content.extractors]\n'image/*' = 'a:b'\n", "(allowed: one media type"),
    "an extractor without a function": (
        GOOD + "[content.extractors]\n'application/pdf' = 'my_pdf'\n",
        """content.extractors.'application/pdf': 'my_pdf' is not allowed here (allowed: a function, such as "my_""",
    ),
    "a CSS selector that is an XPath": (GOOD + "[change]\nignore = ['//div']\n", "change.ignore[0]: '//div'"),
    "a CSS selector of Scrapy": (GOOD + "[change]\nselect = ['a::text']\n", "change.select[0]: 'a::text'"),
    "a CSS selector outside a list": (GOOD + "[change]\nselect = 'main'\n", "change.select: 'main'"),
    "noise of no kind": (GOOD + "[change]\nignore_kinds = ['clocks']\n", "ignore_kinds[0]: 'clocks'"),
    "a mistyped key of a policy's changes": (GOOD + "[policies.favor.change]\nselct = ['a']\n", "did you mean select?"),
    "a change in percent": (GOOD + "[change]\nmin_change = '5%'\n", "change.min_change: '5%'"),
    "a resemblance in percent": (GOOD + "[duplicates]\nresemblance = 90\n", "duplicates.resemblance: 90"),
    "no number": (GOOD + "[policies.default]\ntrust = nan\n", "policies.default.trust: nan"),
    "a period in months": (GOOD + "[cycle]\nperiod = '1mo'\n", "cycle.period: '1mo'"),
    "a day of the calendar for a duration": (GOOD + "[changes]\nkeep = 2026-01-01\n", "changes.keep:"),
    "half a page of budget": (GOOD + "[cycle]\ncapacity_pages_per_period = 1.5\n", "pages_per_period: 1.5"),
    "look-ahead": (GOOD + "[policies.default]\ndeny = ['(?!x)']\n", "because of its look-around"),
    "a topic of nothing": (GOOD + "[policies.default]\ntopic = { query = '' }\n", "a text that is not empty"),
    "a weight of no score": (GOOD + "[policies.default]\nscore = { pagerang = 1 }\n", "did you mean pagerank?"),
    "nothing to accept": (GOOD + "[politeness]\naccept = []\n", "at least one media type"),
    "quotes of a word processor": (GOOD.replace('"good"', "\u201cgood\u201d"), "not valid TOML"),
    "a comment of another language": (GOOD + "// mine\n", "not valid TOML"),
    "a ranking of no kind": (GOOD + '[ranking]\nevery = "often"\n', "ranking.every: 'often'"),
}

# ----------------------------------------------------------------- command lines

LINES: dict[str, Mistake] = {
    "no such command": Mistake("statsu", "No such command 'statsu'"),
    "no such option": Mistake("status --stor x", "--stor"),
    "an option without its value": Mistake("status --store", "--store"),
    "no collection": Mistake("crawl", "Missing argument 'COLLECTION'. (`webfountain crawl --help` has an example)"),
    "a folder for a collection": Mistake("crawl folder", "folder: cannot be read"),
    "no such file": Mistake("crawl absent.toml", "absent.toml: there is no such file (examples to copy are in "),
    "two collections": Mistake("crawl good.toml good.toml", "unexpected extra argument"),
    "pages in words": Mistake("crawl good.toml --max-pages ten", "--max-pages"),
    "no pages": Mistake("crawl good.toml --max-pages 0", "--max-pages"),
    "seconds below zero": Mistake("crawl good.toml --max-seconds -1", "--max-seconds"),
    "no ants": Mistake("crawl good.toml --ants 0", "--ants"),
    "a setting without a value": Mistake("crawl good.toml -s LOG_LEVEL", "-s 'LOG_LEVEL'"),
    "a setting that is none": Mistake("crawl good.toml -s WEBFOUNTAIN_HANDS=3", "did you mean WEBFOUNTAIN_HAND"),
    "a setting out of range": Mistake("crawl good.toml -s WEBFOUNTAIN_HAND=0", "WEBFOUNTAIN_HAND: '0'"),
    "a report into nowhere": Mistake("crawl good.toml --report absent/r.json", "--report 'absent/r.json'"),
    "a store of no kind": Mistake("status --store sqlite:x", "use rocksdb:///absolute/folder"),
    "a store as a path": Mistake("status --store ./store", "use rocksdb:///absolute/folder"),
    "no store": Mistake("status --store rocksdb://absent", "there is no folder absent"),
    "no store beside the demo's": Mistake(
        "pages --store rocksdb://absent", "the demo's store is --store rocksdb://.webfountain-demo"
    ),
    "a folder without a store": Mistake("status --store rocksdb://folder", "there is no store here", 1),
    "a store in memory": Mistake("pages --store memory:", "nothing to read"),
    "a store in a home": Mistake("status --store rocksdb://~/news", "~ is not expanded here (did you mean rocksdb:///"),
    "a store that is a file": Mistake("status --store rocksdb://good.toml", "good.toml is a file, not the folder of a"),
    "a server's database by name": Mistake(
        "status --store redis://127.0.0.1:1/news", "the database 'news' is not a number"
    ),
    "a server that is not there": Mistake("status --store redis://127.0.0.1:1/0", "127.0.0.1:1", 1),
    "a server's parameter of no kind": Mistake(
        "status --store redis://127.0.0.1:1/0?shard=3", "shard is not a parameter"
    ),
    "a state of no kind": Mistake("pages --state done", "'done' is not one of"),
    "a site that is not known": Mistake("pages --site https://example.net", "webfountain sites"),
    "a site without a scheme": Mistake("forget --site example.org", "did you mean https://example.org/?"),
    "a site that is a page": Mistake("forget --site https://example.org/x", "is not a site"),
    "forget nothing": Mistake("forget", "give either a URL or --site"),
    "a page that is not known": Mistake("cat https://example.org/never", "is not known here"),
    "a page without a copy": Mistake("cat https://example.org/waiting", "has no copy"),
    "cat without a scheme": Mistake("cat example.org/", "did you mean https://example.org/?"),
    "now out of nothing": Mistake("now", "Missing argument"),
    "now without a scheme": Mistake("now example.org/x", "did you mean https://example.org/x?"),
    "now by mail": Mistake("now mailto:me@example.org", "is not an absolute"),
    "a time in words": Mistake("texts --since yesterday", "'yesterday' is not a time"),
    "a day that is none": Mistake("texts --since 2026-02-30", "'2026-02-30' is not a time"),
    "a cursor of another store": Mistake("texts --since 00000000-1", "is not a cursor of this store's change log"),
    "a list's cursor of another store": Mistake("changes --since 0000000x-1", "is not a time"),
    "changes of no cursor": Mistake("changes --since 00000000-1", "is not a cursor of this store's change log"),
    "explain from an unknown page": Mistake(
        "explain https://example.org/y --from https://example.org/never --collection good.toml",
        "the page is not known here",
    ),
    "policy of no kind": Mistake("policy chek good.toml", "No such command 'chek'"),
    "policy check of nothing": Mistake("policy check", "Missing argument"),
    "policy check against nothing": Mistake(
        "policy check good.toml --against rocksdb://absent", "there is no folder absent"
    ),
    "export of nothing": Mistake("export out.jsonl --store rocksdb://absent", "there is no folder absent"),
    "export into nowhere": Mistake("export absent/out.jsonl", "absent", 2),
    "import of nothing": Mistake("import absent.jsonl --store rocksdb://new", "absent.jsonl"),
    "import of a policy file": Mistake("import good.toml --store rocksdb://new", "good.toml"),
    "import into a store": Mistake("import good.toml --store rocksdb://store", "", 2),
    "demo into another's folder": Mistake(
        "demo --store rocksdb://folder", "folder contains files that the demo did not make"
    ),
    "demo of fewer pages than sites": Mistake("demo --sites 9 --pages 3", "--sites 9"),
    "rank of nothing": Mistake("rank", ""),
    # ------- the service, search, notes
    "crawl of a URL": Mistake("crawl https://example.org/", "https://example.org/ is a URL; give a policy file that"),
    "a log level of no kind": Mistake("crawl good.toml -s LOG_LEVEL=LOUD", "(allowed: CRITICAL, ERROR, WARNING, INFO"),
    "a setting in small letters": Mistake("crawl good.toml -s webfountain_hand=3", "did you mean WEBFOUNTAIN_HAND?"),
    "a report onto a folder": Mistake("crawl good.toml --report folder", "--report 'folder' is a folder"),
    "a seed and its policy in a line": Mistake(
        "policy check lines.toml", "policies.txt:2: 'https://example.org/ favor' is not one URL"
    ),
    "a report onto the output": Mistake("crawl good.toml --report output", "'output' is a device or a pipe, not a"),
    "a report onto a pipe": Mistake("crawl good.toml --report pipe", "'pipe' is a device or a pipe, not a file"),
    "export to the output": Mistake("export output --force", "output is a device or a pipe, not a file"),
    "a report below a file": Mistake("crawl good.toml --report good.toml/r.json", "good.toml is not a folder"),
    "crawl served nowhere": Mistake("crawl good.toml --serve nowhere", "listen 'nowhere' is not an address"),
    "serve without a port": Mistake("serve --listen 127.0.0.1", "is not an address (allowed: 127.0.0.1:9411"),
    "serve to everybody": Mistake("serve --listen 0.0.0.0:0", "tokens are required (--tokens FILE)"),
    "serve below no path": Mistake("serve --base-path crawl", "base_path 'crawl' is not a path (allowed: /name"),
    "serve without its tokens": Mistake("serve --tokens absent", "--tokens absent: No such file"),
    "serve a store in memory": Mistake("serve --store memory:", "nothing to read"),
    "serve a store of no kind": Mistake("serve --store ./store", "use rocksdb:///absolute/folder"),
    "serve two stores of one name": Mistake("serve --store rocksdb://store --store rocksdb://store", "occurs twice"),
    "serve by a policy file": Mistake("serve --config good.toml", "good.toml: collection is an unknown key (allowed:"),
    "serve by a mistyped key": Mistake(
        "serve --config key.toml", "key.toml: lisen is an unknown key (did you mean list"
    ),
    "serve by a text": Mistake(
        "serve --config text.toml", "text.toml: listen: '127.0.0.1:0' is not allowed (allowed: a list"
    ),
    "serve a store without a URL": Mistake("serve --config store.toml", "store.toml: stores[0].url is missing"),
    "serve by no TOML": Mistake("serve --config broken.toml", "broken.toml: not valid TOML"),
    "serve two stores of one name by a file": Mistake("serve --config twice.toml", "the name 'n' occurs twice"),
    "models without a store": Mistake("mcp --store rocksdb://absent", "there is no folder absent"),
    "models without a port": Mistake("mcp --listen 127.0.0.1", "is not an address"),
    "search without an index": Mistake("search words", "there is no index (`webfountain index --follow` or"),
    "search for nothing": Mistake("search", "Missing argument"),
    "search for no results": Mistake("search --limit 0 words", "--limit"),
    "an index in memory": Mistake("index --store memory:", "a store on a server has no folder"),
    "block without a scheme": Mistake("block example.org", "did you mean https://example.org/?"),
    "block until the past": Mistake("block https://example.org/ --until 2001-01-01", "is not a time in the future"),
    "block nothing until a time": Mistake("block --until 2099-01-01", "--until needs a PREFIX"),
    "unblock what is not blocked": Mistake("unblock https://example.org/", "`webfountain block` lists the blocks"),
    "drain nobody": Mistake("drain nobody", "no process crawls this store now"),
    "a goal without a unit": Mistake("plan show --goal obsolete=2", "is not a goal (allowed: obsolete=2% or"),
    "a plan of nothing": Mistake("plan solve absent.toml", "absent.toml: cannot be read: No such file"),
    "take over from a folder": Mistake("take-over rocksdb://store x", "is not a server of scrapy-redis"),
    "take over from nobody": Mistake("take-over redis://127.0.0.1:1/0 x", "the server cannot be used", 1),
    "export to a dash": Mistake("export -", "'-' is not a file name (the file appears only when it is complete"),
    "import of a folder": Mistake("import folder --store rocksdb://new", "folder is not a file"),
    "check of a folder": Mistake("check --store rocksdb://folder", "there is no store here; a crawl creates one"),
    "changes of a host": Mistake("changes --site example.org", "did you mean https://example.org/?"),
    "pages of a host": Mistake("pages --site example.org", "did you mean https://example.org/?"),
    "a copy in two formats": Mistake("cat https://example.org/ --markdown --format html", "give only one of the two"),
    "signatures into nowhere": Mistake("duplicates export absent/x", "absent is not a folder that can be written"),
}


SERVICE = {
    "key.toml": "lisen = []\n",
    "text.toml": "listen = '127.0.0.1:0'\n",
    "store.toml": "[[stores]]\nname = 'n'\n",
    "broken.toml": "listen = [\n",
    "twice.toml": "[[stores]]\nname = 'n'\nurl = 'rocksdb://store'\n" * 2,
}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder as somebody has it who begins: a good file, a folder of his own, a small store."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "good.toml").write_text(GOOD)
    for name, text in SERVICE.items():
        (folder / name).write_text(text)
    (folder / "lines.toml").write_text(
        PUBLIC.replace('seeds = ["https://example.org/"]', 'seeds_file = "policies.txt"')
    )
    (folder / "output").symlink_to("/proc/self/fd/1")  # as /dev/stdout, which a fault would replace
    os.mkfifo(folder / "pipe")
    (folder / "policies.txt").write_text("https://example.org/a  # a comment\nhttps://example.org/ favor\n")
    (folder / "folder").mkdir()
    (folder / ".webfountain-demo").mkdir()
    (folder / "folder" / "thesis.txt").write_text("all of it")
    store = open_store(f"rocksdb://{folder / 'store'}", collection="good", period_s=86_400.0)
    urls = ["https://example.org/", "https://example.org/waiting"]
    store.queues.discover([Link(url, site_of(url), fingerprint(url)) for url in urls], at=1.0)
    store.close()
    before = Path.cwd()
    os.chdir(folder)
    yield folder
    os.chdir(before)


def complaint(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Status and the one line of a command line, run in this process."""
    status = cli.main(list(arguments))
    err = capfd.readouterr().err
    assert "Traceback" not in err
    assert err.count("\n") == 1, err
    assert err.startswith("webfountain: ")
    return status, err


@pytest.mark.parametrize("name", FILES)
def test_a_wrong_policy_file_is_one_line_that_names_file_key_and_value(
    desk: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    text, says = FILES[name]
    (desk / "wrong.toml").write_text(text)
    status, line = complaint(capfd, "policy", "check", "wrong.toml")
    assert status == 2
    assert line.startswith("webfountain: wrong.toml: ")
    assert says in line
    assert "secret" not in line


@pytest.mark.parametrize("name", LINES)
def test_a_wrong_command_line_is_one_line_with_the_right_status(
    desk: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    arguments, says, expected = LINES[name]
    monkeypatch.setenv("WEBFOUNTAIN_STORE", f"rocksdb://{desk / 'store'}")
    status, line = complaint(capfd, *arguments.split())
    assert says in line
    assert status == expected
    assert not (desk / "absent").exists(), "looking makes nothing"


def test_there_are_at_least_two_hundred_mistakes() -> None:
    assert len(FILES) + len(LINES) + len(DENIED) >= 200


# ----------------------------------------------------------------------- streams


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [("pages >&-", {}), ("pages 2>&- >&-", {}), ("pages", {"PYTHONIOENCODING": "ascii"})],
    ids=["a closed output", "all closed", "an output without umlauts"],
)
def test_output_that_cannot_be_written_as_it_is_ends_without_a_traceback(
    tmp_path: Path, arguments: str, environment: dict[str, str]
) -> None:
    url = "https://example.org/?\u00fc=\u00fc"
    store = open_store(f"rocksdb://{tmp_path / 'store'}", collection="good", period_s=86_400.0)
    store.queues.discover([Link(url, site_of(url), fingerprint(url))], at=1.0)
    store.close()
    ended = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m webfountain {arguments}"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "WEBFOUNTAIN_STORE": "rocksdb://store", **environment},
        capture_output=True,
        timeout=240,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ended.stdout.endswith(b"https://example.org/?\\xfc=\\xfc\n" if environment else b"")


# ------------------------------------------------------------------- permissions

DENIED: dict[str, tuple[str, str]] = {
    "status of another's store": ("status --store rocksdb://mine", "permission denied"),
    "pages of another's store": ("pages --store rocksdb://mine", "permission denied"),
    "texts of another's store": ("texts --store rocksdb://mine", "permission denied"),
    "crawl into another's store": (
        "crawl good.toml --store rocksdb://mine",
        "(mine belongs to root: run the command as",
    ),
    "crawl into another's folder": ("crawl good.toml --store rocksdb://open/new", "(open belongs to root: run the"),
    "now to another's store": ("now http://127.0.0.1:1/ --store rocksdb://mine", "permission denied"),
    "a policy file of another": ("policy check secret.toml", "secret.toml: cannot be read: permission denied"),
    "export into another's folder": (
        "export mine/out.jsonl --store rocksdb://open",
        "(mine belongs to root: run the command as",
    ),
}


ANOTHER = """
import encodings.idna, encodings.utf_8_sig, os, pkgutil, sys, webfountain
import scrapy.crawler, twisted.internet.asyncioreactor
for module in pkgutil.walk_packages(webfountain.__path__, "webfountain."):
    if not module.name.endswith("__main__"):
        __import__(module.name)
import pyarrow.parquet
from webfountain.cli import main
user = int(sys.argv[1])
os.setgroups([])
os.setgid(user)
os.setuid(user)
sys.exit(main(sys.argv[2:]))
"""
"""A command line as another user; all is imported before, for the other need not be able to read this checkout."""


@pytest.mark.parametrize("name", DENIED)
def test_a_file_of_another_user_is_one_line_that_names_the_user(name: str) -> None:
    arguments, says = DENIED[name]
    nobody = _another_user()
    with tempfile.TemporaryDirectory(prefix="webfountain-mistakes-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        (folder / "good.toml").write_text(GOOD)
        (folder / "secret.toml").write_text(GOOD)
        (folder / "secret.toml").chmod(0o600)
        open_store(f"rocksdb://{folder / 'mine'}", collection="good", period_s=86_400.0).close()
        (folder / "mine").chmod(0o700)
        open_store(f"rocksdb://{folder / 'open'}", collection="good", period_s=86_400.0).close()
        (folder / "open").chmod(0o755)
        ended = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", ANOTHER, str(nobody), *arguments.split()],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": "/nonexistent"},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
    assert ended.returncode in (1, 2), ended.stderr
    assert ended.stderr.count("\n") == 1, ended.stderr
    assert ended.stderr.startswith("webfountain: ")
    assert says in ended.stderr.lower()


def _another_user() -> int:
    """Somebody who is not us; skips, loudly, where there is none or we may not be him."""
    try:
        other = pwd.getpwnam("nobody").pw_uid
    except KeyError:
        pytest.skip("NOT RUN: this test needs a user named nobody")
    if os.geteuid() != 0:
        pytest.skip("NOT RUN: only root can try what another user sees; run the tests as root once")
    return other
