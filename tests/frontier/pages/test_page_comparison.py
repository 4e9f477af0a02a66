"""What counts as a change: rules of a policy, edits of them, and noise that is learned from a page's own past."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.frontier.drive import collection_of
from webfountain.core.change_rate import Prior
from webfountain.core.noise import MAX_PLACES, decode
from webfountain.formats.document import PlainReader
from webfountain.formats.links import LinkExtractor
from webfountain.formats.media_type import ContentType
from webfountain.frontier.pages.examiner import Examiner
from webfountain.frontier.pages.noise_learner import NoiseLearner
from webfountain.frontier.pages.page_comparison import PageComparison
from webfountain.policy.judge import Judge
from webfountain.records import Fetch, FetchResult, Lease, LeaseId, PageRecord

if TYPE_CHECKING:
    from webfountain.formats.document import Document
    from webfountain.formats.page_units import ReadingRules
    from webfountain.frontier.visit import Visit

SITE, DAY = "http://one.example", 86_400.0
HTML = ContentType("text/html", None)


class Pages:
    """Pages that are visited again and again; each keeps its newest body."""

    def __init__(self, rules: str = "", *, fastest: float = DAY / 96) -> None:
        self._reader = PlainReader(LinkExtractor(nofollow=True, robot="tester"))
        self._bodies: dict[str, bytes] = {}
        self._learner = NoiseLearner(DAY, fastest)
        self.records: dict[str, PageRecord] = {}
        self.diffs: dict[str, str | None] = {}
        self.at = 0.0
        self.edit(rules)

    def edit(self, rules: str) -> None:
        """Go on with another policy file."""
        collection = collection_of([SITE + "/"], rest=rules)
        self._examiner = Examiner(
            collection=collection,
            judge=Judge(collection, year=2026),
            reader=self._reader,
            comparison=PageComparison(self._old_document, self._learner, diffs=bool(collection.changes.diff)),
        )

    def lose(self, name: str) -> None:
        """Lose the copy of a page."""
        del self._bodies[SITE + name]

    def visit(self, name: str, html: str, *, later: float = DAY, status: int = 200) -> Visit:
        self.at += later
        url, body = SITE + name, html.encode()
        record = self.records.get(url, PageRecord(url))
        fetch = Fetch(1, "page", url, SITE, "1.2.3.4", Lease(LeaseId(SITE, 1, 1), b"k", record))
        header = (("content-type", "text/html"),)
        visit = self._examiner.examine(FetchResult(fetch, self.at, 0.1, status, header, body), Prior(DAY))
        self.records[url], self.diffs[url] = visit.record, visit.diff
        if status == 200:
            self._bodies[url] = body
        return visit

    def seen(self, name: str, *bodies: str) -> list[str]:
        return [self.visit(name, body).kind for body in bodies]

    def _old_document(self, record: PageRecord, rules: ReadingRules) -> Document | None:
        body = self._bodies.get(record.url)
        return None if body is None else self._reader.read(body, HTML, None, rules)


def page(text: str = "A sentence that stays.", banner: str = "Cookies", extra: str = "") -> str:
    return f"<body><div class=cookie-banner>{banner}</div><main><p>{text}</p>{extra}<p>An end that stays.</p></main>"


EXACT = "[change]\nmin_change = 0\n"
MAIN = "[content]\ntext = 'main'\n"


def test_a_changed_banner_is_no_change_of_the_main_content_and_a_sentence_is() -> None:
    pages = Pages(MAIN + EXACT)
    assert pages.seen("/", page(), page(banner="Consent"), page("Another.", "Consent")) == ["new", "minor", "changed"]


def test_the_text_that_is_compared_is_the_text_that_readers_get() -> None:
    assert Pages(MAIN).visit("/", page()).reading.text == ("A sentence that stays.\nAn end that stays.")


@pytest.mark.parametrize(
    ("rules", "kinds"),
    [
        ("select = ['.price']", ["new", "minor", "changed"]),
        ("ignore = ['.clock']", ["new", "minor", "changed"]),
        (r"ignore_text = ['\d\d:\d\d']", ["new", "minor", "changed"]),
        ("ignore_kinds = ['dates']", ["new", "minor", "changed"]),
        ("ignore_kinds = ['numbers']", ["new", "minor", "minor"]),
        ("", ["new", "changed", "changed"]),
    ],
)
def test_rules_of_a_policy_say_what_counts(rules: str, kinds: list[str]) -> None:
    pages = Pages(EXACT + rules)
    bodies = [
        f"<p class=clock>It is {time}</p><p class=price>12{cents} EUR</p>"
        for time, cents in (("12:01", ""), ("12:02", ""), ("12:02", ".50"))
    ]
    assert pages.seen("/", *bodies) == kinds


def test_the_case_of_letters_can_be_left_out() -> None:
    assert Pages(EXACT + "ignore_kinds = ['case']").seen("/", "<p>Ab", "<p>aB", "<p>aC") == [
        "new",
        "minor",
        "changed",
    ]


def test_each_policy_has_its_own_rules() -> None:
    pages = Pages(EXACT + "[policies.default.change]\nignore = ['i']")
    assert pages.seen("/", "<p>a <i>1</i>", "<p>a <i>2</i>") == ["new", "minor"]


def test_an_edit_of_the_rules_is_no_change_of_a_page_and_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    pages = Pages("")
    pages.seen("/a", page())
    pages.seen("/", page(), page() + " ")
    assert caplog.messages == []
    pages.edit(MAIN + EXACT)
    assert pages.visit("/", page(banner="Consent")).kind == "minor"
    assert pages.visit("/a", page(banner="Consent")).kind == "minor"
    assert [" edited: " in message for message in caplog.messages] == [True]
    pages.edit(EXACT + "ignore_kinds = ['numbers']")
    assert pages.visit("/", page(banner="Consent 2")).kind == "minor"


def test_a_page_whose_copy_is_lost_is_judged_anew_after_an_edit_and_changed_without_one() -> None:
    pages = Pages(EXACT)
    pages.visit("/", page())
    pages.lose("/")
    pages.edit(MAIN + EXACT)
    assert pages.visit("/", page("Another.")).kind == "minor"
    pages.lose("/")
    assert pages.visit("/", page("A third.")).kind == "changed"


def test_a_page_whose_copy_is_lost_is_judged_anew_after_its_rules_were_removed() -> None:
    pages = Pages(MAIN)
    pages.visit("/", page())
    pages.lose("/")
    pages.edit("")
    assert pages.visit("/", page(banner="Consent")).kind == "minor"
    pages.lose("/")
    assert pages.visit("/", page(banner="Once more")).kind == "changed"


def test_what_counts_is_compared_by_its_digest_without_the_copy() -> None:
    pages = Pages(MAIN + EXACT)
    pages.visit("/", page())
    pages.lose("/")
    assert pages.visit("/", page(banner="Consent")).kind == "minor"


LEARNING = EXACT + "learn = true\n"


def test_where_noise_is_learned_markup_alone_is_no_change_without_the_copy() -> None:
    pages = Pages(LEARNING)
    pages.visit("/", page())
    pages.lose("/")
    assert pages.visit("/", page().replace("<main>", "<main id=a1>")).kind == "minor"


def clocked(number: int, text: str = "A text.") -> str:
    return f"<p class=clock>{number} o'clock</p><p class=text>{text}</p>"


def test_a_place_that_differs_at_every_visit_stops_counting_and_is_named() -> None:
    pages = Pages(LEARNING)
    assert pages.seen("/", *map(clocked, range(5))) == ["new", "changed", "changed", "minor", "minor"]
    [noise] = decode(pages.records[SITE + "/"].noise)
    assert (noise.is_noise, noise.sample) == (True, "4 o'clock")


def test_a_change_beside_noise_counts_and_its_diff_has_no_noise() -> None:
    pages = Pages(LEARNING + "[changes]\ndiff = true")
    pages.seen("/", *map(clocked, range(4)))
    assert pages.visit("/", clocked(5, "A new text.")).kind == "changed"
    assert pages.diffs[SITE + "/"] == "@@ -1 +1 @@\n-A text.\n+A new text.\n"


@pytest.mark.parametrize(
    ("form", "rules", "line"),
    [
        ("text", "", "north\t%s EUR"),
        ("markdown", "", f"| [north]({SITE}/n) | **%s** EUR |"),
        ("markdown", MAIN, f"| [north]({SITE}/n) | **%s** EUR |"),
        ("markdown", LEARNING, f"| [north]({SITE}/n) | **%s** EUR |"),
        ("html", "", '<a href="n">north</a> <b>%s</b> EUR'),
    ],
)
def test_a_diff_is_written_in_the_format_that_the_policy_file_names(form: str, rules: str, line: str) -> None:
    pages = Pages((rules or EXACT) + f"[changes]\ndiff = '{form}'")
    table = "<table><tr><th>Lane<th>Price<tr><td><a href=n>north</a><td><b>%s</b> EUR<tr><td>south<td>9 EUR</table>"
    pages.seen("/", page(extra=table % 12), page(extra=table % 13))
    diff = pages.diffs[SITE + "/"] or ""
    assert f"-{line % 12}\n+{line % 13}\n" in diff
    assert diff.count("\n") == 5


def test_noise_that_stays_the_same_counts_again() -> None:
    pages = Pages(LEARNING)
    pages.seen("/", *map(clocked, range(4)))
    assert pages.seen("/", clocked(9), clocked(9), clocked(9, "B"), clocked(10, "B")) == [
        "minor",
        "same",
        "changed",
        "changed",
    ]


def test_two_visits_seconds_apart_decide_for_all_pages_of_a_site() -> None:
    pages = Pages(LEARNING)
    pages.seen("/a", clocked(1), clocked(2))
    assert pages.visit("/a", clocked(3), later=5).kind == "minor"
    assert pages.seen("/b", clocked(1), clocked(2)) == ["new", "minor"]


def test_two_visits_without_a_banner_prove_nothing_about_it() -> None:
    pages = Pages(LEARNING)
    text = "<p class=text>A text.</p>"
    pages.seen("/", f"<p class=banner>1</p>{text}", f"<p class=banner>2</p>{text}", text)
    assert pages.visit("/", text + "<!-- other bytes -->", later=5).kind == "minor"
    [banner] = decode(pages.records[SITE + "/"].noise)
    assert (banner.sample, banner.tried) == ("2", 0)


BANNER = "<div class=banner>Nine words that are the same at each of these.</div>"


@pytest.mark.parametrize(
    ("one", "other"),
    [("", BANNER), ("<h2 class=lead>Order now", "<h2 class=lead>Buy it today"), ("<p>Above.", "<p>Above.<p>Again.")],
    ids=["a block or nothing", "two wordings", "a last line or none"],
)
def test_what_comes_goes_and_comes_back_stops_counting(one: str, other: str) -> None:
    pages = Pages(LEARNING)
    answers = [f"<main><p>A text.</main>{block}" for block in (one, other, one, one, other, one, other)]
    assert pages.seen("/", *answers) == ["new", "changed", "changed", "same", "changed", "minor", "minor"]


def test_what_comes_and_goes_on_several_pages_of_a_site_counts_on_none_of_them() -> None:
    pages = Pages(LEARNING)
    for name in ("/a", "/b", "/c"):
        pages.seen(name, page(), page() + BANNER, page())
    assert pages.seen("/d", page(), page() + BANNER) == ["new", "minor"]
    assert pages.seen("/e", page(), page("Another text.") + BANNER) == ["new", "changed"]


def test_what_authors_put_on_pages_and_leave_there_for_some_visits_counts() -> None:
    pages = Pages(LEARNING)
    for number in range(18):
        answers = [page(), page() + BANNER, page() + BANNER, page() + BANNER, page()]
        if number % 6 == 5:
            answers = [page(), page() + BANNER, page()]
        assert pages.seen(f"/{number}", *answers).count("changed") == 2


def test_what_two_visits_seconds_apart_find_at_rest_is_no_noise_because_it_is_undone_later() -> None:
    pages = Pages(LEARNING)
    pages.seen("/", page(), page() + BANNER)
    for end in ("\n", "\n\n", ""):
        assert pages.visit("/", page() + BANNER + end, later=5).kind in ("minor", "same")
    assert pages.seen("/", *[page(), page() + BANNER] * 5) == ["changed"] * 10


def test_new_lines_on_top_of_a_list_count_at_each_visit() -> None:
    pages = Pages(LEARNING)
    lists = [f"<ul>{''.join(f'<li>news {number}' for number in range(last, last - 5, -1))}</ul>" for last in range(9)]
    assert pages.seen("/", *lists) == ["new"] + ["changed"] * 8


def test_a_place_that_is_the_same_for_seconds_is_no_noise_however_often_it_changes() -> None:
    pages = Pages(LEARNING)
    pages.seen("/", clocked(1), clocked(2))
    assert pages.visit("/", clocked(2) + " ", later=5).kind == "minor"
    assert pages.seen("/", *map(clocked, range(3, 9))) == ["changed"] * 6


def test_an_extra_visit_is_ordered_seconds_later_for_few_of_the_visits() -> None:
    pages = Pages(LEARNING)
    for number in range(60):
        pages.visit(f"/{number}", clocked(number))
    assert pages.visit("/0", clocked(70)).record.due == pages.at + 30
    assert pages.visit("/1", clocked(71)).record.due is None


def test_a_page_that_comes_back_seconds_after_it_was_gone_may_have_changed() -> None:
    pages = Pages(LEARNING)
    pages.visit("/", clocked(1))
    pages.visit("/", "", status=404)
    assert pages.visit("/", clocked(2), later=5).kind == "changed"


def test_visits_as_often_as_pages_change_are_not_seconds_apart() -> None:
    pages = Pages(LEARNING, fastest=60)
    assert [pages.visit("/", clocked(number), later=60).kind for number in range(3)] == ["new", "changed", "changed"]


def test_a_person_can_keep_an_element_from_being_learned() -> None:
    pages = Pages(LEARNING + "always = ['.clock']")
    assert pages.seen("/", *map(clocked, range(6))) == ["new"] + ["changed"] * 5


def test_what_is_remembered_of_a_page_is_bounded() -> None:
    pages = Pages(LEARNING)
    for number in range(4):
        pages.visit("/", "".join(f"<p class={'x' * i}>{number} {'long ' * 50}{i}" for i in range(1, 200)))
    remembered = pages.records[SITE + "/"].noise
    assert len(decode(remembered)) == MAX_PLACES
    assert len(remembered) < 2500


def test_remembered_noise_that_cannot_be_read_is_none() -> None:
    assert decode(b"\xff\x00") == []
