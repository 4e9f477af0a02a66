"""Our own policy in the simulation: `core.activity` on the sections of one site, told only what fetches found."""

from __future__ import annotations

__all__ = ["ABLATIONS", "Fountain"]

from typing import TYPE_CHECKING

import numpy as np

from webfountain.core.activity import Activity, Signals
from webfountain.core.sections import Sections

if TYPE_CHECKING:
    import numpy.typing as npt

    from webfountain.simulate.rivals import Fetches

    Array = npt.NDArray[np.float64]
    Pages = npt.NDArray[np.int64]

ABLATIONS = {
    "fountain": Signals(),
    "fountain-siblings": Signals(siblings=False),
    "fountain-sections": Signals(sections=False),
    "fountain-history": Signals(history=False),
    "fountain-forgetting": Signals(forgetting=False),
}
"""The policy with all signals, and with each switched off: "fountain-siblings" is fountain without siblings."""


class Fountain:
    """Greatest expected index first; a day is a step."""

    def __init__(self, urls: list[str], *, signals: Signals) -> None:
        self._urls, self._sections = urls, Sections()
        self._section = np.full(len(urls), -1, dtype=np.int64)  # of the pages met so far
        self._activity = Activity(self._sections, signals=signals)
        self._events, self._exposure = np.zeros(len(urls)), np.zeros(len(urls))

    def score(self, day: int, pages: Pages, tau: Pages) -> Array:
        sections = self._sections_of(pages)
        self._activity.advance(day)
        return self._activity.urgency(sections, day - tau, self._events[pages], self._exposure[pages])

    def learn(self, day: int, fetches: Fetches) -> None:
        seen = ~fetches.first & ~fetches.gone
        pages = fetches.pages[seen]
        sections = self._sections_of(pages)
        self._activity.advance(day)
        self._events[pages], self._exposure[pages] = self._activity.observe(
            sections,
            day - fetches.tau[seen],
            fetches.changed[seen],
            self._events[pages],
            self._exposure[pages],
        )

    def _sections_of(self, pages: Pages) -> Pages:
        for page in pages[self._section[pages] < 0].tolist():
            self._section[page] = self._sections.section_of(self._urls[page])
        return self._section[pages]
