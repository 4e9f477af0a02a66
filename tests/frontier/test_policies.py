"""Policies 2006 in the frontier: policies spread from the seeds, trust fades, spam is switched, edits hold."""

from __future__ import annotations

from tests.frontier.drive import Drive, collection_of

HOME, SPAM = "http://home.example", "http://spam.example"
WEB = {
    f"{HOME}/": f"<a href='/a'>a</a> <a href='{SPAM}/'>s</a>",
    f"{HOME}/a": "<a href='/a/b'>b</a>",
    f"{HOME}/a/b": "end",
    f"{SPAM}/": "<a href='/casino'>c</a>",
    f"{SPAM}/casino": "casino casino casino <a href='/more'>m</a> <a href='http://home.example/good'>g</a>",
    f"{SPAM}/more": "more",
    f"{HOME}/good": "good",
}


def answer(fetch, at):
    if fetch.kind != "page":
        return 404, {}, b"", 0.01
    body = WEB.get(fetch.url)
    return (404, {}, b"", 0.01) if body is None else (200, {"content-type": "text/html"}, body.encode(), 0.01)


def crawled(rest: str, *, collection: str = 'scope = "any"\n') -> Drive:
    drive = Drive(collection_of([f"{HOME}/"], collection=collection, rest=rest), answer, recrawl=False)
    drive.run()
    return drive


def pages(drive: Drive) -> dict[str, tuple[str, float]]:
    """URL -> policy, trust."""
    return {record.url: (record.policy, round(record.trust, 6)) for _, record in drive.store.pages()}


def test_trust_fades_along_the_links_and_is_kept_with_each_page() -> None:
    found = pages(crawled("[policies.default]\ntrust = 1.0\ndampening = 0.5\n"))
    assert [found[f"{HOME}{path}"][1] for path in ("/", "/a", "/a/b")] == [1.0, 0.5, 0.25]


def test_trust_orders_what_is_new_where_policies_tell_pages_apart_by_it() -> None:
    drive = crawled("[policies.default]\ntrust = 1.0\ndampening = 0.5\n")
    worth = {record.url: record.importance for _, record in drive.store.pages()}
    assert worth[f"{HOME}/a"] > worth[f"{HOME}/a/b"] > 0
    assert {record.importance for _, record in crawled("").store.pages()} == {0.0}


def test_a_policy_spreads_over_its_site_and_others_get_the_other_one() -> None:
    rest = '[policies.favor]\nspread = "site"\notherwise = "strange"\n[policies.strange]\ntrust = 0.1\n'
    found = pages(crawled(rest, collection='scope = "any"\npolicy = "favor"\n'))
    assert found[f"{HOME}/a/b"][0] == "favor"
    assert found[f"{SPAM}/"] == ("strange", 0.1)
    assert found[f"{SPAM}/casino"][0] == "strange"


def test_a_page_that_shows_spam_is_switched_and_what_it_links_from_then_on_is_not_taken_in() -> None:
    drive = crawled("[[switch]]\nwhen = { text = 'casino', count = 3 }\nto = 'distrust'\n")
    found = pages(drive)
    assert found[f"{SPAM}/casino"] == ("distrust", 0.0)
    assert f"{SPAM}/more" not in found
    assert found[f"{SPAM}/"][0] == "default"


def test_good_links_on_bad_pages_can_still_be_followed() -> None:
    rest = "[[switch]]\nwhen = { text = 'casino', count = 3 }\nto = 'distrust'\n[policies.distrust]\nfollow = true\n"
    rest += 'spread = "site"\n'
    found = pages(crawled(rest))
    assert found[f"{SPAM}/more"] == ("distrust", 0.0)
    assert found[f"{HOME}/good"] == ("default", 0.0)


def test_a_page_that_is_gone_can_be_switched_by_its_status() -> None:
    drive = crawled("[[switch]]\nwhen = { status = 404 }\nto = 'distrust'\n", collection="")
    assert "distrust" not in {policy for policy, _ in pages(drive).values()}
    WEB_BEFORE = dict(WEB)
    try:
        del WEB[f"{HOME}/a"]
        drive = crawled("[[switch]]\nwhen = { status = 404 }\nto = 'distrust'\n", collection="")
    finally:
        WEB.clear()
        WEB.update(WEB_BEFORE)
    assert pages(drive)[f"{HOME}/a"][0] == "distrust"


def test_after_an_edit_nothing_that_it_denies_is_asked_also_of_what_was_in_the_hand() -> None:
    every = "".join(f"<a href='/{kind}/{n}'>x</a>" for n in range(30) for kind in ("keep", "drop"))

    def site(fetch, at):
        if fetch.kind != "page":
            return 404, {}, b"", 0.01
        return 200, {"content-type": "text/html"}, (every if fetch.url.endswith("example/") else "x").encode(), 0.01

    collection = collection_of([f"{HOME}/"], delay_factor=0)
    drive = Drive(collection, site, recrawl=False)
    drive.run(until=lambda: len(drive.log) > 12)
    before = len(drive.log)
    drive.frontier.adopt_collection(
        collection_of([f"{HOME}/"], delay_factor=0, rest="[policies.default]\ndeny = ['/drop/']\n")
    )
    drive.run()
    later = [url for _, kind, url in drive.log[before:] if kind == "page"]
    assert later
    assert not [url for url in later if "/drop/" in url]
    assert sum("/keep/" in url for _, _, url in drive.log) == 30
