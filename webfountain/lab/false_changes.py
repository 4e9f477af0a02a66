"""Measure false changes: a crawl's examiner visits a generated web with clocks, adverts and counters.

The generated web has 200 pages on ten sites, in minified HTML. Each answer differs: pages have clocks, adverts,
rotating links, shuffled tags, form tokens and visit counters. The pages undergo 400 true changes of 1 to 30 words, 50
of them inside noisy blocks. `measure` visits each page once a day, and makes the extra visits that the examiner
requests. `measure` counts reported changes that are not true, and true changes that are not reported.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from webfountain.formats.document import DocumentReader
from webfountain.formats.links import LinkExtractor
from webfountain.formats.media_type import content_type
from webfountain.frontier.pages.examiner import Examiner
from webfountain.frontier.pages.noise_learner import NoiseLearner
from webfountain.frontier.pages.page_comparison import PageComparison
from webfountain.policy.collection_file import parse_collection
from webfountain.policy.judge import Judge
from webfountain.records import Fetch, FetchResult, Lease, LeaseId, PageRecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webfountain.formats.document import Document
    from webfountain.formats.page_units import ReadingRules

__all__ = [
    "LEARNING_ROUNDS",
    "PAGES",
    "ROUNDS",
    "SITES",
    "ChangingWeb",
    "NoisyWeb",
    "ReportCounts",
    "TrueChange",
    "drawn_changes",
    "measure",
]

SITES: Final = 10
PAGES: Final = 20
ROUNDS: Final = 10
LEARNING_ROUNDS: Final = 3
TRUE_CHANGES: Final = 400
INSIDE_NOISE: Final = 50
_DAY: Final = 86_400.0
_HEADERS: Final = (("content-type", "text/html; charset=utf-8"),)
_VOCABULARY: Final = """
river valley stone bridge market engine signal lantern orchard winter harvest ledger copper timber ferry
harbour window garden letter teacher doctor morning village council border treaty budget report survey sample
measure pressure current filter channel station railway ticket journey northern southern ancient modern public
private
"""
_WORDS: Final = tuple(_VOCABULARY.split())


class TrueChange(NamedTuple):
    """An edit of one page: words of a paragraph, a price, or a line inside a noisy block."""

    page: int
    round: int
    words: int
    place: str


class _Article:
    """The text that a page's author wrote."""

    def __init__(self, page: int) -> None:
        draw = Random(page)
        self.paragraphs = [" ".join(draw.choices(_WORDS, k=40)) for _ in range(6)]
        self.prices = [float(draw.randrange(1, 99)) for _ in range(4)]
        self.live = " ".join(draw.choices(_WORDS, k=30))

    def edit(self, change: TrueChange, draw: Random) -> None:
        if change.place == "price":
            self.prices[draw.randrange(len(self.prices))] += draw.randint(1, 9)
        elif change.place == "live":
            self.live = _edited(self.live, change.words, draw)
        else:
            number = draw.randrange(len(self.paragraphs))
            self.paragraphs[number] = _edited(self.paragraphs[number], change.words, draw)


class NoisyWeb:
    def __init__(self, seed: int = 1) -> None:
        self._seed = seed
        self._random = Random(seed)
        self.changes = drawn_changes(self._random)
        self._articles = [_Article(page) for page in range(SITES * PAGES)]

    def advance(self, round: int) -> dict[int, list[TrueChange]]:
        found: dict[int, list[TrueChange]] = {}
        for change in (each for each in self.changes if each.round == round):
            self._articles[change.page].edit(change, self._random)
            found.setdefault(change.page, []).append(change)
        return found

    def body(self, page: int, at: float) -> bytes:
        """Return the body that a page's server sends at the time `at`."""
        draw = Random(f"{self._seed} {page} {at}")
        site, article = page // PAGES, self._articles[page]
        clock = f"{int(at // 3600) % 24:02d}:{int(at // 60) % 60:02d}:{int(at) % 60:02d}"
        advert = (
            f'<div class="ad slot-{draw.randrange(10**6)}"><a href="/out/{draw.random()}">{_words(draw, 8)}</a></div>'
        )
        rotating = "".join(f'<li><a href="/p{n}">{_words(draw, 4)}</a></li>' for n in draw.sample(range(50), 5))
        token = f"{draw.getrandbits(64):016x}"
        paragraphs = [f"<p>{each}</p>" for each in article.paragraphs]
        if site < SITES // 2 and draw.random() < 0.5:
            paragraphs.insert(draw.randrange(6), f"<div class=inline-ad>{_words(draw, 9)}</div>")
        text = "".join(paragraphs)
        tags = "".join(f"<a href=/t{n}>{_WORDS[n]}</a><br>" for n in draw.sample(range(12), 12))
        rows = "".join(f"<tr><td>item {n}</td><td>{price:.2f}</td></tr>" for n, price in enumerate(article.prices))
        live = f'<div class="live">{draw.randrange(9, 999)} readers now. {article.live}</div>'
        noise = f'<div class="clock">{clock}</div>' if site % 2 else f"<p class=clock>Updated {clock}</p>"
        return (
            f"<!DOCTYPE html><html><head><title>Page {page}</title></head><body class=site{site}>"
            f'<header><a href="/">Site {site}</a>{noise}</header>{advert}<main><h1>Page {page}</h1>{text}'
            f"<table><tr><th>What</th><th>Price</th></tr>{rows}</table>{live}"
            f'<form action=/send><input type=hidden value="{token}"><label>Code {token[:6]}</label></form></main>'
            f'<ul class="rotating">{rotating}</ul><div class=tags>{tags}</div>'
            f'<footer><p class="counter">Visit number {draw.randrange(10**6)}</p><p>All rights kept</p></footer></body>'
        ).encode()


def drawn_changes(draw: Random) -> list[TrueChange]:
    """Return `TRUE_CHANGES` changes, at most one per page and round."""
    places = ["live"] * INSIDE_NOISE + ["paragraph", "paragraph", "price"] * TRUE_CHANGES
    found, used = [], set[tuple[int, int]]()
    for place in places[:TRUE_CHANGES]:
        while (at := (draw.randrange(SITES * PAGES), draw.randrange(LEARNING_ROUNDS, ROUNDS))) in used:
            pass
        used.add(at)
        found.append(TrueChange(*at, 1 if place == "price" else draw.randint(1, 30), place))
    return found


def _words(draw: Random, many: int) -> str:
    return " ".join(draw.choices(_WORDS, k=many))


def _edited(text: str, many: int, draw: Random) -> str:
    words = text.split()
    at = draw.randrange(len(words) - min(many, len(words)) + 1)
    words[at : at + many] = [f"{draw.choice(_WORDS)}{draw.randrange(1000)}x" for _ in range(many)]
    return " ".join(words)


class ReportCounts(NamedTuple):
    """Counts over all rounds of visits after the learning rounds."""

    reported: int
    false: int
    true: int
    missed: int
    """Unreported true changes outside noisy blocks."""
    missed_long: int
    """Missed changes of five words or more."""
    missed_inside: int
    visits: int
    extra: int

    @property
    def false_share(self) -> float:
        return self.false / self.reported if self.reported else 0.0

    @property
    def extra_share(self) -> float:
        return self.extra / self.visits


class _Visitor:
    """Visits pages with a crawl's examiner, and keeps the newest body of each page."""

    def __init__(self, rules: str) -> None:
        collection = parse_collection(
            '[collection]\nname = "noise"\nseeds = ["http://site0.example/"]\nscope = "any"\n'
            f'[politeness]\nuser_agent = "lab/1.0 (lab@example.org)"\n{rules}',
            Path("noise.toml"),
        )
        self._reader = DocumentReader(LinkExtractor(nofollow=True, robot="lab"))
        self._bodies: dict[str, bytes] = {}
        self._records: dict[str, PageRecord] = {}
        comparison = PageComparison(self._copy, NoiseLearner(_DAY, _DAY / 96), diffs=bool(collection.changes.diff))
        judge = Judge(collection, year=2026)
        self._examiner = Examiner(collection=collection, judge=judge, reader=self._reader, comparison=comparison)

    def visit(self, page: int, body: bytes, at: float) -> tuple[bool, float | None]:
        """Return whether a change was reported, and the time of the next extra visit, if any."""
        site = f"http://site{page // PAGES}.example"
        url = f"{site}/{page}"
        record = self._records.get(url, PageRecord(url))
        fetch = Fetch(1, "page", url, site, "192.0.2.1", Lease(LeaseId(site, 1, 1), b"k", record))
        visit = self._examiner.examine(FetchResult(fetch, at, 0.1, 200, _HEADERS, body))
        self._bodies[url], self._records[url] = body, visit.record
        return visit.kind == "changed", visit.record.due

    def _copy(self, record: PageRecord, rules: ReadingRules) -> Document | None:
        body = self._bodies.get(record.url)
        return None if body is None else self._reader.read(body, content_type(_HEADERS), None, rules)


class ChangingWeb(Protocol):
    """A web of `SITES` times `PAGES` pages, with known true changes."""

    def advance(self, round: int) -> Mapping[int, Sequence[TrueChange]]:
        """Apply the true changes of a round, and return them by page."""
        ...

    def body(self, page: int, at: float) -> bytes:
        """Return the body that a page's server sends at the time `at`."""
        ...


def measure(rules: str, web: ChangingWeb) -> ReportCounts:
    """Crawl `web` under `rules`, tables of a policy file, and return the counts of reported and true changes."""
    visitor = _Visitor(rules)
    counts = dict.fromkeys(ReportCounts._fields, 0)
    for round in range(ROUNDS):
        edited = web.advance(round)
        for page in range(SITES * PAGES):
            at = round * _DAY + page * 97.0 + Random(f"{page} {round}").uniform(0, _DAY / 4)
            reported, due = visitor.visit(page, web.body(page, at), at)
            counts["visits"] += 1
            if due is not None:
                counts["visits"] += 1
                counts["extra"] += 1
                again, _ = visitor.visit(page, web.body(page, due), due)
                if round >= LEARNING_ROUNDS:
                    counts["reported"] += again
                    counts["false"] += again
            if round >= LEARNING_ROUNDS:
                _count(counts, edited.get(page, []), reported=reported)
    return ReportCounts(**counts)


def _count(counts: dict[str, int], edits: Sequence[TrueChange], *, reported: bool) -> None:
    counts["reported"] += reported
    counts["false"] += reported and not edits
    counts["true"] += len(edits)
    if reported or not edits:
        return
    outside = [each for each in edits if each.place != "live"]
    counts["missed"] += len(outside)
    counts["missed_long"] += sum(each.words >= 5 for each in outside)
    counts["missed_inside"] += len(edits) - len(outside)
