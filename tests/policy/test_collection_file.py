"""Reading policy files: what is accepted, and the one line that says what is wrong."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policy.collections import FILE, collection_of
from webfountain.errors import PolicyError
from webfountain.policy.collection import describe, notes_on
from webfountain.policy.collection_file import PolicyPoll, parse_collection, read_collection
from webfountain.policy.judge import Judge
from webfountain.policy.switches import PageFacts
from webfountain.policy.tables import SignalsTable, TopicTable

PUBLIC = '[politeness]\nuser_agent = "bot/1 (+https://example.org/)"\n'
SEEDS = 'name = "test"\nseeds = ["https://a.example/"]\n'
POLICIES = Path(__file__).resolve().parents[2] / "policies"
FILES = sorted(POLICIES.glob("*.toml"))
HEAD = """[collection]
name = "NAME"
seeds_file = "seeds.txt"
[politeness]
user_agent = "bot/1 (+https://example.org/bot)"
"""


def refusal(tables: str, *, collection: str = SEEDS, head: str = PUBLIC) -> str:
    """The text of the error that a policy file raises, without the file's name."""
    with pytest.raises(PolicyError) as caught:
        parse_collection(f"[collection]\n{collection}{head}{tables}", FILE)
    text = str(caught.value)
    assert text.startswith(f"{FILE}: ")
    assert "\n" not in text
    assert caught.value.exit_status == 2
    return text.removeprefix(f"{FILE}: ")


def test_what_is_not_written_has_the_promised_default() -> None:
    collection = collection_of()
    politeness = collection.politeness
    assert (politeness.min_delay, politeness.delay_factor, politeness.max_delay) == (1.0, 10, 300.0)
    assert (politeness.concurrency, politeness.per_ip) == (1, True)
    assert (collection.scope, collection.limits.depth, collection.change.min_change) == ("site", 20, 0.05)
    assert (collection.repository.keep, collection.network.allow_private) == ("newest", False)
    assert collection.policy.allow == collection.policy.deny == ()


def test_all_keys_of_this_version_are_accepted_and_have_the_written_value() -> None:
    collection = parse_collection(
        r"""
        [collection]
        name = "stream-docs"
        seeds = ["https://kafka.example.org", { url = "https://flink.example.org/", policy = "default" }]
        scope = "domain"
        policy = "default"
        [collection.limits]
        depth = 7
        pages = 1_000_000
        domain_share = 0.05
        [politeness]
        user_agent = "webfountain/1.0 (+https://example.org/bot)"
        min_delay = "500ms"
        delay_factor = 2
        max_delay = "2m"
        concurrency = 2
        per_ip = false
        timeout = "5s"
        max_bytes = "3MB"
        min_bytes_per_second = 0
        accept = ["text/html"]
        [network]
        allow_private = true
        [change]
        min_change = 0
        [repository]
        keep = "all"
        max_bytes = "1.5GB"
        [cycle]
        periods = 28
        period = "1h"
        fastest = "10s"
        strategy = 3
        capacity_pages_per_period = 50_000
        [signals]
        importance = true
        lastmod = false
        [discovery]
        nofollow = false
        sitemaps = false
        max_url_length = 500
        max_repeated_segments = 5
        calendar_years = 1
        [policies.default]
        allow = ['/docs/']
        deny = ['\.(zip|tgz|jar)$']
        score = { pagerank = 0.6, trust = 0.3, backlinks = 0, topic = 0.5, location = 0.1 }
        topic = { query = "stream processing", min_similarity = 0.2 }
        revisit = { min_interval = "15m", max_interval = "180d" }
        [[switch]]
        when = { text = "casino", count = 3, status = 200, language = ["en"], similarity_below = 0.1 }
        to = "distrust"
        also = "discovered"
        [[switch]]
        when = { language_not = ["en", "de"], similarity = 0, duplicates = 0.5 }
        to = "favor"
        [duplicates]
        detect = true
        [conflict]
        rule = "most-trusted"
        """,
        FILE,
    )
    assert (collection.limits.pages, collection.limits.domain_share) == (1_000_000, 0.05)
    assert collection.policy.score is not None
    assert collection.policy.score.weights == {"pagerank": 0.6, "trust": 0.3, "topic": 0.5, "location": 0.1}
    assert collection.policy.topic == TopicTable("stream processing", 0.2)
    assert [switch.also for switch in collection.tables.switch] == ["discovered", "linked"]
    assert collection.conflict == "most-trusted"
    assert list(collection.seeds()) == ["https://kafka.example.org/", "https://flink.example.org/"]
    assert collection.limits.depth == 7
    assert (collection.politeness.min_delay, collection.politeness.max_delay) == (0.5, 120.0)
    assert (collection.politeness.max_bytes, collection.repository.max_bytes) == (3_000_000, 1_500_000_000)
    assert (collection.cycle.period_s, collection.cycle.fastest_s, collection.cycle.cycle_s) == (3600, 10, 28 * 3600)
    assert collection.cycle.strategy == 3
    assert collection.policy.deny[0].search("https://a/b.zip")
    assert (collection.policy.revisit.min_interval, collection.policy.revisit.max_interval) == (900.0, 180 * 86_400.0)
    signals = collection.signals
    assert not signals.lastmod
    assert signals.importance
    assert not collection.discovery.nofollow
    json.dumps(describe(collection))


@pytest.mark.parametrize("name", SignalsTable.__struct_fields__)
def test_each_signal_is_switched_alone(name: str) -> None:
    usual = collection_of().signals
    other = collection_of(f"[signals]\n{name} = {str(not getattr(usual, name)).lower()}").signals
    assert [key for key in SignalsTable.__struct_fields__ if getattr(usual, key) != getattr(other, key)] == [name]
    assert describe(collection_of())["signals"][name] is getattr(usual, name)


def test_the_signals_that_gained_nothing_are_off_unless_asked_for() -> None:
    usual = collection_of().signals
    assert [name for name in SignalsTable.__struct_fields__ if not getattr(usual, name)] == ["importance"]


def test_bucket_0_stands_for_a_96th_of_a_period_unless_set() -> None:
    assert collection_of().cycle.fastest_s == 900
    assert collection_of('[cycle]\nperiod = "1s"').cycle.fastest_s == pytest.approx(1 / 96)


def test_the_robots_name_is_the_first_token_of_the_user_agent() -> None:
    assert collection_of().politeness.robots_token == "webfountain"


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ('min_delay = "3x"', "politeness.min_delay: '3x' is not allowed (allowed: a number with ms, s, m"),
        ("min_delay = 3", "politeness.min_delay: 3 is not allowed (allowed: a number with ms"),
        ('min_delay = "-1s"', "politeness.min_delay: '-1s'"),
        ('timeout = "0s"', "politeness.timeout: '0s' is not allowed"),
        ('max_delay = "1ms"', "politeness.max_delay: '1ms' is not allowed here (allowed: politeness.min_delay or mo"),
        ("concurrency = 0", "politeness.concurrency: 0 is not allowed (allowed: a whole number, 1 to 100)"),
        ('concurrency = "2"', "politeness.concurrency: '2' is not allowed (allowed: a whole number, 1 to 100)"),
        ("concurrency = 1.5", "politeness.concurrency: 1.5 is not allowed"),
        ("delay_factor = nan", "politeness.delay_factor: nan is not allowed (allowed: a number, 0 to 1000)"),
        ("delay_factor = inf", "politeness.delay_factor: inf is not allowed"),
        ('max_bytes = "10"', "politeness.max_bytes: '10' is not allowed (allowed: a number with kB, MB, GB or TB"),
        ('max_bytes = "0.0001kB"', "politeness.max_bytes: '0.0001kB' is not allowed"),
        ("per_ip = 1", "politeness.per_ip: 1 is not allowed (allowed: true or false)"),
        ('accept = ["text/html", 2]', "politeness.accept[1]: 2 is not allowed (allowed: a text)"),
        ('mindelay = "1s"', "politeness.mindelay is an unknown key (did you mean min_delay? allowed: user_agent, "),
        ("[politness]", "politness is an unknown key (did you mean politeness? allowed: collection, "),
        ("[cycle]\nstrategy = 4", "cycle.strategy: 4 is not allowed (allowed: 1 | 2 | 3 | 'fountain')"),
        ('[cycle]\nfastest = "3d"', "cycle.fastest: '3d' is not allowed here (allowed: cycle.period at most: 1d)"),
        (
            "[signals]\nweekdays = true",
            "signals.weekdays was removed, because it had no effect; delete the line",
        ),
        (
            "[signals]\nhistory = true",
            "signals.history was removed, because the crawl always uses it; delete the line",
        ),
        ("[signals]\nlastmod = 1", "signals.lastmod: 1 is not allowed (allowed: true or false)"),
        ("[signals]\nlastmods = true", "signals.lastmods is an unknown key (did you mean lastmod? allowed: "),
        ("[cycle]\nsiblings = true", "cycle.siblings is an unknown key"),
        ('[repository]\nkeep = "most"', "repository.keep: 'most' is not allowed (allowed: 'all' | 'newest')"),
        ("[change]\nmin_change = 1.5", "change.min_change: 1.5 is not allowed (allowed: a number, 0 to 1)"),
        ("[policies.default]\ndeny = ['(']", "policies.default.deny[0]: '(' is not a Python regular expression: "),
        ("[policies.default]\ndeny = '('", "policies.default.deny: '(' is not allowed (allowed: a list"),
        (
            '[policies.default]\nrevisit = { min_interval = "3d", max_interval = "1h" }',
            "policies.default.revisit.max_interval: '1h' is not allowed here (allowed: min_interval or more: 3d)",
        ),
        ("[policies.favor]\ntrust = 2", "policies.favor.trust: 2 is not allowed (allowed: a number, 0 to 1)"),
        (
            "[policies.mine]\ndampning = 1",
            "policies.mine.dampning is an unknown key (did you mean ",
        ),
        ("[policies.mine]\nrevisit = { min = 1 }", "policies.mine.revisit.min is an unknown key"),
        ("[policies.mine]\notherwise = 'x'", "policies.mine.otherwise: 'x' is not allowed here (allowed: a policy: "),
        ("[policies]\nmine = 3", "policies.mine: 3 is not allowed here (allowed: a table)"),
        (
            "[policies.favor]\nscore = { pagrank = 1 }",
            "policies.favor.score.pagrank is an unknown key (did you mean pager",
        ),
        (
            "[policies.favor]\nscore = { trust = -1 }",
            "policies.favor.score.trust: -1 is not allowed (allowed: a number, 0",
        ),
        (
            "[policies.favor]\nscore = { trust = 0 }",
            "policies.favor.score: {} is not allowed here (allowed: at least one weight",
        ),
        (
            "[policies.favor]\nscore = { topic = 1 }",
            "policies.favor.score.topic: 1.0 is not allowed here (allowed: only with ",
        ),
        ("[policies.favor]\ntopic = { min_similarity = 1 }", "policies.favor.topic.query is missing (required)"),
        ("[[switch]]\nwhen = { status = 99 }\nto = 'favor'", "switch[0].when.status: 99 is not allowed (allowed: "),
        ("[[switch]]\nwhen = { status = 200 }\nto = 'x'", "switch[0].to: 'x' is not allowed here (allowed: a policy: "),
        (
            "[[switch]]\nwhen = { count = 2 }\nto = 'favor'",
            "switch[0].when: {} is not allowed here (allowed: at least one",
        ),
        (
            "[[switch]]\nwhen = { similarity_below = 0.1 }\nto = 'distrust'",
            "switch[0].when.similarity_below: 0.1 is not allowed here (allowed: only if a policy has a topic",
        ),
        (
            "[[switch]]\nwhen = { language = ['German'] }\nto = 'favor'",
            "switch[0].when.language[0]: 'German' is not allo",
        ),
        (
            "[[switch]]\nwhen = { status = 404 }\nto = 'favor'\nalso = 'all'",
            "switch[0].also: 'all' is not allowed (allo",
        ),
        (
            "[[switch]]\nwhen = { discovered = 0.5, status = 404 }\nto = 'distrust'",
            "switch[0].when.discovered: 0.5 is not allowed here (allowed: only with count, without other conditions",
        ),
        (
            "[conflict]\nrule = 'last'",
            "conflict.rule: 'last' is not allowed (allowed: 'first' | 'least-trusted' | 'most",
        ),
        ("[goal]\nobsolete = 2", "goal.obsolete: 2 is not allowed (allowed: a number, 0.0001 to 0.99)"),
        ('[goal]\nlonger_than = "7d"', "goal.obsolete is missing (required)"),
        ('[goal]\nobsolete = 0.1\nolder = "7d"', "goal.older is an unknown key (allowed: obsolete, longer_than"),
        (
            "[goal]\nobsolete = 0.1",
            "goal.obsolete: 0.1 is not allowed here (allowed: only with cycle.capacity_pages_per_",
        ),
        (
            "[goal]\nobsolete = 0.1\n[cycle]\ncapacity_pages_per_period = 9\nstrategy = 2",
            'goal.obsolete: 0.1 is not allowed here (allowed: only with cycle.strategy = "fountain"',
        ),
        ("[cycle", "not valid TOML: "),
    ],
)
def test_a_wrong_key_or_value_is_named_with_what_is_allowed(tables: str, expected: str) -> None:
    assert refusal(tables).startswith(expected)


@pytest.mark.parametrize(
    ("collection", "expected"),
    [
        ('seeds = ["https://a.example/"]\n', "collection.name is missing (required)"),
        ('name = "a/b"\nseeds = ["https://a.example/"]\n', "collection.name: 'a/b' is not allowed"),
        ('name = "x"\n', "collection.seeds is empty"),
        ('name = "x"\nseeds = ["a.example"]\n', "collection.seeds[0]: 'a.example' is not an absolute http or https"),
        ('name = "x"\nseeds = ["https://u:p@a.example/"]\n', "collection.seeds[0]: 'https://***@a.example/' is not"),
        ('name = "x"\nseeds = [{ url = "ftp://a/" }]\n', "collection.seeds[0].url: 'ftp://a/' is not"),
        ('name = "x"\nseeds = [{ uri = "http://a/" }]\n', "collection.seeds[0].uri is an unknown key (did you mean "),
        (
            'name = "x"\nseeds = [{ url = "https://a.example/", policy = "mine" }]\n',
            "collection.seeds[0].policy: 'mine' is not allowed here",
        ),
        (SEEDS + 'policy = "mine"\n', "collection.policy: 'mine' is not allowed here"),
        (SEEDS + 'scope = "host"\n', "collection.scope: 'host' is not allowed (allowed: 'any' | 'domain' | 'site')"),
        (SEEDS + "limits.pages = 0\n", "collection.limits.pages: 0 is not allowed (allowed: a whole number, 1 or more"),
        (
            SEEDS + "limits.domain_share = 0\n",
            "collection.limits.domain_share: 0 is not allowed (allowed: a number above",
        ),
        (SEEDS + "limits.depth = -1\n", "collection.limits.depth: -1 is not allowed (allowed: a whole number, 0 to "),
        ('name = "x"\nseeds_file = "absent.txt"\n', "collection.seeds_file: 'policies/absent.txt' cannot be read: "),
        ('name = "x"\nseeds = ["http://127.0.0.1/"]\n', "network.allow_private: False refuses the seed 'http://127."),
        ('name = "x"\nseeds = ["http://[::1]/"]\n', "network.allow_private: False refuses"),
        ('name = "x"\nseeds = ["http://localhost/"]\n', "network.allow_private: False refuses"),
    ],
)
def test_a_wrong_collection_or_seed_is_named(collection: str, expected: str) -> None:
    assert refusal("", collection=collection).startswith(expected)


def test_a_crawl_of_public_addresses_without_a_contact_is_refused() -> None:
    assert refusal("", head="").startswith("politeness.user_agent: 'webfountain/1.0' gives no contact")
    assert "no contact" in refusal('user_agent = "bot/1 (see our site)"', head="[politeness]\n")


@pytest.mark.parametrize("agent", ["b/1 (+https://example.org/bot)", "b/1 (ops@example.org)", "b/1 http://e.org"])
def test_a_url_or_an_address_is_a_contact(agent: str) -> None:
    parse_collection(f'[collection]\n{SEEDS}[politeness]\nuser_agent = "{agent}"', FILE)


def test_a_private_crawl_needs_no_contact_unless_its_scope_lets_it_out() -> None:
    private = 'name = "x"\nseeds = ["http://127.0.1.1:8765/", "http://[fd00::1]/", "http://10.1.2.3/"]\n'
    allowed = "[network]\nallow_private = true\n"
    parse_collection(f"[collection]\n{private}{allowed}", FILE)
    assert "no contact" in refusal("", collection=private + 'scope = "any"\n', head=allowed)
    assert "no contact" in refusal("", collection=SEEDS, head=allowed)


def test_a_seeds_file_lies_beside_the_policy_file_and_may_have_comments_and_blank_lines(tmp_path: Path) -> None:
    (tmp_path / "seeds.txt").write_text("\ufeff# ours\nhttps://b.example\n\n  https://c.example/x#top  \n", "utf-8")
    path = tmp_path / "mine.toml"
    path.write_text(f'[collection]\n{SEEDS}seeds_file = "seeds.txt"\n{PUBLIC}', "utf-8")
    assert list(read_collection(path).seeds()) == ["https://a.example/", "https://b.example/", "https://c.example/x"]


def test_a_wrong_line_of_a_seeds_file_is_named_by_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "seeds.txt").write_text("# ours\nhttps://b.example\nmailto:me\n", "utf-8")
    with pytest.raises(PolicyError, match=r"seeds\.txt:3: 'mailto:me' is not an absolute http or https URL"):
        parse_collection(f'[collection]\nname = "x"\nseeds_file = "seeds.txt"\n{PUBLIC}', tmp_path / "mine.toml")


@pytest.mark.parametrize("line", ["x" * 5000, "x " * 5000, f"https://{'*' * 5000}.example/"])
def test_a_very_long_line_of_a_seeds_file_is_not_repeated_in_full(tmp_path: Path, line: str) -> None:
    (tmp_path / "seeds.txt").write_text(line)
    with pytest.raises(PolicyError, match=r"seeds\.txt:1") as raised:
        parse_collection(f'[collection]\nname = "x"\nseeds_file = "seeds.txt"\n{PUBLIC}', tmp_path / "mine.toml")
    assert len(str(raised.value)) < 500


def test_a_seeds_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "seeds.txt").write_bytes(b"https://b.example\n\xff\xfe")
    with pytest.raises(PolicyError, match=r"mine\.toml: collection\.seeds_file: '.*seeds\.txt' cannot be read"):
        parse_collection(f'[collection]\nname = "x"\nseeds_file = "seeds.txt"\n{PUBLIC}', tmp_path / "mine.toml")


def test_a_policy_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"absent\.toml: there is no such file \(examples to copy are in "):
        read_collection(tmp_path / "absent.toml")


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        ("[policies.Default]\ntrust = 1\n", "no page gets it (did you mean default?)"),
        ("[policies.mine]\ntrust = 1\n", "policies.mine: no seed, rule, switch or other policy names it"),
        (
            "[policies.default]\ndeny = ['/tmp/*']\n",
            "policies.default.deny: '/tmp/*': in a regular expression /* means",
        ),
        ("[[rule]]\nmatch = '/blog/*'\ntrust = 1\n", "rule[0].match: '/blog/*': in a regular expression /* means"),
        ("[policies.default]\nscore = { pagerank = 1 }\n", "pagerank: no effect without ranking.every"),
        ("[content.extractors]\n'application/pdf' = 'json:loads'\n", "politeness.accept leaves application/pdf out"),
        ("[content.extractors]\n'text/html' = 'absent.pdf:f'\n", "Python finds no module absent"),
    ],
)
def test_what_is_valid_and_without_effect_is_noted(tables: str, says: str) -> None:
    [note] = notes_on(collection_of(tables))
    assert says in note
    used = collection_of(
        "[policies.base]\nallow = ['/docs/.*', '/index/*$']\n[policies.favor]\nextends = 'base'\n",
        collection="policy = 'favor'\n",
    )
    assert not notes_on(used)


def test_a_description_has_units_and_what_is_derived() -> None:
    shown = describe(collection_of("[policies.default]\nallow = ['/docs/']"))
    assert shown["politeness"]["max_delay"] == "5m"
    assert shown["politeness"]["max_bytes"] == "10MB"
    assert shown["cycle"]["fastest"] == "15m"
    assert shown["collection"]["seeds"] == 1
    assert shown["policies"]["default"]["allow"] == ["/docs/"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=5) | st.sampled_from(["1s", "1MB"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["url", "depth", "x"]), inner),
    max_leaves=4,
)


KEYS = st.sampled_from(
    ["collection.seeds", "collection.limits", "politeness.min_delay", "politeness.accept", "policies", "network"]
) | st.sampled_from(
    ["policies.default", "policies.default.allow", "cycle.strategy", "cycle.fastest", "repository.max_bytes"]
)


def toml_of(value: object) -> str:
    """A value in TOML; None becomes an empty table."""
    if value is None:
        return "{}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml_of(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_of, value)) + "]"
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(each):08x}" for each in value) + '"'
    return str(value).lower()


def complaint_about(text: str) -> str:
    """The error's text, "" where there is none."""
    try:
        parse_collection(text, FILE)
    except PolicyError as error:
        return str(error)
    return ""


@given(KEYS, VALUES)
def test_any_value_under_any_key_gives_a_collection_or_one_line_that_names_the_file(key: str, value: object) -> None:
    agent = "bot (+http://example.org)"
    rest = {"collection.name": "x", "collection.seeds": ["https://a.example/"], "politeness.user_agent": agent}
    complaint = complaint_about("\n".join(f"{name} = {toml_of(each)}" for name, each in {**rest, key: value}.items()))
    assert not complaint or complaint.startswith(f"{FILE}: ")
    assert "\n" not in complaint


def test_a_file_that_begins_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    """As Notepad writes it."""
    path = tmp_path / "notepad.toml"
    path.write_bytes(b"\xef\xbb\xbf" + b'[collection]\r\nname = "x"\r\nseeds = ["http://127.0.0.1/"]\r\n')
    path.write_bytes(path.read_bytes() + b"[network]\r\nallow_private = true\r\n")
    assert read_collection(path).name == "x"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_example_is_a_valid_collection_named_like_its_file(path: Path) -> None:
    collection = read_collection(path)
    assert collection.name == path.stem
    assert describe(collection)["collection"]["seeds"] == len(list(collection.seeds())) > 0


def test_there_is_one_example_per_use() -> None:
    assert {path.stem for path in FILES} >= {
        "archive", "demo", "docs-site", "fixed-size", "monitor", "news", "topical", "trusted-seeds",
    }  # fmt: skip


def test_the_demonstration_needs_no_contact_because_it_never_leaves_the_machine() -> None:
    collection = read_collection(POLICIES / "demo.toml")
    assert collection.network.allow_private
    assert not collection.politeness.has_contact
    assert collection.cycle.period_s == 10


def test_the_archive_keeps_all_and_reads_its_seeds_from_the_file_beside_it() -> None:
    collection = read_collection(POLICIES / "archive.toml")
    assert collection.repository.keep == "all"
    assert collection.seeds_file == POLICIES / "archive-seeds.txt"
    assert next(collection.seeds()) == "https://example.org/"


def test_the_monitor_counts_any_byte_and_follows_no_link() -> None:
    collection = read_collection(POLICIES / "monitor.toml")
    assert collection.change.min_change == 0
    assert collection.limits.depth == 0


def test_the_topical_example_does_not_follow_what_is_off_its_topic() -> None:
    collection = read_collection(POLICIES / "topical.toml")
    judge = Judge(collection, year=2026)
    assert collection.policy.topic is not None
    aside = judge.switched("default", PageFacts(200, "gardening", language="en", similarity=0.01))
    assert aside is not None
    assert not judge.policies.rules[aside.to].table.follow
    assert judge.switched("default", PageFacts(200, "streams", language="en", similarity=0.3)) is None
    foreign = judge.switched("default", PageFacts(200, "Garten", language="de", similarity=0.3))
    assert foreign is not None
    assert foreign.to == "distrust"


def test_the_trusted_seeds_example_lets_trust_fade_and_takes_it_from_spam_with_all_that_it_brought() -> None:
    collection = read_collection(POLICIES / "trusted-seeds.toml")
    assert dict(collection.named_seeds())["https://www.good.example.org/"] == "favor"
    favor = collection.policies["favor"]
    assert (favor.trust, favor.dampening, favor.splitting, favor.spread) == (1.0, 0.85, True, "domain")
    assert (collection.policies["known-good"].splitting, collection.policies["known-good"].spread) == (True, "site")
    rule = collection.rules.find("https://www.library.example.edu/catalogue")
    assert rule is not None
    assert (rule.policy, rule.trust) == ("known-good", 0.8)
    [switch] = collection.tables.switch
    assert (switch.to, switch.also, collection.conflict) == ("distrust", "discovered", "most-trusted")
    assert collection.limits.domain_share == 0.05


def test_the_fixed_size_example_has_a_size_and_ranks_what_it_keeps() -> None:
    collection = read_collection(POLICIES / "fixed-size.toml")
    assert collection.limits.pages == 100_000
    assert collection.ranking.every == 86_400.0


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    (tmp_path / "seeds.txt").write_text("https://a.example/\n")
    write(tmp_path / "mine.toml")
    return tmp_path / "mine.toml"


def write(path: Path, more: str = "", *, name: str = "mine") -> None:
    """As an editor saves: a new file moved into the place of the old one."""
    new = path.with_suffix(".new")
    new.write_text(HEAD.replace("NAME", name) + more)
    os.replace(new, path)


def test_nothing_is_read_while_no_file_changes(policy: Path) -> None:
    poll = PolicyPoll(read_collection(policy))
    assert [poll.poll() for _ in range(3)] == [None] * 3


def test_an_edit_is_returned_once(policy: Path) -> None:
    poll = PolicyPoll(read_collection(policy))
    write(policy, "[policies.default]\ndeny = ['/x/']\n")
    edit = poll.poll()
    assert edit is not None
    assert edit.collection is not None
    assert edit.collection.policy.deny[0].pattern == "/x/"
    assert poll.poll() is None


def test_a_broken_edit_is_refused_in_one_line_and_a_mended_one_adopted(policy: Path) -> None:
    poll = PolicyPoll(read_collection(policy))
    write(policy, "[policies.default]\ndeny = ['(']\n")
    broken = poll.poll()
    assert broken is not None
    assert broken.collection is None
    assert broken.error is not None
    assert "policies.default.deny[0]" in broken.error
    assert poll.poll() is None
    write(policy)
    mended = poll.poll()
    assert mended is not None
    assert mended.collection is not None


def test_a_file_that_is_gone_for_a_moment_is_refused_and_keeps_the_old_one(policy: Path) -> None:
    poll = PolicyPoll(read_collection(policy))
    policy.unlink()
    gone = poll.poll()
    assert gone is not None
    assert gone.collection is None


def test_an_edited_seeds_file_counts(policy: Path) -> None:
    poll = PolicyPoll(read_collection(policy))
    policy.with_name("seeds.txt").write_text("https://a.example/\nhttps://b.example/\n")
    edit = poll.poll()
    assert edit is not None
    assert edit.collection is not None
    assert list(edit.collection.seeds()) == ["https://a.example/", "https://b.example/"]


def test_an_edit_that_comes_while_the_last_one_is_read_is_not_lost(policy: Path) -> None:
    poll = PolicyPoll(read_collection(policy))
    seeds = policy.with_name("seeds.txt")
    seeds.unlink()
    os.mkfifo(seeds)  # it can be opened only when the policy file has been read

    def edit_again() -> None:
        with seeds.open("w") as pipe:
            policy.write_text(f"[collection]\n{SEEDS}{PUBLIC}".replace("test", "mine"))
            pipe.write("https://a.example/\n")

    write(policy, "[policies.default]\ndeny = ['/x/']\n")
    with ThreadPoolExecutor() as thread:
        editing = thread.submit(edit_again)
        first = poll.poll()
        editing.result()
    assert first is not None
    assert first.collection is not None
    assert first.collection.policy.deny
    second = poll.poll()
    assert second is not None
    assert second.collection is not None
    assert not second.collection.policy.deny
    assert poll.poll() is None


def test_tables_that_the_crawl_was_built_from_are_named_for_they_wait(policy: Path) -> None:
    poll = PolicyPoll(read_collection(policy))
    write(policy, 'min_delay = "2s"\n[cycle]\nperiods = 3\n')
    edit = poll.poll()
    assert edit is not None
    assert edit.waits == ("politeness", "cycle")


@pytest.mark.parametrize(
    ("added", "waits"),
    [
        (
            "[collection.limits]\npages = 9\ndomain_share = 0.5\n",
            ("collection.limits.pages", "collection.limits.domain_share"),
        ),
        ("[discovery]\nnofollow = false\nmax_url_length = 99\n", ("discovery.nofollow",)),
        ("[duplicates]\ndetect = true\n", ("duplicates",)),
        ("[policies.default]\ntopic = { query = 'x y' }\n", ("policies (score, topic)",)),
        ("[ranking]\nevery = '1d'\n", ("ranking",)),
        ("[policies.default]\ntrust = 0.1\n", ()),
    ],
)
def test_what_waits_for_the_next_start_is_named_key_by_key(policy: Path, added: str, waits: tuple[str, ...]) -> None:
    poll = PolicyPoll(read_collection(policy))
    policy.write_text(f"{policy.read_text()}\n{added}")
    edit = poll.poll()
    assert edit is not None
    assert edit.error is None
    assert edit.waits == waits


def test_a_running_crawl_does_not_become_another_collection(policy: Path) -> None:
    poll = PolicyPoll(read_collection(policy))
    write(policy, name="other")
    edit = poll.poll()
    assert edit is not None
    assert edit.collection is None
