"""Weigh two explanations of a site's changes: sections that change together, or pages that change independently.

Each explanation (`activity`, `independent_pages`) predicts the result of each visit. The explanation with the better
predictions gets the larger weight. Urgencies and numbers of obsolete pages are weighted means over the two
explanations. At first, the explanation by independent pages has almost no weight.

The explanation by sections makes two predictions: by the recent activity of a section, and by its mean rate alone, so
that bursts mean nothing and only the age of a copy counts. On some sites pages that were quiet for years change
together, and bursts elsewhere would draw the visits away from them. So the hazard behind an urgency is a weighted mean
of both hazards. These weights are Bayesian: one release must outweigh many quiet batches, so the gain of a batch has no
limit. Against independent pages, sections are scored by their activity: mean rates predict the visits of independent
pages well, and would keep sections in force on sites that have none.

The weights of the explanations follow the Hedge algorithm with rate 1. Each batch of visits lowers the log odds of the
worse explanation by the log likelihood ratio, but by no more than `MOST_GAIN` = 1. Without fading, the loss of the
mixture is at most (L + ln(1/w)) / (1 - 1/e), where L is the loss of the better explanation and w its first weight.

Source: Freund & Schapire, *A decision-theoretic generalization of on-line learning*, JCSS 1997, theorem 2; Hoeting et
al., *Bayesian model averaging: a tutorial*, Statistical Science 1999.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from webfountain.core.activity import TELLABLE
from webfountain.core.independent_pages import FIRST_PRIOR, RATES, likelier_prior

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from webfountain.core.arrays import Array, Flags, Ints
    from webfountain.core.signals import Signals


__all__ = ["Explanations", "Predictions", "TrustInSections", "log_odds_of"]

PRIOR_AGAIN: Final = 0.25
"""The prior of a site is re-estimated after this many fetches per page."""
FIRST_ODDS: Final = 5.0
"""Log odds, for a new site, that its pages change together by section."""
FIRST_ODDS_OF_ACTIVITY: Final = 2.0
"""Log odds, for a new site, that the activity of its sections predicts changes better than their mean rates."""
MOST_GAIN: Final = 1.0
"""Largest change of the log odds of `FIRST_ODDS` that one batch of visits can cause. One release can change many pages,
so the visits of a batch are not independent evidence.
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
    activity: float = FIRST_ODDS_OF_ACTIVITY
    """Log odds that the activity of sections predicts changes better than their mean rates."""

    @classmethod
    def begun(cls) -> TrustInSections:
        """Return the log odds and the prior over page rates of a new site."""
        return cls(FIRST_ODDS, np.inf, FIRST_PRIOR)

    def encode(self) -> bytes:
        return np.array([self.log_odds, self.fetches, *self.prior, self.activity], dtype="<f4").tobytes()

    @classmethod
    def decode(cls, data: bytes | memoryview) -> TrustInSections:
        """Restore the result of `encode`. If another version of webfountain wrote the data, return `begun()`."""
        end = 2 + len(RATES)
        if len(data) not in (4 * end, 4 * end + 4):  # an earlier version did not store `activity`
            return cls.begun()
        known = np.frombuffer(data, dtype="<f4")
        return cls(float(known[0]), float(known[1]), known[2:end], *known[end:].tolist())


class Predictions(NamedTuple):
    """Predicted chances that visits find a change; one element per visit."""

    active: Array
    """By the activity of the sections."""
    even: Array
    """By the mean rates of the sections, as if they were equally active in all steps."""
    alone: Array
    """By independent pages."""


class Explanations:
    """Weights of the two explanations, for several sites."""

    def __init__(self, trusts: Sequence[TrustInSections], *, signals: Signals) -> None:
        self.trusts = list(trusts)
        self._usual_rate = signals.prior_rate
        self.tellable = TELLABLE / max(signals.visit, _LEAST_CHANCE)
        """Highest rate, in changes per step, that visits at the usual interval can show."""
        self.prior = np.array([trust.prior for trust in self.trusts], dtype=np.float64)
        self._weigh()

    def learn(self, site: Ints, predicted: Predictions, changed: Flags, past: Sequence[Array]) -> None:
        """Update the weights and the priors from a batch of visits.

        Parameters
        ----------
        site : (visits,) number of the site of each visit
        predicted, changed : (visits,) chances of a change, predicted before the visit; whether it found one
        past : for each site, the past of all its pages
        """
        active, even, alone = predicted
        odds = log_odds_of(active, alone, changed), log_odds_of(active, even, changed)
        by_sections, by_activity = (np.bincount(site, each, minlength=len(self.trusts)) for each in odds)
        gained = np.stack([np.clip(by_sections, -MOST_GAIN, MOST_GAIN), by_activity])
        made = np.bincount(site, minlength=len(self.trusts))
        for number in np.flatnonzero(made).tolist():
            trust, count = self.trusts[number], int(made[number])
            fetches, prior = trust.fetches + count, trust.prior
            if fetches >= PRIOR_AGAIN * past[number].shape[1]:
                rates = {"usual_rate": self._usual_rate, "tellable": self.tellable}
                fetches, prior = 0.0, likelier_prior(past[number], self.prior[number], **rates)
            known = 0.5 ** (count / HALF) * np.array([trust.log_odds, trust.activity]) + gained[:, number]
            log_odds, activity = known.astype(np.float32).tolist()  # the stored precision
            self.trusts[number], self.prior[number] = TrustInSections(log_odds, fetches, prior, activity), prior
        self._weigh()

    def _weigh(self) -> None:
        self.share = _share_of([trust.log_odds for trust in self.trusts])
        """(sites,) weight of the explanation by sections, 0..1."""
        self.share_of_activity = _share_of([trust.activity for trust in self.trusts])
        """(sites,) weight of the activity of sections against their mean rates, 0..1."""


def _share_of(log_odds: Sequence[float]) -> Array:
    share = 1.0 / (1.0 + np.exp(-np.clip(log_odds, -50.0, 50.0)))
    return np.where(share > DECIDED, 1.0, np.where(share < 1.0 - DECIDED, 0.0, share))


def log_odds_of(one: Array, other: Array, changed: Flags) -> Array:
    """Return, for each visit, how much its result raises the log odds that `one` predicts better than `other`. Both are
    predicted chances of a change.
    """
    one, other = (np.clip(each, _LEAST_CHANCE, 1.0 - _LEAST_CHANCE) for each in (one, other))
    return np.where(changed, np.log(one / other), np.log((1.0 - one) / (1.0 - other)))
