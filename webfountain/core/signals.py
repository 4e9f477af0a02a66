"""The signals that `activity` uses, and the weights of its priors.

Each signal can be switched off, so that its effect can be measured (`simulate revisit`, `bench_live`). Weights and
durations are in periods: a day of the simulation, or ``cycle.period`` of the policy file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["VISITS", "Signals"]

VISITS = 12
"""Minimum number of visits to a page for which evidence is remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """Signals that `activity` uses, and the weights of its priors."""

    siblings: bool = True
    """Let a section be more active in some steps than in others. Without this signal, the rate of a section is the same
    in all steps.
    """
    sections: bool = True
    """Estimate a rate for each section. Without this signal, all sections have the rate of the site."""
    history: bool = True
    """Estimate the rate of each page from its own checks, too. Without this signal, every page has the rate of its
    section.
    """
    independent: bool = True
    """Also explain changes by independent pages (`explanations`). Without this signal, changes are explained by
    sections alone.
    """
    forgetting: bool = True
    """Let old evidence fade with `memory`. Without this signal, old evidence never loses weight."""
    memory: float = 250.0
    """Number of steps after which evidence has the weight 1/e."""
    prior_rate: float = 1 / 120
    """Changes per page and step that are assumed before any fetch: one in four months."""
    prior_exposure: float = 50.0
    """Weight of `prior_rate`, in page-steps."""
    section_steps: float = 120.0
    """Weight of the parent's rate in a section's rate, in steps in which all pages of the section are observed."""
    step_events: float = 0.3
    """Weight of the parent's activity in a section's activity, in expected changes."""
    page_events: float = 0.5
    """Weight of the section's rate in a page's rate, in changes."""
    visit: float = 0.01
    """Mean number of steps between two visits to a page."""

    def lasting(self, interval: float) -> Signals:
        """Return the signals for a site whose pages are visited every `interval` steps. The memory lasts at least
        `VISITS` visits.
        """
        return replace(self, memory=max(self.memory, VISITS * interval), visit=interval)

    def spread(self, steps: float) -> Signals:
        """Return the same priors for a period that is divided into `steps` steps."""
        return replace(
            self,
            memory=self.memory * steps,
            prior_rate=self.prior_rate / steps,
            prior_exposure=self.prior_exposure * steps,
            section_steps=self.section_steps * steps,
            step_events=self.step_events / steps,
            visit=self.visit * steps,
        )
