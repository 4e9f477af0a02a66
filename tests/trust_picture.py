"""The worked example of docs/policies.md: a small web, crawled by the real frontier.

``python -m tests.trust_picture`` draws it.

`tests/policy/test_worked_example.py` holds the page's figures to this crawl.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.frontier.drive import Drive
from webfountain.policy.collection_file import parse_collection

if TYPE_CHECKING:
    from tests.frontier.drive import Answer
    from webfountain.records import Fetch

__all__ = ["PICTURE", "RULES", "WEB", "HeldPage", "crawled", "draw"]

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "trust.svg"

GOOD, DOCS, OTHER, SPAM = "www.good.org", "docs.good.org", "www.other.net", "win.spam.biz"
WEB: dict[str, tuple[str, tuple[str, ...]]] = {
    f"{GOOD}/": ("welcome", (f"{GOOD}/guide", f"{DOCS}/", f"{GOOD}/forum", f"{OTHER}/")),
    f"{GOOD}/guide": ("how to begin", (f"{GOOD}/guide/first", f"{GOOD}/guide/next")),
    f"{GOOD}/guide/first": ("first steps", ()),
    f"{GOOD}/guide/next": ("next steps", ()),
    f"{DOCS}/": ("reference", (f"{DOCS}/api",)),
    f"{DOCS}/api": ("calls", ()),
    f"{GOOD}/forum": ("somebody wrote here", (f"{SPAM}/", f"{GOOD}/guide")),
    f"{OTHER}/": ("a neighbour", (f"{OTHER}/about", f"{OTHER}/news")),
    f"{OTHER}/about": ("who we are", ()),
    f"{OTHER}/news": ("what is new", ()),
    f"{SPAM}/": ("casino casino casino", (f"{SPAM}/more", f"{SPAM}/bonus", f"{GOOD}/")),
}
"""Host and path -> text, links."""

RULES = """[collection]
name = "worked-example"
scope = "any"
seeds = [{ url = "http://www.good.org/", policy = "favor" }]
[politeness]
user_agent = "example/1.0 (+https://example.org/bot)"
[policies.favor]                         # trust 1 unless set
dampening = 0.85                         # what a hop leaves of a page's trust …
splitting = true                         # … divided among its links
spread = "domain"                        # good.org; pages elsewhere get "default"
[policies.default]                       # trust 0.5 at most
dampening = 0.85
splitting = true
[[switch]]
when = { text = '(?i)casino|viagra', count = 3 }
to = "distrust"                          # trust 0, links not followed
"""
_MORE = """[network]
allow_private = true
"""


class HeldPage(NamedTuple):
    """What the crawl holds of a page."""

    policy: str
    trust: float
    depth: int


def crawled() -> dict[str, HeldPage]:
    """Host and path of each known page -> its policy and trust, when the crawl has come to rest."""

    def answer(fetch: Fetch, at: float) -> Answer:
        page = WEB.get(fetch.url.removeprefix("http://")) if fetch.kind == "page" else None
        if page is None:
            return 404, {}, b"", 0.01
        text, links = page
        body = text + "".join(f" <a href='http://{link}'>x</a>" for link in links)
        return 200, {"content-type": "text/html"}, body.encode(), 0.01

    drive = Drive(parse_collection(RULES + _MORE, Path("example.toml")), answer, recrawl=False)
    drive.run()
    return {
        record.url.removeprefix("http://"): HeldPage(record.policy, record.trust, record.depth)
        for _, record in drive.store.pages.records()
    }


def draw(pages: dict[str, HeldPage], file: Path) -> None:
    """A column for each hop, a disc for each page: its area is its trust, its colour its policy."""
    from webfountain.lab.figures import COLOURS, figure

    behind = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    plain: dict[str, Any] = {"fontsize": 8, "zorder": 3, "bbox": behind}
    drawn, [axes] = figure("How trust spreads from one favored seed", 1)
    drawn.set_size_inches(9.6, 5.2)
    colours = {"favor": COLOURS[2], "default": COLOURS[0], "distrust": COLOURS[5]}
    left_out = {link for url in pages for link in WEB[url][1] if link not in pages}
    places = _places(left_out)
    for url in pages:
        for link in WEB[url][1]:
            refused = link in left_out
            axes.annotate(
                "", xy=places[link], xytext=places[url], zorder=1,
                arrowprops={
                    "arrowstyle": "->", "color": "#bbbbbb", "shrinkA": 9, "shrinkB": 9,
                    "linestyle": ":" if refused or places[link][0] <= places[url][0] else "-",
                },
            )  # fmt: skip
    for url, page in pages.items():
        x, y = places[url]
        beside = x + 0.06 + 0.08 * page.trust
        axes.scatter([x], [y], s=40 + 1500 * page.trust, color=colours[page.policy], zorder=2)
        axes.text(beside, y + 0.17, url, color="#333333", **plain)
        axes.text(beside, y - 0.34, f"{page.trust:.3f}", color=colours[page.policy], **plain)
    for url in left_out:
        x, y = places[url]
        axes.scatter([x], [y], s=40, facecolors="white", edgecolors="#999999", zorder=2)
        axes.text(x + 0.08, y + 0.17, url, color="#999999", **plain)
        axes.text(x + 0.08, y - 0.32, "not taken in", color="#999999", **plain)
    for policy, colour in colours.items():
        axes.scatter([], [], s=60, color=colour, label=policy)
    for style, meaning in (("-", "link by which it was found"), (":", "other link")):
        axes.plot([], [], style, color="#bbbbbb", label=meaning)
    axes.legend(loc="upper left", frameon=False, fontsize=8, title="policy of the page", alignment="left")
    axes.set_xlim(-0.3, 3.9)
    axes.set_ylim(-0.9, 7.5)
    axes.set_xticks(range(4), ["seed", "1 hop", "2 hops", "3 hops"])
    axes.set_yticks([])
    axes.spines[["left"]].set_visible(False)
    axes.grid(visible=False)
    file.parent.mkdir(exist_ok=True)
    drawn.savefig(file, metadata={"Date": None})


def _places(left_out: set[str]) -> dict[str, tuple[float, float]]:
    """Column by hops, row beside the page that links it."""
    columns = (
        {f"{GOOD}/": 3.2},
        {f"{GOOD}/guide": 6.0, f"{DOCS}/": 4.2, f"{GOOD}/forum": 2.0, f"{OTHER}/": 0.4},
        {
            f"{GOOD}/guide/first": 6.8,
            f"{GOOD}/guide/next": 5.6,
            f"{DOCS}/api": 4.2,
            f"{SPAM}/": 2.0,
            f"{OTHER}/about": 0.8,
            f"{OTHER}/news": -0.2,
        },
        dict(zip(sorted(left_out), (2.6, 1.5), strict=True)),
    )
    return {url: (float(hops), y) for hops, column in enumerate(columns) for url, y in column.items()}


if __name__ == "__main__":
    draw(crawled(), PICTURE)
