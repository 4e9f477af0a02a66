"""What is listened to when the urgency of pages is judged, and how strongly prior beliefs hold.

Every signal can be switched off alone, so that its worth can be measured (`simulate revisit`, `bench_live`). The
strengths are in periods (the simulation's day, the policy file's ``cycle.period``); `spread` gives them in steps.
"""

from __future__ import annotations

__all__ = ["VISITS", "Signals"]

from dataclasses import dataclass, replace

VISITS = 12
"""Visits to a page for which evidence lasts: where pages are seen but four times a year, 250 days hold too few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """What `activity` listens to, and the strengths of its priors."""

    siblings: bool = True
    """Activity of the section in each step; off: every step is like every other."""
    sections: bool = True
    """Rates per section; off: one rate for the site."""
    history: bool = True
    """The page's own checks; off: every page has its section's rate."""
    forgetting: bool = True
    """Old evidence fades with `memory`; off: it stays for ever."""
    weekdays: bool = False
    """Each day of the week has a learned factor; off, as it gained nothing: all days are alike."""
    memory: float = 250.0
    """Steps after which evidence counts 1/e."""
    prior_rate: float = 1 / 120
    """Changes per page and step before anything is known: that of the sources, one in four months."""
    prior_exposure: float = 50.0
    """Page-steps that `prior_rate` is worth."""
    section_steps: float = 120.0
    """Steps of watching the whole section that the parent's rate is worth to it."""
    step_events: float = 0.3
    """Expected changes in a step that the parent's activity is worth; the smaller, the burstier."""
    page_events: float = 0.5
    """Changes that the section's rate is worth to a page: as skewed as rates on the web are."""
    visit: float = 0.01
    """Steps from one visit to a page to the next, in the mean; far below one: all rates can be told."""
    day: float = 1.0
    """Steps in a day, for `weekdays`."""

    def lasting(self, interval: float) -> Signals:
        """At one visit to a page every `interval` steps: with a memory of `VISITS` visits at least."""
        return replace(self, memory=max(self.memory, VISITS * interval), visit=interval)

    def spread(self, steps: float) -> Signals:
        """The same beliefs where a period has `steps` steps in place of one."""
        return replace(
            self,
            memory=self.memory * steps,
            prior_rate=self.prior_rate / steps,
            prior_exposure=self.prior_exposure * steps,
            section_steps=self.section_steps * steps,
            step_events=self.step_events / steps,
            visit=self.visit * steps,
            day=self.day * steps,
        )
