"""Policies worked out by hand: small webs, and the trust, policy, order and refusals that a crawl of them must have."""

from __future__ import annotations

import pytest

from tests.frontier.scenarios import Scenario, crawl, held, long, rules_of, short, standings
from webfountain.policy.provenance import arrived
from webfountain.records import Link
from webfountain.urls import fingerprint, site_of

FADES = "[policies.default]\ntrust = 0.8\ndampening = 0.5\n"
SPAM = "[[switch]]\nwhen = { text = 'casino' }\nto = 'distrust'\n"
PRAISE = "[[switch]]\nwhen = { text = 'award' }\nto = 'favor'\n"
TWO_SEEDS = "[policies.one]\ntrust = 0.25\n[policies.two]\ntrust = 0.75\n"

SCENARIOS = [
    Scenario(
        "trust fades by dampening with each hop",
        {"a/": "a/1", "a/1": "a/2", "a/2": "end"},
        "a/",
        FADES,
        {"a/": ("default", 0.8), "a/1": ("default", 0.4), "a/2": ("default", 0.2)},
    ),
    Scenario(
        "trust is divided among the links that are taken in, not among those that are refused",
        {"a/": "a/1 a/2 a/3 a/x.zip", "a/1": "a/11 a/12"},
        "a/",
        "[policies.default]\ntrust = 0.9\nsplitting = true\ndeny = ['zip$']\n",
        {"a/": ("default", 0.9), "a/1": ("default", 0.3), "a/12": ("default", 0.15)},
        lacks="a/x.zip",
    ),
    Scenario(
        "dampening and splitting together",
        {"a/": "a/1 a/2", "a/1": "a/11"},
        "a/",
        "[policies.default]\ntrust = 1.0\nsplitting = true\ndampening = 0.5\n",
        {"a/1": ("default", 0.25), "a/11": ("default", 0.125)},
    ),
    Scenario(
        "beyond its spread a policy gives way to the other one, whose trust bounds what comes",
        {"a/": "a/1 b/", "b/": "b/1 a/2"},
        "a/ = favor",
        "[policies.favor]\nspread = 'site'\notherwise = 'far'\n[policies.far]\ntrust = 0.3\ndampening = 0.5\n",
        {"a/1": ("favor", 0.85), "b/": ("far", 0.3), "b/1": ("far", 0.15), "a/2": ("far", 0.15)},
    ),
    Scenario(
        "beyond its spread less than the other policy's trust stays less",
        {"a/": "b/"},
        "a/ = low",
        "[policies.low]\ntrust = 0.2\nspread = 'site'\n",
        {"b/": ("default", 0.2)},
    ),
    Scenario(
        "a domain's hosts are within a spread over the domain",
        {"www.a/": "docs.a/ b/"},
        "www.a/ = favor",
        "[policies.favor]\nspread = 'domain'\n",
        {"docs.a/": ("favor", 0.85), "b/": ("default", 0.5)},
    ),
    Scenario(
        "a switch to favor raises the page, what it links, and their turn",
        {
            "a/": "a/plain a/good",
            "a/plain": "a/p1 a/p2 a/p3 a/p4 a/p5 a/p6 a/p7",
            "a/good": "award a/g1 a/g2 a/g3",
        },
        "a/",
        PRAISE,
        {"a/good": ("favor", 1.0), "a/g1": ("favor", 0.85), "a/p1": ("default", 0.5)},
        order="a/good a/g1 a/g2 a/g3 a/p5 a/p6 a/p7",
    ),
    Scenario(
        "a switch from distrust to default raises to the trust of default",
        {"a/": "fine award a/1"},
        "a/ = distrust",
        "[[switch]]\nwhen = { text = 'award' }\nto = 'default'\n",
        {"a/": ("default", 0.5), "a/1": ("default", 0.5)},
    ),
    Scenario(
        "a switch to less trust bounds, and raises nothing that has faded below",
        {"a/": "a/1", "a/1": "casino a/2", "a/2": "end"},
        "a/ = favor",
        "[policies.favor]\ndampening = 0.1\n[[switch]]\nwhen = { text = 'casino' }\nto = 'default'\n",
        {"a/1": ("default", 0.1), "a/2": ("default", 0.1)},
    ),
    Scenario(
        "a switch to distrust takes all trust, and its links are not taken in",
        {"a/": "a/spam a/1", "a/spam": "casino a/more", "a/1": "end"},
        "a/",
        SPAM,
        {"a/spam": ("distrust", 0.0), "a/1": ("default", 0.5)},
        lacks="a/more",
    ),
    Scenario(
        "good links of a distrusted page that is followed come with no trust, and last",
        {"a/": "a/1 a/spam", "a/spam": "casino a/more", "a/1": "a/2 a/3"},
        "a/",
        SPAM + "[policies.distrust]\nfollow = true\n",
        {"a/more": ("distrust", 0.0), "a/2": ("default", 0.5)},
        order="a/2 a/3 a/more",
    ),
    Scenario(
        "of two switches that a page meets the first counts",
        {"a/": "casino award"},
        "a/",
        PRAISE + SPAM,
        {"a/": ("favor", 1.0)},
    ),
    Scenario(
        "a seed is switched by what it shows",
        {"a/": "casino a/1", "b/": "b/1"},
        "a/ = favor, b/ = favor",
        SPAM,
        {"a/": ("distrust", 0.0), "b/1": ("favor", 0.85)},
        lacks="a/1",
    ),
    Scenario(
        "conflict: the first link counts, whatever the trust",
        {"a/": "c/", "b/": "b/1", "b/1": "c/"},
        "a/ = one, b/ = two",
        TWO_SEEDS,
        {"c/": ("one", 0.25)},
    ),
    Scenario(
        "conflict: the most trusted link counts, if it comes later, too",
        {"a/": "c/", "b/": "b/1", "b/1": "c/", "c/": "end"},
        "a/ = one, b/ = two",
        TWO_SEEDS + "[conflict]\nrule = 'most-trusted'\n",
        {"c/": ("two", 0.75)},
    ),
    Scenario(
        "conflict: the least trusted link counts",
        {"a/": "a/1", "a/1": "c/", "b/": "c/"},
        "a/ = one, b/ = two",
        TWO_SEEDS + "[conflict]\nrule = 'least-trusted'\n",
        {"c/": ("one", 0.25)},
    ),
    Scenario(
        "conflict: a more trusted link of the same policy counts",
        {"a/": "a/1 a/2 a/3 a/4", "a/1": "a/both a/11 a/12 a/13", "a/2": "a/both"},
        "a/",
        "[policies.default]\ntrust = 1.0\nsplitting = true\n[conflict]\nrule = 'most-trusted'\n",
        {"a/1": ("default", 0.25), "a/11": ("default", 0.0625), "a/both": ("default", 0.25)},
    ),
    Scenario(
        "conflict: the least trusted link of the same policy counts",
        {"a/": "a/1 a/2", "a/1": "a/both", "a/2": "a/both a/3 a/4 a/5"},
        "a/",
        "[policies.default]\ntrust = 1.0\nsplitting = true\n[conflict]\nrule = 'least-trusted'\n",
        {"a/both": ("default", 0.125)},
    ),
    Scenario(
        "conflict: of three links the best counts, in whatever order they come",
        {"a/": "a/1 a/2 a/3", "a/1": "a/x a/11 a/12", "a/2": "a/x", "a/3": "a/x a/31"},
        "a/",
        "[policies.default]\ntrust = 0.9\nsplitting = true\n[conflict]\nrule = 'most-trusted'\n",
        {"a/x": ("default", 0.3)},
    ),
    Scenario(
        "conflict: a seed keeps the policy of its line",
        {"a/": "b/", "b/": "end"},
        "a/ = two, b/ = one",
        TWO_SEEDS + "[conflict]\nrule = 'most-trusted'\n",
        {"b/": ("one", 0.25)},
    ),
    Scenario(
        "a rule by host gives policy and trust without a seed, and they spread from there",
        {"a/": "good/ other/", "good/": "good/1 other/1", "good/1": "end"},
        "a/",
        "[policies.favor]\nspread = 'site'\n[[rule]]\nmatch = 'good.org'\npolicy = 'favor'\ntrust = 0.9\n",
        {
            "good/": ("favor", 0.9),
            "good/1": ("favor", 0.9),
            "other/": ("default", 0.5),
            "other/1": ("default", 0.5),
        },
    ),
    Scenario(
        "a rule by domain covers its hosts, and without trust of its own gives that of its policy",
        {"a/": "www.bad/ bad/ notbad/"},
        "a/",
        "[[rule]]\nmatch = '*.bad.org'\npolicy = 'distrust'\n",
        {"www.bad/": ("distrust", 0.0), "bad/": ("distrust", 0.0), "notbad/": ("default", 0.5)},
    ),
    Scenario(
        "a rule by URL covers part of a site, the first that matches counts, and without a policy the inherited stays",
        {"a/": "b/docs/1 b/docs/old/1 b/blog"},
        "a/",
        "[[rule]]\nmatch = '/old/'\ntrust = 0.1\n"
        "[[rule]]\nmatch = ['^http://b\\.org/docs/', 'never']\npolicy = 'favor'\n",
        {"b/docs/1": ("favor", 1.0), "b/docs/old/1": ("default", 0.1), "b/blog": ("default", 0.5)},
    ),
    Scenario(
        "what a rule gives is not divided among the links of the page, though that is",
        {"a/": "good/ a/1 a/2 a/3"},
        "a/",
        "[policies.default]\ntrust = 0.8\nsplitting = true\n[[rule]]\nmatch = 'good.org'\ntrust = 0.7\n",
        {"good/": ("default", 0.7), "a/1": ("default", 0.2)},
    ),
    Scenario(
        "a rule lets a page on an untrusted path be trusted again, and its policy's patterns hold for it",
        {"a/": "a/low", "a/low": "good/ good/x.zip"},
        "a/ = low",
        "[policies.low]\ntrust = 0.1\n[policies.favor]\ndeny = ['zip$']\n"
        "[[rule]]\nmatch = 'good.org'\npolicy = 'favor'\n",
        {"a/low": ("low", 0.1), "good/": ("favor", 1.0)},
        lacks="good/x.zip",
        order="good/",
    ),
    Scenario(
        "a rule is for seeds whose line names no policy",
        {"good/": "good/1", "fine.good/": "x"},
        "good/, fine.good/ = one",
        TWO_SEEDS + "[[rule]]\nmatch = '*.good.org'\npolicy = 'two'\n",
        {"good/": ("two", 0.75), "good/1": ("two", 0.75), "fine.good/": ("one", 0.25)},
    ),
    Scenario(
        "what a page shows counts for more than a rule",
        {"a/": "good/", "good/": "casino good/1"},
        "a/",
        SPAM + "[[rule]]\nmatch = 'good.org'\npolicy = 'favor'\n",
        {"good/": ("distrust", 0.0)},
        lacks="good/1",
    ),
    Scenario(
        "a policy that extends another has its keys, and its own instead of some",
        {"a/": "a/1 a/1.zip b/", "b/": "end"},
        "a/ = mine",
        "[policies.base]\ntrust = 0.6\ndampening = 0.5\ndeny = ['zip$']\nspread = 'site'\notherwise = 'distrust'\n"
        "[policies.mine]\nextends = 'base'\ntrust = 0.4\n",
        {"a/": ("mine", 0.4), "a/1": ("mine", 0.2), "b/": ("distrust", 0.0)},
        lacks="a/1.zip",
    ),
    Scenario(
        "a policy that extends one that extends a preset has the preset's keys",
        {"a/": "a/1"},
        "a/ = mine",
        "[policies.between]\nextends = 'favor'\ndampening = 0.5\n[policies.mine]\nextends = 'between'\n",
        {"a/": ("mine", 1.0), "a/1": ("mine", 0.5)},
    ),
    Scenario(
        "a redirect passes its page's trust on whole",
        {"a/": "a/old", "a/old": "-> a/new", "a/new": "a/1"},
        "a/",
        FADES,
        {"a/old": ("default", 0.4), "a/new": ("default", 0.4), "a/1": ("default", 0.2)},
    ),
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_crawl_holds_what_was_worked_out_by_hand(scenario: Scenario) -> None:
    drive = crawl(scenario, rules_of(scenario))
    pages = held(drive.store)
    assert standings(pages, scenario.holds) == dict(scenario.holds)
    assert not pages.keys() & set(scenario.lacks.split())
    wanted = scenario.order.split()
    assert [name for url in drive.asked() if (name := short(url)) in wanted] == wanted
    drive.check_valid()


def test_a_page_that_was_asked_for_by_hand_is_under_the_rule_that_is_for_it_from_its_fetch_on() -> None:
    """Nobody judges it before; what it links inherits that."""
    web = {"a/": "x", "good/1": "good/2", "good/2": "x"}
    rules = "[[rule]]\nmatch = '/1$'\npolicy = 'favor'\ntrust = 0.9\n"
    scenario = Scenario("", web, "a/", rules)
    drive = crawl(scenario, rules_of(scenario), seconds=60)
    url = long("good/1")
    asked = Link(url, site_of(url), fingerprint(url), provenance=arrived("now"))
    drive.store.queues.immediate([asked], at=drive.clock.now())
    drive.run(seconds=60)
    assert standings(held(drive.store), ["good/1", "good/2"]) == {"good/1": ("favor", 0.9), "good/2": ("favor", 0.765)}
