"""Siblings: what a found change makes due, what it leaves alone, and what scouts look at."""

from __future__ import annotations

import random

from webfountain.frontier.siblings import REACH, Siblings

SITE = "http://one.example"
DAY = 86_400.0


def hear(siblings, path, at, *, since=None, changed=False, expected=0.0, every=3 * DAY):
    return siblings.hear(
        SITE, SITE + path, path.encode(), at=at, since=since, changed=changed, expected=expected, every=every
    )


def crawled(*paths, **options):
    siblings = Siblings(**options)
    for number, path in enumerate(paths):
        hear(siblings, path, float(number))
    return siblings


BLOG = [f"/blog/{number}" for number in range(5)]
NEWS = [f"/news/{number}" for number in range(5)]


def test_a_surprising_change_makes_the_pages_of_its_directory_due_first_the_longest_unfetched_first():
    siblings = crawled(*NEWS, *BLOG)
    struck = hear(siblings, "/blog/2", DAY, since=7.0, changed=True)
    assert struck == [b"/blog/0", b"/blog/1", b"/blog/3", b"/blog/4"]
    assert len(struck) <= REACH


def test_the_directory_above_follows_when_the_nearest_is_used_up():
    siblings = crawled(*NEWS, *BLOG)
    hear(siblings, "/blog/2", DAY, since=7.0, changed=True)
    struck = hear(siblings, "/blog/0", DAY + 1, since=5.0, changed=True)
    assert struck
    assert set(struck) <= {path.encode() for path in NEWS}


def test_a_page_is_made_due_once_until_it_was_fetched_and_not_again_for_the_same_burst():
    siblings = crawled(*BLOG)
    struck = hear(siblings, "/blog/2", DAY, since=2.0, changed=True)
    assert b"/blog/0" in struck
    again = hear(siblings, "/blog/1", DAY + 1, since=1.0, changed=True)
    assert not set(again) & set(struck)
    hear(siblings, "/blog/0", DAY + 2, since=0.0, changed=True)
    assert b"/blog/0" not in hear(siblings, "/blog/3", DAY + 3, since=3.0, changed=True)


def test_a_younger_change_begins_a_new_reaction():
    siblings = crawled(*BLOG)
    for number, path in enumerate(BLOG):
        hear(siblings, path, DAY + number, since=float(number), changed=True)
    assert b"/blog/1" in hear(siblings, "/blog/4", 3 * DAY, since=DAY + 4, changed=True)


def test_an_expected_change_and_an_unchanged_page_make_nothing_due():
    siblings = crawled(*BLOG)
    assert hear(siblings, "/blog/2", DAY, since=2.0, changed=True, expected=1.0) == []
    assert hear(siblings, "/blog/3", DAY, since=3.0, changed=False) == []
    assert hear(siblings, "/blog/9", DAY) == []


def test_directories_whose_pages_change_alone_learn_to_strike_few_and_together_many():
    def struck_per_change(together):
        rng = random.Random(1)
        pages = [f"/part{number % 8}/{number}" for number in range(80)]
        siblings, last, changes, struck = crawled(*pages), dict.fromkeys(pages, 100.0), 0, 0
        for day in range(1, 30):
            burst = rng.randrange(8)
            for path in pages:
                changed = path.startswith(f"/part{burst}/") if together else rng.random() < 1 / 40
                made_due = hear(siblings, path, day * DAY, since=last[path], changed=changed)
                last[path] = day * DAY
                changes, struck = changes + (changed and day > 15), struck + len(made_due) * (day > 15)
        return struck / changes

    assert struck_per_change(together=False) < 0.6 < struck_per_change(together=True)


def test_a_directory_that_nobody_looked_at_sends_the_page_fetched_longest_ago_once():
    siblings = crawled(*BLOG)
    assert siblings.scouts(0.1 * DAY) == []
    # Five pages every three days are one every 0.6 days; half the siblings are believed to change together.
    assert siblings.scouts(2.1 * DAY) == [(SITE, b"/blog/0")]
    assert siblings.scouts(2.2 * DAY) == []


def test_each_signal_can_be_left_out():
    assert crawled(*BLOG, scouts=False).scouts(99 * DAY) == []
    assert hear(crawled(*BLOG, strikes=False), "/blog/2", DAY, since=2.0, changed=True) == []


def test_it_remembers_no_more_pages_than_it_may():
    siblings = crawled(*(f"/many/{number}" for number in range(100)), pages=10)
    struck = hear(siblings, "/many/95", DAY, since=95.0, changed=True)
    assert set(struck) <= {f"/many/{number}".encode() for number in range(89, 100)}
    for _ in range(3):
        siblings.scouts(99 * DAY)
    elsewhere = siblings.hear(
        "http://two.example", "http://two.example/a/b", b"x", at=DAY, since=None, changed=False, expected=0.0, every=DAY
    )
    assert elsewhere == []
