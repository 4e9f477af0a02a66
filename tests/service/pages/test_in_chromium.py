"""The pages in Chromium against a live crawl: three widths, dark and light, by mouse, by keyboard, without scripts."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import pytest

from tests.acceptance.crawls import policy
from tests.service.pages.browser import TIMEOUT_MS, browser, violations
from tests.service.pages.strangers import PAYLOADS, SITE, hostile_store
from webfountain.commands.children import index_beside
from webfountain.lab.demo.process import DemoServer
from webfountain.service.pages.views import VIEWS
from webfountain.service.settings import StoreEntry
from webfountain.store.locations import is_in_use

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.system

ROOT = Path(__file__).resolve().parents[3]
PREFIX = "webfountain serves at "
WIDTHS = (1400, 800, 390)
SESSIONS: dict[str, Any] = {}
"""Printed address -> the cookie that it gave."""


class Live(NamedTuple):
    """A crawl of the generated web with the service beside it."""

    login: str
    here: str
    """Address of the collection's overview."""
    seed: str
    policy: Path

    @property
    def paths(self) -> dict[str, str]:
        """Name of each page -> its address."""
        more = {name: f"?site={quote(self.seed.rstrip('/'))}" for name in ("site", "pages")}
        more |= {name: f"?url={quote(self.seed)}" for name in ("compare", "links")}
        found = {view.name: self.here + view.path + more.get(view.name, "") for view in VIEWS}
        return found | {
            "home": self.here.split("/collections")[0] + "/",
            "one page": f"{self.here}/page?url={quote(self.seed)}",
        }


@contextlib.contextmanager
def started(*arguments: str, errors: Path) -> Iterator[str]:
    """A command of ours until the block ends; the address that it prints first."""
    with errors.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "webfountain", *arguments], cwd=ROOT, stdout=file, stderr=file
        )
    try:
        yield wait_for(
            lambda: next(
                (x.removeprefix(PREFIX) for x in errors.read_text().splitlines() if x.startswith(PREFIX)), None
            )
        )
    finally:
        process.terminate()
        process.wait()


def wait_for(found: Any) -> Any:
    until = time.monotonic() + TIMEOUT_MS / 1000
    while not (value := found()):
        assert time.monotonic() < until, "it takes too long"
        time.sleep(0.05)
    return value


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("live")
    with DemoServer(seed=3, sites=4, pages=120, period=3, latency=0.002) as web:
        file = policy(
            folder, web.urls, changes={"diff": True}, cycle={"period": "5s"}, politeness={"min_delay": "50ms"},
            repository={"keep": "all"}, ranking={"every": "1h"},
        )  # fmt: skip
        line = ["crawl", str(file), f"--store=rocksdb://{folder}/store", "--serve=127.0.0.1:0", "--max-seconds=3600"]
        with started(*line, errors=folder / "errors") as login:
            here = login.split("/login")[0] + "/collections/store"
            with index_beside([StoreEntry("store", f"rocksdb://{folder}/store")]):
                yield Live(login, here, web.urls[0], file)


@contextlib.contextmanager
def opened(
    chromium: Any, login: str, *, width: int = 1400, scheme: str = "light", scripts: bool = True
) -> Iterator[Any]:
    """A page of a new viewer who is logged in. At the end nothing was said on the console."""
    context = chromium.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts
    )
    context.set_default_timeout(TIMEOUT_MS)
    page, said = context.new_page(), list[str]()
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    try:
        context.add_cookies(SESSIONS[login])
        yield page
    finally:
        context.close()
    assert not said


@pytest.fixture(scope="module")
def session(chromium: Any, live: Live) -> str:
    """Use the printed address, which works once; its cookie is given to every later viewer."""
    context = chromium.new_context()
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    page.goto(live.login)
    assert page.title().startswith("Collections")
    SESSIONS[live.login] = context.cookies()
    wait_for(lambda: _has_changes(page, live))
    context.close()
    return live.login


def _has_changes(page: Any, live: Live) -> bool:
    """Whether the crawl has fetched something and found a change with a difference."""
    page.goto(f"{live.here}/changes?verdict=changed")
    return bool(page.locator(".diff").count())


def test_chromium_runs_in_its_sandbox(chromium: Any) -> None:
    page = chromium.new_page()
    page.goto("chrome://sandbox")
    assert "You are adequately sandboxed" in page.inner_text("body")
    page.close()


TOO_WIDE = """document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("body *")]
  .filter(each => each.getBoundingClientRect().right > innerWidth && !each.closest("nav, .scroll"))
  .map(each => each.outerHTML.slice(0, 200))"""
"""What is cut off at the right where a page scrolls sideways."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_fits_and_is_accessible(chromium: Any, live: Live, session: str, width: int, scheme: str) -> None:
    with opened(chromium, session, width=width, scheme=scheme) as page:
        for name, address in live.paths.items():
            answer = page.goto(address)
            assert answer.status == 200, name
            assert violations(page) == [], f"{name} at {width}, {scheme}"
            assert page.evaluate(TOO_WIDE) == [], f"{name} at {width}"


def test_every_page_is_of_use_without_scripts(chromium: Any, live: Live, session: str) -> None:
    with opened(chromium, session, scripts=False) as page:
        for name, address in live.paths.items():
            page.goto(address)
            assert page.locator("h1").inner_text(), name
            assert page.locator("main").inner_text().count(" ") > 8, name
        page.goto(live.paths["overview"])
        page.get_by_role("link", name="Changes", exact=True).click()
        page.get_by_label("Verdict").select_option("changed")
        page.get_by_role("button", name="Filter").click()
        assert page.locator("ins, del").count()


def test_the_figures_move_and_times_are_local(chromium: Any, live: Live, session: str) -> None:
    with opened(chromium, session) as page:
        page.goto(live.here)
        fetched = page.locator("[data-figure=fetched]")
        before = fetched.inner_text()
        page.wait_for_function(
            "before => document.querySelector('[data-figure=fetched]').textContent !== before", arg=before
        )
        assert page.locator("footer time .local").count() == 1


def press_until(page: Any, goal: str) -> None:
    """Press Tab until an element with this text or name has the focus."""
    for _ in range(400):
        page.keyboard.press("Tab")
        found = page.evaluate("(e => [e.innerText, e.name, e.id])(document.activeElement)")
        if goal in [str(each).strip() for each in found]:
            return
    raise AssertionError(f"no Tab leads to {goal!r}")


def test_a_change_is_found_and_its_difference_read_by_keyboard(chromium: Any, live: Live, session: str) -> None:
    with opened(chromium, session) as page:
        page.goto(live.here)
        press_until(page, "Changes")
        page.keyboard.press("Enter")
        page.wait_for_url("**/changes")
        press_until(page, "verdict")
        page.keyboard.type("cha")
        press_until(page, "Filter")
        page.keyboard.press("Enter")
        page.wait_for_url("**verdict=changed**")
        assert page.locator("ins").first.is_visible()


def open_differing_versions(page: Any, live: Live, by: str) -> None:
    """Open the comparison of a changed page. The crawl goes on: the newest two versions of a page that changed a while
    ago may have the same text, then the next page is tried.
    """
    changed = f"{live.here}/changes?verdict=changed"
    page.goto(changed)
    for number in range(page.locator(".change h2 a").count()):
        page.goto(changed)
        page.locator(".change h2 a").nth(number).click()
        if by == "mouse":
            page.get_by_role("link", name="Versions of this page, compared").click()
        else:
            press_until(page, "Versions of this page, compared")
            page.keyboard.press("Enter")
        page.wait_for_url("**/compare?**")
        if page.locator("ins, del").count():
            return
    raise AssertionError("no changed page has two versions with different texts")


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_two_versions_of_a_page_are_compared(chromium: Any, live: Live, session: str, by: str) -> None:
    with opened(chromium, session) as page:
        open_differing_versions(page, live, by)
        if by == "mouse":
            page.get_by_label("Differences").select_option("side")
            page.get_by_role("button", name="Compare").click()
        else:
            press_until(page, "view")
            page.keyboard.type("side")
            press_until(page, "Compare")
            page.keyboard.press("Enter")
        page.wait_for_url("**view=side**")
        assert page.locator(".side ins, .side del").count()


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_a_url_is_asked_for_and_comes(chromium: Any, live: Live, session: str, by: str) -> None:
    with opened(chromium, session) as page:
        page.goto(f"{live.here}/page?url={quote(live.seed)}")
        before = _last_fetch(page)
        page.goto(f"{live.here}/now")
        if by == "mouse":
            page.get_by_label("URLs, one per line").fill(live.seed)
            page.get_by_role("button", name="Check the lines").click()
            page.locator(".b-known").wait_for()
            page.get_by_role("button", name="Send them").click()
        else:
            press_until(page, "urls")
            page.keyboard.type(live.seed)
            press_until(page, "Check the lines")
            page.keyboard.press("Enter")
            page.locator(".b-known").wait_for()
            press_until(page, "Send them")
            page.keyboard.press("Enter")
        page.get_by_text("1 URL was sent").wait_for()
        page.goto(f"{live.here}/page?url={quote(live.seed)}")
        wait_for(lambda: page.reload() and _last_fetch(page) > before)


def _last_fetch(page: Any) -> str:
    return str(page.locator("dt:text-is('last fetch') + dd time").get_attribute("datetime"))


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_a_policy_is_edited_tried_and_written(chromium: Any, live: Live, session: str, by: str) -> None:
    before = live.policy.read_text()
    edited = f'{before}\n[policies.{by}]\ndeny = ["/never"]\n'
    with opened(chromium, session) as page:
        wait_for(lambda: page.goto(f"{live.here}/policy") and page.get_by_role("button", name="Write the file").count())
        editor = page.get_by_label("Edit the file")
        if by == "mouse":
            editor.fill(edited)
            page.get_by_role("button", name="Try it").click()
        else:
            editor.focus()
            page.keyboard.press("Control+End")
            page.keyboard.insert_text(f'\n[policies.{by}]\ndeny = ["/never"]\n')
            press_until(page, "Try it on the collection")
            page.keyboard.press("Enter")
        page.get_by_text("What it would do to the collection").wait_for()
        assert live.policy.read_text() == before, "a dry run writes nothing"
        if by == "mouse":
            page.get_by_role("button", name="Write the file").click()
        else:
            press_until(page, "Write the file")
            page.keyboard.press("Enter")
        page.get_by_text("The file is written").wait_for()
    assert live.policy.read_text() == edited
    assert live.policy.with_name(live.policy.name + ".before").read_text() == before


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_a_word_is_searched_and_its_page_found(chromium: Any, live: Live, session: str, by: str) -> None:
    with opened(chromium, session) as page:
        wait_for(lambda: page.goto(f"{live.here}/search") and page.get_by_label("Words").count())
        word = _title_word(page, live)
        wait_for(lambda: _searched(page, live, word, by))
        page.locator(".change h2 a").first.click()
        assert page.locator("h1").inner_text() == "Page"
        assert word.lower() in page.locator("main").inner_text(timeout=TIMEOUT_MS).lower() + page.content().lower()


def _title_word(page: Any, live: Live) -> str:
    """A word of the title of the newest change."""
    page.goto(f"{live.here}/changes")
    return str(max(page.locator(".change .title").first.inner_text().split(), key=len))


def _searched(page: Any, live: Live, word: str, by: str) -> int:
    page.goto(f"{live.here}/search")
    if by == "mouse":
        page.get_by_label("Words").fill(word)
        page.get_by_role("button", name="Search").click()
    else:
        press_until(page, "words")
        page.keyboard.type(word)
        page.keyboard.press("Enter")
    page.wait_for_url("**words=**")
    return int(page.locator(".change").count())


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_an_ant_is_drained(chromium: Any, tmp_path: Path, by: str) -> None:
    with DemoServer(seed=3, sites=2, pages=40, period=0, latency=0.002) as web:
        file = policy(tmp_path, web.urls, cycle={"period": "5s"})
        line = ["crawl", str(file), f"--store=rocksdb://{tmp_path}/store", "--serve=127.0.0.1:0", "--max-seconds=3600"]
        with started(*line, errors=tmp_path / "errors") as login:
            context = chromium.new_context()
            context.set_default_timeout(TIMEOUT_MS)
            page = context.new_page()
            page.goto(login)
            here = login.split("/login")[0] + "/collections/store"
            wait_for(lambda: page.goto(f"{here}/ants") and page.get_by_role("button", name="Drain").count())
            if by == "mouse":
                page.get_by_label("Let the other ants take over its sites").check()
                page.get_by_role("button", name="Drain").click()
            else:
                press_until(page, "sure")
                page.keyboard.press("Space")
                press_until(page, "Drain this ant")
                page.keyboard.press("Enter")
            page.get_by_text("gives up its sites and ends").wait_for()
            wait_for(lambda: not is_in_use(tmp_path / "store"))
            context.close()


def test_no_text_of_a_stranger_runs_or_leaves_its_frame(chromium: Any, tmp_path: Path) -> None:
    store = hostile_store(tmp_path / "one")
    with started("serve", f"--store={store}", "--listen=127.0.0.1:0", errors=tmp_path / "errors") as login:
        context = chromium.new_context()
        context.set_default_timeout(TIMEOUT_MS)
        fired, foreign = list[int](), list[str]()
        context.expose_function("canary", lambda: fired.append(1))
        page = context.new_page()
        page.on("request", lambda request: foreign.append(request.url))
        page.on("dialog", lambda _: fired.append(1))
        page.goto(login)
        here = login.split("/login")[0] + "/collections/one"
        parts = json.loads(page.evaluate(f"fetch('{here}/tables/pages?format=json&site={SITE}').then(a => a.text())"))
        paths = ["", "/changes", "/changes?view=side", "/sites", f"/site?site={SITE}", f"/pages?site={SITE}", "/policy"]
        paths += ["/checks", f"/links?url={SITE}/", f"/compare?url={SITE}/1", f"/compare?url={SITE}/1&view=side"]
        paths += [f"/page?url={quote(each['url'])}" for each in parts] + [
            f"/{name}?url={quote(each)}" for each in PAYLOADS for name in ("page", "compare", "links")
        ]
        for path in paths:
            page.goto(here + path)
            for details in page.locator("details").all():
                details.evaluate("each => each.open = true")
            assert page.locator("footer").is_visible(), path
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
            assert page.evaluate("document.querySelectorAll('script').length") == 1, path
        context.close()
    assert (fired, [url for url in foreign if not url.startswith(login.split("login")[0])]) == ([], [])
