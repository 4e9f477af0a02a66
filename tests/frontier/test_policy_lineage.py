"""Deriving known pages anew: the same as a crawl gives them, through a kill, on every store, and on any web."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.frontier.scenarios import Scenario, crawl, edit, held, rules_of, standings
from tests.store.stores import BACKENDS, server_url
from webfountain.frontier.pages.policy_review import Review
from webfountain.policy.collection_file import parse_collection
from webfountain.policy.judge import Judge
from webfountain.policy.lineage import Lineage, parent_of
from webfountain.records import Link
from webfountain.store.memory.store import MemoryStore
from webfountain.store.opening import open_store
from webfountain.urls import fingerprint, site_of

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.policy.collection import Collection
    from webfountain.records import PageRecord
    from webfountain.store.contract import FrontierStore

FADES = "[policies.one]\ntrust = 0.8\ndampening = 0.5\n[policies.two]\ntrust = 0.4\ndampening = 0.25\n"
WIDE = {"a/": " ".join(f"a/{n}" for n in range(40)), **{f"a/{n}": f"a/{n}/x b/{n}" for n in range(40)}}


def derived(store: FrontierStore, collection: Collection) -> dict[str, PageRecord]:
    """Each page's record as the collection has it."""
    lineage = Lineage(collection, Judge(collection, year=1970), store.pages.get)
    return {record.url: lineage.revised(record, at=0.0) or record for _, record in store.pages.records()}


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_what_a_kill_cut_short_is_gone_on_with_at_the_next_start(steps: int) -> None:
    before = Scenario("", WIDE, "a/ = one", FADES)
    drive = crawl(before, rules_of(before))
    after = rules_of(before, seeds="a/ = two")
    killed = Review(drive.store, Judge(after, year=1970), pages=20)
    killed.begin(after)
    for _ in range(steps):
        killed.step(2_000_000.0)
    assert not killed.is_done
    again = crawl(before, after, store=drive.store, clock=drive.clock)
    pages = held(again.store)
    assert {record.policy for record in pages.values()} == {"two"}
    assert standings(pages, ["a/", "a/7", "b/7", "a/7/x"]) == {
        "a/": ("two", 0.4), "a/7": ("two", 0.1), "b/7": ("two", 0.025), "a/7/x": ("two", 0.025),
    }  # fmt: skip
    assert len(pages) == 121


def test_a_second_edit_amid_the_first_leads_to_what_the_second_says() -> None:
    before = Scenario("", WIDE, "a/ = one", FADES)
    drive = crawl(before, rules_of(before))
    first, second = rules_of(before, seeds="a/ = two"), rules_of(before, rules=FADES + "[conflict]\nrule = 'first'\n")
    review = Review(drive.store, judge := Judge(first, year=1970), pages=20)
    review.begin(first)
    review.step(2_000_000.0)
    judge.adopt(second)
    review.begin(second)
    while not review.is_done:
        review.step(2_000_000.0)
    assert {record.policy for record in held(drive.store).values()} == {"one"}


def test_a_step_reads_a_bounded_number_of_pages() -> None:
    before = Scenario("", WIDE, "a/ = one", FADES)
    drive = crawl(before, rules_of(before))
    after = rules_of(before, seeds="a/ = two")
    review = Review(drive.store, Judge(after, year=1970), pages=20)
    review.begin(after)
    steps = 0
    while not review.is_done:
        review.step(2_000_000.0)
        assert len(review.moved) <= 20
        review.moved.clear()
        steps += 1
    assert steps >= 121 // 20


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_store_puts_its_pages_where_the_edited_file_has_them(backend: str, tmp_path: Path) -> None:
    before = Scenario("", WIDE, "a/ = one", FADES)
    drive = crawl(before, rules_of(before))
    url = f"{server_url()}?prefix={tmp_path.name}&shards=4" if backend == "shared" else f"rocksdb://{tmp_path}"
    store: FrontierStore
    if backend == "memory":
        store = MemoryStore(period_s=86_400.0)
    else:
        store = open_store(url, collection="scenario", period_s=86_400.0, fastest_s=900.0)
    store.queues.discover(links_of(drive.store), at=1.0)
    after = rules_of(before, seeds="a/ = two, a/3 = one")
    review = Review(store, Judge(after, year=1970), pages=50)
    review.begin(after)
    expected = {url: (record.policy, record.trust, record.depth) for url, record in derived(store, after).items()}
    while not review.is_done:
        review.step(2.0)
    got = {record.url: (record.policy, record.trust, record.depth) for _, record in store.pages.records()}
    assert got == expected
    assert {policy for policy, _, _ in got.values()} == {"one", "two"}
    store.close()


def links_of(store: FrontierStore) -> list[Link]:
    """The links by which the pages of a store came."""
    names = {(site, fingerprint(record.url)): record.url for site, record in store.pages.records()}
    return [
        Link(
            record.url, site, fingerprint(record.url), record.depth, record.policy, trust=record.trust,
            source="" if (parent := parent_of(record)) is None else names[parent], provenance=record.provenance,
        )
        for site, record in store.pages.records()
    ]  # fmt: skip


def test_the_seeds_of_a_file_take_another_policy_with_what_they_led_to(tmp_path: Path) -> None:
    """Those of the policy file keep the one that their line names; the seeds file may change as well."""
    (tmp_path / "seeds.txt").write_text("# some\nhttp://a.org/\nhttp://b.org/\n")

    def collection(policy: str) -> Collection:
        head = f"[collection]\nname = 's'\nscope = 'any'\npolicy = '{policy}'\nseeds_file = 'seeds.txt'\n"
        seed = "seeds = [{ url = 'http://c.org/', policy = 'one' }]\n"
        rest = "[politeness]\nuser_agent = 't/1 (+http://example.org/b)'\n[network]\nallow_private = true\n"
        return parse_collection(head + seed + rest + FADES, tmp_path / "p.toml")

    web = Scenario("", {"a/": "a/1", "b/": "d/", "c/": "c/1"}, "", "")
    drive = crawl(web, collection("one"))
    edit(drive, collection("two"))
    assert standings(held(drive.store), ["a/", "a/1", "c/", "c/1", "d/"]) == {
        "a/": ("two", 0.4), "a/1": ("two", 0.1), "c/": ("one", 0.8), "c/1": ("one", 0.4), "d/": ("two", 0.1),
    }  # fmt: skip
    (tmp_path / "seeds.txt").write_text("http://a.org/\nhttp://b.org/\nhttp://d.org/\n")
    edit(drive, collection("two"))
    assert held(drive.store)["d/"].depth == 0
    assert standings(held(drive.store), ["d/"]) == {"d/": ("two", 0.4)}


# -------------------------------------------------------------------- any web

HOSTS = ("a", "b", "c.b")
PAGES = [f"{host}/{n}" for host in HOSTS for n in ("", "1", "2", "3")]
policies = st.fixed_dictionaries(
    {
        "trust": st.sampled_from([0.0, 0.3, 0.5, 1.0]),
        "dampening": st.sampled_from([0.0, 0.5, 0.85, 1.0]),
        "splitting": st.booleans(),
        "spread": st.sampled_from(["site", "domain", "any"]),
        "otherwise": st.sampled_from(["one", "two", "default", "distrust"]),
        "follow": st.sampled_from([True, True, True, False]),
    }
)
webs = st.fixed_dictionaries(
    {page: st.lists(st.sampled_from([*PAGES, "casino", "award"]), max_size=5).map(" ".join) for page in PAGES}
)
seeds = st.lists(
    st.tuples(st.sampled_from(PAGES), st.sampled_from(["", " = one", " = two", " = distrust"])),
    min_size=1, max_size=3, unique_by=lambda seed: seed[0],
).map(lambda named: ", ".join(page + policy for page, policy in named))  # fmt: skip
extras = st.sampled_from(
    [
        "",
        "[[rule]]\nmatch = '*.b.org'\npolicy = 'two'\n",
        "[[rule]]\nmatch = '/1$'\ntrust = 0.9\n",
        "[[switch]]\nwhen = { text = 'casino' }\nto = 'distrust'\n",
        "[[switch]]\nwhen = { text = 'award' }\nto = 'favor'\n",
        "[[switch]]\nwhen = { text = 'award' }\nto = 'one'\nalso = 'discovered'\n",
    ]
)


def toml(one: dict[str, object], two: dict[str, object], more: list[str]) -> str:
    parts = []
    for name, table in (("one", one), ("two", two)):
        values = {key: str(value).lower() if isinstance(value, bool) else repr(value) for key, value in table.items()}
        parts.append(f"[policies.{name}]\n" + "".join(f"{key} = {value}\n" for key, value in values.items()))
    return "".join([*parts, *dict.fromkeys(more)])


files = st.builds(toml, policies, policies, st.lists(extras, max_size=3))
thorough = settings(deadline=None, derandomize=True, max_examples=25, suppress_health_check=[HealthCheck.too_slow])


@thorough
@given(webs, seeds, files)
def test_what_is_derived_is_what_the_crawl_gave(web: dict[str, str], line: str, rules: str) -> None:
    """The reference model and the crawl: two ways to the same policy, trust and depth of each page."""
    scenario = Scenario("", web, line, rules)
    collection = rules_of(scenario)
    store = crawl(scenario, collection).store
    new = derived(store, collection)
    for _, record in store.pages.records():
        reported = new[record.url]
        assert (reported.policy, reported.depth) == (record.policy, record.depth), record.url
        assert reported.trust == pytest.approx(record.trust), record.url


@thorough
@given(webs, seeds, files, seeds, files)
def test_any_edit_does_what_is_foretold(
    web: dict[str, str], line: str, rules: str, edited_line: str, edited_rules: str
) -> None:
    scenario = Scenario("", web, line, rules)
    drive = crawl(scenario, rules_of(scenario))
    known = [record.url for _, record in drive.store.pages.records()]
    after = rules_of(scenario, seeds=edited_line, rules=edited_rules)
    expected = derived(drive.store, after)
    edit(drive, after)
    for url in known:
        record = drive.store.pages.get(site_of(url), fingerprint(url))
        assert record is not None
        assert (record.policy, record.depth) == (expected[url].policy, expected[url].depth), url
        assert record.trust == pytest.approx(expected[url].trust), url
    drive.check_valid()
