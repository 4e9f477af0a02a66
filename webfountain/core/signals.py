"""The signals that `activity` uses, and the weights of its priors.

Each signal can be switched off, so that its effect can be measured (`simulate revisit`, `bench_live`). Weights and
durations are in periods: a day of the simulation, or ``cycle.period`` of the policy file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["VISITS", "Signals"]

VISITS = 12
"""Evidence is remembered for at least this many visits to a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    siblings: bool = True
    """Let a section be more active in some steps than in others; if False, its rate is the same in all steps."""
    sections: bool = True
    """Estimate a rate for each section; if False, all sections have the rate of the site."""
    history: bool = True
    """Estimate the rate of each page from its own checks, too; if False, every page has the rate of its section."""
    independent: bool = True
    """Explain changes by independent pages as well (`explanations`); if False, by sections alone."""
    forgetting: bool = True
    """Let old evidence fade with `memory`; if False, old evidence never loses weight."""
    memory: float = 250.0
    """The weight of evidence falls to 1/e after this many steps."""
    prior_rate: float = 1 / 120
    """Changes per page and step that are assumed before any fetch: one in four months."""
    prior_exposure: float = 50.0
    """Weight of `prior_rate`, in page-steps."""
    section_steps: float = 120.0
    """Weight of the parent's rate as the prior of a section's rate, in steps of observing the whole section."""
    step_events: float = 0.3
    """Weight of the parent's activity as the prior of a section's activity, in expected changes."""
    page_events: float = 0.5
    """Weight of the section's rate as the prior of a page's rate, in changes."""
    visit: float = 0.01
    """Mean number of steps between two visits to a page."""

    def lasting(self, interval: float) -> Signals:
        """Return the signals for a site whose pages are visited every `interval` steps. The memory lasts at least
        `VISITS` visits.
        """
        return replace(self, memory=max(self.memory, VISITS * interval), visit=interval)

    def spread(self, steps: float) -> Signals:
        """Return the same signals for a period that is divided into `steps` steps."""
        return replace(
            self,
            memory=self.memory * steps,
            prior_rate=self.prior_rate / steps,
            prior_exposure=self.prior_exposure * steps,
            section_steps=self.section_steps * steps,
            step_events=self.step_events / steps,
            visit=self.visit * steps,
        )
