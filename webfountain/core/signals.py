"""The signals that `activity` uses, and the weights of its priors.

Each signal can be switched off, so that its effect can be measured (`simulate revisit`, `bench_live`). Weights and
durations are in periods: a day of the simulation, or ``cycle.period`` of the policy file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["VISITS", "Signals"]

VISITS = 12
"""Lower limit of `Signals.memory`, in visits to a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    siblings: bool = True
    """Let a section be more active in some steps than in others; if False, its rate is the same in all steps."""
    sections: bool = True
    """Estimate a rate for each section; if False, all sections have the rate of the site."""
    history: bool = True
    """Also estimate a rate for each page from its own checks; if False, every page has the rate of its section."""
    independent: bool = True
    """Explain changes also by pages that change independently (`explanations`); if False, only by sections."""
    forgetting: bool = True
    """Let observations lose weight with age (`memory`); if False, they never lose weight."""
    memory: float = 250.0
    """The weight of an observation falls to 1/e after this many steps."""
    prior_rate: float = 1 / 120
    """Changes per page and step that are assumed before any fetch: one in four months."""
    prior_exposure: float = 50.0
    """`prior_rate` counts as much as this many observed page-steps."""
    section_steps: float = 120.0
    """As the prior of a section's rate, the parent section's rate counts as much as observing the section for this many
    steps.
    """
    step_events: float = 0.3
    """As the prior of a section's activity, the parent section's activity counts as much as this many expected changes.
    """
    page_events: float = 0.5
    """As the prior of a page's rate, the section's rate counts as much as this many changes."""
    visit: float = 0.01
    """Mean number of steps between two visits to a page."""

    def lasting(self, interval: float) -> Signals:
        """Return the signals for a site whose pages are visited every `interval` steps. The time constant `memory` is
        raised to at least `VISITS` intervals.
        """
        return replace(self, memory=max(self.memory, VISITS * interval), visit=interval)

    def spread(self, steps: float) -> Signals:
        """Return these signals for time steps of a `steps`-th of a period."""
        return replace(
            self,
            memory=self.memory * steps,
            prior_rate=self.prior_rate / steps,
            prior_exposure=self.prior_exposure * steps,
            section_steps=self.section_steps * steps,
            step_events=self.step_events / steps,
            visit=self.visit * steps,
        )
