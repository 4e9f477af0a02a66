"""A generated web with a spam farm: 200 good sites, 20,000 pages of spam on 500 hosts, the same for the same number.

Written and committed, with the ten webs of `WEBS`, before the policies that it tests were tuned. What is good and what
is spam is known to the tests alone; the crawl sees URLs, links and texts.

Good sites have 5 to 120 pages (a few large, many small): a home page, sections below it, articles below those. Links
lead down, back up, to neighbours, and from one page in five to another good site, the more often the larger it is.
One page in fifty is a guestbook in which spammers left one to three links, nine in ten to one of the farm's 40 money
pages. Spam hosts have 40 pages each. A spam page links its own home page, ten pages anywhere in the farm, two money
pages, and, for camouflage, one home page of a good site. Nine in ten show what they sell; the rest are copied prose.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

__all__ = ["WEBS", "SpamWeb"]

WEBS = (11, 23, 37, 41, 53, 67, 79, 83, 97, 101)
"""The numbers of the ten webs that every figure is the worst or the mean of."""

GOOD_SITES, SPAM_HOSTS, HOST_PAGES, MONEY_PAGES = 200, 500, 40, 40
FAVORED, DISTRUSTED = 7, 3
"""Seeds of a crawl: home pages of good sites that somebody knows, and of spam hosts that somebody was told of."""

_PROSE = (
    "the committee met in spring and the river ran high while notes of the survey were kept with care in the old hall"
)
_PITCH = "casino bonus casino jackpot cheap pills viagra casino bonus win now"


@dataclass(frozen=True, slots=True)
class Page:
    """What a fetch would show."""

    text: str
    links: tuple[str, ...]


class SpamWeb:
    """The web of a number. `sizes` scales it down: good sites and spam hosts."""

    def __init__(self, number: int, *, good_sites: int = GOOD_SITES, spam_hosts: int = SPAM_HOSTS) -> None:
        self._rng = random.Random(number)
        self.pages: dict[str, Page] = {}
        sites = [f"http://good{site}.example" for site in range(good_sites)]
        hosts = [f"http://spam{host}.example" for host in range(spam_hosts)]
        self._farm = [f"{host}/{page}" if page else f"{host}/" for host in hosts for page in range(HOST_PAGES)]
        self._money = self._rng.sample(self._farm, MONEY_PAGES)
        trees = {site: self._tree(site) for site in sites}
        weights = [len(tree) for tree in trees.values()]
        for site, tree in trees.items():
            self._write_good(site, tree, sites, weights)
        self.good = frozenset(self.pages)
        for host in hosts:
            self._write_spam(host, sites)
        self.spam = frozenset(self.pages) - self.good
        large = sorted(sites, key=lambda site: -len(trees[site]))[: good_sites // 4]
        self.favored = tuple(f"{site}/" for site in self._rng.sample(large, FAVORED))
        self.distrusted = tuple(f"{host}/" for host in self._rng.sample(hosts, DISTRUSTED))

    def _tree(self, site: str) -> list[str]:
        """The pages of a good site, the home page first."""
        many = min(120, max(5, round(self._rng.paretovariate(1.1) * 8)))
        sections = max(1, many // 12)
        pages = [f"{site}/"] + [f"{site}/s{section}/" for section in range(sections)]
        return pages + [f"{site}/s{self._rng.randrange(sections)}/a{page}" for page in range(many - len(pages))]

    def _write_good(self, site: str, tree: list[str], sites: list[str], weights: list[int]) -> None:
        home = f"{site}/"
        for url in tree:
            section = url[: url.rindex("/") + 1]
            below = [other for other in tree if other.startswith(url) and other != url] if url.endswith("/") else []
            if url == home:
                below = [other for other in tree if other.endswith("/") and other != home]
            links = [home, section, *below, *self._rng.sample(tree, min(2, len(tree)))]
            if self._rng.random() < 0.2:
                links.append(f"{self._rng.choices(sites, weights)[0]}/")
            if self._rng.random() < 0.02:
                for _ in range(self._rng.randint(1, 3)):
                    links.append(self._rng.choice(self._money if self._rng.random() < 0.9 else self._farm))
            self.pages[url] = Page(f"{url} {self._shuffled(_PROSE)}", self._distinct(links, url))

    def _write_spam(self, host: str, sites: list[str]) -> None:
        for number in range(HOST_PAGES):
            url = f"{host}/{number}" if number else f"{host}/"
            links = [f"{host}/", *self._rng.sample(self._farm, 10), *self._rng.sample(self._money, 2)]
            links.append(f"{self._rng.choice(sites)}/")
            sells = self._rng.random() < 0.9
            self.pages[url] = Page(f"{url} {self._shuffled(_PITCH if sells else _PROSE)}", self._distinct(links, url))

    def _shuffled(self, text: str) -> str:
        words = text.split()
        self._rng.shuffle(words)
        return " ".join(words)

    @staticmethod
    def _distinct(links: list[str], url: str) -> tuple[str, ...]:
        return tuple(link for link in dict.fromkeys(links) if link != url)
