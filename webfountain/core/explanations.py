"""Weigh two explanations of a site's changes: sections that change together, or pages that change independently.

Each explanation (`activity`, `independent_pages`) predicts the result of each visit. The explanation with the better
predictions gets the larger weight. Urgencies and numbers of obsolete pages are weighted means over the two
explanations. At first, the explanation by independent pages has almost no weight.

The weights follow the Hedge algorithm with rate 1. Each batch of visits lowers the log odds of the worse explanation by
the log likelihood ratio, but by no more than `MOST_GAIN` = 1. Without fading, the loss of the mixture is at most (L +
ln(1/w)) / (1 - 1/e), where L is the loss of the better explanation and w its first weight.

Source: Freund & Schapire, *A decision-theoretic generalization of on-line learning*, JCSS 1997, theorem 2; Hoeting et
al., *Bayesian model averaging: a tutorial*, Statistical Science 1999.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from webfountain.core.activity import TELLABLE
from webfountain.core.independent_pages import FIRST_PRIOR, RATES, likelier_prior
from webfountain.core.value_of_information import LaterVisits

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from webfountain.core.arrays import Array, Flags, Ints
    from webfountain.core.signals import Signals


__all__ = ["Explanations", "TrustInSections", "log_odds_of"]

PRIOR_AGAIN: Final = 0.25
"""The prior of a site is re-estimated after this many fetches per page."""
FIRST_ODDS: Final = 5.0
"""Log odds, for a new site, that its pages change together by section."""
MOST_GAIN: Final = 1.0
"""Largest change of the log odds that one batch of visits can cause. One release can change many pages, so the visits
of a batch are not independent evidence.
"""
HALF: Final = 2000.0
"""A prediction loses half of its weight after this many visits."""
DECIDED: Final = 0.98
"""If an explanation weighs more than this, the estimates under the other explanation are not computed."""
_LEAST_CHANCE: Final = 1e-4
"""Lower limit of the predicted probability of a fetch result, so that no single fetch outweighs all others."""


class TrustInSections(NamedTuple):
    """Log odds that a site's pages change together by section, and the prior over page rates in case they do not."""

    log_odds: float
    fetches: float
    """Number of fetches since the prior was estimated."""
    prior: npt.NDArray[np.float32]
    """(rates,) prior probability of each change rate."""

    @classmethod
    def begun(cls) -> TrustInSections:
        """Return the log odds and the prior over page rates of a new site."""
        return cls(FIRST_ODDS, np.inf, FIRST_PRIOR)

    def encode(self) -> bytes:
        return np.array([self.log_odds, self.fetches, *self.prior], dtype="<f4").tobytes()

    @classmethod
    def decode(cls, data: bytes | memoryview) -> TrustInSections:
        """Restore the result of `encode`. If another version of webfountain wrote the data, return `begun()`."""
        known = np.frombuffer(data, dtype="<f4") if len(data) == 4 * (2 + len(RATES)) else None
        return cls.begun() if known is None else cls(float(known[0]), float(known[1]), known[2:])


class Explanations:
    """Weights of the two explanations, for several sites."""

    def __init__(self, trusts: Sequence[TrustInSections], *, signals: Signals) -> None:
        self.trusts = list(trusts)
        self._usual_rate = signals.prior_rate
        self.tellable = TELLABLE / max(signals.visit, _LEAST_CHANCE)
        """Highest rate, in changes per step, that visits at the usual interval can show."""
        self.later = LaterVisits(usual_rate=signals.prior_rate, visit=signals.visit)
        self.prior = np.array([trust.prior for trust in self.trusts], dtype=np.float64)
        self.share = self._shares()
        """(sites,) weight of the explanation by sections, 0..1."""

    def learn(self, site: Ints, odds: Array, past: Sequence[Array]) -> None:
        """Update the weights and the priors from a batch of visits.

        Parameters
        ----------
        site : (visits,) number of the site of each visit
        odds : (visits,) what each visit adds to the log odds
        past : for each site, the past of all its pages
        """
        gained = np.bincount(site, odds, minlength=len(self.trusts))
        made = np.bincount(site, minlength=len(self.trusts))
        for number in np.flatnonzero(made).tolist():
            trust, count = self.trusts[number], int(made[number])
            fetches, prior = trust.fetches + count, trust.prior
            if fetches >= PRIOR_AGAIN * past[number].shape[1]:
                rates = {"usual_rate": self._usual_rate, "tellable": self.tellable}
                fetches, prior = 0.0, likelier_prior(past[number], self.prior[number], **rates)
            gain = min(max(float(gained[number]), -MOST_GAIN), MOST_GAIN)
            log_odds = float(np.float32(0.5 ** (count / HALF) * trust.log_odds + gain))  # the stored precision
            self.trusts[number], self.prior[number] = TrustInSections(log_odds, fetches, prior), prior
        self.share = self._shares()

    def _shares(self) -> Array:
        share = 1.0 / (1.0 + np.exp(-np.clip([trust.log_odds for trust in self.trusts], -50.0, 50.0)))
        return np.where(share > DECIDED, 1.0, np.where(share < 1.0 - DECIDED, 0.0, share))


def log_odds_of(by_sections: Array, alone: Array, changed: Flags) -> Array:
    """Return, for each visit, how much its result raises the log odds that pages change together by section. The
    arguments `by_sections` and `alone` are the chances of a change that the two explanations predicted.
    """
    one, other = (np.clip(each, _LEAST_CHANCE, 1.0 - _LEAST_CHANCE) for each in (by_sections, alone))
    return np.where(changed, np.log(one / other), np.log((1.0 - one) / (1.0 - other)))
