"""The active list forgets what left it."""

from __future__ import annotations

import random
from math import inf

from webfountain.frontier.ant import Ant
from webfountain.frontier.schedule import NoRecrawl
from webfountain.metrics import Metrics
from webfountain.policy.tables import PolitenessTable
from webfountain.records import SiteRecord


def test_sites_that_left_are_not_remembered_until_their_pages_are_due():
    ant = Ant(
        politeness=PolitenessTable(),
        schedule=NoRecrawl,
        now=lambda: 0.0,
        rng=random.Random(1),
        metrics=Metrics(),
        active_sites=1,
        hand=1,
    )
    (stays,) = ant.admit([SiteRecord("http://10.9.9.9", due=0.0, pages=(0,) * 6, first_seen=0.0)])
    ant.due_again(stays, 5.0)
    for number in range(5000):
        (site,) = ant.admit([SiteRecord(f"http://10.0.{number >> 8}.{number & 255}", 0.0, (0,) * 6, 0.0)])
        ant.due_again(site, 1e9 + number)
        ant.leave(site, inf)
    assert len(ant._timers) < 1100
    assert ant.wake_at() == 5.0
