"""Compare a new body of a page with its old copy, by the rules of its policy.

If the policy has rules about what counts as a change (`policy.counting`), only the lines that these rules select are
compared. Both copies are parsed under the current rules. An edit of the rules alone never makes a page count as
changed. A page's record has a digest of the compared lines, and a stamp that identifies the rules. If the rules were
edited and the old copy cannot be read, the page does not count as changed, and its record gets a new digest.
"""

from __future__ import annotations

import functools
import logging
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from xxhash import xxh3_64_digest

from webfountain.core.change import Comparison, verdict
from webfountain.core.line_differences import differences_of, without_noise
from webfountain.core.noise import encode
from webfountain.core.shingles import exact_resemblance
from webfountain.core.sketch import sketch
from webfountain.core.text_diff import unified
from webfountain.errors import RepositoryError
from webfountain.formats.media_type import content_type
from webfountain.frontier.pages.noise_learner import NoiseLearner

if TYPE_CHECKING:
    from collections.abc import Callable

    from webfountain.formats.document import Document, DocumentReader
    from webfountain.formats.page_units import ReadingRules
    from webfountain.policy.collection import Collection
    from webfountain.policy.counting import CountingRules
    from webfountain.policy.judge import Judge
    from webfountain.records import Fetch, FetchResult, PageRecord
    from webfountain.repository.repository import Repository

__all__ = [
    "ComparisonResult",
    "PageComparison",
    "comparison_of",
    "counted_digest",
    "counted_text",
    "is_outdated",
    "old_text",
]

logger = logging.getLogger(__name__)


class ComparisonResult(NamedTuple):
    """What a comparison of two copies found. `counted` and `noise` are new values for the page's record. `due` is the
    time of a requested extra visit, or None.
    """

    verdict: Comparison
    diff: str | None
    counted: bytes
    noise: bytes = b""
    due: float | None = None


class PageComparison:
    """Compares the copies of pages in one collection.

    - `old_document`: reads a page's newest stored copy by the given rules; returns None if there is none.
    - `diffs`: whether each change gets a diff of its lines.
    - `order`: orders an extra visit of a fetched page at a time; None: only the record has this time.
    """

    def __init__(
        self,
        old_document: Callable[[PageRecord, ReadingRules], Document | None],
        learner: NoiseLearner,
        *,
        diffs: bool,
        order: Callable[[Fetch, float], None] | None = None,
    ) -> None:
        self._order = order
        self._old_document = old_document
        self.learner = learner
        self._diffs = diffs
        self._has_reported = False

    def compare(
        self, record: PageRecord, fetched: FetchResult, digest: str, document: Document, rules: CountingRules
    ) -> ComparisonResult:
        """Compare a page's copy with a new body that has another digest."""
        if is_outdated(record, rules):
            self._report_edit()
        old = functools.cache(lambda: self._copy(record, rules))
        if not rules.by_lines:
            if record.counted and old() is None:  # it was judged by rules that are no longer there
                return ComparisonResult(self._without_copy(record, document, rules), None, b"")
            found = self._by_text(record, digest, document, rules, old)
            return ComparisonResult(found, self._diff(old, document), b"")
        counted = counted_digest(document, rules)
        # Noise is learned by comparison with the copy, even if nothing that counts differs.
        if record.counted == counted and (not rules.learns or old() is None):
            noise = record.noise if rules.learns else b""
            return ComparisonResult(Comparison("minor", 1.0), "" if self._diffs else None, counted, noise)
        copy = old()
        if copy is None:
            return ComparisonResult(self._without_copy(record, document, rules), None, counted, record.noise)
        if not rules.learns:
            before, now = (rules.counted(each.line_text) for each in (copy, document))
            return ComparisonResult(_by_lines(before, now, rules.min_change), self._diff(old, document), counted)
        return self._learned(record, fetched, copy, document, rules)._replace(counted=counted)

    def _learned(
        self, record: PageRecord, fetched: FetchResult, copy: Document, document: Document, rules: CountingRules
    ) -> ComparisonResult:
        """Learn noise from two copies of a page, then compare the copies without noise."""
        old, new = copy.units or (), document.units or ()
        differences = differences_of(old, new)
        parts, noise, due = self.learner.learn(record, fetched.fetch.site, fetched.at, differences)
        if due is not None and self._order is not None:
            self._order(fetched.fetch, due)
        kept = [
            without_noise(units, changed, differences, noise)
            for units, changed in ((old, differences.old), (new, differences.new))
        ]
        before, now = (rules.counted("\n".join([unit.line for unit in units])) for units in kept)
        found = _by_lines(before, now, rules.min_change)
        shown = ("\n".join(unit.shown or unit.line for unit in units) for units in kept)
        diff = unified(*shown) if self._diffs else None
        return ComparisonResult(found, diff, b"", encode(parts), due)

    def unchanged(self, record: PageRecord, fetched: FetchResult, rules: CountingRules) -> dict[str, bytes]:
        """Return new values for the record of an unchanged page: `noise` and, if the rules were edited, a new
        digest.
        """
        noise = record.noise
        if rules.learns and noise:
            noise = encode(self.learner.learn(record, fetched.fetch.site, fetched.at, None).parts)
        if not is_outdated(record, rules) or (copy := self._copy(record, rules)) is None:
            return {"noise": noise}
        self._report_edit()
        found = {"noise": noise, "counted": counted_digest(copy, rules) if rules.by_lines else b""}
        drawn = sketch(counted_text(copy, rules)) if record.sketch is not None else None
        return found if drawn is None else {**found, "sketch": drawn}

    def _copy(self, record: PageRecord, rules: CountingRules) -> Document | None:
        reading = rules.reading
        if reading.shown == "markdown":
            reading = msgspec.structs.replace(reading, base=record.url)
        return self._old_document(record, reading)

    def _by_text(
        self,
        record: PageRecord,
        digest: str,
        document: Document,
        rules: CountingRules,
        old: Callable[[], Document | None],
    ) -> Comparison:
        assert record.digest is not None
        return verdict(
            record.digest,
            digest,
            min_change=rules.min_change,
            text=document.text,
            old_text=lambda: None if (copy := old()) is None else copy.text,
            old_sketch=record.sketch,
        )

    def _without_copy(self, record: PageRecord, document: Document, rules: CountingRules) -> Comparison:
        """Return the result for a page whose old copy cannot be read."""
        if is_outdated(record, rules):
            return Comparison("minor")
        if rules.min_change <= 0:
            return Comparison("changed")
        text = counted_text(document, rules)
        return verdict("", ".", min_change=rules.min_change, text=text, old_text=lambda: None, old_sketch=record.sketch)

    def _report_edit(self) -> None:
        if not self._has_reported:
            self._has_reported = True
            logger.info(
                "The rules of what counts as a change were edited: the digest of each page is computed again at its "
                "next visit"
            )

    def _diff(self, old: Callable[[], Document | None], document: Document) -> str | None:
        """Return a diff of the visible lines, or None if the collection records no diffs."""
        if not self._diffs or (copy := old()) is None:
            return None
        return unified("\n".join(copy.shown), "\n".join(document.shown))


def comparison_of(
    collection: Collection,
    repository: Repository | None,
    reader: DocumentReader,
    order: Callable[[Fetch, float], None] | None,
) -> PageComparison:
    learner = NoiseLearner(collection.cycle.period_s, collection.cycle.fastest_s)
    old = partial(old_document, repository, reader)
    return PageComparison(old, learner, diffs=bool(collection.changes.diff), order=order)


def is_outdated(record: PageRecord, rules: CountingRules) -> bool:
    """Return whether the rules of what counts as a change were edited since a page was last compared."""
    return record.counted[:4] != rules.stamp


def counted_text(document: Document, rules: CountingRules) -> str:
    """Return the part of a page's text that counts in comparisons, including noise."""
    return rules.counted(document.line_text) if rules.by_lines else document.text


def counted_digest(document: Document, rules: CountingRules) -> bytes:
    """Return the value of `PageRecord.counted` for a page that is compared by lines."""
    return rules.stamp + xxh3_64_digest(counted_text(document, rules).encode("utf-8", "replace"))


def _by_lines(before: str, now: str, min_change: float) -> Comparison:
    """Compare the relevant lines of two copies of a page."""
    if before == now:
        return Comparison("minor", 1.0)
    resemblance = exact_resemblance(before, now)
    is_change = min_change <= 0 or resemblance < 1 - min_change
    return Comparison("changed" if is_change else "minor", resemblance)


def old_document(
    repository: Repository | None, reader: DocumentReader, record: PageRecord, rules: ReadingRules
) -> Document | None:
    """Return a page's newest stored copy, parsed under `rules`, or None if the copy cannot be read."""
    if repository is None or record.copy is None:
        return None
    try:
        stored = repository.read(record.copy, record.url)
    except RepositoryError:
        return None
    document = reader.read(stored.body, content_type(stored.headers), None, rules)
    return None if document.error is not None else document


def old_text(repository: Repository | None, reader: DocumentReader, judge: Judge, record: PageRecord) -> str | None:
    """Return the text of a page's newest stored copy, parsed under the rules of the page's policy, or None if the copy
    cannot be read.
    """
    found = old_document(repository, reader, record, judge.policies.counting[record.policy].reading)
    return None if found is None else found.text
