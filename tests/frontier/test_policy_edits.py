"""Edits of a policy file worked out by hand: they reach what is known, while a crawl runs and after a restart.

And `policy check --against` tells exactly what they do.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from tests.frontier.drive import Drive
from tests.frontier.scenarios import Scenario, crawl, edit, held, rules_of, standings
from webfountain.duplicates.index import DuplicateIndex
from webfountain.policy.collection_file import read_collection
from webfountain.policy.judge import Judge, judge_again
from webfountain.policy.lineage import Lineage
from webfountain.policy.url_rules import REASONS
from webfountain.report.policy_check import policy_effect

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from webfountain.policy.collection import Collection
    from webfountain.records import PageRecord
    from webfountain.report.policy_check import PolicyEffect
    from webfountain.store.contract import FrontierStore

TREE = {"a/": "a/1 b/", "a/1": "a/2", "a/2": "end", "b/": "b/1", "b/1": "end"}
FADES = "[policies.one]\ntrust = 0.8\ndampening = 0.5\n[policies.two]\ntrust = 0.4\ndampening = 0.25\n"
SPAM = "[[switch]]\nwhen = { text = 'casino' }\nto = 'distrust'\n"


@dataclass(frozen=True)
class Edit:
    """What was crawled, and what the edited file has instead; `holds` is worked out by hand for afterwards."""

    name: str
    before: Scenario
    holds: Mapping[str, tuple[str, float]]
    seeds: str | None = None
    rules: str | None = None
    gone: str = ""
    """Pages that are refused from now on."""
    depths: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    def after(self) -> Collection:
        return rules_of(self.before, seeds=self.seeds, rules=self.rules)


def tree(seeds: str, rules: str = FADES, web: Mapping[str, str] = TREE) -> Scenario:
    return Scenario("", web, seeds, rules)


EDITS = [
    Edit(
        "a seed's line names another policy",
        tree("a/ = one"),
        {"a/": ("two", 0.4), "a/1": ("two", 0.1), "a/2": ("two", 0.025), "b/1": ("two", 0.025)},
        seeds="a/ = two",
    ),
    Edit(
        "a rule is for a seed whose line names no policy, and for what it led to",
        tree("a/", FADES),
        {"a/": ("two", 0.4), "a/1": ("two", 0.1), "b/1": ("two", 0.025)},
        rules=FADES + "[[rule]]\nmatch = '^http://a.org/$'\npolicy = 'two'\n",
    ),
    Edit(
        "a policy has other trust and dampening",
        tree("a/ = one"),
        {"a/": ("one", 1.0), "a/1": ("one", 0.75), "a/2": ("one", 0.5625)},
        rules="[policies.one]\ntrust = 1.0\ndampening = 0.75\n",
    ),
    Edit(
        "a policy divides trust from now on, as its pages' links were counted",
        tree("a/ = one"),
        {"a/1": ("one", 0.2), "a/2": ("one", 0.1), "b/": ("one", 0.2)},
        rules=FADES.replace("dampening = 0.5", "dampening = 0.5\nsplitting = true"),
    ),
    Edit(
        "a policy no longer divides trust",
        tree("a/ = one", "[policies.one]\ntrust = 0.8\nsplitting = true\n"),
        {"a/1": ("one", 0.8), "a/2": ("one", 0.8)},
        rules="[policies.one]\ntrust = 0.8\n",
    ),
    Edit(
        "a policy spreads no further than its site",
        tree("a/ = one"),
        {"a/2": ("one", 0.2), "b/": ("default", 0.4), "b/1": ("default", 0.4)},
        rules=FADES.replace("dampening = 0.5", "dampening = 0.5\nspread = 'site'"),
    ),
    Edit(
        "a known page becomes a seed under another policy, with what it led to",
        tree("a/ = one"),
        {"a/1": ("two", 0.4), "a/2": ("two", 0.1), "a/": ("one", 0.8), "b/": ("one", 0.4)},
        seeds="a/ = one, a/1 = two",
        depths={"a/1": 0, "a/2": 1, "b/1": 2},
    ),
    Edit(
        "a seed is distrusted: what it led to has no trust",
        tree("a/ = one, b/ = one"),
        {"a/": ("distrust", 0.0), "a/1": ("distrust", 0.0), "b/1": ("one", 0.4)},
        seeds="a/ = distrust, b/ = one",
    ),
    Edit(
        "a distrusted seed is trusted",
        tree("a/ = bad", "[policies.bad]\ntrust = 0.0\n[policies.one]\ntrust = 0.8\ndampening = 0.5\n"),
        {"a/": ("one", 0.8), "a/1": ("one", 0.4), "a/2": ("one", 0.2)},
        seeds="a/ = one",
    ),
    Edit(
        "a seed's new policy denies what the old one let in",
        tree("a/ = one"),
        {"a/": ("strict", 0.5), "a/1": ("strict", 0.5)},
        seeds="a/ = strict",
        rules="[policies.strict]\ndeny = ['/2$']\n",
        gone="a/2",
    ),
    Edit(
        "a rule is added",
        tree("a/ = one"),
        {"a/2": ("one", 0.2), "b/": ("two", 0.4), "b/1": ("two", 0.4)},
        rules=FADES + "[[rule]]\nmatch = 'b.org'\npolicy = 'two'\n",
    ),
    Edit(
        "a rule is taken out",
        tree("a/ = one", FADES + "[[rule]]\nmatch = 'b.org'\npolicy = 'two'\n"),
        {"b/": ("one", 0.4), "b/1": ("one", 0.2)},
        rules=FADES,
    ),
    Edit(
        "a policy extends another one now",
        tree("a/ = one"),
        {"a/": ("one", 1.0), "a/1": ("one", 0.85)},
        rules="[policies.one]\nextends = 'favor'\n",
    ),
    Edit(
        "a page that was switched stays switched, and what it led to before stays as its seed has it",
        tree("a/ = one", FADES + SPAM, {"a/": "a/1 a/3", "a/1": "casino a/2", "a/3": "x"}),
        {"a/1": ("distrust", 0.0), "a/3": ("two", 0.1)},
        seeds="a/ = two",
    ),
    Edit(
        "a page that a switch moved goes back when that is taken out",
        tree("a/ = one", FADES + SPAM, {"a/": "a/1", "a/1": "casino"}),
        {"a/1": ("one", 0.4)},
        rules=FADES,
    ),
    Edit(
        "a seed that was switched takes the policy of its line once no switch is for it",
        tree("a/ = one", FADES + SPAM, {"a/": "casino", "b/": "x"}),
        {"a/": ("two", 0.4)},
        seeds="a/ = two",
        rules=FADES,
    ),
    Edit(
        "a redirect passes on what its page has now, whole",
        tree("a/ = one", FADES, {"a/": "a/old", "a/old": "-> a/new", "a/new": "a/1", "a/1": "x"}),
        {"a/old": ("two", 0.1), "a/new": ("two", 0.1), "a/1": ("two", 0.025)},
        seeds="a/ = two",
    ),
    Edit(
        "a page that a more trusted link took over belongs to that link's page",
        tree(
            "a/ = one, b/ = two",
            FADES + "[conflict]\nrule = 'most-trusted'\n",
            {"a/": "x", "b/": "c/ b/1", "c/": "c/1", "c/1": "x", "b/1": "x"},
        ),
        {"c/": ("one", 0.4), "c/1": ("one", 0.2)},
        seeds="a/ = one, b/ = one",
        rules=FADES + "[conflict]\nrule = 'most-trusted'\n",
    ),
    Edit(
        "nothing that policies pass on was edited: nothing moves, what is denied goes",
        tree("a/ = one"),
        {"a/": ("one", 0.8), "a/1": ("one", 0.4), "a/2": ("one", 0.2)},
        rules=FADES + "[policies.two.revisit]\nmin_interval = '1h'\n",
    ),
]


def foretell(store: FrontierStore, collection: Collection) -> PolicyEffect:
    judge = Judge(collection, year=1970)
    return policy_effect(
        judge, (record for _, record in store.pages.records()), Lineage(collection, judge, store.pages.get)
    )


def is_refused(record: PageRecord) -> bool:
    return record.state == "refused" and record.error in REASONS


@pytest.mark.parametrize("running", [True, False], ids=["running", "restarted"])
@pytest.mark.parametrize("made", EDITS, ids=str)
def test_an_edit_does_what_was_worked_out_by_hand_and_what_was_foretold(made: Edit, *, running: bool) -> None:
    drive = crawl(made.before, rules_of(made.before), seconds=600)
    before, collection = held(drive.store), made.after()
    foretold = foretell(drive.store, collection)
    if running:
        edit(drive, collection, seconds=600)
    else:
        drive = crawl(made.before, collection, store=drive.store, clock=drive.clock, seconds=600)
    after = held(drive.store)
    assert standings(after, made.holds) == dict(made.holds)
    assert {name: after[name].depth for name in made.depths} == dict(made.depths)
    assert {name for name, record in after.items() if is_refused(record)} == set(made.gone.split())
    moved = Counter(f"{before[name].policy} -> {after[name].policy}" for name in before)
    assert foretold.moved == {move: n for move, n in moved.items() if len({*move.split(" -> ")}) == 2}
    stays = [name for name in before if before[name].policy == after[name].policy]
    assert foretold.retrusted == sum(before[name].trust != pytest.approx(after[name].trust) for name in stays)
    assert sum(foretold.dropped.values()) == len(made.gone.split())
    again = foretell(drive.store, collection)
    assert (again.moved, again.retrusted, again.taken) == ({}, 0, 0), "a second look finds all as it should be"
    drive.check_valid()


def test_what_waits_under_the_old_policy_is_put_right_before_it_is_asked() -> None:
    """An edit while most pages are still queued: none is asked under the policy of before."""
    web = {"a/": " ".join(f"a/{n}" for n in range(40))}
    before = Scenario("", web, "a/ = one", FADES)
    strict = "[policies.two]\ndeny = ['/[0-9]*[13579]$']\n"
    drive = crawl(before, rules_of(before), until=5)
    asked = len(drive.asked())
    edit(drive, rules_of(before, seeds="a/ = two", rules=FADES.split("[policies.two]", maxsplit=1)[0] + strict))
    later = [int(url.rsplit("/", 1)[1]) for url in drive.asked()[asked:]]
    assert later
    assert {number % 2 for number in later} == {0}
    assert {record.policy for record in held(drive.store).values()} == {"two"}


def test_after_an_edit_a_refetched_seed_passes_its_new_policy_on_to_what_is_new() -> None:
    web = {"a/": "a/1"}
    before = Scenario("", web, "a/ = one", FADES)
    drive = crawl(before, rules_of(before), seconds=600)
    web["a/"] = "a/1 a/new"
    again = crawl(before, rules_of(before, seeds="a/ = two"), store=drive.store, clock=drive.clock, seconds=90 * 86_400)
    pages = held(again.store)
    assert standings(pages, pages) == {"a/": ("two", 0.4), "a/1": ("two", 0.1), "a/new": ("two", 0.1)}


def test_a_circle_of_sources_ends_and_each_way_round_gives_the_same() -> None:
    """Two pages that took each other over: a more trusted link counted, first for one, then for the other."""
    collection = rules_of(Scenario("", {}, "a/ = one", FADES))
    web = Scenario("", {"a/": "a/1", "a/1": "a/2", "a/2": "a/1"}, "a/ = one", FADES)
    drive = crawl(web, rules_of(web))
    pages = {record.url: record for _, record in drive.store.pages.records()}
    first, second = "http://a.org/1", "http://a.org/2"

    def circular(site: str, key: bytes) -> PageRecord | None:
        from msgspec.structs import replace

        from webfountain.urls import fingerprint

        found = {fingerprint(url): record for url, record in pages.items()}.get(key)
        if found is None or found.url != first:
            return found
        return replace(found, source=fingerprint(second))

    record = circular("", pages[second].source)
    assert record is not None
    one, two = (Lineage(collection, Judge(collection, year=1970), circular) for _ in range(2))
    got = [one.revised(record, at=1.0), one.revised(pages[second], at=1.0)]
    back = [two.revised(pages[second], at=1.0), two.revised(record, at=1.0)]
    assert got == back[::-1]


def test_what_is_refused_under_the_policy_that_comes_is_judged_under_that_one() -> None:
    """The figures of `dropped` are those of the policy that a page will have, not of the one that it has."""
    made = next(each for each in EDITS if each.name.startswith("a seed's new policy denies"))
    drive = crawl(made.before, rules_of(made.before))
    judge = Judge(made.after(), year=1970)
    records = [record for _, record in drive.store.pages.records()]
    assert not [1 for _, verdict in judge_again(judge, records) if verdict.reason is not None]
    assert foretell(drive.store, made.after()).dropped == {"denied": 1}


def test_a_seeds_file_that_is_cut_while_an_edit_of_it_is_adopted_does_not_end_the_crawl(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The worker's stages read it after the check; the next edit, of the whole file, reaches what is known."""
    file, seeds = tmp_path / "policy.toml", tmp_path / "seeds.txt"
    rules = "[politeness]\nuser_agent = 'one/1 (+https://a.example)'\n[network]\nallow_private = true\n"
    rules += "[duplicates]\ndetect = true\n[policies.default]\ndampening = 0.5\n"
    file.write_text(f"[collection]\nname = 'one'\nseeds_file = 'seeds.txt'\n{rules}")
    links = "".join(f"<a href='http://one.example/{number}'></a>" for number in range(3))
    seeds.write_text("http://one.example/\n")
    index = DuplicateIndex(tmp_path / "duplicates")
    drive = Drive(
        read_collection(file),
        lambda fetch, _: (200, {"content-type": "text/html"}, f"{fetch.url}{links}".encode(), 0.1),
        duplicates=index,
        recrawl=False,
    )
    drive.run(seconds=600)
    whole = "http://one.example/\nhttp://one.example/1\n"
    seeds.write_text(whole)
    drive.frontier.work.adopt(read_collection(file))
    seeds.write_text("http://one.example/\ncut off")
    drive.run(seconds=600)
    assert drive.page("http://one.example/1").trust == 0.25
    errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert len([error for error in errors if "seeds.txt:2" in error]) == 2  # precedence, and the review of known pages
    seeds.write_text(whole)
    drive.frontier.work.adopt(read_collection(file))
    drive.run(seconds=600)
    assert drive.page("http://one.example/1").trust == 0.5
    assert len(caplog.records) == len(errors)
    drive.frontier.close()
