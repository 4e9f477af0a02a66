"""A collection of hostile pages: every text that a stranger can choose is a payload, for the tests of the pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.api.crawled import BEGIN
from tests.frontier.drive import Drive, collection_of
from webfountain.clock import ManualClock
from webfountain.history.publishing import FilePlace
from webfountain.history.recorder import Recorder
from webfountain.policy.collection_file import CollectionInForce
from webfountain.ranking.link_log import LinkLog
from webfountain.records import Link
from webfountain.report.last_check import CheckResult, keep_check
from webfountain.repository.repository import Repository
from webfountain.store.contract import COLLECTION
from webfountain.store.opening import open_store
from webfountain.urls import fingerprint

if TYPE_CHECKING:
    from pathlib import Path

    from webfountain.records import Fetch

__all__ = ["PAYLOADS", "SITE", "hostile_store"]

SITE: Final = "http://h.example"
PAYLOADS: Final = (
    "<script>canary()</script>",
    "</title><script src=//evil.example/x.js></script>",
    '"><img src=x onerror=canary()>',
    "' autofocus onfocus=canary() x='",
    "<svg onload=canary()><animate onbegin=canary() attributeName=x dur=1s>",
    "</textarea><script>canary()</script>",
    "</pre></bdi></td></table><style>*{display:none}</style>",
    "<base href=//evil.example/><meta http-equiv=refresh content=0;url=//evil.example/>",
    "<iframe srcdoc='<script>parent.canary()</script>'>",
    "<form action=//evil.example/><button>go",
    "{{ 7 * 191 }}{% raw %}",
    "\u202egnp.exe\u2066hidden\u200b\u2069",
    "\x9b31m\x85\x1b]0;title\x07",
    "\U000e0041\U000e0042 tags",
    "javascript:canary()",
    "data:text/html,<script>canary()</script>",
)
"""What a stranger writes into titles, texts, URLs, headers and robots.txt."""
_LONG: Final = "A" * 1_000_000


def hostile_store(folder: Path) -> str:
    """Crawl a site whose every text is a payload into a store of the folder; its URL."""
    url = f"rocksdb://{folder}"
    rules = collection_of(
        [f"{SITE}/"],
        min_delay="10ms",
        delay_factor=0,
        period="5m",
        rest="[changes]\ndiff = true\n# </textarea><script>",
    )
    store = open_store(url, collection="test", period_s=rules.cycle.period_s, fastest_s=rules.cycle.fastest_s)
    clock = ManualClock(BEGIN)
    drive = Drive(rules, _answer, store=store, repository=Repository(folder / "repository"), clock=clock)
    recorder = Recorder(drive.frontier, drive.metrics, now=clock.now)
    drive.run(seconds=900.0)
    FilePlace(folder).put(recorder.snapshot())
    recorder.record(store)
    store.board.put_value(COLLECTION, CollectionInForce.encode(rules))
    drive.frontier.close()
    _log_links(folder)
    damage = CheckResult(BEGIN, 1.0, whole=False, mended=False, damage=PAYLOADS[0], lost_copies=9, examples=[*PAYLOADS])
    keep_check(None, url, damage)
    return url


def _log_links(folder: Path) -> None:
    """Let the home page link to every payload and be linked from it."""
    log = LinkLog(str(folder / "links"), writer="test")
    urls = [f"{SITE}/{payload}" for payload in PAYLOADS]
    log.append(f"{SITE}/", SITE, at=BEGIN, links=[Link(url, SITE, fingerprint(url)) for url in urls])
    for url in urls:
        log.append(url, SITE, at=BEGIN, links=[Link(f"{SITE}/", SITE, fingerprint(f"{SITE}/"))])
    log.close()


def _answer(fetch: Fetch, at: float) -> tuple[int, dict[str, str], bytes, float]:
    if fetch.kind == "robots":
        return 200, {}, ("User-agent: *\nDisallow: /x\n# " + "\n# ".join(PAYLOADS)).encode("utf-8", "replace"), 0.01
    path = "/" + fetch.url.split("/", 3)[3]
    number = int(path[1:]) if path[1:].isdigit() else 0
    payload = PAYLOADS[number % len(PAYLOADS)]
    escaped = payload.replace("&", "&amp;").replace("<", "&lt;")
    links = "".join(f"<a href='/{each}'>x</a>" for each in range(len(PAYLOADS)))
    links += "".join(f'<a href="/q?{each}">y</a>'.replace("'", "%27") for each in map(_attribute, PAYLOADS))
    text = f"<p>{escaped} {int(at)}</p><p>{_LONG if number == 3 else ''}{int(at) if number == 3 else ''}</p>"
    headers = {"content-type": "text/html; charset=utf-8", "x-payload": payload.replace("\x85", "").replace("\x9b", "")}
    headers["etag"] = f'"{payload[:60]}{int(at)}"'
    if "?" in path and len(path) % 3 == 0:
        return 301, {"location": f"/1?{payload}"}, b"", 0.01
    return 200, headers, f"<title>{escaped}</title>{text}{links}".encode("utf-8", "replace"), 0.01


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
