"""What counts as a change: rules of a policy, edits of them, and noise that is learned from a page's own past."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.frontier.drive import collection_of
from webfountain.core.noise import MAX_PARTS, decode
from webfountain.formats.document import DocumentReader
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
        self._reader = DocumentReader(LinkExtractor(nofollow=True, robot="tester"))
        self._bodies: dict[str, bytes] = {}
        self._learner = NoiseLearner(DAY, fastest)
        self._rules = rules
        self.records: dict[str, PageRecord] = {}
        self.diffs: dict[str, str | None] = {}
        self.at = 0.0
        self.edit(rules)

    def edit(self, rules: str) -> None:
        """Go on with another policy file."""
        self._rules = rules
        collection = collection_of([SITE + "/"], rest=rules)
        self._examiner = Examiner(
            collection=collection,
            judge=Judge(collection, year=2026),
            reader=self._reader,
            comparison=PageComparison(self._old_document, self._learner, diffs=bool(collection.changes.diff)),
        )

    def restart(self) -> None:
        """Go on in another process, which has the records and the copies."""
        self._learner = NoiseLearner(DAY, DAY / 96)
        self.edit(self._rules)

    def lose(self, name: str) -> None:
        """Lose the copy of a page."""
        del self._bodies[SITE + name]

    def visit(self, name: str, html: str, *, later: float = DAY, status: int = 200) -> Visit:
        self.at += later
        url, body = SITE + name, html.encode()
        record = self.records.get(url, PageRecord(url))
        fetch = Fetch(1, "page", url, SITE, "1.2.3.4", Lease(LeaseId(SITE, 1, 1), b"k", record))
        header = (("content-type", "text/html"),)
        visit = self._examiner.examine(FetchResult(fetch, self.at, 0.1, status, header, body))
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


def test_a_position_that_differs_at_every_visit_stops_counting_and_is_named() -> None:
    pages = Pages(LEARNING)
    assert pages.seen("/", *map(clocked, range(9))) == ["new"] + ["changed"] * 5 + ["minor"] * 3
    assert [each.sample for each in decode(pages.records[SITE + "/"].noise) if each.sample] == ["8 o'clock"]


def test_a_change_beside_noise_counts_and_its_diff_has_no_noise() -> None:
    pages = Pages(LEARNING + "[changes]\ndiff = true")
    pages.seen("/", *map(clocked, range(8)))
    assert pages.visit("/", clocked(9, "A new text.")).kind == "changed"
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
    pages.seen("/", *map(clocked, range(12)))
    assert pages.seen("/", clocked(20), clocked(20), clocked(20, "B")) == ["minor", "same", "changed"]
    pages.seen("/", *[clocked(20)] * 6)
    assert pages.visit("/", clocked(21)).kind == "changed"


def learned_by_two_close_visits() -> Pages:
    """A site whose clock was learned on one page."""
    pages = Pages(LEARNING)
    pages.seen("/a", *map(clocked, range(3)))
    assert pages.visit("/a", clocked(3), later=5).kind == "changed"
    assert pages.visit("/a", clocked(4)).kind == "minor"
    return pages


def test_two_visits_seconds_apart_decide_sooner_and_for_all_pages_of_a_site() -> None:
    pages = learned_by_two_close_visits()
    assert pages.seen("/b", clocked(1), clocked(2), clocked(3, "B")) == ["new", "minor", "changed"]


def test_what_was_learned_lives_in_the_records_of_the_pages() -> None:
    pages = learned_by_two_close_visits()
    pages.visit("/b", clocked(1))
    pages.restart()
    assert pages.seen("/a", clocked(5)) == ["minor"]
    assert pages.seen("/b", clocked(2)) == ["minor"]


def test_an_edit_between_two_visits_seconds_apart_counts_and_so_do_later_ones_there() -> None:
    pages = learned_by_two_close_visits()
    assert pages.visit("/a", clocked(5, "B"), later=5).kind == "changed"
    assert pages.seen("/b", clocked(1), clocked(2, "B"), clocked(3, "B"), clocked(4, "C")) == [
        "new",
        "changed",
        "minor",
        "changed",
    ]


def test_an_author_who_saves_twice_goes_on_being_reported() -> None:
    pages = learned_by_two_close_visits()
    for number in range(6):
        assert pages.visit("/a", clocked(number, f"{number}")).kind == "changed"
        assert pages.visit("/a", clocked(number, f"{number}, mended"), later=5).kind == "changed"
        assert pages.seen("/a", *[clocked(number, f"{number}, mended")] * 2)[-1] == "same"


def test_edits_of_all_pages_of_a_site_count_on_each_of_them() -> None:
    pages = Pages(LEARNING)
    for footer in ("One", "Two", "Three"):
        kinds = [pages.visit(f"/{number}", page(f"Text {number}.", footer)).kind for number in range(20)]
        assert set(kinds) == {"new" if footer == "One" else "changed"}


def test_a_notice_on_all_pages_for_one_day_counts_when_it_comes_and_when_it_goes() -> None:
    pages = Pages(LEARNING)
    for notice in ("", BANNER, ""):
        kinds = [pages.visit(f"/{number}", page(f"Text {number}.") + notice).kind for number in range(20)]
    assert set(kinds) == {"changed"}


def test_two_visits_without_a_banner_prove_nothing_about_it() -> None:
    pages = Pages(LEARNING)
    text = "<p class=text>A text.</p>"
    pages.seen("/", f"<p class=banner>1</p>{text}", f"<p class=banner>2</p>{text}", text)
    assert pages.visit("/", text + "<!-- other bytes -->", later=5).kind == "minor"
    assert {each.evidence.close_rested for each in decode(pages.records[SITE + "/"].noise)} <= {0}


BANNER = "<div class=banner>Nine words that are the same at each of these.</div>"


@pytest.mark.parametrize(
    ("one", "other"),
    [("", BANNER), ("<h2 class=lead>Order now", "<h2 class=lead>Buy it today"), ("<p>Above.", "<p>Above.<p>Again.")],
    ids=["a block or nothing", "two wordings", "a last line or none"],
)
def test_what_comes_goes_and_comes_back_stops_counting(one: str, other: str) -> None:
    pages = Pages(LEARNING)
    answers = [f"<main><p>A text.</main>{block}" for block in (one, other, one, one, other, one, other, other, one)]
    assert pages.seen("/", *answers) == [
        "new", "changed", "changed", "same", "changed", "changed", "minor", "same", "minor",
    ]  # fmt: skip


def test_what_comes_and_goes_on_several_pages_of_a_site_counts_on_none_of_them() -> None:
    pages = Pages(LEARNING)
    for number in range(4):
        pages.seen(f"/{number}", page(), page() + BANNER, page(), page() + BANNER)
    assert pages.seen("/d", page(), page() + BANNER) == ["new", "minor"]
    assert pages.seen("/e", page(), page("Another text.") + BANNER) == ["new", "changed"]


def test_what_authors_put_on_pages_and_leave_there_for_some_visits_counts() -> None:
    pages = Pages(LEARNING)
    for number in range(18):
        answers = [page(), page() + BANNER, page() + BANNER, page() + BANNER, page()]
        if number % 6 == 5:
            answers = [page(), page() + BANNER, page()]
        assert pages.seen(f"/{number}", *answers).count("changed") == 2


def lists_of_links(seed: int) -> str:
    words = Random(seed).sample(["acorn", "beacon", "cradle", "donkey", "easel", "flute"], 4)
    return f"<ul>{''.join(f'<li><a href={word}>{word}</a>' for word in words)}</ul>"


def test_a_list_that_is_drawn_from_few_links_stops_counting_and_a_new_link_counts() -> None:
    pages = Pages(LEARNING)
    kinds = [pages.visit(f"/{number}", page() + lists_of_links(day * 10 + number)).kind
             for day in range(8) for number in range(10)]  # fmt: skip
    assert kinds[-20:] == ["minor"] * 20
    assert pages.visit("/1", page() + lists_of_links(1).replace("</ul>", "<li>goblet</ul>")).kind == "changed"


def test_a_list_in_another_order_at_each_visit_stops_counting_and_a_new_line_counts() -> None:
    pages, words = Pages(LEARNING), [f"tag{number}" for number in range(12)]
    answers = [f"<p>{'<p>'.join(Random(seed).sample(words, 12))}" for seed in range(10)]
    assert pages.seen("/", *answers)[-3:] == ["minor"] * 3
    assert pages.visit("/", answers[-2] + "<p>news").kind == "changed"


def test_a_line_without_a_class_that_is_drawn_to_any_place_stops_counting_and_paragraphs_count() -> None:
    pages = Pages(LEARNING)

    def article(seed: int, first: str = "First.") -> str:
        paragraphs = [first, "Second.", "Third.", "Fourth."]
        if seed % 2:
            paragraphs.insert(seed % 5, "Promotion.")
        return f"<main><p>{'<p>'.join(paragraphs)}"

    for day in range(4):
        kinds = [pages.visit(f"/{number}", article(Random(f"{day} {number}").randrange(10))).kind
                 for number in range(10)]  # fmt: skip
    assert "changed" not in kinds
    assert pages.visit("/1", article(1, "Another.")).kind == "changed"


def test_new_lines_on_top_of_a_list_count_at_each_visit() -> None:
    pages = Pages(LEARNING)
    lists = [f"<ul>{''.join(f'<li>news {number}' for number in range(last, last - 5, -1))}</ul>" for last in range(9)]
    assert pages.seen("/", *lists) == ["new"] + ["changed"] * 8


def test_a_position_that_is_twice_the_same_for_seconds_is_no_noise_however_often_it_changes() -> None:
    pages = Pages(LEARNING)
    pages.visit("/", clocked(0))
    for number in range(1, 10):
        assert pages.visit("/", clocked(number)).kind == "changed"
        if number in (2, 4):
            assert pages.visit("/", clocked(number) + " ", later=5).kind == "minor"


def test_an_extra_visit_is_ordered_seconds_later_for_few_of_the_visits() -> None:
    pages = Pages(LEARNING)
    for number in range(60):
        pages.visit(f"/{number}", clocked(number))
    assert pages.visit("/0", clocked(70)).record.due is None  # one difference may be an edit
    assert pages.visit("/0", clocked(71)).record.due == pages.at + 30
    pages.visit("/1", clocked(72))
    assert pages.visit("/1", clocked(73)).record.due is None


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
    assert pages.seen("/", *map(clocked, range(9))) == ["new"] + ["changed"] * 8


def test_what_is_remembered_of_a_page_is_bounded() -> None:
    pages = Pages(LEARNING)
    for number in range(8):
        pages.visit("/", "".join(f"<p class={'x' * i}>{number} {'long ' * 50}{i}" for i in range(1, 200)))
    remembered = pages.records[SITE + "/"].noise
    assert len(decode(remembered)) == MAX_PARTS
    assert len(remembered) < 4500


def test_remembered_noise_that_cannot_be_read_is_none() -> None:
    assert decode(b"\xff\x00") == []
