"""What a fetch amounts to: DESIGN.md section 7's outcomes, and the record that each leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.frontier.drive import collection_of
from webfountain.core.change_rate import decode
from webfountain.formats.document import DocumentReader
from webfountain.formats.links import LinkExtractor
from webfountain.formats.media_type import ContentType
from webfountain.frontier.pages.examiner import Examiner, digest_of
from webfountain.frontier.pages.noise_learner import NoiseLearner
from webfountain.frontier.pages.page_comparison import PageComparison
from webfountain.policy.judge import Judge
from webfountain.records import Fetch, FetchResult, Lease, LeaseId, OutcomeKind, PageRecord, State

if TYPE_CHECKING:
    from webfountain.formats.document import Document
    from webfountain.formats.page_units import ReadingRules
    from webfountain.frontier.visit import Visit


URL, SITE, DAY = "http://one.example/dir/page", "http://one.example", 86_400.0
WORDS = " ".join(f"word{i}" for i in range(400))
BODY = f"<title>T</title><p>{WORDS}</p>".encode()
MINOR = BODY.replace(b"word200", b"other")
CHANGED = b"<title>T</title><p>" + " ".join(f"new{i}" for i in range(400)).encode()


def examiner(old_body: bytes | None = BODY, **policy: object) -> Examiner:
    """An examiner whose pages have one stored body, or none."""
    collection = collection_of(["http://one.example/"], **policy)
    reader = DocumentReader(LinkExtractor(nofollow=True, robot="tester"))

    def old_document(record: PageRecord, rules: ReadingRules) -> Document | None:
        return None if old_body is None else reader.read(old_body, ContentType("text/html", None), None, rules)

    learner = NoiseLearner(collection.cycle.period_s, collection.cycle.fastest_s)
    return Examiner(
        collection=collection,
        judge=Judge(collection, year=2026),
        reader=reader,
        comparison=PageComparison(old_document, learner, diffs=bool(collection.changes.diff)),
    )


def crawled(body: bytes = BODY, **fields: Any) -> PageRecord:
    known: dict[str, Any] = {
        "state": "crawled", "digest": digest_of(body), "etag": '"1"', "last_modified": "Mon", "first_seen": 0.0,
        "last_crawled": 5 * DAY, "status": 200, "depth": 2, "copied": 5 * DAY,
    } | fields  # fmt: skip
    return PageRecord(URL, **known)


def fetched(
    record: PageRecord,
    status: int = 200,
    body: bytes = BODY,
    *,
    at: float = 8 * DAY,
    error: str | None = None,
    asked: bool = True,
    **headers: str,
) -> FetchResult:
    conditional: dict[str, Any] = {"etag": record.etag, "last_modified": record.last_modified} if asked else {}
    fetch = Fetch(1, "page", URL, SITE, None, Lease(LeaseId(SITE, 1, 1), b"k", record), **conditional)
    if error:
        return FetchResult(fetch, at, 0.5, error=error)
    given = {"content-type": "text/html"} | {name.replace("_", "-"): value for name, value in headers.items()}
    return FetchResult(fetch, at, 0.5, status, tuple(given.items()), body)


def visit_of(
    record: PageRecord, status: int = 200, body: bytes = BODY, *, on: Examiner | None = None, **more: Any
) -> Visit:
    return (on or examiner()).examine(fetched(record, status, body, **more))


OUTCOMES: list[tuple[PageRecord, dict[str, Any], OutcomeKind, State]] = [
    (PageRecord(URL), {"status": 200}, "new", "crawled"),
    (crawled(), {"status": 200}, "same", "crawled"),
    (crawled(), {"status": 200, "body": MINOR}, "minor", "crawled"),
    (crawled(), {"status": 200, "body": CHANGED}, "changed", "crawled"),
    (crawled(), {"status": 304, "body": b""}, "not_modified", "crawled"),
    (crawled(), {"status": 304, "body": b"", "asked": False}, "failed", "crawled"),
    (PageRecord(URL), {"status": 304, "body": b""}, "failed", "failed"),
    (PageRecord(URL), {"status": 204, "body": b""}, "failed", "failed"),
    (crawled(), {"status": 206}, "failed", "crawled"),
    (PageRecord(URL), {"status": 404}, "gone", "gone"),
    (crawled(), {"status": 410}, "gone", "gone"),
    (crawled(), {"status": 301, "location": "/new"}, "redirected", "redirected"),
    (crawled(), {"status": 308, "location": "/new"}, "redirected", "redirected"),
    (PageRecord(URL), {"status": 302}, "failed", "failed"),
    (PageRecord(URL), {"status": 302, "location": "mailto:x@y"}, "failed", "failed"),
    (PageRecord(URL), {"status": 302, "location": "#here"}, "failed", "failed"),
    (PageRecord(URL), {"status": 300, "location": "/a"}, "failed", "failed"),
    (crawled(), {"status": 429}, "failed", "crawled"),
    (crawled(), {"status": 500}, "failed", "crawled"),
    (PageRecord(URL), {"status": 403}, "failed", "failed"),
    (PageRecord(URL), {"error": "timeout"}, "failed", "failed"),
    (crawled(state="gone", failures=2), {"status": 503}, "failed", "gone"),
    (crawled(state="redirected", failures=2), {"error": "cut"}, "failed", "redirected"),
    (crawled(state="gone", failures=3), {"status": 200}, "same", "crawled"),
    (crawled(state="gone", failures=3), {"status": 200, "body": CHANGED}, "changed", "crawled"),
    (crawled(state="refused", failures=1), {"error": "dns"}, "failed", "failed"),
]


@pytest.mark.parametrize(("before", "answer", "kind", "state"), OUTCOMES)
def test_every_answer_has_its_outcome_and_its_state(
    before: PageRecord, answer: dict[str, Any], kind: OutcomeKind, state: State
) -> None:
    visit = visit_of(before, **answer)
    after = visit.record
    assert (visit.kind, after.state, after.verdict) == (kind, state, kind)
    assert after.status == (None if "error" in answer else answer["status"])
    if kind in ("new", "same", "minor", "changed", "not_modified"):
        assert (after.error, after.failures, after.due, after.last_crawled) == (None, 0, None, 8 * DAY)
    else:
        assert after.failures == before.failures + 1
        assert after.due == 8 * DAY + DAY * 2**before.failures, "it backs off from one period"
        assert (after.checks, after.changes, after.digest, after.copied) == (
            before.checks, before.changes, before.digest, before.copied,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"status": 302}, "bad-redirect"),
        ({"status": 302, "location": "ftp://one.example/"}, "bad-redirect"),
        ({"status": 302, "location": URL}, "redirect-loop"),
        ({"status": 204}, "status 204"),
        ({"error": "too-slow"}, "too-slow"),
        ({"status": 404}, None),
    ],
)
def test_the_error_says_why(answer: dict[str, Any], error: str | None) -> None:
    assert visit_of(PageRecord(URL), **answer).record.error == error


def test_a_first_copy_has_no_checks() -> None:
    record = visit_of(PageRecord(URL, first_seen=7 * DAY), etag='"9"').record
    assert (record.checks, record.changes, record.last_changed) == (0, 0, None)
    assert (record.digest, record.etag, record.last_modified) == (digest_of(BODY), '"9"', None)
    assert record.copied == 8 * DAY


def test_a_change_that_counts_is_dated_and_one_that_does_not_replaces_the_copy_all_the_same() -> None:
    changed = visit_of(crawled(), body=CHANGED, last_modified="Tue").record
    assert (changed.checks, changed.changes, changed.last_changed) == (1, 1, 8 * DAY)
    minor = visit_of(crawled(), body=MINOR, last_modified="Tue").record
    assert (minor.checks, minor.changes, minor.last_changed) == (1, 0, None)
    for record, body in ((changed, CHANGED), (minor, MINOR)):
        assert (record.digest, record.copied) == (digest_of(body), 8 * DAY)
        assert (record.etag, record.last_modified) == (None, "Tue"), "validators are those of the new copy"


def test_an_unchanged_page_keeps_its_copy_and_takes_new_validators() -> None:
    kept = visit_of(crawled(), 304, b"", etag='"2"').record
    assert (kept.etag, kept.last_modified, kept.copied) == ('"2"', "Mon", 5 * DAY)
    assert (kept.checks, kept.changes) == (1, 0)


def test_a_check_s_interval_is_the_time_since_the_last_good_fetch() -> None:
    visit = visit_of(crawled())
    assert visit.observed_time == 3 * DAY
    (check,) = decode(visit.record.history)
    assert check.interval == pytest.approx(3 * DAY, rel=0.1)
    assert not check.changed


def test_a_redirect_is_a_link_at_the_source_s_depth_and_one_out_of_scope_is_counted() -> None:
    visit = visit_of(crawled(), 301, location="/new")
    assert [(link.url, link.depth, link.source) for link in visit.reading.links] == [("http://one.example/new", 2, URL)]
    raw = visit_of(crawled(), 301, location="/café".encode().decode("latin-1"))
    assert [link.url for link in raw.reading.links] == ["http://one.example/caf%C3%A9"]
    away = visit_of(crawled(), 301, location="http://two.example/")
    assert away.reading.links == ()
    assert away.reading.refused == {"judge/out_of_scope": 1}


def test_the_record_of_a_redirect_names_its_target_until_the_page_answers_itself() -> None:
    moved = visit_of(crawled(), 301, location="/new#part")
    assert moved.record.target == moved.target == "http://one.example/new"
    assert visit_of(moved.record, 200).record.target is None
    assert visit_of(moved.record, 404).record.target is None


def test_links_are_judged_one_deeper_and_only_a_new_body_is_read() -> None:
    body = b'<a href="a">x</a><a href="/b">y</a><a href="http://two.example/">z</a>'
    visit = visit_of(crawled(), body=body)
    assert [(link.url, link.depth) for link in visit.reading.links] == [
        ("http://one.example/dir/a", 3), ("http://one.example/b", 3),
    ]  # fmt: skip
    assert visit.reading.links_seen == 3
    assert visit_of(crawled(body), body=body).reading.links == ()


def test_plain_text_has_text_and_no_links() -> None:
    visit = visit_of(PageRecord(URL), body=b'<a href="a">x</a>', content_type="text/plain; charset=utf-8")
    assert visit.reading.text == '<a href="a">x</a>'
    assert visit.reading.links == ()


def test_without_the_old_text_a_new_digest_counts_as_a_change() -> None:
    on = examiner(None)
    assert visit_of(crawled(), body=MINOR, on=on).kind == "changed"
    exact = examiner(rest="[change]\nmin_change = 0")
    assert visit_of(crawled(), body=MINOR, on=exact).kind == "changed"


def test_a_page_is_examined_at_once_unless_its_text_must_be_compared_with_the_old_copys() -> None:
    at_once = examiner().examine_at_once
    exact = examiner(rest="[change]\nmin_change = 0").examine_at_once
    assert at_once(fetched(crawled(), body=MINOR)) is None
    for quick, record, fields in (
        (exact, crawled(), {"body": MINOR}),
        (at_once, crawled(), {}),
        (at_once, PageRecord(URL), {}),
        (at_once, crawled(), {"status": 404}),
    ):
        assert quick(fetched(record, **fields)) == visit_of(
            record, on=None if quick is at_once else examiner(rest="[change]\nmin_change = 0"), **fields
        )


def test_an_item_is_given_for_new_changed_and_gone_and_once_for_what_stays_gone() -> None:
    item = visit_of(PageRecord(URL, depth=1)).item()
    assert item is not None
    assert (item["verdict"], item["url"], item["title"], item["depth"]) == ("new", URL, "T", 1)
    assert item["digest"] == digest_of(BODY)
    gone = visit_of(crawled(), 404).item()
    assert gone is not None
    assert (gone["verdict"], gone["digest"], gone["text"]) == ("gone", None, "")
    assert visit_of(crawled(state="gone", failures=1), 404).item() is None
    for quiet in ({"body": MINOR}, {}, {"status": 500}, {"status": 304, "body": b""}):
        assert visit_of(crawled(), **quiet).item() is None
